//! Objects that are freed when no reader sees them any more.

use core::mem;

use super::{Pool, PoolBox};
use crate::base::error::BarrierError;
use crate::cache;

use crate::page::page_map;
use crate::slab::Slot;

impl<T> PoolBox<T> {
    /// Drops the object and frees its slot after a grace period: when every reader that is [pinned](crate::rcu::pin)
    /// now has unpinned. Until then they may read it.
    ///
    /// Never fails and never waits for readers. May be called while pinned, in destructors, in those of thread-locals,
    /// and when there is no memory. The destructor runs on some thread, outside all locks of the crate and not pinned; if
    /// it panics that is [reported](crate::set_report_hook). What a process has not reclaimed when it exits is not
    /// dropped. How soon that is, and how many objects are retired at a time, is told in [`rcu`](crate::rcu).
    ///
    /// Not to be called while holding a lock that a destructor of the pool's objects takes: a call may run those of
    /// objects that were retired before. A call while pinned does not.
    ///
    /// # Real time
    ///
    /// Usually a push into a sheaf of the thread, without lock or atomic read-modify-write. One call in as many as
    /// the sheaf holds takes locks, may allocate, and runs destructors.
    ///
    /// ```
    /// # use sheaves::{Pool, PoolBox, rcu};
    /// let pool = Pool::new("names");
    /// PoolBox::retire(pool.alloc("old".to_owned()));
    /// assert_eq!(pool.stats().retired, 1);
    /// pool.rcu_barrier()?;
    /// assert_eq!(pool.stats().retired, 0);
    /// # Ok::<(), rcu::BarrierError>(())
    /// ```
    #[doc(alias = "kfree_rcu")]
    #[doc(alias = "kvfree_rcu")]
    #[inline]
    pub fn retire(boxed: Self)
    where
        T: Send + 'static,
    {
        let start = Self::into_start(boxed).cast();
        // SAFETY: the slot's slab stands, since the slot is out.
        let entry = unsafe { page_map::get_flat(start.addr().get()) };
        // SAFETY: the box was taken apart, so its slot is given up.
        let slot = unsafe { Slot::from_ptr(start) };
        // SAFETY: the slot is out and given up. It holds a `T`, which is the type of its pool, as the type of a box with
        // a destructor is, or one without a destructor. A `T` may be dropped on any thread, at any time. Others that see
        // it are readers, see `RcuCell`.
        unsafe { cache::retire(Pool::<T>::KEY, entry.raw(), slot, mem::needs_drop::<T>()) };
    }
}

impl<T> Pool<T> {
    /// Waits until every object of this pool that was retired before, on any thread, is dropped and its slot free.
    ///
    /// Runs destructors, those of objects that other threads retired too.
    ///
    /// # Errors
    ///
    /// Where it would wait for itself: [`BarrierError::Pinned`] if the thread is pinned, [`BarrierError::Reaping`] in a
    /// destructor of a retired object, of whatever pool. [`BarrierError::Forked`] in a forked child, where
    /// a reader of the parent stays pinned for ever.
    #[doc(alias = "kvfree_rcu_barrier_on_cache")]
    pub fn rcu_barrier(&self) -> Result<(), BarrierError> {
        self.handle().cache().rcu_barrier()
    }

    /// As [`Pool::rcu_barrier`], for one who ends the pool: in a forked child nothing is waited for.
    pub(super) fn wait_for_retired(&self) -> Result<(), BarrierError> {
        match self.rcu_barrier() {
            Err(BarrierError::Forked | BarrierError::Forbidden) | Ok(()) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
