//! Runs of free pages that hold their own list: what a source that cannot give memory back recycles from.
//!
//! Each free run begins with its length and a link to the next one, in address order. So neighbours are joined
//! when a run comes back, and nothing has to be allocated to take one. Both take a step for each free run at
//! worst.

use core::alloc::Layout;
use core::ptr::NonNull;

/// What stands at the start of a free run.
struct Head {
    /// Bytes of the run.
    size: usize,
    next: Option<NonNull<Head>>,
}

/// Free runs in address order.
///
/// # Invariants
///
/// 1. Each run is memory that belongs to this list alone, begins with an initialised [`Head`], is `size` bytes
///    long, and starts and ends at multiples of 64 KiB.
/// 2. Runs do not touch or overlap, and rise in address.
pub(super) struct FreeList {
    first: Option<NonNull<Head>>,
}

// SAFETY: the list owns its runs (invariant 1), so it can be used from any thread.
unsafe impl Send for FreeList {}

impl FreeList {
    pub(super) const fn new() -> Self {
        Self { first: None }
    }

    /// Takes the lowest memory that fits a layout of whole pages.
    pub(super) fn take(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        let mut link = &mut self.first;
        while let Some(run) = *link {
            // SAFETY: runs of the list are initialised and its own (invariant 1).
            let Head { size, next } = unsafe { run.read() };
            let addr = run.addr().get();
            let lead = addr.checked_next_multiple_of(layout.align())? - addr;
            if lead
                .checked_add(layout.size())
                .is_some_and(|end| end <= size)
            {
                let rest = size - lead - layout.size();
                // SAFETY: `lead` and `layout.size()` lie within the run.
                let start = unsafe { run.cast::<u8>().add(lead) };
                let mut after = next;
                if rest > 0 {
                    // SAFETY: the rest lies within the run, behind what is taken.
                    let tail = unsafe { start.add(layout.size()) }.cast::<Head>();
                    // SAFETY: the tail is the list's, a page long at least, and aligned to one.
                    unsafe { tail.write(Head { size: rest, next }) };
                    after = Some(tail);
                }
                if lead > 0 {
                    // SAFETY: the start of the run stays the list's.
                    unsafe {
                        run.write(Head {
                            size: lead,
                            next: after,
                        })
                    };
                } else {
                    *link = after;
                }
                return Some(start);
            }
            // SAFETY: as above; the link is only followed while the list is borrowed.
            link = unsafe { &mut (*run.as_ptr()).next };
        }
        None
    }

    /// Puts memory in.
    ///
    /// # Safety
    ///
    /// The `size` bytes from `start` on are whole pages that the caller gives up, writable, and within one
    /// allocation together with the runs next to them.
    pub(super) unsafe fn put(&mut self, start: NonNull<u8>, size: usize) {
        let run = start.cast::<Head>();
        let mut link = &mut self.first;
        let mut before: Option<NonNull<Head>> = None;
        while let Some(other) = *link {
            if other > run {
                break;
            }
            before = Some(other);
            // SAFETY: runs of the list are initialised and its own (invariant 1).
            link = unsafe { &mut (*other.as_ptr()).next };
        }
        let mut head = Head { size, next: *link };
        if let Some(after) = head.next {
            if end_of(run, size) == after.addr().get() {
                // SAFETY: as above.
                let Head { size: more, next } = unsafe { after.read() };
                head = Head {
                    size: size + more,
                    next,
                };
            }
        }
        if let Some(before) = before {
            // SAFETY: as above.
            let size = unsafe { before.read() }.size;
            if end_of(before, size) == run.addr().get() {
                let joined = Head {
                    size: size + head.size,
                    next: head.next,
                };
                // SAFETY: as above.
                return unsafe { before.write(joined) };
            }
        }
        *link = Some(run);
        // SAFETY: the run was given up by the caller, is a page long at least, and aligned to one.
        unsafe { run.write(head) };
    }
}

fn end_of(run: NonNull<Head>, size: usize) -> usize {
    run.addr().get() + size
}
