//! A source that counts, and may refuse.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::{Hint, PageSource};
use crate::sync::{AtomicUsize, Ordering};

/// Counts the bytes that another source has given out, and bounds them.
///
/// Where the limit would be passed an allocation is refused, so a pool on such a source runs out of memory
/// there. Share one in an `Arc` to bound several pools together, or to read the count.
///
/// # Real time
///
/// An atomic operation or two more than the source beneath.
///
/// ```
/// use std::sync::Arc;
/// use sheaves::{Heap, Metered, Pool};
///
/// let source = Arc::new(Metered::new(Heap).with_limit(1 << 20));
/// let pool: Pool<[u8; 1000]> = Pool::builder("bounded").source(Arc::clone(&source)).build()?;
/// let boxes: Vec<_> = core::iter::from_fn(|| pool.try_alloc([0; 1000]).ok()).collect();
/// assert!(boxes.len() > 1000 && boxes.len() < 1049);
/// assert_eq!(source.bytes(), 1 << 20);
/// # Ok::<(), sheaves::BuildError>(())
/// ```
#[derive(Debug)]
pub struct Metered<S> {
    source: S,
    limit: usize,
    bytes: AtomicUsize,
}

impl<S: PageSource> Metered<S> {
    /// Counts what `source` gives out, without a limit.
    pub fn new(source: S) -> Self {
        Self {
            source,
            limit: usize::MAX,
            bytes: AtomicUsize::new(0),
        }
    }

    /// Refuses what would take the bytes that are out past `bytes`.
    #[must_use]
    pub fn with_limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Bytes that are out.
    pub fn bytes(&self) -> usize {
        // Relaxed: a count.
        self.bytes.load(Ordering::Relaxed)
    }

    /// The most bytes that may be out, if that is bounded.
    pub fn limit(&self) -> Option<usize> {
        (self.limit != usize::MAX).then_some(self.limit)
    }

    /// The source beneath.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Counts bytes in, unless they are too many; given up again if it is dropped before it is kept.
    fn take(&self, bytes: usize) -> Option<Taken<'_>> {
        let add = |out: usize| out.checked_add(bytes).filter(|out| *out <= self.limit);
        // Relaxed: a count; the limit holds since it is one word.
        let taken = self
            .bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        taken.is_ok().then(|| Taken {
            count: &self.bytes,
            bytes,
        })
    }

    fn give_back(&self, bytes: usize) {
        // Relaxed: a count.
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Bytes that were counted in for memory which is not there yet; the source beneath may fail or panic.
struct Taken<'a> {
    count: &'a AtomicUsize,
    bytes: usize,
}

impl Taken<'_> {
    fn keep(self) {
        let _ = core::mem::ManuallyDrop::new(self);
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        // Relaxed: a count.
        self.count.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

// SAFETY: every block is one of the source beneath, which is kept, and all calls go to it unchanged.
unsafe impl<S: PageSource> PageSource for Metered<S> {
    fn alloc_pages(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.alloc_pages_hinted(layout, Hint::NONE)
    }

    unsafe fn free_pages(&self, pages: NonNull<u8>, layout: Layout) {
        // Counted out first: who sees memory free finds room for it. A panic counts as having taken it.
        self.give_back(layout.size());
        // SAFETY: passed on.
        unsafe { self.source.free_pages(pages, layout) };
    }

    fn alloc_pages_hinted(&self, layout: Layout, hint: Hint) -> Option<NonNull<u8>> {
        let taken = self.take(layout.size())?;
        let pages = self.source.alloc_pages_hinted(layout, hint)?;
        taken.keep();
        Some(pages)
    }

    unsafe fn discard(&self, pages: NonNull<u8>, layout: Layout) -> bool {
        // SAFETY: passed on.
        unsafe { self.source.discard(pages, layout) }
    }

    fn trim(&self) -> usize {
        self.source.trim()
    }

    unsafe fn remap(&self, pages: NonNull<u8>, old: Layout, new: Layout) -> Option<NonNull<u8>> {
        let taken = self.take(new.size().saturating_sub(old.size()))?;
        // SAFETY: passed on.
        let moved = unsafe { self.source.remap(pages, old, new) }?;
        taken.keep();
        self.give_back(old.size().saturating_sub(new.size()));
        Some(moved)
    }
}
