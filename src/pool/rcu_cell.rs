//! Pointers that readers follow without locks.

use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::ptr::{self, NonNull};

use super::PoolBox;
use crate::base::error::BarrierError;
use crate::grace::rcu::{self, Guard};
use crate::sync::{AtomicPtr, Ordering};

/// An optional object in a pool, which readers see while writers replace it.
///
/// As [`RcuCell`], but may be empty.
///
/// ```
/// use sheaves::{Pool, RcuCellOption, rcu};
///
/// let pool = Pool::new("session");
/// let cell = RcuCellOption::empty();
/// assert!(cell.load(&rcu::pin()).is_none());
/// cell.replace(Some(pool.alloc("alice".to_owned())));
/// assert_eq!(cell.load(&rcu::pin()).map(String::as_str), Some("alice"));
/// cell.replace(None); // retires "alice"
/// # pool.rcu_barrier()?;
/// # Ok::<(), rcu::BarrierError>(())
/// ```
///
/// # Invariants
///
/// 1. The pointer is null or that of a box, which the cell owns.
/// 2. Readers that have the pointer are pinned since before it was taken out of the cell, or borrow the cell.
pub struct RcuCellOption<T: Send + Sync + 'static> {
    pointer: AtomicPtr<T>,
    _owns: PhantomData<PoolBox<T>>,
}

impl<T: Send + Sync + 'static> RcuCellOption<T> {
    /// A cell with nothing in it.
    pub const fn empty() -> Self {
        Self {
            pointer: AtomicPtr::new(ptr::null_mut()),
            _owns: PhantomData,
        }
    }

    /// A cell with `boxed` in it.
    pub fn new(boxed: Option<PoolBox<T>>) -> Self {
        Self {
            pointer: AtomicPtr::new(into_pointer(boxed)),
            _owns: PhantomData,
        }
    }

    /// The object, for as long as the thread stays pinned and the cell is borrowed. Never waits.
    #[doc(alias = "rcu_dereference")]
    #[inline]
    pub fn load<'g>(&'g self, guard: &'g Guard) -> Option<&'g T> {
        let _ = guard;
        // Acquire: pairs with the Release of those that put a box in; its object is seen.
        let pointer = self.pointer.load(Ordering::Acquire);
        // SAFETY: null, or the pointer of a box (invariant 1). It is dropped after a grace period that begins when it has
        // been taken out of the cell, so not while the guard lives, or by one who borrows the cell exclusively, which
        // this borrow precludes.
        unsafe { pointer.as_ref() }
    }

    /// Puts `new` in, and retires what was there.
    #[doc(alias = "rcu_assign_pointer")]
    pub fn replace(&self, new: Option<PoolBox<T>>) {
        drop(self.swap(new));
    }

    /// Puts `new` in; what was there comes out, for readers as before: see [`Unlinked`].
    pub fn swap(&self, new: Option<PoolBox<T>>) -> Option<Unlinked<T>> {
        // AcqRel: Release pairs with the Acquire in `load`. Acquire: the old object is seen as its writer left it.
        let old = self.pointer.swap(into_pointer(new), Ordering::AcqRel);
        // SAFETY: taken out of the cell just now, by nobody else.
        unsafe { Unlinked::from_pointer(old) }
    }

    /// Takes the object out.
    pub fn take(&self) -> Option<Unlinked<T>> {
        self.swap(None)
    }

    /// Replaces the object by what `update` makes of it, and retires it. If somebody else has replaced it meanwhile,
    /// `update` is called again with what is there then.
    pub fn update(&self, mut update: impl FnMut(Option<&T>) -> Option<PoolBox<T>>) {
        // Also keeps the slot of the old object from being used for another one, which the exchange would take for it.
        let guard = rcu::pin();
        loop {
            let old = self.load(&guard);
            let new = into_pointer(update(old));
            let old: *const T = old.map_or(ptr::null(), ptr::from_ref);
            // AcqRel: as in `swap`. Acquire: as in `load`, for the next turn.
            let exchanged = self.pointer.compare_exchange(
                old.cast_mut(),
                new,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            match exchanged {
                Ok(old) => {
                    // SAFETY: taken out of the cell just now, by nobody else.
                    return drop(unsafe { Unlinked::from_pointer(old) });
                }
                // SAFETY: the pointer was made of a box above and never was in the cell.
                Err(_) => drop(unsafe { into_box(new) }),
            }
        }
    }

    /// The object, for writing. Nobody else can see the cell.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        // Relaxed: the cell is borrowed exclusively, by whatever orders that.
        let pointer = self.pointer.load(Ordering::Relaxed);
        // SAFETY: null, or the pointer of a box that the cell owns (invariant 1); readers that have it borrow the cell,
        // and there are none (invariant 2).
        unsafe { pointer.as_mut() }
    }

    /// The box.
    pub fn into_inner(self) -> Option<PoolBox<T>> {
        let cell = ManuallyDrop::new(self);
        // Relaxed: as in `get_mut`.
        let pointer = cell.pointer.load(Ordering::Relaxed);
        // SAFETY: the cell owned the box (invariant 1), is given up, and is not dropped; no reader has it, as in
        // `get_mut`.
        unsafe { into_box(pointer) }
    }
}

