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
//! layout it is freed with. In the page map its pages are tails: no slot starts there.

use core::alloc::Layout;
use core::mem::size_of;
use core::ptr::{self, NonNull};

use crate::base::layout::PAGE_SIZE;
use crate::page::{Entry, Hint, Pages, Source, page_map};

/// Room for the header, and the least alignment of a block: a cache line.
const HEADER: usize = 64;

#[repr(C)]
struct BlockHeader {
    pages: NonNull<u8>,
    layout: Layout,
}

const _: () = assert!(
    size_of::<BlockHeader>() <= HEADER,
    "the header fits before the block"
);

/// A live block, by the address of its user's bytes.
///
/// # Invariants
///
/// 1. The pointer was returned by [`Block::alloc`] and the block was not freed since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block(NonNull<u8>);

impl Block {
    /// Allocates pages for `layout` and enters them in the page map under `id`. Calls the page source.
    pub(crate) fn alloc(layout: Layout, source: &Source, id: u32) -> Option<Self> {
        let align = layout.align().max(HEADER);
        let size = align
            .checked_add(layout.size())?
            .checked_next_multiple_of(PAGE_SIZE)?;
        let whole = Layout::from_size_align(size, align.max(PAGE_SIZE)).ok()?;
        let pages = Pages::alloc(source, whole, Hint::NONE)?;
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
            })
        };
        Some(Self(data))
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
        let BlockHeader { pages, layout } = unsafe { self.header().read() };
        (pages, layout)
    }

    /// Bytes that the user may use.
    pub(crate) fn capacity(self) -> usize {
        let (pages, layout) = self.whole();
        layout.size() - (self.0.addr().get() - pages.addr().get())
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
        // SAFETY: the block was given up in `alloc`, and is taken back once, by the caller's word.
        unsafe { Pages::from_raw(pages, layout, source) }
    }
}
