//! Objects that readers may see while they are free, or someone else's.

mod cell;

use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::ptr::{self, NonNull};

pub use cell::StableCell;

use super::boxed::release_open;
use super::{Builder, Pool, PoolBox};
use crate::base::error::{AllocError, BuildError};
use crate::hook::counter::Stats;
use crate::hook::shadow;

/// A type whose objects may be seen before they are made and after they are gone.
///
/// # Safety
///
/// A `T` whose bytes are all zero is valid. (That it is `Sync` and has no destructor the compiler sees to.)
///
/// In practice a struct of atomics.
///
/// # Examples
///
/// ```
/// struct Counter { hits: core::sync::atomic::AtomicU64 }
/// // SAFETY: an atomic of zero is valid.
/// unsafe impl sheaves::TypeStable for Counter {}
/// ```
#[diagnostic::on_unimplemented(
    message = "objects of `{Self}` may not be seen while they are free",
    label = "no type for a `StablePool`",
    note = "a struct of atomics, whose bytes may all be zero, can say `unsafe impl sheaves::TypeStable`; others are for `PoolBox::retire`"
)]
pub unsafe trait TypeStable: Send + Sync + 'static {}

/// A pool whose slots always hold a valid `T`, and are used again at once.
///
/// That is cheaper than to [retire](PoolBox::retire) each object, and what readers get is weaker: a reader that found an
/// object keeps its *memory*, for as long as it is [pinned](crate::rcu::pin), and not the object. At any moment it
/// may be freed and be another object of the same type. So a reader has to make sure, after it has read, that what it
/// read was what it looked for.
///
/// Slots are set to zeros once, when their slab is made, and never by the pool again: whoever allocates finds what the last
/// owner left, and changes it through `&T`. A slab that has become empty is given back after a grace period.
///
/// # Making sure
///
/// Give each object a version that is odd while an owner changes it, and grows whenever it does. A reader
///
/// 1. loads the version, with `Acquire`, and starts anew if it is odd;
/// 2. reads what it wants, with `Relaxed`;
/// 3. passes an `Acquire` fence and loads the version again. If it is the same, all that was read belongs together: to
///    one object, which was there at the time of the first load;
/// 4. checks that it is the object that was looked for, by a key that it read in step 2.
///
/// ```
/// use core::sync::atomic::{AtomicU64, Ordering::*, fence};
/// use sheaves::{StableCell, StablePool, TypeStable, rcu};
///
/// struct Session { version: AtomicU64, user: AtomicU64, quota: AtomicU64 }
/// // SAFETY: atomics of zero are valid.
/// unsafe impl TypeStable for Session {}
///
/// impl Session {
///     fn set(&self, user: u64, quota: u64) {
///         let version = self.version.load(Relaxed); // only the owner writes
///         self.version.store(version + 1, Relaxed);
///         fence(Release);
///         self.user.store(user, Relaxed);
///         self.quota.store(quota, Relaxed);
///         self.version.store(version + 2, Release);
///     }
///
///     fn get(&self) -> Option<(u64, u64)> {
///         let before = self.version.load(Acquire);
///         let found = (self.user.load(Relaxed), self.quota.load(Relaxed));
///         fence(Acquire);
///         (before % 2 == 0 && self.version.load(Relaxed) == before).then_some(found)
///     }
/// }
///
/// let pool: StablePool<Session> = StablePool::new("session");
/// let table = [const { StableCell::empty() }; 4];
/// table[1].swap(Some(pool.alloc(|session| session.set(1, 100))));
///
/// let guard = rcu::pin();
/// let session = table[1].load(&guard).unwrap();
/// drop(table[1].take()); // freed, and soon another's, while we look at it
/// let found = session.get().filter(|(user, _)| *user == 1 && table[1].holds(session));
/// assert_eq!(found, None);
/// ```
#[doc(alias = "SLAB_TYPESAFE_BY_RCU")]
pub struct StablePool<T: TypeStable> {
    pool: Pool<T>,
}

impl<T: TypeStable> StablePool<T> {
    const NO_DESTRUCTOR: () = assert!(
        !core::mem::needs_drop::<T>(),
        "objects of a type-stable pool are never dropped"
    );

