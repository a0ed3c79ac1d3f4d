//! Event counters, under the kernel's names in lower case.
//!
//! They are added to on slow paths only, with relaxed atomics; what happens on the fast path is counted
//! behind the feature `op-counters`, by each thread for itself.
#![forbid(unsafe_code)]

use crate::sync::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $variant:ident $field:ident,)*) => {
        /// An event of a cache.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Counter { $($variant),* }

        /// How many counters there are.
        const COUNTERS: usize = [$(Counter::$variant),*].len();

        /// What a pool holds and what it has done: a snapshot.
        ///
        /// Gauges count slots unless their name says otherwise. They are exact while no other thread is inside
        /// a call on the pool, and else may lag behind by what is under way. Every slot is in exactly one place:
        /// `slots = live + prefilled + cached + barn + transit + free`.
        ///
        /// ```
        /// let pool: sheaves::Pool<u64> = sheaves::Pool::new("numbers");
        /// let number = pool.alloc(7);
        /// let stats = pool.stats();
        /// assert_eq!(stats.live, 1);
        /// assert_eq!(stats.slots, stats.live + stats.cached + stats.free);
        /// # drop(number);
        /// ```
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            /// Gauge: slots in the hands of users.
            pub live: u64,
            /// Gauge: slots in prefilled sheaves.
            pub prefilled: u64,
            /// Gauge: free slots in threads' own sheaves.
            pub cached: u64,
            /// Gauge: free slots in the barn.
            pub barn: u64,
            /// Gauge: free slots in slabs.
            pub free: u64,
            /// Gauge: slots on their way between two of these places, in pools with a limit; else they count as
            /// live until they arrive.
            pub transit: u64,
            /// Gauge: slots of all slabs, counted on their own.
            pub slots: u64,
            /// Gauge: slabs.
            pub slabs: u64,
            /// Gauge: whole-page blocks that serve other layouts of the allocator traits.
            pub blocks: u64,
            /// Gauge, in bytes: pages held, of slabs and of blocks.
            pub bytes: u64,
            /// Gauge: threads that have sheaves of this pool.
            pub locals: u64,
            $($(#[$doc])* pub $field: u64,)*
        }

        impl Counters {
            /// Copies every counter into a snapshot.
            pub(crate) fn read(&self, stats: &mut Stats) {
                $(stats.$field = self.get(Counter::$variant);)*
            }
        }
    };
}

counters! {
    /// Allocations served by the thread's own sheaf, counted with the feature `op-counters`; bulk adds its number.
    AllocFastpath alloc_fastpath,
    /// Allocations that took the slow path of their thread.
    AllocSlowpath alloc_slowpath,
    /// Frees into the thread's own sheaf, counted with the feature `op-counters`.
    FreeFastpath free_fastpath,
    /// Frees that took the slow path of their thread.
    FreeSlowpath free_slowpath,
    /// Full slabs that became partial.
    FreeAddPartial free_add_partial,
    /// Empty slabs taken off their list.
    FreeRemovePartial free_remove_partial,
    /// Slabs made.
    AllocSlab alloc_slab,
    /// Slabs given back to the page source.
    FreeSlab free_slab,
    /// Slabs made with the smallest order, since the source could not give the order asked for.
    OrderFallback order_fallback,
    /// Slots flushed from sheaves to slabs.
    SheafFlush sheaf_flush,
    /// Slots filled into sheaves from slabs.
    SheafRefill sheaf_refill,
    /// Arrays of sheaves made, those of one-off prefilled sheaves included.
    SheafAlloc sheaf_alloc,
    /// Arrays of sheaves freed.
    SheafFree sheaf_free,
    /// Full sheaves got from the barn.
    BarnGet barn_get,
    /// Times the barn had no full sheaf.
    BarnGetFail barn_get_fail,
    /// Full sheaves put into the barn.
    BarnPut barn_put,
    /// Times the barn had no room for a full sheaf.
    BarnPutFail barn_put_fail,
    /// Sheaves lent from the thread's spare.
    SheafPrefillFast sheaf_prefill_fast,
    /// Sheaves lent from the barn or made.
    SheafPrefillSlow sheaf_prefill_slow,
    /// One-off sheaves lent, larger than the pool's capacity.
    SheafPrefillOversize sheaf_prefill_oversize,
    /// Lent sheaves that became the thread's spare again.
    SheafReturnFast sheaf_return_fast,
    /// Lent sheaves that went to the barn or to slabs.
    SheafReturnSlow sheaf_return_slow,
    /// Times all threads' sheaves were searched for slots since the limit was reached.
    LimitSearch limit_search,
    /// Reports of misuse of this pool; each leaked a slot or a block.
    Reports reports,
}

/// The counters of one cache.
#[derive(Debug)]
pub(crate) struct Counters([AtomicU64; COUNTERS]);

impl Counters {
    pub(crate) fn new() -> Self {
        Self(core::array::from_fn(|_| AtomicU64::new(0)))
    }

    pub(crate) fn add(&self, counter: Counter, n: usize) {
        // Relaxed: nothing is ordered by a count.
        self.0[counter as usize].fetch_add(n as u64, Ordering::Relaxed);
    }

    fn get(&self, counter: Counter) -> u64 {
        // Relaxed: nothing is ordered by a count.
        self.0[counter as usize].load(Ordering::Relaxed)
    }
}
