//! The last handle goes, and objects do not.

use core::cell::RefCell;
use std::sync::{Arc, Barrier, mpsc};

use sheaves::{Heap, PageSource, Pool, PoolBox, PrefilledSheaf};

use crate::support::{Random, in_child, watched};

type Object = [u64; 30];

/// A source that shows, by its count of references, whether its pool is gone.
#[derive(Debug)]
struct Shared;

// SAFETY: every block is one of `Heap`, which gets it back with its layout.
unsafe impl PageSource for Shared {
    fn alloc_pages(&self, layout: core::alloc::Layout) -> Option<core::ptr::NonNull<u8>> {
        Heap.alloc_pages(layout)
    }

    unsafe fn free_pages(&self, pages: core::ptr::NonNull<u8>, layout: core::alloc::Layout) {
        // SAFETY: passed on.
        unsafe { Heap.free_pages(pages, layout) };
    }
}

fn pool() -> (Pool<Object>, Arc<Shared>) {
    let source = Arc::new(Shared);
    let builder = Pool::<Object>::builder("closed").source(Arc::clone(&source));
    (builder.sheaf_capacity(16).build().unwrap(), source)
}

thread_local! {
    static LATE: RefCell<Vec<PoolBox<Object>>> = const { RefCell::new(Vec::new()) };
    static EARLY: RefCell<Vec<PoolBox<Object>>> = const { RefCell::new(Vec::new()) };
}

/// Who frees what is left.
#[derive(Clone, Copy, Debug)]
enum Freeing {
    /// Threads that used the pool.
    Users,
    /// A destructor of a thread-local that is older than the thread's sheaves.
    EarlyDestructor,
    /// One that is younger.
    LateDestructor,
    /// A thread that never used the pool.
    Stranger,
    /// A stranger's destructor of a thread-local.
    StrangersDestructor,
}

/// Promises 2 and 5: every order of handles, objects, threads and sheaves.
#[test]
fn the_last_object_ends_a_pool_wherever_it_is_freed() {
    use Freeing::{EarlyDestructor, LateDestructor, Stranger, StrangersDestructor, Users};
    watched("the last object", || {
        for freeing in [
            Users,
            EarlyDestructor,
            LateDestructor,
            Stranger,
            StrangersDestructor,
        ] {
            for round in 0..12 {
                let source = orphan(freeing, round);
                assert_eq!(
                    Arc::strong_count(&source),
                    1,
                    "{freeing:?}, round {round}: the pool is not gone"
                );
            }
        }
    });
}

/// One pool, four threads with objects, and a last handle that goes while they have them.
fn orphan(freeing: Freeing, round: usize) -> Arc<Shared> {
    let (pool, source) = pool();
    let barrier = Arc::new(Barrier::new(5));
    let (send, receive) = mpsc::channel();
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let (pool, barrier, send) = (pool.clone(), Arc::clone(&barrier), send.clone());
            std::thread::spawn(move || {
                EARLY.with(|cell| cell.borrow_mut().clear());
                let mut boxes: Vec<_> = (0..40).map(|i| pool.alloc([i; 30])).collect();
                drop(boxes.split_off(20));
                // In half of the rounds the last handle goes here, in the others in the main thread.
                let last = (round % 2 == 0 && thread == 0).then(|| pool.clone());
                drop(pool);
                barrier.wait();
                barrier.wait();
                drop(last);
                match freeing {
                    Freeing::Users => drop(boxes),
                    Freeing::EarlyDestructor => {
                        EARLY.with(|cell| cell.borrow_mut().append(&mut boxes))
                    }
                    Freeing::LateDestructor => {
                        LATE.with(|cell| cell.borrow_mut().append(&mut boxes))
                    }
                    Freeing::Stranger | Freeing::StrangersDestructor => send.send(boxes).unwrap(),
                }
            })
        })
        .collect();
    drop(send);
    barrier.wait();
    drop(pool);
    barrier.wait();
    let stranger = std::thread::spawn(move || {
        for mut boxes in receive {
            assert!(
                boxes
                    .iter()
                    .all(|boxed| boxed.iter().all(|word| *word == boxed[0]))
            );
            if matches!(freeing, Freeing::StrangersDestructor) {
                LATE.with(|cell| cell.borrow_mut().append(&mut boxes));
            }
        }
    });
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    stranger.join().unwrap();
    source
}

