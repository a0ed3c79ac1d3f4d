//! What several areas share: a metered page source, counters of drops, a watchdog, a hook for reports.

use alloc::sync::Arc;
use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering};
use std::collections::HashMap;
use std::sync::{Mutex, Once, PoisonError};

use sheaves::{Heap, PageSource, Report, ReportKind, set_report_hook};

pub(crate) use crate::isolated::isolated;
pub(crate) use crate::random::Random;
pub(crate) use crate::watchdog::watched;

/// Reads and writes of the tests' own counters; they order nothing but themselves.
pub(crate) const SEQ: Ordering = Ordering::SeqCst;

/// A page source over [`Heap`] that checks what comes back, and fails or panics on demand.
#[derive(Debug)]
pub(crate) struct Metered {
    blocks: Mutex<HashMap<usize, Layout>>,
    /// Blocks that may still be given out; negative: any number.
    budget: AtomicIsize,
    /// Layouts above this are refused.
    largest: AtomicUsize,
    /// The call of `alloc_pages` that panics, counted down; 0: none.
    panic_in_alloc: AtomicUsize,
    /// The call of `free_pages` that panics, counted down; 0: none.
    panic_in_free: AtomicUsize,
    /// The call of `remap` that panics, counted down; 0: none.
    panic_in_remap: AtomicUsize,
    /// Whether blocks can be remapped; they always move.
    remaps: AtomicBool,
    pub(crate) remapped: AtomicUsize,
    pub(crate) allocs: AtomicUsize,
    pub(crate) refusals: AtomicUsize,
    pub(crate) trims: AtomicUsize,
}

impl Metered {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            blocks: Mutex::default(),
            budget: AtomicIsize::new(-1),
            largest: AtomicUsize::new(usize::MAX),
            panic_in_alloc: AtomicUsize::new(0),
            panic_in_free: AtomicUsize::new(0),
            panic_in_remap: AtomicUsize::new(0),
            remaps: AtomicBool::new(false),
            remapped: AtomicUsize::new(0),
            allocs: AtomicUsize::new(0),
            refusals: AtomicUsize::new(0),
            trims: AtomicUsize::new(0),
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<usize, Layout>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks that are out.
    pub(crate) fn blocks(&self) -> usize {
        self.lock().len()
    }

    /// Bytes that are out.
    pub(crate) fn bytes(&self) -> u64 {
        self.lock()
            .values()
            .map(|layout| layout.size() as u64)
            .sum()
    }

    /// Gives out `n` more blocks and then fails; `None`: never fails.
    pub(crate) fn set_budget(&self, n: Option<usize>) {
        let n = n.map_or(-1, |n| isize::try_from(n).expect("a small number"));
        self.budget.store(n, SEQ);
    }

    pub(crate) fn refuse_above(&self, bytes: usize) {
        self.largest.store(bytes, SEQ);
    }

    /// Panics in the `n`-th `alloc_pages` from now on, from 1.
    pub(crate) fn panic_in_alloc(&self, n: usize) {
        self.panic_in_alloc.store(n, SEQ);
    }

    /// Panics in the `n`-th `free_pages` from now on, from 1. The pages are taken all the same.
    pub(crate) fn panic_in_free(&self, n: usize) {
        self.panic_in_free.store(n, SEQ);
    }

    /// Remaps blocks from now on, or not.
    pub(crate) fn set_remaps(&self, on: bool) {
        self.remaps.store(on, SEQ);
    }

    /// Panics in the `n`-th `remap` from now on, from 1, before anything has changed.
    pub(crate) fn panic_in_remap(&self, n: usize) {
        self.panic_in_remap.store(n, SEQ);
    }

    fn is_due(counter: &AtomicUsize) -> bool {
        counter.fetch_update(SEQ, SEQ, |n| n.checked_sub(1)) == Ok(1)
    }
}

