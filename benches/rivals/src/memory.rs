//! Memory of live objects, and what is left when all are freed: in a process for each contender.
#![forbid(unsafe_code)]

use std::env;
use std::fs;
use std::io;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::contenders::floor::FLOOR;
use crate::contenders::{self, Visit, VisitShared};
use crate::filter::Filter;
use crate::heap::{Heap, Kind, Local};
use crate::object::Tags;
use crate::plan::OTHER_SIZES;
use crate::workloads::Random;

pub const KEY: &str = "memory";
/// Bytes of live objects, so that pages and tables of a fixed size do not matter.
const LIVE_BYTES: usize = 240_000_000;
const PAGE_BYTES: usize = 4096;
/// The pointer that a program keeps in any case. What a larger handle adds is charged.
const POINTER_BYTES: usize = 8;

/// What one child measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Memory {
    pub name: String,
    pub size: usize,
    pub objects: usize,
    /// Resident bytes for each live object.
    pub per_object: f64,
    /// Resident MiB more than at the start: with all objects freed, and after the contender was asked to give
    /// memory back.
    pub freed_mib: f64,
    pub purged_mib: f64,
}

/// Says who takes part, or runs one of them.
struct Select<'a> {
    size: usize,
    objects: usize,
    names: Vec<&'static str>,
    chosen: Option<&'a str>,
    result: Option<Memory>,
}

impl Select<'_> {
    fn take<H: Heap>(&mut self) {
        // The floor has all its objects from the start.
        if H::KIND == Kind::Harness || H::NAME == FLOOR || H::MOST < self.objects {
            return;
        }
        self.names.push(H::NAME);
        if self.chosen == Some(H::NAME) {
            self.result = Some(measure::<H>(self.size, self.objects));
        }
    }

    fn visit_all(&mut self) {
        match self.size {
            16 => contenders::of_size::<0>(self),
            64 => contenders::of_size::<6>(self),
            240 => contenders::all(self),
            1024 => contenders::of_size::<126>(self),
            4096 => contenders::of_size::<510>(self),
            _ => {}
        }
    }
}

impl Visit for Select<'_> {
    fn visit<H: Heap>(&mut self) {
        self.take::<H>();
    }
}

impl VisitShared for Select<'_> {
    fn visit<H: Heap + Sync>(&mut self) {
        self.take::<H>();
    }
}

fn select(size: usize, objects: usize, chosen: Option<&str>) -> Select<'_> {
    let mut select = Select {
        size,
        objects,
        names: Vec::new(),
        chosen,
        result: None,
    };
    select.visit_all();
    select
}

/// Runs a child for each contender and size. `share` of the bytes is allocated.
pub fn run(share: f64, filter: &Filter) -> io::Result<Vec<Memory>> {
    let mut list = Vec::new();
    if !filter.takes_workload(KEY) {
        return Ok(list);
    }
    for size in [240].into_iter().chain(OTHER_SIZES) {
        let objects = (LIVE_BYTES as f64 * share) as usize / size;
        for name in select(size, objects, None).names {
            // A sheaf for all objects of a program is not what it is for.
            if filter.takes_contender(name) && name != "prefilled sheaf" {
                list.push(child(name, size, objects)?);
            }
        }
    }
    Ok(list)
}

fn child(name: &str, size: usize, objects: usize) -> io::Result<Memory> {
    let numbers = [size.to_string(), objects.to_string()];
    let output = Command::new(env::current_exe()?)
        .arg("--memory-of")
        .arg(name)
        .args(numbers)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).map_err(|error| {
        let told = String::from_utf8_lossy(&output.stderr);
        io::Error::other(format!(
            "the child for {name} said {text:?} {told:?}: {error}"
        ))
    })
}

/// The child's part: prints what it measured.
pub fn in_child(arguments: &[String]) -> Option<Memory> {
    let [name, size, objects] = arguments else {
        return None;
    };
    select(size.parse().ok()?, objects.parse().ok()?, Some(name)).result
}

/// Resident bytes of this process.
fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|word| word.parse().ok());
    pages.unwrap_or(0_usize) * PAGE_BYTES
}

fn measure<H: Heap>(size: usize, objects: usize) -> Memory {
    let heap = H::new(objects);
    let mut local = heap.local(objects);
    let mut tags = Tags::default();
    // The first allocation sets up what there is once.
    let first = local.alloc(0, tags.give());
    let start = resident();
    let mut held = Vec::with_capacity(objects);
    held.extend((0..objects).map(|place| local.alloc(place, tags.give())));
    let live = resident().saturating_sub(start);
    Random::new(4).shuffle(&mut held);
    for owned in held {
        tags.take(local.free(owned));
    }
    tags.take(local.free(first));
    tags.settle();
    let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    let freed = resident().saturating_sub(start);
    heap.purge();
    let purged = resident().saturating_sub(start);
    Memory {
        name: H::NAME.to_owned(),
        size,
        objects,
        per_object: live as f64 / objects as f64 - POINTER_BYTES as f64,
        freed_mib: mib(freed),
        purged_mib: mib(purged),
    }
}
