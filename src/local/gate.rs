//! The gate: a stack that its owner uses without atomic read-modify-writes, and that others can empty.
//!
//! # Words
//!
//! - `top`: the next free place of the array, written by the owner only. While the owner is between reading `top`
//!   and writing it, the word holds a *mark* instead, and the owner alone knows the place. A mark that does not depend
//!   on what was read is one instruction, and nothing waits for it.
//! - `floor` and `end`: the bounds of the part in use. *Shut* is a floor above and an end below every
//!   address, so one compare tests for an empty stack and for a shut gate.
//!
//! # Protocol
//!
//! Rules for the owner:
//! 1. Mark `top` busy, pass the light barrier, then look at the bound. If the bound forbids the operation,
//!    write back the very `top` that was read and touch nothing else.
//! 2. Else use the place and write the new `top`, which clears the mark.
//! 3. A signal handler that interrupts the owner in between reads the mark, which both compares refuse:
//!    as a signed number it is below every floor, as an unsigned one above every end. This does not cover a
//!    handler that comes between the read of `top` and the mark: what it takes or puts, the owner does not see.
//!    So allocation and free are not for signal handlers; a prefilled sheaf of their own is.
//!
//! Rules for a drainer:
//! 4. Shut the gate, pass the heavy barrier, wait until `top` is not marked. From then on every operation of
//!    the owner meets rule 1: either its mark came before the barrier and was waited for, or its look at the
//!    bound comes after and sees the gate shut. Such an operation marks `top` and writes the same place back, so
//!    who reads `top` waits until it is a place.
//! 5. Never write `top`. The slots are those in `[floor, top)`; take them and move `floor` up to `top`. A
//!    drainer that wrote `top` could be overwritten by rule 1, and a slot would be handed out twice.
//!
//! Whoever changes bounds, or uses the array while the gate is shut, holds the lock of the [`Local`]
//! (`super`); that lock also keeps the owner's slow path and a drainer apart.
//!
//! # Two pairs of bounds
//!
//! Where the system has `membarrier`, the bounds in use are `hot`, behind a light barrier that costs nothing.
//! Elsewhere `hot` is shut for ever and the slow path runs the same protocol on `soft` with real fences, so
//! that the fast path need not ask which mode it is in. The models run the latter.
//!
//! [`Local`]: super::Local

use crate::sync::{
    AtomicPtr, AtomicUsize, Backoff, BarrierMode, Ordering, full_fence, light_barrier,
};

/// What `top` holds while the owner is inside: below every floor as a signed number, and above every end as an
/// unsigned one. All bits, so that it fits into the instruction that stores it.
const MARK: usize = usize::MAX;

/// Above every address, as a signed number.
const SHUT_FLOOR: usize = isize::MAX as usize;
/// Below every address.
const SHUT_END: usize = 0;

/// How the owner clears its mark (rule 2). The weak build is a negative twin: ThreadSanitizer must tell of it.
const IDLE: Ordering = if cfg!(sheaves_weak_gate) {
    Ordering::Relaxed
} else {
    Ordering::Release
};

/// A place of the array.
///
/// # Safety
///
/// `put` stores an item that the next `take` of the same place returns.
pub(super) unsafe trait Place: Sized {
    type Item;

    /// # Safety
    ///
    /// The place is valid for reads, nobody else accesses it, and it holds an item, which leaves it.
    unsafe fn take(place: *mut Self) -> Self::Item;

    /// # Safety
    ///
    /// The place is valid for writes and nobody else accesses it.
    unsafe fn put(place: *mut Self, item: Self::Item);
}

/// Bounds of the part of the array that is in use, as addresses.
#[derive(Debug)]
struct Bounds {
    floor: AtomicUsize,
    end: AtomicUsize,
}

/// See the module.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Gate<P> {
    top: AtomicPtr<P>,
    hot: Bounds,
    soft: Bounds,
}

macro_rules! constructors {
    ($($const:ident)?) => {
        impl Bounds {
            $($const)? fn shut() -> Self {
                Self { floor: AtomicUsize::new(SHUT_FLOOR), end: AtomicUsize::new(SHUT_END) }
            }
        }

        impl<P> Gate<P> {
            /// A shut gate over no array.
            pub(super) $($const)? fn new() -> Self {
                let top = AtomicPtr::new(core::ptr::NonNull::dangling().as_ptr());
                Self { top, hot: Bounds::shut(), soft: Bounds::shut() }
            }
        }
    };
}

