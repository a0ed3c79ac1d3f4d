//! The owner of one object in a pool.

use core::marker::PhantomData;
use core::mem::{self, ManuallyDrop, MaybeUninit};
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::ptr::{self, NonNull};

use super::Pool;
use super::alloc::refuse;
use crate::base::error::AllocError;
use crate::base::layout::PAGE_SIZE;
use crate::cache::{self, cache_of, free_slow};
use crate::hook::report::{Report, ReportKind};
use crate::page::page_map;
use crate::slab::Slot;

/// Owns one object in a pool, as `Box` owns one on the heap.
///
/// A `PoolBox` is one pointer wide, and so is `Option<PoolBox<T>>`. It finds its pool by its address: it has no
/// lifetime, may be sent and freed anywhere, and may outlive every handle of its pool. Dropping it drops the
/// object and gives the slot back, to the running thread's sheaf if there is room.
///
/// # Real time
///
/// A signal handler must not drop a box, nor allocate one from a pool: it may have interrupted its thread in the
/// middle of doing so, and would corrupt the thread's sheaf. What it may use is a
/// [`PrefilledSheaf`](crate::PrefilledSheaf) of its own.
///
/// A drop that finds the thread's sheaf full takes locks, and may give a slab back. Where that must not be,
/// [`PrefilledSheaf::free`](crate::PrefilledSheaf::free) takes the box.
///
/// # Invariants
///
/// 1. The pointer is the start of a slot that is out, with the provenance of its slab, and nobody else
///    has it.
/// 2. The slot holds a `T`.
#[must_use = "dropping the box frees the object"]
#[repr(transparent)]
pub struct PoolBox<T> {
    start: NonNull<T>,
    _owns: PhantomData<T>,
}

// SAFETY: a box owns its object (invariants 1 and 2), so sending it sends the object; slots may be freed by any
// thread.
unsafe impl<T: Send> Send for PoolBox<T> {}
// SAFETY: a shared box gives shared access to the object and nothing else.
unsafe impl<T: Sync> Sync for PoolBox<T> {}

impl<T> Drop for PoolBox<T> {
    #[inline]
    fn drop(&mut self) {
        /// Frees the slot, also if the object's destructor unwinds.
        struct Free(NonNull<u8>);
        impl Drop for Free {
            #[inline]
            fn drop(&mut self) {
                // SAFETY: the box owns the slot, and is not used after this; its object is gone.
                unsafe { release(self.0) };
            }
        }
        let _free = Free(self.start.cast());
        if mem::needs_drop::<T>() {
            // SAFETY: the slot holds a `T` (invariant 2), which is not used after this.
            unsafe { self.start.drop_in_place() };
        }
    }
}

/// Frees the slot that starts at `start`.
///
/// # Safety
///
/// The caller owns the slot, which is out, and gives it up. No object is left in it.
#[inline(always)]
pub(super) unsafe fn release(start: NonNull<u8>) {
    // SAFETY: the slot's slab stands, since the slot is out.
    let entry = unsafe { page_map::get_flat(start.addr().get()) };
    // SAFETY: passed on.
    let slot = unsafe { Slot::from_ptr(start) };
    if let Err(slot) = cache::push(entry.raw(), slot) {
        free_slow(slot);
    }
}

impl<T> PoolBox<MaybeUninit<T>> {
    /// A box of a slot whose contents are of no interest.
    #[inline(always)]
    pub(super) fn from_slot(slot: Slot) -> Self {
        Self {
            start: slot.into_ptr().cast(),
            _owns: PhantomData,
        }
    }

    /// Moves `value` in.
    ///
    /// ```
    /// # use sheaves::{Pool, PoolBox};
    /// let pool = Pool::new("numbers");
    /// assert_eq!(*PoolBox::write(pool.alloc_uninit(), 5), 5);
    /// ```
    #[inline]
    pub fn write(boxed: Self, value: T) -> PoolBox<T> {
        let boxed = ManuallyDrop::new(boxed);
        let start = boxed.start.cast::<T>();
        // SAFETY: the box owns the slot (invariant 1), which is large enough and aligned for a `T`.
        unsafe { start.write(value) };
        PoolBox {
            start,
            _owns: PhantomData,
        }
    }

