//! Where slabs' memory comes from: page sources, and what they must do.
//!
//! Memory travels in *pages* of 64 KiB, aligned to 64 KiB. A [`PageSource`] hands out runs of them. Ready made are
//! `Mmap` over the system's mappings, [`Heap`] over the global allocator, `Arena` that bumps, [`Region`] over a
//! piece of memory, and `AllocatorV02` and `AllocatorV04` over an allocator of the allocator traits. Two more stand
//! on another source and do one thing: [`Metered`] counts and bounds bytes, [`Logged`] tells of each call.
//!
//! Every source is at the root of the crate too. [`check`] runs a source through the contract of [`PageSource`].

// The page map has an entry for each page of the address space, which names the cache that owns it.

#[cfg(any(feature = "allocator-api2-02", feature = "allocator-api2-04"))]
mod allocators;
#[cfg(feature = "arena")]
mod arena;
mod check;
mod forward;
mod free_list;
mod heap;
mod logged;
pub(crate) mod map;
mod metered;
#[cfg(unix)]
mod mmap;
mod pages;
mod populate;
mod region;
#[cfg(unix)]
mod sys;

#[cfg(feature = "allocator-api2-02")]
pub use allocators::AllocatorV02;
#[cfg(feature = "allocator-api2-04")]
pub use allocators::AllocatorV04;
#[cfg(feature = "arena")]
pub use arena::Arena;
pub use check::{SourceFault, check};
pub use heap::Heap;
pub use logged::{Logged, SourceCall};
pub(crate) use map as page_map;
pub(crate) use map::Entry;
pub use metered::Metered;
#[cfg(unix)]
pub use mmap::Mmap;
#[cfg(unix)]
pub(crate) use mmap::lock_for_fork;
pub(crate) use pages::{Pages, Source, pages_layout};
pub(crate) use populate::{populate, populate_shared, touch};
pub use region::Region;

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::sync::{Arc, OnceLock};

/// A source of pages for slabs and large blocks.
///
/// Several are [ready made](crate::page). Write one to draw pools from a shared segment, device memory or a
/// pre-faulted arena, and run it through [`check`] in a test.
///
/// # The contract
///
/// | method | before | after success | after failure |
/// |---|---|---|---|
/// | `alloc_pages`, `alloc_pages_hinted` | the layout is whole pages, not none, aligned to 64 KiB at least | a new block of that layout, with any contents | `None`; nothing has changed |
/// | `free_pages` | a block, with its layout | it is no block; its contents are gone | cannot fail; a panic counts as success |
/// | `discard` | whole pages within a block | the pages have any contents; nothing else has changed | `false`; as after success |
/// | `remap` | a block, with its layout; the new one as for `alloc_pages` | a block of the new layout with the old contents up to the smaller size; the old pointer is none | `None`; nothing has changed |
/// | `trim` | | no block has changed | |
///
/// Each method may be called from any thread, from several at once, and for a block that another thread allocated.
///
/// # When it is called
///
/// From any thread that allocates, frees or shrinks, from several at once, and from a thread of the crate's
/// own. Never while a lock of the crate is held, so a method may itself allocate from any pool (if it is the
/// very pool that called, it must see to it that the recursion ends). A method may panic: the panic reaches
/// the caller of the pool, which stays usable. A panic in `free_pages` counts as having taken the pages.
///
/// An allocation from a pool calls its source only when a new slab is needed; `try_alloc_now` and a prefilled
/// sheaf never do. The time a method takes is the time such an allocation takes.
///
/// # Safety
///
/// In what follows a *block* is what one successful `alloc_pages`, `alloc_pages_hinted` or `remap` returned,
/// from then until it is given to `free_pages` or a successful `remap`. An implementation must see to it that:
///
/// 1. A block is at least as large as its layout says, aligned as it says, and lies in one allocation that the
///    returned pointer may reach as a whole. It may hold any bytes.
/// 2. While it is a block it stays mapped, readable and writable from every thread, and nobody but the
///    caller reads or writes it. No two blocks overlap.
/// 3. All this stays true when the source is moved, and until the last of its blocks was freed, even if a
///    method panicked. The crate drops a source only after it has freed all blocks.
/// 4. `discard` changes at most the contents of the pages it was given, and `remap` that returns `None`
///    changes nothing.
///
/// # Examples
///
/// A source that counts the bytes it has given out:
///
/// ```
/// use core::alloc::Layout;
/// use core::ptr::NonNull;
/// use core::sync::atomic::{AtomicUsize, Ordering};
/// use std::sync::Arc;
///
/// use sheaves::{Heap, PageSource};
///
/// #[derive(Default)]
/// struct Counted {
///     bytes: AtomicUsize,
/// }
///
/// // SAFETY: every block comes from `Heap` and goes back to it with the same layout, so what holds of
/// // `Heap`'s blocks holds of these.
/// unsafe impl PageSource for Counted {
///     fn alloc_pages(&self, layout: Layout) -> Option<NonNull<u8>> {
///         let pages = Heap.alloc_pages(layout)?;
///         self.bytes.fetch_add(layout.size(), Ordering::Relaxed);
///         Some(pages)
///     }
///
///     unsafe fn free_pages(&self, pages: NonNull<u8>, layout: Layout) {
///         // SAFETY: the caller gives back a block of this source with its layout.
///         unsafe { Heap.free_pages(pages, layout) };
///         self.bytes.fetch_sub(layout.size(), Ordering::Relaxed);
///     }
/// }
///
/// // An `Arc` of a source is a source, so the counter can be read while a pool uses it.
/// let source = Arc::new(Counted::default());
/// let layout = Layout::from_size_align(2 << 16, 1 << 16)?;
/// let pages = source.alloc_pages(layout).expect("128 KiB are there");
/// assert_eq!(source.bytes.load(Ordering::Relaxed), 128 * 1024);
/// // SAFETY: `pages` is a block of this source with this layout, and nothing uses it any more.
/// unsafe { source.free_pages(pages, layout) };
/// assert_eq!(source.bytes.load(Ordering::Relaxed), 0);
/// # Ok::<(), core::alloc::LayoutError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no page source",
    label = "slabs cannot be had from this",
    note = "sources are `Mmap`, `Heap`, `Arena`, `Region`, allocators in `AllocatorV02` or `AllocatorV04`, and what implements `PageSource`"
)]
pub unsafe trait PageSource: Send + Sync + 'static {
    /// Hands out a block of `layout`, or `None` when there is no memory.
    ///
    /// The size of `layout` is a multiple of 64 KiB and not zero; its alignment is at least 64 KiB. A slab's
    /// size is a power of two up to 32 MiB; a block of the allocator traits may have any number of pages.
    ///
    /// Pages beyond the addresses of the platform's user space (47 bits on x86-64, 48 elsewhere) are of no
    /// use to a pool: it frees them at once and takes the memory to be out.
    fn alloc_pages(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Takes a block back.
    ///
    /// # Safety
    ///
    /// `pages` is a block of this source, and `layout` the layout it was last allocated or remapped with.
    /// It ceases to be a block: nothing may use it any more.
    unsafe fn free_pages(&self, pages: NonNull<u8>, layout: Layout);

    /// [`alloc_pages`](Self::alloc_pages), told what the pages are for. By default the hint is ignored.
    fn alloc_pages_hinted(&self, layout: Layout, hint: Hint) -> Option<NonNull<u8>> {
        let _ = hint;
        self.alloc_pages(layout)
    }

    /// Gives the memory behind a range of pages back to the system while the pages stay allocated; `true` if
    /// it did. Their contents are undefined afterwards, in either case.
    ///
    /// By default it does nothing and returns `false`.
    ///
    /// # Safety
    ///
    /// The range of `layout.size()` bytes from `pages` on lies within a block of this source; both are
    /// multiples of 64 KiB. Nothing reads or writes the range during the call.
    unsafe fn discard(&self, pages: NonNull<u8>, layout: Layout) -> bool {
        let _ = (pages, layout);
        false
    }

    /// Gives memory of freed blocks that was kept for reuse back to the system, and returns the bytes given
    /// back. Called by [`shrink`](crate::Pool::shrink). By default there is none: 0.
    fn trim(&self) -> usize {
        0
    }

    /// Turns a block of layout `old` into one of layout `new`, perhaps elsewhere, and returns where. Contents
    /// are kept up to the smaller size. `None` if that would not be cheaper than to allocate, copy and free:
    /// then the old block stays as it was.
    ///
    /// By default it returns `None`.
    ///
    /// # Safety
    ///
    /// `pages` is a block of this source, and `old` the layout it was last allocated or remapped with. `new`
    /// obeys what `alloc_pages` says of its layout. After success the old pointer is no block any more.
    unsafe fn remap(&self, pages: NonNull<u8>, old: Layout, new: Layout) -> Option<NonNull<u8>> {
        let _ = (pages, old, new);
        None
    }
}