#[cfg(not(all(loom, any(test, feature = "loom"))))]
constructors!(const);
// loom's atomics are not made in constants.
#[cfg(all(loom, any(test, feature = "loom")))]
constructors!();

impl<P: Place> Gate<P> {
    /// Takes the item on top; `None` if there is none, the gate is shut, or the owner was interrupted.
    ///
    /// # Safety
    ///
    /// The caller is the thread that owns the gate.
    #[inline(always)]
    pub(super) unsafe fn pop(&self) -> Option<P::Item> {
        // SAFETY: passed on.
        unsafe { self.pop_within(&self.hot, light_barrier) }
    }

    /// Puts an item on top; gives it back where [`Gate::pop`] would give none, or the array is full.
    ///
    /// # Safety
    ///
    /// The caller is the thread that owns the gate.
    #[inline(always)]
    pub(super) unsafe fn push(&self, item: P::Item) -> Result<(), P::Item> {
        // SAFETY: passed on.
        unsafe { self.push_within(&self.hot, light_barrier, item) }
    }

    /// As [`Gate::pop`], where there is no `membarrier`.
    ///
    /// # Safety
    ///
    /// The caller is the thread that owns the gate.
    pub(super) unsafe fn pop_fenced(&self) -> Option<P::Item> {
        // SAFETY: passed on.
        unsafe { self.pop_within(&self.soft, full_fence) }
    }

    /// As [`Gate::push`], where there is no `membarrier`.
    ///
    /// # Safety
    ///
    /// The caller is the thread that owns the gate.
    pub(super) unsafe fn push_fenced(&self, item: P::Item) -> Result<(), P::Item> {
        // SAFETY: passed on.
        unsafe { self.push_within(&self.soft, full_fence, item) }
    }

    /// Takes up to `most` items from above a floor that the holder of the lock knows, topmost first, whether or not
    /// the gate is open; how many. The mark keeps a signal handler out; `sink` is not the user's, and does not panic.
    ///
    /// # Safety
    ///
    /// The caller is the thread that owns the gate and holds the lock; the places `[floor, top)` hold items.
    pub(super) unsafe fn pop_locked(
        &self,
        floor: *mut P,
        most: usize,
        mut sink: impl FnMut(P::Item),
    ) -> usize {
        let top = self.mark(light_barrier);
        let n = Self::places(floor, top).min(most);
        for below in 1..=n {
            // SAFETY: at most as many as there are between `floor` and `top`, which hold items; the lock keeps
            // drainers out as an open gate would.
            sink(unsafe { P::take(top.wrapping_sub(below)) });
        }
        // Release: pairs with the Acquire in `settle`; a drainer that sees it sees the array as it is now.
        self.top.store(top.wrapping_sub(n), Ordering::Release);
        n
    }

    /// Puts items on top until there are no more or an end is reached that the holder of the lock knows, whether or
    /// not the gate is open; how many. As for [`Gate::pop_locked`], `items` is not the user's.
    ///
    /// # Safety
    ///
    /// The caller is the thread that owns the gate and holds the lock; the places `[top, end)` are the array's.
    pub(super) unsafe fn push_locked(
        &self,
        end: *mut P,
        items: &mut impl Iterator<Item = P::Item>,
    ) -> usize {
        let top = self.mark(light_barrier);
        let mut n = 0;
        for item in items.take(Self::places(top, end)) {
            // SAFETY: at most as many as there are places between `top` and `end`; as in `pop_locked`.
            unsafe { P::put(top.wrapping_add(n), item) };
            n += 1;
        }
        // Release: as in `pop_locked`.
        self.top.store(top.wrapping_add(n), Ordering::Release);
        n
    }

    /// Marks the top and passes the light barrier (rule 1); what the top was, which is the mark itself where the
    /// owner was interrupted.
    #[inline(always)]
    fn mark(&self, barrier: impl FnOnce()) -> *mut P {
        // Relaxed: only this thread writes `top`.
        let top = self.top.load(Ordering::Relaxed);
        // Relaxed: the barrier orders it before the look at a bound.
        self.top
            .store(core::ptr::without_provenance_mut(MARK), Ordering::Relaxed);
        barrier();
        top
    }

    /// Places from `low` up to `high`; none if one of them is the mark.
    fn places(low: *mut P, high: *mut P) -> usize {
        if low.addr() == MARK || high.addr() == MARK {
            return 0;
        }
        high.addr().saturating_sub(low.addr()) / size_of::<P>()
    }