    /// Declares that the slot holds a `T`.
    ///
    /// # Safety
    ///
    /// It does.
    #[inline]
    pub unsafe fn assume_init(boxed: Self) -> PoolBox<T> {
        let boxed = ManuallyDrop::new(boxed);
        PoolBox {
            start: boxed.start.cast(),
            _owns: PhantomData,
        }
    }
}

impl<T> PoolBox<T> {
    /// Moves `value` into `pool`; [`Pool::alloc`] under `Box`'s name.
    ///
    /// # Panics
    ///
    /// As [`Pool::alloc`].
    #[inline]
    pub fn new_in(value: T, pool: &Pool<T>) -> Self {
        pool.alloc(value)
    }

    /// [`Pool::try_alloc`] under `Box`'s name.
    ///
    /// # Errors
    ///
    /// As [`Pool::try_alloc`].
    #[inline]
    pub fn try_new_in(value: T, pool: &Pool<T>) -> Result<Self, AllocError<T>> {
        pool.try_alloc(value)
    }

    /// [`Pool::alloc_pin`] under `Box`'s name.
    ///
    /// # Panics
    ///
    /// As [`Pool::alloc`].
    #[inline]
    pub fn pin_in(value: T, pool: &Pool<T>) -> Pin<Self> {
        pool.alloc_pin(value)
    }

    /// Gives the object up for a pointer, which [`PoolBox::from_raw`] takes back. The memory stays until then,
    /// whatever happens to the pool.
    #[inline]
    #[must_use = "the object leaks unless `from_raw` takes it back"]
    pub fn into_raw(boxed: Self) -> *mut T {
        ManuallyDrop::new(boxed).start.as_ptr()
    }

    /// Takes an object back.
    ///
    /// # Panics
    ///
    /// If `pointer` lies in no pool. That is reported first (see
    /// [`set_report_hook`](crate::set_report_hook)); nothing is freed.
    ///
    /// # Safety
    ///
    /// `pointer` came from [`PoolBox::into_raw`] or [`PoolBox::leak`] of a box of the same type, and is taken
    /// back once.
    ///
    /// ```
    /// # use sheaves::{Pool, PoolBox};
    /// let pool = Pool::new("numbers");
    /// let raw = PoolBox::into_raw(pool.alloc(5));
    /// // SAFETY: `raw` came from `into_raw` just now.
    /// let five = unsafe { PoolBox::from_raw(raw) };
    /// assert_eq!(*five, 5);
    /// ```
    #[inline]
    #[track_caller]
    pub unsafe fn from_raw(pointer: *mut T) -> Self {
        match NonNull::new(pointer) {
            Some(start) if page_map::get(start.addr().get()).is_head() => Self {
                start,
                _owns: PhantomData,
            },
            _ => not_from_a_pool(pointer.addr()),
        }
    }

    /// Moves the object out and frees its slot.
    #[inline]
    pub fn into_inner(boxed: Self) -> T {
        let boxed = ManuallyDrop::new(boxed);
        // SAFETY: the slot holds a `T` (invariant 2), which moves out: the box is not dropped.
        let value = unsafe { boxed.start.read() };
        // SAFETY: the box owned the slot (invariant 1), and its object is gone.
        unsafe { release(boxed.start.cast()) };
        value
    }

    /// Gives the object up for a reference that lives as long as its type allows.
    #[inline]
    pub fn leak<'a>(boxed: Self) -> &'a mut T
    where
        T: 'a,
    {
        let start = ManuallyDrop::new(boxed).start;
        // SAFETY: the slot holds a `T` (invariant 2) and is never freed: the box that owned it is gone.
        unsafe { &mut *start.as_ptr() }
    }