// SAFETY: every block comes from `Heap` and goes back to it with its layout.
unsafe impl PageSource for Metered {
    fn alloc_pages(&self, layout: Layout) -> Option<NonNull<u8>> {
        assert!(
            layout.size() != 0 && layout.size() % 65_536 == 0,
            "{layout:?}"
        );
        assert!(layout.align() >= 65_536, "{layout:?}");
        self.allocs.fetch_add(1, SEQ);
        assert!(
            !Self::is_due(&self.panic_in_alloc),
            "the page source panics while it allocates"
        );
        let allowed = layout.size() <= self.largest.load(SEQ)
            && self
                .budget
                .fetch_update(SEQ, SEQ, |n| match n {
                    0 => None,
                    n if n < 0 => Some(n),
                    n => Some(n - 1),
                })
                .is_ok();
        if !allowed {
            self.refusals.fetch_add(1, SEQ);
            return None;
        }
        let pages = Heap.alloc_pages(layout)?;
        let old = self.lock().insert(pages.addr().get(), layout);
        assert_eq!(old, None, "two blocks at one address");
        Some(pages)
    }

    unsafe fn free_pages(&self, pages: NonNull<u8>, layout: Layout) {
        let known = self.lock().remove(&pages.addr().get());
        if known != Some(layout) {
            eprintln!("a block of {known:?} came back as {layout:?}");
            std::process::abort();
        }
        // SAFETY: the block came from `Heap` with this layout, and the caller gives it back.
        unsafe { Heap.free_pages(pages, layout) };
        assert!(
            !Self::is_due(&self.panic_in_free),
            "the page source panics while it frees"
        );
    }

    unsafe fn remap(&self, pages: NonNull<u8>, old: Layout, new: Layout) -> Option<NonNull<u8>> {
        assert!(
            !Self::is_due(&self.panic_in_remap),
            "the page source panics while it remaps"
        );
        assert!(new.size() != 0 && new.size() % 65_536 == 0 && new.align() >= 65_536);
        assert_eq!(self.lock().get(&pages.addr().get()), Some(&old));
        if !self.remaps.load(SEQ) {
            return None;
        }
        let moved = self.alloc_pages(new)?;
        let size = old.size().min(new.size());
        // SAFETY: both blocks are at least this long, and the new one is nobody's yet.
        unsafe { pages.copy_to_nonoverlapping(moved, size) };
        // SAFETY: the caller gives up the old block.
        unsafe { self.free_pages(pages, old) };
        self.remapped.fetch_add(1, SEQ);
        Some(moved)
    }

    fn trim(&self) -> usize {
        self.trims.fetch_add(1, SEQ);
        0
    }
}

/// Counts its drops, and may panic in them.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(crate) id: usize,
    drops: Arc<AtomicUsize>,
    pub(crate) panics: bool,
}

/// Makes [`Counted`] objects.
#[derive(Debug, Default)]
pub(crate) struct Drops(Arc<AtomicUsize>);

impl Drops {
    pub(crate) fn object(&self, id: usize) -> Counted {
        Counted {
            id,
            drops: Arc::clone(&self.0),
            panics: false,
        }
    }

    pub(crate) fn panicking(&self, id: usize) -> Counted {
        let mut object = self.object(id);
        object.panics = true;
        object
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(SEQ)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.drops.fetch_add(1, SEQ);
        assert!(
            !self.panics || std::thread::panicking(),
            "the destructor of {} panics",
            self.id
        );
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        assert!(!self.panics, "the clone of {} panics", self.id);
        Self {
            id: self.id,
            drops: Arc::clone(&self.drops),
            panics: false,
        }
    }
}

/// Runs `body` on as many threads and waits until they are gone, thread-locals and all: a scope by itself does
/// not wait for destructors of thread-locals.
pub(crate) fn on_threads(threads: usize, body: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        let body = &body;
        let spawned: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || body(thread)))
            .collect();
        spawned
            .into_iter()
            .for_each(|thread| thread.join().expect("the thread did not panic"));
    });
}

static REPORTS: Mutex<Vec<(ReportKind, Option<String>, usize)>> = Mutex::new(Vec::new());

/// Collects the reports of the whole process from now on.
pub(crate) fn collect_reports() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        set_report_hook(Box::new(|report: &Report| {
            let entry = (
                report.kind(),
                report.pool().map(str::to_owned),
                report.address(),
            );
            REPORTS
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(entry);
        }));
    });
}

/// What was reported about an address.
pub(crate) fn reports_at(address: usize) -> Vec<(ReportKind, Option<String>)> {
    let reports = REPORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let here = reports.iter().filter(|report| report.2 == address);
    here.map(|(kind, pool, _)| (*kind, pool.clone())).collect()
}
