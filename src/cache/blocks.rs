//! Blocks of whole pages, for what the allocator traits ask besides one object.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::Cache;
use crate::page::{Entry, page_map};
use crate::slab::Block;

impl Cache {
    /// Allocates whole pages for `layout`. Calls the page source.
    pub(crate) fn alloc_block(&self, layout: Layout) -> Option<NonNull<u8>> {
        let block = Block::alloc(layout, self.node.source(), self.id)?;
        self.node.add_block(block.pages());
        Some(block.as_ptr())
    }

    /// Whether `data` lies in a block of this cache, and not on a page of slots.
    #[inline]
    pub(crate) fn is_block(&self, data: NonNull<u8>) -> bool {
        page_map::get(data.addr().get()) == Entry::tail(self.id)
    }

    /// Bytes that may be used from `data` on.
    ///
    /// # Safety
    ///
    /// `data` is a live block of this cache.
    pub(crate) unsafe fn block_capacity(&self, data: NonNull<u8>) -> usize {
        // SAFETY: passed on.
        unsafe { Block::from_ptr(data) }.capacity()
    }

    /// Frees a block. Calls the page source. The caller keeps the cache alive.
    ///
    /// # Safety
    ///
    /// `data` is a live block of this cache, which nobody uses any more.
    pub(crate) unsafe fn free_block(&self, data: NonNull<u8>) {
        // SAFETY: passed on.
        let block = unsafe { Block::from_ptr(data) };
        let count = block.pages();
        // SAFETY: passed on; a cache has one source.
        let pages = unsafe { block.into_pages(self.node.source()) };
        let last = self.node.remove_block(count);
        drop(pages);
        if last {
            self.take_from_slots();
        }
    }
}