    /// Pins the object where it is. Its memory is not reused before it is dropped, not even if the box is
    /// forgotten.
    #[inline]
    pub fn into_pin(boxed: Self) -> Pin<Self> {
        // SAFETY: the object does not move when the box does, and a slot is not freed before its object
        // was dropped.
        unsafe { Pin::new_unchecked(boxed) }
    }

    /// The name of the pool that the object lives in.
    ///
    /// ```
    /// # use sheaves::{Pool, PoolBox};
    /// let number = Pool::new("numbers").alloc(5);
    /// assert_eq!(PoolBox::pool_name(&number), "numbers");
    /// ```
    pub fn pool_name(boxed: &Self) -> &str {
        let slot = boxed.as_slot();
        let name: *const str = &raw const **cache_of(&slot).name();
        // SAFETY: the cache, and with it its name, lives while the slot is out, which is while the box lives.
        unsafe { &*name }
    }

    /// A pointer to the object.
    #[inline]
    pub fn as_ptr(boxed: &Self) -> *const T {
        boxed.start.as_ptr()
    }

    /// A pointer to the object, for writing.
    #[inline]
    pub fn as_mut_ptr(boxed: &mut Self) -> *mut T {
        boxed.start.as_ptr()
    }

    /// The cache's id, or the mark of an address in no pool.
    #[inline]
    pub(super) fn cache_id(&self) -> u32 {
        // SAFETY: the slot is out, so its slab stands.
        unsafe { page_map::get_known(self.start.addr().get()) }.raw()
    }

    /// Whether the pool has a limit.
    pub(super) fn is_limited(&self) -> bool {
        cache_of(&self.as_slot()).config().limit().is_some()
    }

    /// The token of the slot, to ask the layers below about it. It is not given away: the box keeps the
    /// slot.
    fn as_slot(&self) -> ManuallyDrop<Slot> {
        // SAFETY: the box owns the slot, which is out (invariant 1); this second token is only borrowed.
        ManuallyDrop::new(unsafe { Slot::from_ptr(self.start.cast()) })
    }

    /// Takes the object out of the box's hands: its slot, with the object still in it.
    #[inline]
    pub(super) fn into_start(boxed: Self) -> NonNull<T> {
        ManuallyDrop::new(boxed).start
    }

    /// An uninitialised box in the same pool.
    pub(super) fn sibling(&self) -> PoolBox<MaybeUninit<T>> {
        let id = self.cache_id();
        let slot = cache::pop(id).map_or_else(
            || {
                let own = self.as_slot();
                let cache = cache_of(&own);
                cache
                    .alloc_cold()
                    .map_err(|kind| AllocError::new(kind, cache.name()))
            },
            Ok,
        );
        slot.map_or_else(|error| refuse::<T>(&error), PoolBox::from_slot)
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn not_from_a_pool(address: usize) -> ! {
    Report::new(ReportKind::NoPool, None, address).send();
    panic!("the pointer {address:#x} did not come from `PoolBox::into_raw`");
}

impl<T> Deref for PoolBox<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the slot holds a `T` (invariant 2), borrowed as the box is.
        unsafe { self.start.as_ref() }
    }
}

impl<T> DerefMut for PoolBox<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the slot holds a `T` (invariant 2), and nobody else has it (invariant 1).
        unsafe { self.start.as_mut() }
    }
}

/// Clones the object into the same pool, even if no handle of it is left.
///
/// # Panics
///
/// As [`Pool::alloc`].
impl<T: Clone> Clone for PoolBox<T> {
    fn clone(&self) -> Self {
        PoolBox::write(self.sibling(), (**self).clone())
    }
}

const _: () = assert!(size_of::<Option<PoolBox<[u8; PAGE_SIZE]>>>() == size_of::<*const u8>());

/// The object of a slot that is being freed in a batch is dropped by this, which frees nothing.
///
/// # Safety
///
/// `start` came from [`PoolBox::into_start`], and its object is not used after this.
pub(super) unsafe fn drop_object<T>(start: NonNull<T>) {
    if mem::needs_drop::<T>() {
        // SAFETY: by the caller's word.
        unsafe { ptr::drop_in_place(start.as_ptr()) };
    }
}
