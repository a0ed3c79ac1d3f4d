//! All workloads with their contenders.
#![forbid(unsafe_code)]

use std::time::Duration;

use crate::contenders::retire::{Checked, Plain};
use crate::contenders::{self, Visit, VisitShared};
use crate::heap::{Heap, Kind};
use crate::workloads::single::{Batch, Bulk, Create, OneHeld, Replace, ShuffledFree};
use crate::workloads::threads::{Batches, CacheLines, Handover, Larson};
use crate::workloads::vectors::{self, Growth};
use crate::workloads::{Entry, Job, SharedJob, ranges, retire, special};

/// A workload to be run.
pub struct Workload {
    pub key: &'static str,
    pub title: String,
    pub size: usize,
    pub x: Option<usize>,
    pub rounds: usize,
    pub budget: Duration,
    pub entries: Vec<Entry>,
}

/// How long all of it takes.
#[derive(Clone, Copy)]
pub struct Scale {
    /// Rounds of a workload, and of one whose turn takes long.
    rounds: usize,
    long_rounds: usize,
    budget: Duration,
    /// Objects of the shuffled free.
    pub many: usize,
}

impl Scale {
    pub const FULL: Self = Self {
        rounds: 21,
        long_rounds: 9,
        budget: Duration::from_millis(10),
        many: 1_000_000,
    };

    /// To see that everything works: the figures are worth little.
    pub const QUICK: Self = Self {
        rounds: 3,
        long_rounds: 3,
        budget: Duration::from_millis(2),
        many: 50_000,
    };
}

/// Live objects of the random replacement, and the most bytes of them: more would measure page faults.
const REPLACED: usize = 100_000;
const REPLACED_BYTES: usize = 50_000_000;
/// Objects that cross from the producer to the consumer at a time.
const PARCEL: usize = 64;
pub const BULK_CURVE: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 250];
pub const THREADS_CURVE: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Bytes of objects, beside 240.
pub const OTHER_SIZES: [usize; 4] = [16, 64, 1024, 4096];

struct Jobs<J>(J, Vec<Entry>);

impl<J: Job> Visit for Jobs<J> {
    fn visit<H: Heap>(&mut self) {
        self.1.extend(Entry::of_job::<H, J>(self.0));
    }
}

impl<J: Job> VisitShared for Jobs<J> {
    fn visit<H: Heap + Sync>(&mut self) {
        self.1.extend(Entry::of_job::<H, J>(self.0));
    }
}

struct SharedJobs<J>(J, Vec<Entry>);

impl<J: SharedJob> VisitShared for SharedJobs<J> {
    fn visit<H: Heap + Sync>(&mut self) {
        self.1.extend(Entry::of_shared::<H, J>(self.0));
    }
}

fn all<J: Job>(job: J) -> Vec<Entry> {
    let mut jobs = Jobs(job, Vec::new());
    contenders::all(&mut jobs);
    jobs.1
}

fn shared<J: SharedJob>(job: J) -> Vec<Entry> {
    let mut jobs = SharedJobs(job, Vec::new());
    contenders::shared(&mut jobs);
    jobs.1
}

fn bulk(n: usize) -> Vec<Entry> {
    let mut jobs = Jobs(Bulk(n), Vec::new());
    contenders::bulk(&mut jobs);
    jobs.1
}

fn boxes(n: usize) -> Vec<Entry> {
    let mut jobs = Jobs(Batch(n), Vec::new());
    contenders::boxes(&mut jobs);
    jobs.1
}

fn create() -> Vec<Entry> {
    let mut entries = all(Create);
    // Its creation is no harness, and there is none to subtract.
    entries.retain(|entry| entry.kind != Kind::Harness);
    entries
}

/// The contenders on a job, with objects of another size.
fn of_size<J: Job>(job: J, size: usize) -> Vec<Entry> {
    let mut jobs = Jobs(job, Vec::new());
    match size {
        16 => contenders::of_size::<0>(&mut jobs),
        64 => contenders::of_size::<6>(&mut jobs),
        1024 => contenders::of_size::<126>(&mut jobs),
        4096 => contenders::of_size::<510>(&mut jobs),
        _ => unreachable!("a size of OTHER_SIZES"),
    }
    jobs.1
}

/// Everything, in the order of the tables.
pub fn workloads(scale: Scale) -> Vec<Workload> {
    let mut list = single(scale);
    list.extend(collections(scale));
    list.extend(threaded(scale));
    list.extend(curves(scale));
    list.extend(sizes(scale));
    list
}