/// No reader has the object: it would borrow the cell.
impl<T: Send + Sync + 'static> Drop for RcuCellOption<T> {
    fn drop(&mut self) {
        // Relaxed: as in `get_mut`.
        let pointer = self.pointer.load(Ordering::Relaxed);
        // SAFETY: the cell owned the box (invariant 1) and is not used after this; no reader has it, as in `get_mut`.
        drop(unsafe { into_box(pointer) });
    }
}

fn into_pointer<T>(boxed: Option<PoolBox<T>>) -> *mut T {
    boxed.map_or(ptr::null_mut(), PoolBox::into_raw)
}

/// # Safety
///
/// The pointer came from [`into_pointer`], is given up, and no reader has it.
unsafe fn into_box<T>(pointer: *mut T) -> Option<PoolBox<T>> {
    // SAFETY: from `PoolBox::into_raw`, and taken back once.
    (!pointer.is_null()).then(|| unsafe { PoolBox::from_raw(pointer) })
}

/// An object that was taken out of a cell. Readers may still see it: it can be read, and is retired when dropped.
///
/// ```
/// use sheaves::{Pool, RcuCell, Unlinked};
///
/// let pool = Pool::new("names");
/// let cell = RcuCell::new(pool.alloc("old".to_owned()));
/// let old = cell.swap(pool.alloc("new".to_owned()));
/// assert_eq!(*old, "old"); // as readers may still do
/// let owned = Unlinked::synchronize(old).expect("not pinned"); // nobody does any more
/// assert_eq!(*owned, "old");
/// ```
///
/// # Invariants
///
/// 1. The pointer is that of a box, which this owns.
pub struct Unlinked<T: Send + Sync + 'static> {
    pointer: NonNull<T>,
    _owns: PhantomData<PoolBox<T>>,
}

// SAFETY: owns a box, which may be sent where its object may.
unsafe impl<T: Send + Sync + 'static> Send for Unlinked<T> {}
// SAFETY: gives shared access to the object and nothing else.
unsafe impl<T: Send + Sync + 'static> Sync for Unlinked<T> {}

impl<T: Send + Sync + 'static> Unlinked<T> {
    /// # Safety
    ///
    /// The pointer is null, or that of a box, which is given up, and which nobody has but readers that were pinned before
    /// this call.
    unsafe fn from_pointer(pointer: *mut T) -> Option<Self> {
        NonNull::new(pointer).map(|pointer| Self {
            pointer,
            _owns: PhantomData,
        })
    }

    /// Waits until no reader sees the object, and gives its box back.
    ///
    /// # Errors
    ///
    /// As [`rcu::synchronize`]; nothing has changed.
    pub fn synchronize(unlinked: Self) -> Result<PoolBox<T>, (BarrierError, Self)> {
        if let Err(error) = rcu::synchronize() {
            return Err((error, unlinked));
        }
        let pointer = ManuallyDrop::new(unlinked).pointer;
        // SAFETY: the pointer is that of a box that this owned (invariant 1) and is given up; whoever was pinned when it
        // was taken out of its cell has unpinned.
        Ok(unsafe { PoolBox::from_raw(pointer.as_ptr()) })
    }
}

impl<T: Send + Sync + 'static> Deref for Unlinked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the pointer is that of a box that this owns (invariant 1); others only read.
        unsafe { self.pointer.as_ref() }
    }
}

impl<T: Send + Sync + 'static> Drop for Unlinked<T> {
    fn drop(&mut self) {
        // SAFETY: the pointer is that of a box that this owned (invariant 1); it is not used after this, but by readers,
        // for whom it is retired.
        PoolBox::retire(unsafe { PoolBox::from_raw(self.pointer.as_ptr()) });
    }
}