    /// # Safety
    ///
    /// The caller is the thread that owns the gate.
    #[inline(always)]
    unsafe fn pop_within(&self, bounds: &Bounds, barrier: impl FnOnce()) -> Option<P::Item> {
        let top = self.mark(barrier);
        // Acquire: pairs with the Release in `Bounds::set`; what a drainer did to the array is seen.
        let floor = bounds.floor.load(Ordering::Acquire);
        if top.addr() as isize <= floor as isize {
            // Release: as below; a drainer waits for this.
            self.top.store(top, IDLE);
            return None;
        }
        let place = top.wrapping_sub(1);
        // SAFETY: `floor < top`, so the place lies in the part in use and holds an item; the gate is open and
        // `top` marked, so no drainer touches it (rule 4).
        let item = unsafe { P::take(place) };
        // Release: pairs with the Acquire in `settle`; a drainer that sees it sees the array as it is now.
        self.top.store(place, IDLE);
        Some(item)
    }

    /// # Safety
    ///
    /// The caller is the thread that owns the gate.
    #[inline(always)]
    unsafe fn push_within(
        &self,
        bounds: &Bounds,
        barrier: impl FnOnce(),
        item: P::Item,
    ) -> Result<(), P::Item> {
        let top = self.mark(barrier);
        // Acquire: pairs with the Release in `Bounds::set`; what a drainer did to the array is seen.
        if top.addr() >= bounds.end.load(Ordering::Acquire) {
            // Release: as in `pop_within`.
            self.top.store(top, IDLE);
            return Err(item);
        }
        // SAFETY: `top < end`, so the place lies in the array above every item; the gate is open and `top`
        // marked, so no drainer touches it (rule 4).
        unsafe { P::put(top, item) };
        // Release: pairs with the Acquire in `settle`; a drainer that sees it sees the item.
        self.top.store(top.wrapping_add(1), IDLE);
        Ok(())
    }

    /// Whether the owner is inside an operation: asked by the owner's own thread, it was interrupted.
    pub(super) fn is_busy(&self) -> bool {
        // Relaxed: asked by the thread that wrote it.
        self.top.load(Ordering::Relaxed).addr() == MARK
    }

    /// Waits until the owner is outside (rule 4). The gate is shut and the heavy barrier passed.
    pub(super) fn settle(&self) {
        self.top();
    }

    /// Where the stack ends. Stable while the lock is held and the gate is shut and settled, or for the owner, who
    /// is outside; others wait until it is (rule 4).
    #[inline]
    pub(super) fn top(&self) -> *mut P {
        // Acquire: pairs with the owner's Release of `top`; the array is seen as it was left.
        let top = self.top.load(Ordering::Acquire);
        if top.addr() == MARK {
            return self.top_outside();
        }
        top
    }

    #[cold]
    fn top_outside(&self) -> *mut P {
        let backoff = Backoff::new();
        loop {
            backoff.wait();
            // Acquire: as above.
            let top = self.top.load(Ordering::Acquire);
            if top.addr() != MARK {
                return top;
            }
        }
    }

    /// Sets where the stack ends. For the owner, outside its own operations, with the lock held (rule 5).
    pub(super) fn set_top(&self, top: *mut P) {
        // Release: pairs with the Acquire in `settle` and `top`.
        self.top.store(top, Ordering::Release);
    }

    /// Opens the gate on `[floor, end)` with the lock held. With `push` false, the fast path may only pop.
    pub(super) fn open(&self, floor: *mut P, end: *mut P, mode: BarrierMode, push: bool) {
        let bounds = if mode.is_fence() {
            &self.soft
        } else {
            &self.hot
        };
        let end = if push { end.addr() } else { SHUT_END };
        bounds.set(floor.addr(), end);
    }

    /// Shuts the gate, with the lock held.
    pub(super) fn shut(&self) {
        self.hot.set(SHUT_FLOOR, SHUT_END);
        self.soft.set(SHUT_FLOOR, SHUT_END);
    }
}

impl Bounds {
    fn set(&self, floor: usize, end: usize) {
        // Release: pairs with the owner's Acquire; it sees the array as whoever set the bounds left it. The
        // heavy barrier orders it before the wait for `top`.
        self.floor.store(floor, Ordering::Release);
        // Release: as above.
        self.end.store(end, Ordering::Release);
    }
}