fn workload(scale: Scale, key: &'static str, title: String, entries: Vec<Entry>) -> Workload {
    Workload {
        key,
        title,
        size: 240,
        x: None,
        rounds: scale.rounds,
        budget: scale.budget,
        entries,
    }
}

fn single(scale: Scale) -> Vec<Workload> {
    let work = |key, title: &str, entries| workload(scale, key, title.to_owned(), entries);
    let mut shuffled = work("shuffled-free", "", all(ShuffledFree(scale.many)));
    shuffled.title = format!("free {} in random order, allocate them again", scale.many);
    shuffled.rounds = scale.long_rounds;
    vec![
        work("one-held", "one held", all(OneHeld)),
        work("batch-32", "batches of 32", all(Batch(32))),
        work("batch-256", "batches of 256", all(Batch(256))),
        work(
            "replace",
            "random replacement among 100000 live",
            all(Replace(REPLACED)),
        ),
        shuffled,
        work(
            "reserve",
            "32 slots set aside, 4 used; for all of it",
            special::entries(),
        ),
        work("create", "create, first allocation and free, end", create()),
        work(
            "ranges",
            "five ranges mapped, found, unmapped; for all of it",
            ranges::entries(),
        ),
    ]
}

fn collections(scale: Scale) -> Vec<Workload> {
    let work = |key, title: &str, entries| workload(scale, key, title.to_owned(), entries);
    let mut fresh = work(
        "vectors-fresh",
        "1000 vectors in turn to 40 elements each, fresh heap",
        vectors::entries(Growth::Fresh),
    );
    fresh.rounds = scale.rounds;
    vec![
        work("boxes", "batches of 1000 boxes", boxes(1000)),
        work(
            "vector",
            "one vector to 16384 elements",
            vectors::entries(Growth::One),
        ),
        fresh,
        work(
            "vectors-used",
            "1000 vectors in turn to 40 elements each, used heap",
            vectors::entries(Growth::Used),
        ),
    ]
}

fn threaded(scale: Scale) -> Vec<Workload> {
    let work = |key, title: &str, entries| Workload {
        // Threads start and end within a turn.
        budget: scale.budget * 2,
        ..workload(scale, key, title.to_owned(), entries)
    };
    let two = Batches {
        threads: 2,
        held: 256,
    };
    let thrash = CacheLines { scratch: false };
    let scratch = CacheLines { scratch: true };
    vec![
        work(
            "handover",
            "producer to consumer, 64 at a time",
            shared(Handover(PARCEL)),
        ),
        work("two-threads", "two threads, 256 held each", shared(two)),
        work(
            "larson",
            "larson: threads die and leave objects",
            shared(Larson),
        ),
        work(
            "cache-thrash",
            "cache-thrash, 100 writes each",
            shared(thrash),
        ),
        work(
            "cache-scratch",
            "cache-scratch, 100 writes each",
            shared(scratch),
        ),
        work(
            "retire",
            "two threads allocate and retire",
            retire::retired::<Plain>(),
        ),
        work(
            "retire-drop",
            "two threads allocate and retire, with a destructor",
            retire::retired::<Checked>(),
        ),
        work(
            "retire-cell",
            "two threads replace and retire what is in a cell",
            retire::replaced::<Plain>(),
        ),
    ]
}

fn curves(scale: Scale) -> Vec<Workload> {
    let point = |key, title: String, x, entries| Workload {
        x: Some(x),
        rounds: scale.long_rounds,
        ..workload(scale, key, title, entries)
    };
    let bulks = BULK_CURVE
        .into_iter()
        .map(|n| point("bulk", format!("bulk of {n}"), n, bulk(n)));
    let threads = THREADS_CURVE.into_iter().map(|n| {
        let job = Batches {
            threads: n,
            held: 32,
        };
        point(
            "threads",
            format!("{n} threads, batches of 32"),
            n,
            shared(job),
        )
    });
    bulks.chain(threads).collect()
}

fn sizes(scale: Scale) -> Vec<Workload> {
    let mut list = Vec::new();
    for size in OTHER_SIZES {
        let work = |key, title: &str, entries| Workload {
            size,
            rounds: scale.long_rounds,
            ..workload(scale, key, format!("{title}, {size} bytes"), entries)
        };
        list.push(work("one-held", "one held", of_size(OneHeld, size)));
        list.push(work("batch-32", "batches of 32", of_size(Batch(32), size)));
        list.push(work(
            "batch-256",
            "batches of 256",
            of_size(Batch(256), size),
        ));
        let live = REPLACED.min(REPLACED_BYTES / size);
        let title = format!("random replacement among {live} live");
        list.push(work("replace", &title, of_size(Replace(live), size)));
    }
    list
}
