//! Blocks of whole pages, for what the allocator traits ask besides one object and what is small.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::Cache;
use crate::page::{Entry, Hint, page_map};
use crate::slab::{Block, Located, locate};

/// Bytes of a huge page: of smaller blocks none would come of asking for any.
const HUGE_PAGE: usize = 2 << 20;

impl Cache {
    /// Allocates whole pages for `layout`. Calls the page source.
    pub(crate) fn alloc_block(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.ask().ok()?;
        let hint = if self.config.huge && layout.size() >= HUGE_PAGE {
            Hint::NONE.huge()
        } else {
            Hint::NONE
        };
        let block = Block::alloc(layout, hint, self.nodes.source(), self.id)?;
        self.nodes.add_block(block.pages());
        Some(block.as_ptr())
    }

    /// Bytes that may be used from `data` on; none if it is no block and no slot of this cache or of one of its classes.
    ///
    /// # Safety
    ///
    /// `data` is a live block or slot; whatever pages it lies on stay whose they are while this runs.
    pub(crate) unsafe fn capacity_at(&self, data: NonNull<u8>) -> usize {
        let entry = page_map::get(data.addr().get());
        let of_slots = if entry == Entry::head(self.id) {
            Some(self)
        } else {
            self.class_at(entry)
        };
        if let Some(cache) = of_slots {
            let geometry = &cache.config.geometry;
            // SAFETY: the page map names the page as a head of the cache; that it stays so is passed on.
            return match unsafe { locate(data, geometry) } {
                Located::Slot => geometry.size,
                Located::Interior => 0,
            };
        }
        // SAFETY: passed on.
        if !unsafe { Block::is_at(data, self.id) } {
            return 0;
        }
        // SAFETY: there is one.
        unsafe { Block::from_ptr(data) }.capacity()
    }

    /// Has the page source make a block larger or smaller, perhaps elsewhere; `None` leaves it as it was. So does
    /// a panic of the source.
    ///
    /// # Safety
    ///
    /// `data` is a live block, or slot, of this cache or of one of its classes, and the caller's alone. After
    /// success it is none any more.
    pub(crate) unsafe fn remap_block(
        &self,
        data: NonNull<u8>,
        layout: Layout,
    ) -> Option<NonNull<u8>> {
        // SAFETY: passed on.
        if !unsafe { Block::is_at(data, self.id) } {
            return None;
        }
        // SAFETY: there is one.
        let block = unsafe { Block::from_ptr(data) };
        let old = block.pages();
        // SAFETY: passed on; a cache has one source and one id.
        let block = unsafe { block.remap(layout, self.nodes.source(), self.id) }?;
        self.nodes.resize_block(old, block.pages());
        Some(block.as_ptr())
    }

    /// Frees a block; `false` if there is none of this cache at `data`. Calls the page source. The caller keeps the
    /// cache alive.
    ///
    /// # Safety
    ///
    /// If `data` is a live block of this cache, nobody uses it any more. Whatever pages it lies on stay whose they are
    /// while this runs.
    pub(crate) unsafe fn free_block(&self, data: NonNull<u8>) -> bool {
        // SAFETY: passed on.
        if !unsafe { Block::is_at(data, self.id) } {
            return false;
        }
        // SAFETY: there is one.
        let block = unsafe { Block::from_ptr(data) };
        let count = block.pages();
        if self.config.zero_on_free {
            // SAFETY: nobody else uses the block, which is this long.
            unsafe { data.write_bytes(0, block.capacity()) };
        }
        // SAFETY: passed on; a cache has one source.
        let pages = unsafe { block.into_pages(self.nodes.source()) };
        let last = self.nodes.remove_block(count);
        drop(pages);
        if last {
            self.take_from_slots();
        }
        true
    }
}
