//! Pointers to sources are sources, so that pools can share one and its owner can keep an eye on it.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::{Hint, PageSource};
use crate::sync::Arc;

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        // SAFETY: every block is one of the source pointed to, which outlives this pointer and does not move;
        // all methods go to the method of the same name, which keeps the contract.
        unsafe impl<S: PageSource + ?Sized> PageSource for $pointer {
            fn alloc_pages(&self, layout: Layout) -> Option<NonNull<u8>> {
                (**self).alloc_pages(layout)
            }

            unsafe fn free_pages(&self, pages: NonNull<u8>, layout: Layout) {
                // SAFETY: the caller's promise is the one asked for.
                unsafe { (**self).free_pages(pages, layout) }
            }

            fn alloc_pages_hinted(&self, layout: Layout, hint: Hint) -> Option<NonNull<u8>> {
                (**self).alloc_pages_hinted(layout, hint)
            }

            unsafe fn discard(&self, pages: NonNull<u8>, layout: Layout) -> bool {
                // SAFETY: the caller's promise is the one asked for.
                unsafe { (**self).discard(pages, layout) }
            }

            fn trim(&self) -> usize {
                (**self).trim()
            }

            unsafe fn remap(
                &self,
                pages: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Option<NonNull<u8>> {
                // SAFETY: the caller's promise is the one asked for.
                unsafe { (**self).remap(pages, old, new) }
            }
        }
    )*};
}

forward!(Arc<S>, &'static S);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::layout::PAGE_SIZE;
    use crate::sync::Lock;

    /// Has no memory, but notes what it was asked for.
    #[derive(Default)]
    struct Notes(Lock<Vec<&'static str>>);

    // SAFETY: it hands out no blocks.
    unsafe impl PageSource for Notes {
        fn alloc_pages(&self, _: Layout) -> Option<NonNull<u8>> {
            self.0.lock().push("alloc");
            None
        }

        unsafe fn free_pages(&self, _: NonNull<u8>, _: Layout) {
            self.0.lock().push("free");
        }

        fn alloc_pages_hinted(&self, _: Layout, _: Hint) -> Option<NonNull<u8>> {
            self.0.lock().push("hinted");
            None
        }

        unsafe fn discard(&self, _: NonNull<u8>, _: Layout) -> bool {
            self.0.lock().push("discard");
            true
        }

        fn trim(&self) -> usize {
            self.0.lock().push("trim");
            7
        }

        unsafe fn remap(&self, block: NonNull<u8>, _: Layout, _: Layout) -> Option<NonNull<u8>> {
            self.0.lock().push("remap");
            Some(block)
        }
    }

    fn call_all(source: &impl PageSource) {
        let layout = Layout::from_size_align(PAGE_SIZE, PAGE_SIZE).unwrap();
        let block = NonNull::dangling();
        assert_eq!(source.alloc_pages(layout), None);
        assert_eq!(source.alloc_pages_hinted(layout, Hint::NONE), None);
        // SAFETY: `Notes` does not look at the block.
        assert!(unsafe { source.discard(block, layout) });
        assert_eq!(source.trim(), 7);
        // SAFETY: likewise.
        assert_eq!(unsafe { source.remap(block, layout, layout) }, Some(block));
        // SAFETY: likewise.
        unsafe { source.free_pages(block, layout) };
    }

    #[test]
    fn every_method_reaches_the_source() {
        let shared: Arc<Notes> = Arc::default();
        call_all(&shared);
        assert_eq!(
            *shared.0.lock(),
            ["alloc", "hinted", "discard", "trim", "remap", "free"]
        );
        let erased: Arc<dyn PageSource> = shared.clone();
        call_all(&erased);
        assert_eq!(shared.0.lock().len(), 12);
    }
}
