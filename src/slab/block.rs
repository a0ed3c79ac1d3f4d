//! Blocks: whole pages in the hands of one user, for layouts that are not one object.
//!
//! ```text
//! +--------- ... ---+--------------+-----------------------------+
//! | slack           | block header | the user's bytes            |
//! +--------- ... ---+--------------+-----------------------------+
//! start of pages                   multiple of the alignment
//! ```
//!
//! The header lies directly before the user's bytes, so a block is found again by its address whatever
//! layout it is freed with. A word in it depends on that address: what a pointer into the middle of a block, or to
//! something else on such pages, finds before it has another. In the page map its pages are tails: no slot starts there. Only the page of the header
//! is sure to stay one. If the user's bytes are whole pages their user may be another pool, which enters them as its
//! own, and forgets them when it gives them back.

use ::alloc::alloc::handle_alloc_error;
use core::alloc::Layout;
use core::mem::{ManuallyDrop, offset_of, size_of};
use core::ptr::{self, NonNull};

use crate::base::layout::PAGE_SIZE;
use crate::page::{Entry, Hint, Pages, Source, page_map};

/// Room for the header, and the least alignment of a block: a cache line.
const HEADER: usize = 64;

/// Bits that no program writes by chance, any that are not all alike: the first of the square root of 2.
const SALT: u64 = 0xb504_f333_f9de_6484;

#[repr(C)]
struct BlockHeader {
    pages: NonNull<u8>,
    layout: Layout,
    /// [`mark_of`] the block while it is live.
    mark: u64,
}

/// What marks a block at an address; no two addresses have the same.
fn mark_of(data: NonNull<u8>) -> u64 {
    // A copy of a header, elsewhere in a user's bytes, has the mark of another address.
    (data.addr().get() as u64 ^ SALT).wrapping_mul(SALT | 1)
}

const _: () = assert!(
    size_of::<BlockHeader>() <= HEADER,
    "the header fits before the block"
);

/// Where the mark of a block is whose bytes start at `data`, which is past a header's length.
fn mark_place(data: NonNull<u8>) -> *mut u64 {
    let before = HEADER - offset_of!(BlockHeader, mark);
    // The block's pages are exposed.
    ptr::with_exposed_provenance_mut(data.addr().get() - before)
}

/// A live block, by the address of its user's bytes.
///
/// # Invariants
///
/// 1. The pointer was returned by [`Block::alloc`] and the block was not freed since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block(NonNull<u8>);

impl Block {
    /// Allocates pages for `layout` and enters them in the page map under `id`. Calls the page source.
    pub(crate) fn alloc(layout: Layout, hint: Hint, source: &Source, id: u32) -> Option<Self> {
        let align = layout.align().max(HEADER);
        let size = align
            .checked_add(layout.size())?
            .checked_next_multiple_of(PAGE_SIZE)?;
        let whole = Layout::from_size_align(size, align.max(PAGE_SIZE)).ok()?;
        let pages = Pages::alloc(source, whole, hint)?;
        let addr = pages.start().addr().get();
        page_map::set_range(addr, size / PAGE_SIZE, |_| Entry::tail(id)).ok()?;
        let (start, layout) = pages.into_raw();
        // The block is found again from a user's pointer, which may reach its bytes only.
        let _ = start.as_ptr().expose_provenance();
        // SAFETY: `align <= size`, so the bytes start within the pages.
        let data = unsafe { start.add(align) };
        // SAFETY: `HEADER <= align`, so the header lies within the pages too.
        let header = unsafe { data.sub(HEADER) }.cast::<BlockHeader>();
        // SAFETY: the pages are owned; aligned, since `data` is aligned to a cache line.
        unsafe {
            header.write(BlockHeader {
                pages: start,
                layout,
                mark: mark_of(data),
            })
        };
        Some(Self(data))
    }

    /// Whether a live block of cache `id` starts at `data`.
    ///
    /// # Safety
    ///
    /// If the pages around `data` are the cache's, they stay so while this runs.
    pub(crate) unsafe fn is_at(data: NonNull<u8>, id: u32) -> bool {
        let addr = data.addr().get();
        if addr % HEADER != 0 || page_map::get(addr - HEADER) != Entry::tail(id) {
            return false;
        }
        // SAFETY: passed on. The header of a block, or bytes that only a misuse asks for, are on such a page.
        let mark = unsafe { mark_place(data).read() };
        mark == mark_of(data)
    }

    /// The block whose bytes start at `data`.
    ///
    /// # Safety
    ///
    /// `data` is the address of a live block's bytes.
    pub(crate) unsafe fn from_ptr(data: NonNull<u8>) -> Self {
        let exposed = ptr::with_exposed_provenance_mut(data.addr().get());
        Self(NonNull::new(exposed).unwrap_or(data))
    }