/// What a block of pages will be used for. A source may ignore it.
///
/// # Examples
///
/// ```
/// use sheaves::Hint;
///
/// let hint = Hint::NONE.huge();
/// assert!(hint.is_huge() && !hint.is_populate());
/// assert!(hint.populate().is_populate());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    huge: bool,
    populate: bool,
}

impl Hint {
    /// Nothing is known; also the default.
    pub const NONE: Self = Self {
        huge: false,
        populate: false,
    };

    /// Back the block by huge pages if the system can.
    #[must_use]
    pub const fn huge(self) -> Self {
        Self { huge: true, ..self }
    }

    /// Make the block resident before it is returned, so that its first use does not fault.
    #[must_use]
    pub const fn populate(self) -> Self {
        Self {
            populate: true,
            ..self
        }
    }

    /// Whether huge pages are wanted.
    #[must_use]
    pub const fn is_huge(self) -> bool {
        self.huge
    }

    /// Whether the block is to be made resident.
    #[must_use]
    pub const fn is_populate(self) -> bool {
        self.populate
    }
}

/// The source of pools that name none: [`Mmap`] where there is one, else [`Heap`].
///
/// Miri, which knows only part of `mmap`, gets `Heap`. Both carry no state of their own; all pools share one, so that
/// only the first needs memory for it.
pub(crate) fn default_source() -> Arc<dyn PageSource> {
    static SOURCE: OnceLock<Arc<dyn PageSource>> = OnceLock::new();
    #[cfg(all(unix, not(miri)))]
    let source = Mmap;
    #[cfg(not(all(unix, not(miri))))]
    let source = Heap;
    Arc::clone(SOURCE.get_or_init(|| Arc::new(source)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::layout::PAGE_SIZE;

    #[test]
    fn hints_add_up() {
        assert_eq!(Hint::default(), Hint::NONE);
        let both = Hint::NONE.populate().huge();
        assert!(both.is_huge() && both.is_populate());
        assert!(!Hint::NONE.populate().is_huge() && !Hint::NONE.is_populate());
    }

    #[test]
    fn the_default_source_serves_every_order() {
        let source = default_source();
        for order in 0..=9 {
            let layout = Layout::from_size_align(PAGE_SIZE << order, PAGE_SIZE).unwrap();
            let block = source.alloc_pages(layout).unwrap();
            assert_eq!(block.addr().get() % PAGE_SIZE, 0);
            // SAFETY: a block of this source with its layout.
            unsafe { source.free_pages(block, layout) };
        }
    }
}
