//! The page map in two levels: a root of pointers to leaves.

use core::ptr::{NonNull, null_mut};

use super::{AtomicPtr, AtomicU32, Entry, Ordering, PAGES};

/// Entries of a leaf: 256 KiB, for 4 GiB of addresses. Less would make the static root larger, more would
/// cost a process with little memory more of it.
const LEAF: usize = 1 << 16;

type Leaf = [AtomicU32; LEAF];

/// # Invariants
///
/// A pointer of the root is null or points to a leaf that is never freed; it changes once at most.
pub(super) struct Levels {
    root: [AtomicPtr<Leaf>; PAGES / LEAF],
}

impl Levels {
    pub(super) const fn new() -> Self {
        Self {
            root: [const { AtomicPtr::new(null_mut()) }; PAGES / LEAF],
        }
    }

    /// The entry of a page below [`PAGES`].
    pub(super) fn get(&self, page: usize) -> Entry {
        match self.leaf(page / LEAF) {
            // Relaxed: see the text of the map.
            Some(leaf) => Entry(leaf[page % LEAF].load(Ordering::Relaxed)),
            None => Entry::NONE,
        }
    }

    /// Sees to it that the pages from `first` on have leaves. `None` if memory is out.
    pub(super) fn reserve(&self, first: usize, pages: usize) -> Option<()> {
        for index in first / LEAF..(first + pages).div_ceil(LEAF) {
            if self.leaf(index).is_none() {
                self.grow(index)?;
            }
        }
        Some(())
    }

    /// Sets the entry of a page that has a leaf.
    pub(super) fn set(&self, page: usize, entry: Entry) {
        let leaf = self
            .leaf(page / LEAF)
            .expect("leaves are reserved before entries are set");
        // Relaxed: see the text of the map.
        leaf[page % LEAF].store(entry.0, Ordering::Relaxed);
    }

    fn leaf(&self, index: usize) -> Option<&Leaf> {
        // Acquire: pairs with the release in `grow`, so that the zeros of a new leaf are seen.
        let leaf = NonNull::new(self.root[index].load(Ordering::Acquire))?;
        // SAFETY: it points to a leaf that is never freed and only ever accessed as atomics.
        Some(unsafe { leaf.as_ref() })
    }

    fn grow(&self, index: usize) -> Option<()> {
        let leaf = imp::new_leaf()?;
        let (null, new) = (null_mut(), leaf.as_ptr());
        // Release: pairs with the acquire in `leaf`. Relaxed: the loser does not look at the winner's leaf.
        let published =
            self.root[index].compare_exchange(null, new, Ordering::Release, Ordering::Relaxed);
        if published.is_err() {
            // SAFETY: it is new, and nobody else has seen it.
            unsafe { imp::free_leaf(leaf) };
        }
        Some(())
    }
}

/// Leaves are mappings, so that setting entries never enters the global allocator.
#[cfg(all(unix, not(miri)))]
mod imp {
    use core::ptr::NonNull;

    use super::Leaf;
    use crate::page::sys::{self, Mapping};

    /// A leaf of entries that say "none".
    pub(super) fn new_leaf() -> Option<NonNull<Leaf>> {
        // New mappings are zeros, and start at hardware pages, far more aligned than an entry.
        sys::map(size_of::<Leaf>(), 1, Mapping::Open).map(NonNull::cast)
    }

    /// # Safety
    ///
    /// The leaf came from [`new_leaf`], and nothing uses it.
    pub(super) unsafe fn free_leaf(leaf: NonNull<Leaf>) {
        // SAFETY: the caller says it is a mapping of `new_leaf`, and unused.
        unsafe { sys::unmap(leaf.cast(), size_of::<Leaf>()) };
    }
}

/// Where there are no mappings, leaves are pages of the global allocator.
#[cfg(not(all(unix, not(miri))))]
mod imp {
    use core::alloc::Layout;
    use core::ptr::NonNull;

    use super::Leaf;
    use crate::page::{Heap, PageSource};

    /// A leaf of entries that say "none".
    pub(super) fn new_leaf() -> Option<NonNull<Leaf>> {
        let leaf = Heap.alloc_pages(Layout::new::<Leaf>())?.cast::<Leaf>();
        // SAFETY: the block is one leaf long. Zeros are atomics of value 0.
        unsafe { leaf.write_bytes(0, 1) };
        Some(leaf)
    }

    /// # Safety
    ///
    /// The leaf came from [`new_leaf`], and nothing uses it.
    pub(super) unsafe fn free_leaf(leaf: NonNull<Leaf>) {
        // SAFETY: the caller says it is a block of `new_leaf`, and unused.
        unsafe { Heap.free_pages(leaf.cast(), Layout::new::<Leaf>()) };
    }
}
