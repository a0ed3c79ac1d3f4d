//! The owner of one object in a pool.

mod inside;

use core::alloc::Layout;
use core::marker::PhantomData;
use core::mem::{self, ManuallyDrop, MaybeUninit};
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::ptr::NonNull;

use super::Pool;
use crate::base::error::AllocError;
use crate::base::layout::PAGE_SIZE;
use crate::cache::{cache_of, check_object};
use crate::hook::shadow;
use crate::slab::Slot;

#[cfg(feature = "rcu")]
pub(super) use inside::release_open;
pub(super) use inside::{drop_object, release};

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
/// # Examples
///
/// ```
/// use sheaves::{Pool, PoolBox};
///
/// let pool = Pool::new("names");
/// let mut name: PoolBox<String> = pool.alloc("Ada".to_owned());
/// name.push_str(" Lovelace");
/// drop(pool); // the box keeps its memory
/// std::thread::spawn(move || assert_eq!(PoolBox::into_inner(name), "Ada Lovelace")).join().unwrap();
/// ```
///
/// # Invariants
///
/// 1. The pointer is the start of a slot that is out, with the provenance of its slab, and nobody else
///    has it.
/// 2. The slot holds a `T`.
#[doc(alias = "kmem_cache_free")]
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
        struct Free<T>(NonNull<T>);
        impl<T> Drop for Free<T> {
            #[inline]
            fn drop(&mut self) {
                // SAFETY: the box owns the slot, and is not used after this; its object is gone.
                unsafe { release(self.0) };
            }
        }
        let _free = Free(self.start);
        if mem::needs_drop::<T>() {
            // SAFETY: the slot holds a `T` (invariant 2), which is not used after this.
            unsafe { self.start.drop_in_place() };
        }
    }
}

impl<T> PoolBox<MaybeUninit<T>> {
    /// A box of a slot whose contents are of no interest.
    #[inline(always)]
    pub(super) fn from_slot(slot: Slot) -> Self {
        Self {
            start: shadow::open_value(slot.into_ptr()),
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
    /// The slot holds a `T`, written whole.
    ///
    /// ```
    /// # use sheaves::{Pool, PoolBox};
    /// let pool: Pool<[u8; 4]> = Pool::new("bytes");
    /// let mut uninit = pool.alloc_uninit();
    /// uninit.write([1, 2, 3, 4]);
    /// // SAFETY: written just now.
    /// let bytes = unsafe { PoolBox::assume_init(uninit) };
    /// assert_eq!(bytes[3], 4);
    /// ```
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
    ///
    /// ```
    /// # use sheaves::{Pool, PoolBox};
    /// let pool = Pool::new("numbers");
    /// assert_eq!(*PoolBox::try_new_in(5, &pool)?, 5);
    /// # Ok::<(), sheaves::AllocError<i32>>(())
    /// ```
    #[inline]
    pub fn try_new_in(value: T, pool: &Pool<T>) -> Result<Self, AllocError<T>> {
        pool.try_alloc(value)
    }

    /// [`Pool::alloc_pin`] under `Box`'s name.
    ///
    /// # Panics
    ///
    /// As [`Pool::alloc`].
    ///
    /// ```
    /// # use sheaves::{Pool, PoolBox};
    /// let pool = Pool::new("numbers");
    /// assert_eq!(*PoolBox::pin_in(5, &pool), 5);
    /// ```
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
    /// If `pointer` lies in no pool, in a pool of objects of another size or of a lesser alignment, or is not where an
    /// object starts. That is reported first (see [`set_report_hook`](crate::set_report_hook)); nothing is freed.
    ///
    /// # Safety
    ///
    /// `pointer` came from [`PoolBox::into_raw`] or [`PoolBox::leak`] of a box of the same type, and is taken
    /// back once. A pointer to a freed object, or to one of another type of the same layout, is not told.
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
        // SAFETY: by the caller's word the object is out, which keeps its slab.
        match unsafe { check_object(pointer.cast(), Layout::new::<T>()) } {
            Some(start) => Self {
                start: start.cast(),
                _owns: PhantomData,
            },
            None => not_from_a_pool(pointer.addr()),
        }
    }

    /// Moves the object out and frees its slot.
    #[inline]
    pub fn into_inner(boxed: Self) -> T {
        let boxed = ManuallyDrop::new(boxed);
        // SAFETY: the slot holds a `T` (invariant 2), which moves out: the box is not dropped.
        let value = unsafe { boxed.start.read() };
        // SAFETY: the box owned the slot (invariant 1), and its object is gone.
        unsafe { release(boxed.start) };
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
    ///
    /// ```
    /// # use sheaves::{Pool, PoolBox};
    /// let pool = Pool::new("numbers");
    /// let pinned = PoolBox::into_pin(pool.alloc(5));
    /// assert_eq!(*pinned, 5);
    /// ```
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
    ///
    /// ```
    /// # use sheaves::{Pool, PoolBox};
    /// let pool = Pool::new("numbers");
    /// let mut number = pool.alloc(5);
    /// // SAFETY: nobody else uses the object.
    /// unsafe { PoolBox::as_mut_ptr(&mut number).write(6) };
    /// assert_eq!(*number, 6);
    /// ```
    #[inline]
    pub fn as_mut_ptr(boxed: &mut Self) -> *mut T {
        boxed.start.as_ptr()
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn not_from_a_pool(address: usize) -> ! {
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

const _: () = assert!(size_of::<Option<PoolBox<[u8; PAGE_SIZE]>>>() == size_of::<*const u8>());
