//! Several threads.
#![forbid(unsafe_code)]

use std::hint::{black_box, spin_loop};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;

use super::{Random, SharedJob};
use crate::heap::{Heap, Local};
use crate::object::Tags;

/// Pairs of all threads between two looks at the flag that ends a turn.
const CHUNK: usize = 4096;

/// Processors this program may use.
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Binds the calling thread to a processor: where two threads share one by chance, each waits for the other.
fn pin(number: usize) {
    let Some(all) = core_affinity::get_core_ids() else {
        return;
    };
    if !all.is_empty() {
        // Where it is refused, the system chooses.
        let _ = core_affinity::set_for_current(all[number % all.len()]);
    }
}

/// What threads of a turn share.
pub(super) struct Race {
    pub(super) ready: Barrier,
    stop: AtomicBool,
}

impl Race {
    pub(super) fn goes_on(&self) -> bool {
        // Relaxed: it carries nothing.
        !self.stop.load(Ordering::Relaxed)
    }

    /// Runs `body(number, race)` on so many threads for about `budget`; it returns how many operations it did. Time
    /// of one processor for one operation: threads beyond the processors do not count as time.
    pub(super) fn run(
        threads: usize,
        budget: Duration,
        body: impl Fn(usize, &Self) -> (usize, Tags) + Sync,
    ) -> f64 {
        let race = Self {
            ready: Barrier::new(threads + 1),
            stop: AtomicBool::new(false),
        };
        let mut tags = Tags::default();
        let (done, spent) = thread::scope(|scope| {
            let start_one = |number| {
                let (race, body) = (&race, &body);
                scope.spawn(move || {
                    pin(number);
                    body(number, race)
                })
            };
            let handles: Vec<_> = (0..threads).map(start_one).collect();
            race.ready.wait();
            let start = Instant::now();
            thread::sleep(budget);
            // Relaxed: it carries nothing.
            race.stop.store(true, Ordering::Relaxed);
            let mut done = 0;
            for handle in handles {
                let (operations, own) = handle.join().expect("no turn panics");
                done += operations;
                tags.add(&own);
            }
            (done, start.elapsed())
        });
        tags.settle();
        let busy = threads.min(processors());
        spent.as_nanos() as f64 * busy as f64 / done as f64
    }
}

/// Each of so many threads allocates and frees batches.
#[derive(Clone, Copy)]
pub struct Batches {
    pub threads: usize,
    pub held: usize,
}

impl SharedJob for Batches {
    fn held(self) -> usize {
        self.threads * self.held
    }

    fn run<H: Heap + Sync>(self, budget: Duration) -> f64 {
        let heap = H::new(SharedJob::held(self));
        let n = self.held;
        let batches = (CHUNK / (n * self.threads)).max(1);
        Race::run(self.threads, budget, |number, race| {
            let mut local = heap.local(n);
            let mut tags = Tags::new(number);
            let mut held = Vec::with_capacity(n);
            let mut done = 0;
            race.ready.wait();
            while race.goes_on() {
                for _ in 0..batches {
                    for place in 0..n {
                        held.push(local.alloc(number * n + place, tags.give()));
                    }
                    for owned in black_box(&mut held).drain(..) {
                        tags.take(local.free(owned));
                    }
                }
                done += batches * n;
            }
            (done, tags)
        })
    }
}

/// One thread allocates, another frees; so many objects cross at a time.
#[derive(Clone, Copy)]
pub struct Handover(pub usize);

/// Parcels under way.
const PARCELS: usize = 16;

struct Parcel<T> {
    number: usize,
    items: Vec<T>,
}

impl SharedJob for Handover {
    fn held(self) -> usize {
        PARCELS * self.0
    }

    fn run<H: Heap + Sync>(self, budget: Duration) -> f64 {
        let n = self.0;
        let heap = H::new(SharedJob::held(self));
        let (full, empty) = (ArrayQueue::new(PARCELS), ArrayQueue::new(PARCELS));
        for number in 0..PARCELS {
            let items = Vec::with_capacity(n);
            let _ = empty.push(Parcel { number, items });
        }
        let ended = AtomicBool::new(false);
        // An object's time is the wall's: two processors work on it, each on half of it.
        let both = Race::run(2, budget, |number, race| {
            let mut local = heap.local(n);
            let mut tags = Tags::default();
            let mut done = 0;
            race.ready.wait();
            if number == 0 {
                while race.goes_on() {
                    let mut parcel = wait(|| empty.pop());
                    for place in 0..n {
                        let place = parcel.number * n + place;
                        parcel.items.push(local.alloc(place, tags.give()));
                    }
                    let _ = full.push(parcel);
                }
                // Release: what was pushed before is seen by who sees this.
                ended.store(true, Ordering::Release);
                return (done, tags);
            }
            let mut waited = 0;
            loop {
                // Acquire: looked at first, so that an empty queue after it stays empty.
                let last = ended.load(Ordering::Acquire);
                let Some(mut parcel) = full.pop() else {
                    if last {
                        return (done, tags);
                    }
                    pause(&mut waited);
                    continue;
                };
                waited = 0;
                for owned in parcel.items.drain(..) {
                    tags.take(local.free(owned));
                }
                done += n;
                let _ = empty.push(parcel);
            }
        });
        both / 2.min(processors()) as f64
    }
}

