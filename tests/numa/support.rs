//! Machines, threads that stand somewhere, and a page source that counts and can be shut.

use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

use sheaves::testing::{NodeStats, Topology};
use sheaves::{Builder, Heap, Order, PageSource, Pool};

pub(crate) use crate::random::Random;

/// What the tests' pools hold.
pub(crate) type Object = [u64; 30];

/// Slots of a sheaf.
pub(crate) const SHEAF: usize = 8;

/// Nodes with two processors each, and with memory: node `n` has processors `2 * n` and `2 * n + 1`.
pub(crate) fn machine(nodes: usize) -> Topology {
    let lists: Vec<String> = (0..nodes)
        .map(|node| format!("{}-{}", 2 * node, 2 * node + 1))
        .collect();
    let nodes: Vec<(&str, bool)> = lists.iter().map(|list| (list.as_str(), true)).collect();
    Topology::new(&nodes).expect("lists of processors")
}

/// Small slabs and sheaves, so that few objects fill them.
pub(crate) fn small(name: &str) -> Builder<Object> {
    Pool::builder(name)
        .order(Order::new(0))
        .sheaf_capacity(SHEAF)
}

/// Runs `body` on a thread that stands on a processor, from its beginning to its end.
pub(crate) fn on<R: Send>(cpu: usize, body: impl FnOnce() -> R + Send) -> R {
    let run = move || {
        Topology::stand_on(cpu);
        body()
    };
    std::thread::scope(|scope| {
        scope
            .spawn(run)
            .join()
            .expect("the thread's assertions hold")
    })
}

/// What a pool has on each node.
pub(crate) fn nodes<T>(pool: &Pool<T>) -> Vec<NodeStats> {
    NodeStats::of(pool)
}

/// Pages of objects.
pub(crate) fn pages(objects: &[&Object]) -> Vec<usize> {
    let mut pages: Vec<usize> = objects
        .iter()
        .map(|object| object.as_ptr().addr() >> 16)
        .collect();
    pages.sort_unstable();
    pages.dedup();
    pages
}

/// The heap, as a source that knows how many bytes are out and can be shut.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) bytes: Arc<AtomicUsize>,
    pub(crate) shut: Arc<AtomicBool>,
}

impl Counted {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::SeqCst)
    }

    pub(crate) fn shut(&self) {
        self.shut.store(true, Ordering::SeqCst);
    }
}

// SAFETY: every block comes from `Heap` and goes back to it, as it was asked for.
unsafe impl PageSource for Counted {
    fn alloc_pages(&self, layout: Layout) -> Option<NonNull<u8>> {
        if self.shut.load(Ordering::SeqCst) {
            return None;
        }
        let pages = Heap.alloc_pages(layout)?;
        self.bytes.fetch_add(layout.size(), Ordering::SeqCst);
        Some(pages)
    }

    unsafe fn free_pages(&self, start: NonNull<u8>, layout: Layout) {
        self.bytes.fetch_sub(layout.size(), Ordering::SeqCst);
        // SAFETY: passed on.
        unsafe { Heap.free_pages(start, layout) };
    }
}
