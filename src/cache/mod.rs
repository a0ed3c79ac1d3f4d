//! The untyped engine of a pool: allocate, free, bulk, lend, shrink, close.
//!
//! A slot is free in one of three places, nearest first: the thread's [`local`](crate::local), the
//! [`barn`](crate::barn) of its node, a slab of the [`node`](crate::node). The fast paths touch the first only. Everything
//! here is a slow path, and each is written as a sequence of short steps under one lock at a time. Between two
//! steps anything may have changed, so a step decides by what it sees under its own lock.
//!
//! # Lock order
//!
//! Registry, then the list of locals, then one local, then the barn, then the node. The page source, the
//! global allocator where it can be helped, hooks, and every other code of users run under none of them.
//!
//! # Life
//!
//! Handles are clones of one [`Handle`], prefilled sheaves hold one too. When the last goes the cache is
//! closed: its locals are killed, its barn is emptied and shut, and what is still out keeps the cache alive
//! (`own`). The slot or block that comes home last ends it.

mod alloc;
mod barns;
#[cfg(any_allocator)]
mod blocks;
mod bulk;
mod checked;
#[cfg_attr(
    not(any_allocator),
    expect(dead_code, reason = "only the allocator traits ask for other layouts")
)]
mod classes;
mod debug;
#[cfg(feature = "rcu")]
mod defer;
mod drain;
mod faults;
#[cfg(unix)]
mod fork;
mod free;
mod ledger;
mod lend;
mod lent;
mod limit;
mod own;
mod stats;
mod tightness;

use core::fmt;

pub(crate) use bulk::{BATCH, Batch, Sink};
pub(crate) use lent::Lent;
#[cfg(feature = "rcu")]
pub(crate) use own::retire;
pub(crate) use own::{cache_of, check_object, free_batch, free_slow};

use crossbeam_utils::CachePadded;

use crate::base::config::Config;
use crate::base::error::{AllocErrorKind, BuildError};
use crate::base::name::Name;
use crate::base::topology::Topology;
use crate::hook::counter::Counters;
use crate::hook::fault::Injector;
pub(crate) use crate::local::SizeKey;
use crate::local::{self, Local, Mine};
use crate::node::{Founder, Nodes, Room};
use crate::page::{Hint, Source};
use crate::registry;
use crate::slab::{Nature, OwnerPtr, Slot};
use crate::sync::{BarrierMode, Lock, Shared};

/// The engine.
pub(crate) struct Cache {
    id: u32,
    config: Config,
    #[cfg(feature = "rcu")]
    nature: Nature,
    /// On lines of its own, as the barns are: both are written to by all threads, and the rest is read by all.
    nodes: CachePadded<Nodes>,
    classes: classes::Classes,
    /// Whether this is one of another cache's classes.
    is_class: bool,
    barns: CachePadded<barns::Barns>,
    /// Retired objects that were handed in.
    #[cfg(feature = "rcu")]
    queue: CachePadded<defer::Queue>,
    /// How many objects were reaped at a time.
    #[cfg(feature = "rcu")]
    batch_sizes: defer::Sizes,
    /// The list's lock also keeps drainers apart.
    locals: Lock<Locals>,
    counters: Counters,
    ledger: ledger::Ledger,
    tightness: tightness::Tightness,
    mode: BarrierMode,
    /// Of a pool with debug flags.
    debug: Option<Shared<debug::Debug>>,
    injector: Injector,
}

/// The locals of all threads.
#[derive(Default)]
struct Locals {
    list: Vec<Shared<Local>>,
    /// No thread gets a local any more.
    closed: bool,
    /// The pool has a fault, so its threads stay off the fast path.
    guarded: bool,
}

/// A share in an open cache; the last one to go closes it.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    open: Shared<Open>,
    /// A copy of the cache's, which each allocation looks at: two loads nearer.
    id: u32,
}

#[derive(Debug)]
struct Open {
    cache: Shared<Cache>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.cache.close();
    }
}

impl Handle {
    /// Builds the cache of a pool.
    pub(crate) fn build(
        config: Config,
        nature: Nature,
        source: Source,
        topology: Topology,
    ) -> Result<Self, BuildError> {
        #[cfg(unix)]
        fork::register();
        let cache = Cache::build(config, nature, source, topology, false)?;
        let id = cache.id;
        let missing = out_of_memory(cache.name(), "a handle");
        let open = Shared::try_new(Open { cache });
        open.map(|open| Self { open, id }).ok_or(missing)
    }

    #[inline(always)]
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    #[inline]
    pub(crate) fn cache(&self) -> &Cache {
        &self.open.cache
    }

