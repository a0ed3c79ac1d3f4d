//! One thread.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::mem;
use std::time::{Duration, Instant};

use super::{Job, Random, timed};
use crate::heap::{Heap, LAST, Local};
use crate::object::Tags;

/// Pairs between two looks at the clock.
const CHUNK: usize = 4096;

/// An object is allocated and freed before the next.
#[derive(Clone, Copy)]
pub struct OneHeld;

impl Job for OneHeld {
    fn held(self) -> usize {
        1
    }

    fn run<H: Heap>(self, budget: Duration) -> f64 {
        let heap = H::new(1);
        let mut local = heap.local(1);
        let mut tags = Tags::default();
        let nanos = timed(budget, CHUNK, || {
            for _ in 0..CHUNK {
                let owned = black_box(local.alloc(0, tags.give()));
                tags.take(local.free(owned));
            }
        });
        tags.settle();
        nanos
    }
}

/// So many are allocated, then freed in the same order.
#[derive(Clone, Copy)]
pub struct Batch(pub usize);

impl Job for Batch {
    fn held(self) -> usize {
        self.0
    }

    fn run<H: Heap>(self, budget: Duration) -> f64 {
        let n = self.0;
        let heap = H::new(n);
        let mut local = heap.local(n);
        let mut tags = Tags::default();
        let mut held = Vec::with_capacity(n);
        let batches = CHUNK / n;
        let nanos = timed(budget, batches * n, || {
            for _ in 0..batches {
                for place in 0..n {
                    held.push(local.alloc(place, tags.give()));
                }
                for owned in black_box(&mut held).drain(..) {
                    tags.take(local.free(owned));
                }
            }
        });
        tags.settle();
        nanos
    }
}

/// As [`Batch`], through the contender's bulk calls if it has any.
#[derive(Clone, Copy)]
pub struct Bulk(pub usize);

impl Job for Bulk {
    fn held(self) -> usize {
        self.0
    }

    fn run<H: Heap>(self, budget: Duration) -> f64 {
        let n = self.0;
        let heap = H::new(n);
        let mut local = heap.local(n);
        let mut tags = Tags::default();
        let mut held = Vec::with_capacity(n);
        let batches = CHUNK / n;
        let nanos = timed(budget, batches * n, || {
            for _ in 0..batches {
                local.alloc_many(n, || tags.give(), &mut held);
                local.free_many(black_box(&mut held), |tag| tags.take(tag));
            }
        });
        tags.settle();
        nanos
    }
}

/// Of so many live objects a random one is replaced: the new one is allocated first.
#[derive(Clone, Copy)]
pub struct Replace(pub usize);

impl Job for Replace {
    fn held(self) -> usize {
        self.0 + 1
    }

    fn run<H: Heap>(self, budget: Duration) -> f64 {
        let n = self.0;
        let heap = H::new(n + 1);
        let mut local = heap.local(n + 1);
        let mut tags = Tags::default();
        let mut random = Random::new(1);
        let mut held: Vec<_> = (0..n)
            .map(|place| local.alloc(place, tags.give()))
            .collect();
        // The last of them were allocated in order of address; after this no longer.
        random.shuffle(&mut held);
        let nanos = timed(budget, CHUNK * 8, || {
            for _ in 0..CHUNK * 8 {
                let new = local.alloc(LAST, tags.give());
                let old = mem::replace(&mut held[random.below(n)], new);
                tags.take(local.free(old));
            }
        });
        for owned in held {
            tags.take(local.free(owned));
        }
        tags.settle();
        nanos
    }
}

/// So many live objects are freed in random order, then as many are allocated again. An operation is one free
/// and one allocation. The budget does not matter: it is done once.
#[derive(Clone, Copy)]
pub struct ShuffledFree(pub usize);

impl Job for ShuffledFree {
    fn held(self) -> usize {
        self.0
    }

    fn run<H: Heap>(self, _budget: Duration) -> f64 {
        let n = self.0;
        let heap = H::new(n);
        let mut local = heap.local(n);
        let mut tags = Tags::default();
        let mut held = Vec::with_capacity(n);
        held.extend((0..n).map(|place| local.alloc(place, tags.give())));
        Random::new(2).shuffle(&mut held);
        let start = Instant::now();
        for owned in black_box(&mut held).drain(..) {
            tags.take(local.free(owned));
        }
        for place in 0..n {
            held.push(local.alloc(place, tags.give()));
        }
        let nanos = start.elapsed().as_nanos() as f64 / n as f64;
        for owned in held {
            tags.take(local.free(owned));
        }
        tags.settle();
        nanos
    }
}

/// Creates the contender, allocates one object, frees it and ends the contender.
#[derive(Clone, Copy)]
pub struct Create;

impl Job for Create {
    fn held(self) -> usize {
        1
    }

    fn run<H: Heap>(self, budget: Duration) -> f64 {
        let mut tags = Tags::default();
        let nanos = timed(budget, 16, || {
            for _ in 0..16 {
                let heap = H::new(1);
                let mut local = heap.local(1);
                let owned = black_box(local.alloc(0, tags.give()));
                tags.take(local.free(owned));
            }
        });
        tags.settle();
        nanos
    }
}
