//! What only the pool offers: slots set aside, of which few are used.
#![forbid(unsafe_code)]

use std::time::Duration;

use sheaves::{Pool, PoolBox};

use super::{Entry, Job, timed};
use crate::contenders::raw::Empty;
use crate::heap::{Heap, Kind, Local};
use crate::object::{MID_240, Object, Tags};

/// Set aside.
const RESERVED: usize = 32;
/// Used of them.
const USED: usize = 4;
const CHUNK: usize = 256;

type Object240 = Object<MID_240>;

pub const PREFILLED: &str = "borrow a sheaf for 32, use 4, give back";
pub const BULK: &str = "bulk allocate 32, use 4, bulk free 28";

/// The contenders of this workload.
pub fn entries() -> Vec<Entry> {
    let entry = |name, turn: fn(Duration) -> f64| Entry {
        name,
        kind: Kind::Ours,
        turn: Box::new(turn),
    };
    let harness = Entry::of_job::<Empty<MID_240>, _>(Used);
    let ours = [entry(PREFILLED, prefilled), entry(BULK, bulk)];
    harness.into_iter().chain(ours).collect()
}

/// The objects that are used, alone: the harness.
#[derive(Clone, Copy)]
struct Used;

impl Job for Used {
    fn held(self) -> usize {
        USED
    }

    fn run<H: Heap>(self, budget: Duration) -> f64 {
        let heap = H::new(USED);
        let mut local = heap.local(USED);
        let mut tags = Tags::default();
        let mut used = Vec::with_capacity(USED);
        let nanos = timed(budget, CHUNK, || {
            for _ in 0..CHUNK {
                for place in 0..USED {
                    used.push(local.alloc(place, tags.give()));
                }
                for owned in std::hint::black_box(&mut used).drain(..) {
                    tags.take(local.free(owned));
                }
            }
        });
        tags.settle();
        nanos
    }
}

fn prefilled(budget: Duration) -> f64 {
    let pool: Pool<Object240> = Pool::new("prefilled");
    let mut tags = Tags::default();
    let mut used = Vec::with_capacity(USED);
    let nanos = timed(budget, CHUNK, || {
        for _ in 0..CHUNK {
            let mut sheaf = pool.prefill(RESERVED).expect("there is memory");
            for _ in 0..USED {
                let owned = sheaf.alloc_with(|| Object::new(tags.give()));
                used.push(owned.expect("the sheaf was filled"));
            }
            sheaf.give_back();
            take_back(&mut used, &mut tags);
        }
    });
    tags.settle();
    nanos
}

fn bulk(budget: Duration) -> f64 {
    let pool: Pool<Object240> = Pool::new("bulk");
    let mut tags = Tags::default();
    let mut used = Vec::with_capacity(USED);
    let mut slots = Vec::with_capacity(RESERVED);
    let nanos = timed(budget, CHUNK, || {
        for _ in 0..CHUNK {
            let got = pool.try_alloc_uninit_bulk(RESERVED, &mut slots);
            got.expect("there is memory");
            for slot in slots.drain(RESERVED - USED..) {
                used.push(PoolBox::write(slot, Object::new(tags.give())));
            }
            PoolBox::free_bulk(slots.drain(..));
            take_back(&mut used, &mut tags);
        }
    });
    tags.settle();
    nanos
}

/// Both ways end alike: what was used is dropped one by one.
#[inline(always)]
fn take_back(used: &mut Vec<PoolBox<Object240>>, tags: &mut Tags) {
    for owned in std::hint::black_box(used).drain(..) {
        tags.take(owned.check());
    }
}
