//! What the figures were taken on.
#![forbid(unsafe_code)]

use std::fmt;
use std::fs;

use serde::Serialize;

use crate::workloads::threads::processors;

#[derive(Debug, Serialize)]
pub struct Machine {
    pub processor: String,
    pub processors: usize,
    pub kernel: String,
    pub huge_pages: String,
    /// Load of the last minute when the program began.
    pub load: String,
}

impl Machine {
    pub fn this() -> Self {
        let line = |file: &str| {
            fs::read_to_string(file)
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        let model = line("/proc/cpuinfo");
        let mut lines = model.lines();
        let model = lines.find(|line| line.starts_with("model name"));
        let model = model.and_then(|line| line.split_once(": "));
        let load = line("/proc/loadavg");
        Self {
            processor: model.map_or("unknown", |(_, name)| name).to_owned(),
            processors: processors(),
            kernel: line("/proc/sys/kernel/osrelease"),
            huge_pages: line("/sys/kernel/mm/transparent_hugepage/enabled"),
            load: load.split(' ').next().unwrap_or_default().to_owned(),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            processor,
            processors,
            kernel,
            huge_pages,
            load,
        } = self;
        writeln!(
            f,
            "{processor}, {processors} processors, kernel {kernel}, transparent huge pages {huge_pages}, load {load} at \
             the start"
        )
    }
}