impl<T: Send + Sync + fmt::Debug + 'static> fmt::Debug for Unlinked<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Unlinked").field(&**self).finish()
    }
}

/// An object in a pool, which readers see while writers replace it.
///
/// Readers pin their thread and load; they take no lock and wait for nobody. Writers put a new box in, and the old one is
/// [retired](PoolBox::retire). The objects may come from any pool.
///
/// ```
/// use sheaves::{Pool, RcuCell, rcu};
///
/// let pool = Pool::new("config");
/// let config = RcuCell::new(pool.alloc(vec![1, 2]));
/// std::thread::scope(|scope| {
///     scope.spawn(|| assert!(config.load(&rcu::pin()).len() >= 2));
///     config.update(|old| pool.alloc(old.iter().copied().chain([3]).collect()));
/// });
/// assert_eq!(config.load(&rcu::pin()).len(), 3);
/// # Ok::<(), rcu::BarrierError>(())
/// ```
///
/// What was loaded borrows the cell as well as the guard, so that [`get_mut`](Self::get_mut) and
/// [`into_inner`](Self::into_inner) find it unread:
///
/// ```compile_fail,E0502
/// # use sheaves::{Pool, RcuCell, rcu};
/// # let pool = Pool::new("numbers");
/// let mut cell = RcuCell::new(pool.alloc(1));
/// let guard = rcu::pin();
/// let seen = cell.load(&guard);
/// *cell.get_mut() = 2;
/// assert_eq!(*seen, 1);
/// ```
pub struct RcuCell<T: Send + Sync + 'static> {
    /// Never empty.
    cell: RcuCellOption<T>,
}

impl<T: Send + Sync + 'static> RcuCell<T> {
    /// A cell with `boxed` in it.
    pub fn new(boxed: PoolBox<T>) -> Self {
        let cell = RcuCellOption::new(Some(boxed));
        Self { cell }
    }

    /// The object, for as long as the thread stays pinned and the cell is borrowed. Never waits.
    #[doc(alias = "rcu_dereference")]
    #[inline]
    pub fn load<'g>(&'g self, guard: &'g Guard) -> &'g T {
        self.cell.load(guard).expect("never empty")
    }

    /// Puts `new` in, and retires what was there.
    #[doc(alias = "rcu_assign_pointer")]
    pub fn replace(&self, new: PoolBox<T>) {
        self.cell.replace(Some(new));
    }

    /// Puts `new` in; what was there comes out, for readers as before: see [`Unlinked`].
    pub fn swap(&self, new: PoolBox<T>) -> Unlinked<T> {
        self.cell.swap(Some(new)).expect("never empty")
    }

    /// Replaces the object by what `update` makes of it, and retires it. If somebody else has replaced it meanwhile,
    /// `update` is called again with what is there then.
    pub fn update(&self, mut update: impl FnMut(&T) -> PoolBox<T>) {
        self.cell
            .update(|old| Some(update(old.expect("never empty"))));
    }

    /// The object, for writing. Nobody else can see the cell.
    pub fn get_mut(&mut self) -> &mut T {
        self.cell.get_mut().expect("never empty")
    }

    /// The box.
    pub fn into_inner(self) -> PoolBox<T> {
        self.cell.into_inner().expect("never empty")
    }
}

impl<T: Send + Sync + fmt::Debug + 'static> fmt::Debug for RcuCellOption<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guard = rcu::pin();
        f.debug_tuple("RcuCellOption")
            .field(&self.load(&guard))
            .finish()
    }
}

impl<T: Send + Sync + fmt::Debug + 'static> fmt::Debug for RcuCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guard = rcu::pin();
        f.debug_tuple("RcuCell").field(self.load(&guard)).finish()
    }
}

impl<T: Send + Sync + 'static> From<PoolBox<T>> for RcuCell<T> {
    fn from(boxed: PoolBox<T>) -> Self {
        Self::new(boxed)
    }
}

impl<T: Send + Sync + 'static> From<Option<PoolBox<T>>> for RcuCellOption<T> {
    fn from(boxed: Option<PoolBox<T>>) -> Self {
        Self::new(boxed)
    }
}

/// With nothing in it.
impl<T: Send + Sync + 'static> Default for RcuCellOption<T> {
    fn default() -> Self {
        Self::empty()
    }
}