    /// Handles of this cache, prefilled sheaves included.
    pub(crate) fn count(&self) -> usize {
        Shared::strong_count(&self.open)
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Cache {
    /// Builds a cache and enters it in the registry.
    fn build(
        config: Config,
        nature: Nature,
        source: Source,
        topology: Topology,
        is_class: bool,
    ) -> Result<Shared<Self>, BuildError> {
        let id = registry::next_id()?;
        let name = config.name.clone();
        let out_of_memory = |what| out_of_memory(&name, what);
        let debug = debug::Debug::new(config.debug).map(|debug| {
            let debug = Shared::try_new(debug);
            debug.ok_or_else(|| out_of_memory("its debugging"))
        });
        let debug = debug.transpose()?;
        let barns = barns::Barns::try_new(&config, &topology);
        let barns = barns.ok_or_else(|| out_of_memory("its barns"))?;
        let room = Room::for_nodes_of(topology).ok_or_else(|| out_of_memory("its nodes"))?;
        let cache = Shared::try_new_cyclic(|address: *const Self| {
            let founder = Founder {
                id,
                owner: OwnerPtr(address.cast()),
                stable: nature.stable,
            };
            Self {
                id,
                #[cfg(feature = "rcu")]
                nature,
                nodes: Nodes::new(&config, founder, &source, room).into(),
                #[cfg(feature = "rcu")]
                queue: defer::Queue::new().into(),
                #[cfg(feature = "rcu")]
                batch_sizes: defer::Sizes::new(),
                classes: classes::Classes::default(),
                is_class,
                barns: barns.into(),
                locals: Lock::new(Locals::default()),
                counters: Counters::new(),
                ledger: ledger::Ledger::new(),
                tightness: tightness::Tightness::new(),
                mode: BarrierMode::detect(),
                debug,
                injector: Injector::new(),
                config,
            }
        });
        let cache = cache.ok_or_else(|| out_of_memory("its own data"))?;
        if !registry::register(id, Self::listed(&cache)) {
            return Err(out_of_memory("an entry in the registry"));
        }
        let hint = if cache.config.populate_reserve {
            Hint::NONE.populate()
        } else {
            Hint::NONE
        };
        let missing = cache.config.reserve;
        let mut supply = cache.nodes.supply_of_reserve();
        if missing > 0 && !cache.gather_slabs(missing, hint, &mut supply) {
            return Err(out_of_memory("its reserve"));
        }
        cache.nodes.bring_in(&mut supply);
        Ok(cache)
    }

    pub(crate) fn name(&self) -> &Name {
        &self.config.name
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// The running thread's local, made if it has none. `None` where the thread can have none: the cache
    /// keeps no sheaves or is closed, the thread is on its way out, or there is no memory.
    fn mine(&self) -> Option<Mine> {
        if self.config.sheaf_capacity == 0 {
            return None;
        }
        local::find(self.id).or_else(|| self.new_local())
    }

    #[cold]
    fn new_local(&self) -> Option<Mine> {
        self.ask().ok()?;
        let fast_free = !self.config.zero_on_free;
        let local = Local::new(self.id, self.mode, fast_free);
        #[cfg(feature = "rcu")]
        let local = local.with_destructor(self.nature.destructor);
        let local = Shared::try_new(local)?;
        let mut locals = self.locals.lock();
        if locals.closed {
            return None;
        }
        locals.list.try_reserve(1).ok()?;
        if self.is_tight() {
            local.start_tight();
        }
        if locals.guarded {
            local.guard();
        }
        locals.list.push(Shared::clone(&local));
        drop(locals);
        let address = Shared::as_ptr(&local).addr();
        let mine = local::adopt(local);
        if mine.is_none() {
            self.forget_local(address);
        }
        mine
    }

    fn forget_local(&self, address: usize) {
        let mut locals = self.locals.lock();
        let Some(at) = locals
            .list
            .iter()
            .position(|local| Shared::as_ptr(local).addr() == address)
        else {
            return;
        };
        let gone = locals.list.swap_remove(at);
        self.counters.absorb(&gone.counters);
        drop(locals);
        drop(gone);
    }
}

fn out_of_memory(pool: &Name, what: &'static str) -> BuildError {
    BuildError::OutOfMemory {
        pool: pool.copied(),
        what,
    }
}

/// Takes a slot on the fast path of the running thread.
#[inline(always)]
pub(crate) fn pop(key: SizeKey, id: u32) -> Option<Slot> {
    own::pop(key, id)
}

/// Puts a slot on the fast path of the running thread.
#[inline(always)]
pub(crate) fn push(key: SizeKey, id: u32, slot: Slot) -> Result<(), Slot> {
    own::push(key, id, slot)
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("id", &self.id)
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

/// Why the slow path has no slot.
pub(crate) type Failure = AllocErrorKind;