/// What a pool may be kept alive by.
#[derive(Debug)]
enum Thing {
    Handle(Pool<Object>),
    Boxed(PoolBox<Object>),
    Sheaf(PrefilledSheaf<Object>),
}

impl Thing {
    /// Uses the thing a little, and ends it.
    fn end(self) {
        match self {
            Self::Handle(pool) => {
                drop(pool.alloc([1; 30]));
                pool.flush_thread();
            }
            Self::Boxed(boxed) => {
                let copy = boxed.clone();
                assert_eq!(*copy, *boxed);
                drop(boxed);
                drop(copy);
            }
            Self::Sheaf(mut sheaf) => {
                let boxed = sheaf.alloc([3; 30]).expect("it holds one at least");
                if sheaf.len() % 2 == 0 {
                    sheaf.free(boxed).expect("it has room");
                } else {
                    drop(sheaf);
                    drop(boxed);
                }
            }
        }
    }
}

/// Promises 2 and 5: handles, objects and sheaves of one pool end in any order on any threads.
#[test]
fn things_of_a_pool_end_in_any_order() {
    watched("any order", || {
        let mut random = Random::new(5);
        for round in 0..300 {
            let (pool, source) = pool();
            let mut things: Vec<Thing> = (0..60)
                .map(|_| match random.below(8) {
                    0 => Thing::Handle(pool.clone()),
                    1 => Thing::Sheaf(pool.prefill(1 + random.below(20)).unwrap()),
                    _ => Thing::Boxed(pool.alloc([7; 30])),
                })
                .collect();
            things.push(Thing::Handle(pool));
            for at in (1..things.len()).rev() {
                things.swap(at, random.below(at + 1));
            }
            let mut threads = Vec::new();
            while !things.is_empty() {
                let part = things.split_off(things.len() - things.len().div_ceil(3));
                threads.push(std::thread::spawn(|| part.into_iter().for_each(Thing::end)));
            }
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
            assert_eq!(
                Arc::strong_count(&source),
                1,
                "round {round}: the pool is not gone"
            );
        }
    });
}

/// Promise 5: the last object and the last handle go at the same moment, again and again.
#[test]
fn the_last_object_and_the_last_handle_race() {
    watched("a race", || {
        for round in 0..if cfg!(debug_assertions) { 1000 } else { 5000 } {
            let (pool, source) = pool();
            let boxes: [_; 3] = core::array::from_fn(|_| pool.alloc([9; 30]));
            let barrier = Arc::new(Barrier::new(4));
            let mut threads: Vec<_> = boxes
                .into_iter()
                .map(|boxed| {
                    let barrier = Arc::clone(&barrier);
                    std::thread::spawn(move || {
                        barrier.wait();
                        drop(boxed);
                    })
                })
                .collect();
            threads.push(std::thread::spawn({
                let barrier = Arc::clone(&barrier);
                move || {
                    barrier.wait();
                    drop(pool);
                }
            }));
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
            assert_eq!(
                Arc::strong_count(&source),
                1,
                "round {round}: the pool is not gone"
            );
        }
    });
}

/// Pools are listed while others are built and end: the listing must not be who ends one, under its own lock. In a
/// process of its own, since a listing keeps the pool that it looks at, and other tests here count who does.
#[test]
fn pools_end_while_all_are_listed() {
    const ROUNDS: usize = 3_000;
    in_child("close::pools_end_while_all_are_listed", &[], || {
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..ROUNDS).for_each(|_| drop(Pool::<u64>::new("short"))));
                scope.spawn(|| (0..ROUNDS).for_each(|_| drop(sheaves::pools())));
            }
        });
    });
}
