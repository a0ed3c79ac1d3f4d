//! Good sources pass, and bad ones are told.

use super::*;
use crate::page::Heap;
use crate::sync::{AtomicUsize, Ordering};

#[test]
fn good_sources_pass() {
    check(&Heap).unwrap();
    let erased: Arc<dyn PageSource> = crate::page::default_source();
    check(&*erased).unwrap();
}

/// Breaks one rule.
struct Bad {
    rule: u8,
    calls: AtomicUsize,
    last: Lock<Vec<(usize, Layout)>>,
}

impl Bad {
    fn new(rule: u8) -> Self {
        Self {
            rule,
            calls: AtomicUsize::new(0),
            last: Lock::new(Vec::new()),
        }
    }

    fn is_due(&self) -> bool {
        // Relaxed: a count.
        self.calls.fetch_add(1, Ordering::Relaxed) % 50 == 49
    }
}

// SAFETY: none: it breaks the contract within memory that is never freed.
unsafe impl PageSource for Bad {
    fn alloc_pages(&self, layout: Layout) -> Option<NonNull<u8>> {
        if self.rule == 0 {
            return None;
        }
        let wide = Layout::from_size_align(layout.size() + PAGE_SIZE, layout.align()).unwrap();
        let start = Heap.alloc_pages(wide)?;
        let address = start.as_ptr().expose_provenance();
        let mut last = self.last.lock();
        last.push((address, layout));
        if self.rule == 1 && self.is_due() {
            // SAFETY: there is a page more than was asked for.
            return Some(unsafe { start.add(64) });
        }
        if self.rule == 2 && self.is_due() {
            let found = last.iter().rev().skip(1).find(|(_, other)| {
                other.size() >= layout.size() && other.align() >= layout.align()
            });
            if let Some((other, _)) = found {
                return NonNull::new(core::ptr::with_exposed_provenance_mut(*other));
            }
        }
        Some(start)
    }

    unsafe fn free_pages(&self, _: NonNull<u8>, _: Layout) {}

    unsafe fn remap(&self, block: NonNull<u8>, old: Layout, _: Layout) -> Option<NonNull<u8>> {
        if self.rule == 3 {
            // SAFETY: the block is this long. That its contents change is what is to be found.
            unsafe { block.write_bytes(0, old.size()) };
        }
        None
    }
}

#[test]
fn bad_sources_are_told() {
    let found = [0, 1, 2, 3].map(|rule| check(&Bad::new(rule)).unwrap_err().to_string());
    assert!(found[0].contains("not even one page"), "{found:?}");
    assert!(found[1].contains("is not aligned"), "{found:?}");
    assert!(
        found[2].contains("overlaps") || found[2].contains("has changed"),
        "{found:?}"
    );
    assert!(found[3].contains("though it was not remapped"), "{found:?}");
}
