//! The caches beside a pool's own, which serve other layouts than one object.
//!
//! Each is an engine of its own, with slabs, sheaves and a barn, and in the registry like any other, so that
//! threads that exit, forks and slabinfo find it. It is made when its first slot is wanted. The cache of the pool
//! owns it, counts it in, shrinks it and closes it; slots of it that are out keep it alive by themselves, as
//! those of any cache do.
#![forbid(unsafe_code)]

use core::alloc::Layout;

use super::{Cache, Failure, SizeKey};
use crate::base::class::{CLASSES, Class};
use crate::base::config::{Config, Order, auto_sheaf_capacity};
use crate::base::error::AllocErrorKind;
use crate::base::layout::Geometry;
use crate::base::name::Name;
use crate::base::order::min_partial;
use crate::hook::counter::Stats;
use crate::page::Entry;
use crate::slab::{Nature, Slot};
use crate::sync::{AtomicU32, OnceLock, Ordering, Shared};

/// The caches of one pool.
#[derive(Default)]
pub(super) struct Classes {
    /// Most pools never need it.
    table: OnceLock<Shared<Table>>,
}

struct Table {
    /// The ids of `caches`, one load nearer; 0, which is none, where there is no cache.
    ids: [AtomicU32; CLASSES],
    caches: [OnceLock<Shared<Cache>>; CLASSES],
}

impl Table {
    fn try_new() -> Option<Shared<Self>> {
        Shared::try_new(Self {
            ids: [const { AtomicU32::new(0) }; CLASSES],
            caches: [const { OnceLock::new() }; CLASSES],
        })
    }
}

impl Classes {
    fn places(&self) -> &[OnceLock<Shared<Cache>>] {
        self.table.get().map_or(&[], |table| &table.caches)
    }

    /// Those that were made.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Shared<Cache>> {
        self.places().iter().filter_map(OnceLock::get)
    }

    /// Closes every one, even if the page source panics when it gets the memory of one of them back, as soon as
    /// what this returns is dropped.
    pub(super) fn close(&self) -> impl Drop + '_ {
        Closing(self.places())
    }

    /// Adds what they hold to the gauges of the pool.
    pub(super) fn count_in(&self, stats: &mut Stats) {
        for class in self.iter() {
            let of_class = class.stats();
            stats.blocks += of_class.live;
            stats.bytes += of_class.bytes;
            stats.block_bytes += of_class.bytes;
        }
    }
}

/// Closes the caches that are left, when dropped.
struct Closing<'a>(&'a [OnceLock<Shared<Cache>>]);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        if let Some((next, rest)) = self.0.split_first() {
            let _rest = Closing(rest);
            if let Some(class) = next.get() {
                class.close();
            }
        }
    }
}

impl Cache {
    /// The id of the cache for a class; 0, which no cache has, if there is none yet.
    #[inline(always)]
    pub(crate) fn class_id(&self, class: Class) -> u32 {
        let Some(table) = self.classes.table.get() else {
            return 0;
        };
        // Relaxed: an id alone leads nowhere; what a thread finds by it, its local, is its own.
        table.ids[class.index()].load(Ordering::Relaxed)
    }

    /// Allocates a slot of a class, for when the fast path found none. `object` is the layout of the pool's type.
    pub(crate) fn alloc_of_class(
        &self,
        class: Class,
        key: SizeKey,
        object: Layout,
    ) -> Result<Slot, Failure> {
        self.ask()?;
        let cache = self.class(class, object);
        cache.ok_or(AllocErrorKind::OutOfMemory)?.alloc_cold(key)
    }

    /// The cache for a class, made if there is none yet; `None` if it cannot be.
    fn class(&self, class: Class, object: Layout) -> Option<&Shared<Self>> {
        // Made outside the cells' locks: the global allocator may be one that uses this pool. Where another
        // thread was first, what was made is dropped.
        if self.classes.table.get().is_none() {
            let _ = self.classes.table.set(Table::try_new()?);
        }
        let table = self.classes.table.get()?;
        let place = &table.caches[class.index()];
        if place.get().is_none() {
            self.ask().ok()?;
            let config = self.config_of(class, object)?;
            let source = self.nodes.source().clone();
            let topology = self.nodes.topology().clone();
            let new = Self::build(config, Nature::default(), source, topology, true).ok()?;
            let _ = place.set(new);
            place.get()?.guard(&self.injector);
        }
        let cache = place.get()?;
        // Relaxed: see `class_id`.
        table.ids[class.index()].store(cache.id, Ordering::Relaxed);
        Some(cache)
    }

    fn config_of(&self, class: Class, object: Layout) -> Option<Config> {
        let (size, align) = class.slot(object);
        let geometry = Geometry::new(size, align);
        let own = &self.config;
        let sheaves = if own.sheaf_capacity == 0 {
            0
        } else {
            auto_sheaf_capacity(geometry.stride)
        };
        Some(Config {
            name: Name::try_joined([own.name(), &class.suffix()])?,
            geometry,
            order: Order::AUTO.resolve(&geometry).ok()?,
            // One huge page for each class would be much more than most of them ever fill.
            huge: false,
            sheaf_capacity: sheaves,
            min_partial: min_partial(geometry.stride).min(own.min_partial),
            // A limit counts objects in slots of their own.
            limit: usize::MAX,
            reserve: 0,
            ..own.clone()
        })
    }

    /// The cache that slots on a page of this entry belong to, if it is one of a class.
    pub(crate) fn class_at(&self, entry: Entry) -> Option<&Self> {
        let mut classes = self.classes.iter();
        let class = classes.find(|class| Entry::head(class.id) == entry)?;
        Some(class)
    }
}