fn wait<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let mut rounds = 0;
    loop {
        if let Some(got) = attempt() {
            return got;
        }
        pause(&mut rounds);
    }
}

/// Spins a little, then lets others run.
fn pause(rounds: &mut u32) {
    *rounds += 1;
    if *rounds < 64 {
        spin_loop();
    } else {
        thread::yield_now();
    }
}

/// larson: threads replace random objects of theirs, die, and leave them to a successor.
#[derive(Clone, Copy)]
pub struct Larson;

/// Objects of a thread.
const LARSON_HELD: usize = 1000;
/// Replacements in a thread's life.
const LARSON_LIFE: usize = 20_000;

impl SharedJob for Larson {
    fn held(self) -> usize {
        2 * LARSON_HELD
    }

    fn run<H: Heap + Sync>(self, budget: Duration) -> f64 {
        let heap = H::new(SharedJob::held(self));
        Race::run(2, budget, |line, race| {
            let base = line * LARSON_HELD;
            let mut tags = Tags::new(line);
            let mut local = heap.local(LARSON_HELD);
            let first = |i| Some(local.alloc(base + i, tags.give()));
            let mut held: Vec<_> = (0..LARSON_HELD).map(first).collect();
            let mut done = 0;
            race.ready.wait();
            while race.goes_on() {
                let (held, tags) = (&mut held, &mut tags);
                let life = || live::<H>(&heap, base, done, held, tags);
                thread::scope(|scope| scope.spawn(life).join()).expect("no turn panics");
                done += LARSON_LIFE;
            }
            for owned in held.into_iter().flatten() {
                tags.take(local.free(owned));
            }
            (done, tags)
        })
    }
}

type Held<'a, H> = Vec<Option<<<H as Heap>::Local<'a> as Local>::Owned>>;

/// The life of one thread.
fn live<'a, H: Heap>(
    heap: &'a H,
    base: usize,
    seed: usize,
    held: &mut Held<'a, H>,
    tags: &mut Tags,
) {
    let mut local = heap.local(held.len());
    let mut random = Random::new(seed + base);
    for _ in 0..LARSON_LIFE {
        let victim = random.below(held.len());
        if let Some(owned) = held[victim].take() {
            tags.take(local.free(owned));
        }
        held[victim] = Some(local.alloc(base + victim, tags.give()));
    }
}

/// cache-thrash and cache-scratch: each thread allocates an object, writes it many times and frees it. With
/// `scratch` each first frees one that a single thread allocated together with those of the others, so that an
/// allocator that reuses it may put two threads on one line.
#[derive(Clone, Copy)]
pub struct CacheLines {
    pub scratch: bool,
}

/// Writes of an object while it is held.
const WRITES: u64 = 100;
/// Places between two threads' objects in the harness, so that it shares no line itself.
const APART: usize = 64;

impl SharedJob for CacheLines {
    fn held(self) -> usize {
        2 * APART
    }

    fn writes(self) -> bool {
        true
    }

    fn run<H: Heap + Sync>(self, budget: Duration) -> f64 {
        let heap = H::new(SharedJob::held(self));
        let first = ArrayQueue::new(2);
        Race::run(2, budget, |number, race| {
            let mut local = heap.local(APART);
            let mut tags = Tags::new(number);
            if number == 0 && self.scratch {
                for thread in 0..2 {
                    // Either thread may take it: the place is neither's own.
                    let place = thread * APART + APART / 2;
                    let _ = first.push(local.alloc(place, tags.give()));
                }
            }
            race.ready.wait();
            if self.scratch {
                let owned = wait(|| first.pop());
                tags.take(local.free(owned));
            }
            let mut done = 0;
            while race.goes_on() {
                for _ in 0..64 {
                    let mut owned = local.alloc(number * APART, tags.give());
                    <H::Local<'_> as Local>::touch(&mut owned, WRITES);
                    tags.raise(WRITES);
                    tags.take(local.free(black_box(owned)));
                }
                done += 64;
            }
            (done, tags)
        })
    }
}