    /// A pool with the automatic configuration.
    ///
    /// # Panics
    ///
    /// As [`Pool::new`].
    pub fn new(name: &str) -> Self {
        Self::build(Pool::builder(name)).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Builds a pool. Its slots are not overwritten with zeros when they are freed, whatever was configured.
    ///
    /// # Errors
    ///
    /// As [`Builder::build`].
    pub fn build(builder: Builder<T>) -> Result<Self, BuildError> {
        const { Self::NO_DESTRUCTOR };
        builder.build_with(true).map(|pool| Self { pool })
    }

    /// Takes a slot and has `set` make an object of what is there: zeros, or what its last owner left. Readers may be
    /// looking. If `set` panics the slot is freed.
    ///
    /// # Panics
    ///
    /// As [`Pool::alloc`].
    pub fn alloc(&self, set: impl FnOnce(&T)) -> StableBox<T> {
        let boxed = StableBox::from_uninit(self.pool.alloc_uninit());
        set(&boxed);
        boxed
    }

    /// As [`StablePool::alloc`].
    ///
    /// # Errors
    ///
    /// As [`Pool::try_alloc`], with `set` in it uncalled.
    pub fn try_alloc<F: FnOnce(&T)>(&self, set: F) -> Result<StableBox<T>, AllocError<F>> {
        match self.pool.try_alloc_uninit() {
            Ok(slot) => {
                let boxed = StableBox::from_uninit(slot);
                set(&boxed);
                Ok(boxed)
            }
            Err(error) => Err(error.map(|()| set)),
        }
    }

    /// As [`Pool::shrink`]. Slabs go back after a grace period.
    pub fn shrink(&self) -> usize {
        self.pool.shrink()
    }

    /// As [`Pool::flush_thread`].
    pub fn flush_thread(&self) {
        self.pool.flush_thread();
    }

    /// As [`Pool::stats`]. Slabs that wait for readers are not counted.
    pub fn stats(&self) -> Stats {
        self.pool.stats()
    }

    /// The pool's name.
    pub fn name(&self) -> &str {
        self.pool.name()
    }
}

/// A handle is all there is to clone.
impl<T: TypeStable> Clone for StablePool<T> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
        }
    }
}

impl<T: TypeStable> fmt::Debug for StablePool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StablePool").field(&self.pool).finish()
    }
}

/// Owns an object of a [`StablePool`], together with readers that may still look at it or at its predecessors.
///
/// Dropping it frees the slot at once.
///
/// ```
/// # use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
/// # use sheaves::{StableBox, StableCell, StablePool, TypeStable, rcu};
/// # struct Counter { hits: AtomicU64 }
/// # // SAFETY: an atomic of zero is valid.
/// # unsafe impl TypeStable for Counter {}
/// let pool: StablePool<Counter> = StablePool::new("counter");
/// let counter: StableBox<Counter> = pool.alloc(|counter| counter.hits.store(1, Relaxed));
/// assert_eq!(counter.hits.load(Relaxed), 1);
/// ```
///
/// # Invariants
///
/// 1. The pointer is the start of a slot of a type-stable cache that is out, with the provenance of its slab, and
///    nobody else owns it.
/// 2. The slot holds a `T`, as each slot of the cache does from when its run was set up.
#[must_use = "dropping the box frees the object"]
pub struct StableBox<T: TypeStable> {
    start: NonNull<T>,
    _owns: PhantomData<T>,
}

// SAFETY: owns its object, which is `Send` and `Sync`; slots may be freed by any thread.
unsafe impl<T: TypeStable> Send for StableBox<T> {}
// SAFETY: gives shared access to the object and nothing else.
unsafe impl<T: TypeStable> Sync for StableBox<T> {}

impl<T: TypeStable> StableBox<T> {
    /// Of a slot of a type-stable cache; no other is made into one.
    fn from_uninit(slot: PoolBox<core::mem::MaybeUninit<T>>) -> Self {
        let start = PoolBox::into_start(slot).cast::<T>();
        // There is an object already, and readers may be looking.
        shadow::reopen(start.cast(), size_of::<T>());
        Self {
            start,
            _owns: PhantomData,
        }
    }

    /// # Safety
    ///
    /// `pointer` is null or came from [`into_pointer`] and is taken back once.
    unsafe fn from_pointer(pointer: *mut T) -> Option<Self> {
        NonNull::new(pointer).map(|start| Self {
            start,
            _owns: PhantomData,
        })
    }
}

fn into_pointer<T: TypeStable>(boxed: Option<StableBox<T>>) -> *mut T {
    boxed.map_or(ptr::null_mut(), |boxed| {
        ManuallyDrop::new(boxed).start.as_ptr()
    })
}

impl<T: TypeStable> Deref for StableBox<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the slot holds a `T` (invariant 2), which nobody borrows exclusively.
        unsafe { self.start.as_ref() }
    }
}

impl<T: TypeStable> Drop for StableBox<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the box owns the slot (invariant 1), and is not used after this. The object that stays in it has no
        // destructor.
        unsafe { release_open(self.start) };
    }
}

impl<T: TypeStable + fmt::Debug> fmt::Debug for StableBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StableBox").field(&**self).finish()
    }
}
