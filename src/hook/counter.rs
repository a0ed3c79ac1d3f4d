//! Event counters, under the kernel's names in lower case.
//!
//! They are added to on slow paths only, with relaxed atomics. What happens often is counted by each thread for
//! itself, in words that no other thread writes; what happens on the fast path, behind the feature `op-counters`.
#![forbid(unsafe_code)]

use crate::sync::{AtomicU64, Ordering};

/// Classes of [`Stats::batch_sizes`]: as many as powers of two up to the largest sheaf.
pub(crate) const BATCH_SIZES: usize = 16;

macro_rules! counters {
    (
        own { $($(#[$own_doc:meta])* $own:ident $own_field:ident,)* }
        shared { $($(#[$doc:meta])* $variant:ident $field:ident,)* }
    ) => {
        /// An event of a cache.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Counter { $($own,)* $($variant),* }

        /// An event that happens often enough for each thread to count its own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum OwnCounter { $($own),* }

        /// How many counters there are.
        const COUNTERS: usize = [$(Counter::$own,)* $(Counter::$variant),*].len();

        /// The counters that each thread has too.
        const OWN: [Counter; [$(OwnCounter::$own),*].len()] = [$(Counter::$own),*];

        /// What a pool holds and what it has done: a snapshot.
        ///
        /// Gauges count slots unless their name says otherwise. They are exact while no other thread is inside
        /// a call on the pool, and else may lag behind by what is under way. Every slot is in exactly one place:
        /// `slots = live + prefilled + retired + cached + barn + transit + free`. Slots are those of the pool's type;
        /// what collections hold in other layouts is counted by `blocks`.
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
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
        #[non_exhaustive]
        pub struct Stats {
            /// Gauge: slots in the hands of users.
            pub live: u64,
            /// Gauge: slots in prefilled sheaves.
            pub prefilled: u64,
            /// Gauge: slots whose objects are retired and not reaped yet.
            pub retired: u64,
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
            /// Gauge: live blocks of the allocator traits that are not one object: arrays of a few, other small
            /// layouts, whole pages.
            pub blocks: u64,
            /// Gauge, in bytes: pages held, of slabs and for blocks.
            pub bytes: u64,
            /// Gauge, in bytes: of these, the pages held for blocks. Those of small blocks are slabs of caches of
            /// their own, which [`slabinfo`](crate::slabinfo) lists.
            pub block_bytes: u64,
            /// Gauge: threads that have sheaves of this pool.
            pub locals: u64,
            /// Batches of retired objects that were reaped, by size: entry `i` counts those of `1 << i` objects or more,
            /// and fewer than twice as many.
            pub batch_sizes: [u64; BATCH_SIZES],
            $($(#[$own_doc])* pub $own_field: u64,)*
            $($(#[$doc])* pub $field: u64,)*
        }

        impl Stats {
            /// The counters, with their names.
            pub fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [
                    $((stringify!($own_field), self.$own_field),)*
                    $((stringify!($field), self.$field),)*
                ]
                .into_iter()
            }

            pub(super) fn counter_mut(&mut self, name: &str) -> Option<&mut u64> {
                match name {
                    $(stringify!($own_field) => Some(&mut self.$own_field),)*
                    $(stringify!($field) => Some(&mut self.$field),)*
                    _ => None,
                }
            }
        }

        impl Counters {
            /// Copies every counter into a snapshot.
            pub(crate) fn read(&self, stats: &mut Stats) {
                $(stats.$own_field = self.get(Counter::$own);)*
                $(stats.$field = self.get(Counter::$variant);)*
            }
        }

        impl OwnCounters {
            /// Adds a thread's counters to a snapshot.
            pub(crate) fn read(&self, stats: &mut Stats) {
                $(stats.$own_field += self.get(OwnCounter::$own);)*
            }
        }
    };
}

counters! {
    own {
        /// Allocations served by the thread's own sheaf, counted with the feature `op-counters`; bulk adds its number.
        AllocFastpath alloc_fastpath,
        /// Allocations that took the slow path of their thread.
        AllocSlowpath alloc_slowpath,
        /// Frees into the thread's own sheaf, counted with the feature `op-counters`.
        FreeFastpath free_fastpath,
        /// Frees that took the slow path of their thread.
        FreeSlowpath free_slowpath,
        /// Full sheaves got from the barn.
        BarnGet barn_get,
        /// Full sheaves put into the barn.
        BarnPut barn_put,
        /// Sheaves lent from the thread's spare.
        SheafPrefillFast sheaf_prefill_fast,
        /// Lent sheaves that became the thread's spare again.
        SheafReturnFast sheaf_return_fast,
    }
    shared {
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
        /// Times the barn had no full sheaf.
        BarnGetFail barn_get_fail,
        /// Times the barn had no room for a full sheaf.
        BarnPutFail barn_put_fail,
        /// Sheaves lent from the barn or made.
        SheafPrefillSlow sheaf_prefill_slow,
        /// One-off sheaves lent, larger than the pool's capacity.
        SheafPrefillOversize sheaf_prefill_oversize,
        /// Lent sheaves that went to the barn or to slabs.
        SheafReturnSlow sheaf_return_slow,
        /// Retired objects that were handed in, in sheaves.
        FreeRcuSheaf free_rcu_sheaf,
        /// Retirements for which no sheaf could be had.
        FreeRcuSheafFail free_rcu_sheaf_fail,
        /// Batches of retired objects that were reaped; [`batch_sizes`](Self::batch_sizes) tells how large they were.
        RcuBatch rcu_batch,
        /// Retired objects that were reaped.
        RcuReaped rcu_reaped,
        /// Times all threads' sheaves were searched for slots since the limit was reached.
        LimitSearch limit_search,
        /// Reports of misuse of this pool; each leaked a slot or a block, or mended what was damaged.
        Reports reports,
        /// Allocations that failed because a fault was injected.
        Faults faults,
    }
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

impl Counters {
    /// Takes over what a thread counted that keeps its own no longer.
    pub(crate) fn absorb(&self, own: &OwnCounters) {
        for (counter, word) in OWN.iter().zip(&own.0) {
            // Relaxed: nothing is ordered by a count.
            let n = word.load(Ordering::Relaxed);
            // Relaxed: as above.
            self.0[*counter as usize].fetch_add(n, Ordering::Relaxed);
        }
    }
}

/// Counters that one thread writes and any may read.
#[derive(Debug)]
pub(crate) struct OwnCounters([AtomicU64; OWN.len()]);

#[cfg(not(all(loom, any(test, feature = "loom"))))]
impl OwnCounters {
    pub(crate) const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; OWN.len()])
    }
}

impl OwnCounters {
    #[inline(always)]
    pub(crate) fn add(&self, counter: OwnCounter, n: usize) {
        let word = &self.0[counter as usize];
        // Relaxed: one writer, and nothing is ordered by a count.
        let old = word.load(Ordering::Relaxed);
        // Relaxed: as above.
        word.store(old.wrapping_add(n as u64), Ordering::Relaxed);
    }

    fn get(&self, counter: OwnCounter) -> u64 {
        // Relaxed: as above.
        self.0[counter as usize].load(Ordering::Relaxed)
    }
}
