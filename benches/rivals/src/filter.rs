//! Which part of the work is asked for.
#![forbid(unsafe_code)]

/// `--only workload,contender,...`: parts of names, all in lower case. Empty ones let everything through.
#[derive(Debug, Default)]
pub struct Filter {
    workload: String,
    contenders: Vec<String>,
}

impl Filter {
    pub fn new(only: Option<&str>) -> Self {
        let only = only.unwrap_or_default().to_lowercase();
        let mut parts = only.split(',').map(|part| part.trim().to_owned());
        Self {
            workload: parts.next().unwrap_or_default(),
            contenders: parts.filter(|part| !part.is_empty()).collect(),
        }
    }

    /// Whether everything is asked for.
    pub fn is_open(&self) -> bool {
        self.workload.is_empty() && self.contenders.is_empty()
    }

    pub fn takes_workload(&self, key: &str) -> bool {
        key.contains(&self.workload)
    }

    pub fn takes_contender(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        let mut parts = self.contenders.iter();
        self.contenders.is_empty() || parts.any(|part| name.contains(part.as_str()))
    }
}