    pub(crate) fn as_ptr(self) -> NonNull<u8> {
        self.0
    }

    fn header(self) -> NonNull<BlockHeader> {
        // SAFETY: the header lies `HEADER` bytes before the bytes of a live block (invariant 1).
        unsafe { self.0.sub(HEADER) }.cast()
    }

    /// The start and the layout of the block's pages.
    fn whole(self) -> (NonNull<u8>, Layout) {
        // SAFETY: the header of a live block is initialised and does not change (invariant 1).
        let BlockHeader { pages, layout, .. } = unsafe { self.header().read() };
        (pages, layout)
    }

    /// Bytes that the user may use.
    pub(crate) fn capacity(self) -> usize {
        let (pages, layout) = self.whole();
        layout.size() - (self.0.addr().get() - pages.addr().get())
    }

    /// Has the source make the block larger or smaller, with its contents and perhaps elsewhere, so that it has
    /// room for `layout` and not many pages more. `None` if it cannot, or if the bytes would not be aligned: then
    /// nothing has changed. Calls the source; if that panics nothing has changed either.
    ///
    /// # Safety
    ///
    /// The block was allocated from `source` under `id`, and the caller alone uses it. After success the old one
    /// is no block any more.
    pub(crate) unsafe fn remap(self, layout: Layout, source: &Source, id: u32) -> Option<Self> {
        let (pages, old) = self.whole();
        let lead = self.0.addr().get() - pages.addr().get();
        if lead % layout.align() != 0 {
            return None;
        }
        let size = lead
            .checked_add(layout.size())?
            .checked_next_multiple_of(PAGE_SIZE)?;
        let new = Layout::from_size_align(size, layout.align().max(PAGE_SIZE)).ok()?;
        // The pages may be another's in the moment in which they are let go, so the map forgets them before.
        // SAFETY: the caller alone uses the block.
        let forgotten = unsafe { Forgotten::new(self, id) };
        // SAFETY: the block is of this source, with the layout that its header says (invariant 1); the caller
        // alone uses it.
        let moved = unsafe { source.0.remap(pages, old, new) }?;
        let _ = ManuallyDrop::new(forgotten);
        let addr = moved.addr().get();
        if page_map::set_range(addr, size / PAGE_SIZE, |_| Entry::tail(id)).is_err() {
            // The old place is gone, and nobody would find the block at the new one.
            handle_alloc_error(new);
        }
        let _ = moved.as_ptr().expose_provenance();
        // SAFETY: the block is at least as long as it was up to here, or shorter by whole pages behind the lead.
        let data = unsafe { moved.add(lead) };
        let block = Self(data);
        // SAFETY: the header moved along with the contents, and is rewritten where it lies.
        unsafe {
            block.header().write(BlockHeader {
                pages: moved,
                layout: new,
                mark: mark_of(data),
            })
        };
        Some(block)
    }

    /// Pages of the block.
    pub(crate) fn pages(self) -> usize {
        self.whole().1.size() / PAGE_SIZE
    }

    /// The pages of a block, which the page map forgets.
    ///
    /// # Safety
    ///
    /// Nobody uses the block any more, and it was allocated from `source`.
    pub(crate) unsafe fn into_pages(self, source: &Source) -> Pages {
        let (pages, layout) = self.whole();
        page_map::clear_range(pages.addr().get(), layout.size() / PAGE_SIZE);
        // SAFETY: the mark is in the header, and nobody uses the block. It would be believed in a later one.
        unsafe { mark_place(self.0).write(0) };
        // SAFETY: the block was given up in `alloc`, and is taken back once, by the caller's word.
        unsafe { Pages::from_raw(pages, layout, source) }
    }
}

/// A block that the page map does not know of, without its mark; dropped, it is one again.
struct Forgotten {
    block: Block,
    id: u32,
}

impl Forgotten {
    /// # Safety
    ///
    /// The caller alone uses the block, until this is dropped or the block is no more.
    unsafe fn new(block: Block, id: u32) -> Self {
        let (pages, layout) = block.whole();
        page_map::clear_range(pages.addr().get(), layout.size() / PAGE_SIZE);
        // SAFETY: the mark is in the header, which is the caller's alone. What is left behind must not be believed.
        unsafe { mark_place(block.0).write(0) };
        Self { block, id }
    }
}

impl Drop for Forgotten {
    fn drop(&mut self) {
        let (pages, layout) = self.block.whole();
        // SAFETY: the mark is in the header of a block that stayed as it was, by the word of who made this.
        unsafe { mark_place(self.block.0).write(mark_of(self.block.0)) };
        let count = layout.size() / PAGE_SIZE;
        let set = page_map::set_range(pages.addr().get(), count, |_| Entry::tail(self.id));
        debug_assert!(set.is_ok(), "entries that were set can be set again");
    }
}
