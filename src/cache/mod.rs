//! The untyped engine of a pool: allocate, free, bulk, lend, shrink, close.
//!
//! A slot is free in one of three places, nearest first: the thread's [`local`](crate::local), the
//! [`barn`](crate::barn), a slab of the [`node`](crate::node). The fast paths touch the first only. Everything
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
#[cfg(feature = "allocator-api2-02")]
mod blocks;
mod bulk;
mod drain;
#[cfg(unix)]
mod fork;
mod free;
mod lend;
mod limit;
mod own;
mod stats;
mod tightness;

use core::fmt;

pub(crate) use bulk::{BATCH, Batch, Sink};
pub(crate) use lend::Lent;
pub(crate) use own::{cache_of, free_batch, free_slow};

use crate::barn::Barn;
use crate::base::config::Config;
use crate::base::error::{AllocErrorKind, BuildError};
use crate::hook::counter::Counters;
use crate::local::{self, Local, Mine};
use crate::node::{Node, Supply};
use crate::page::{Hint, Source};
use crate::registry;
use crate::slab::{OwnerPtr, Slot};
use crate::sync::{Arc, BarrierMode, Lock, Weak};

/// The engine.
pub(crate) struct Cache {
    id: u32,
    config: Config,
    node: Node,
    barn: Barn,
    /// The list's lock also keeps drainers apart.
    locals: Lock<Locals>,
    counters: Counters,
    ledger: lend::Ledger,
    tightness: tightness::Tightness,
    mode: BarrierMode,
}

/// The locals of all threads.
#[derive(Default)]
struct Locals {
    list: Vec<Arc<Local>>,
    /// No thread gets a local any more.
    closed: bool,
    /// What threads that are gone did on their fast paths.
    #[cfg(feature = "op-counters")]
    gone: [usize; 2],
}

/// A share in an open cache; the last one to go closes it.
#[derive(Clone, Debug)]
pub(crate) struct Handle(Arc<Open>);

#[derive(Debug)]
struct Open {
    /// A copy of the cache's, one load nearer.
    id: u32,
    cache: Arc<Cache>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.cache.close();
    }
}

impl Handle {
    /// Builds a cache and enters it in the registry.
    pub(crate) fn build(config: Config, source: Source) -> Result<Self, BuildError> {
        #[cfg(unix)]
        fork::register();
        let id = registry::next_id()?;
        let cache = Arc::new_cyclic(|weak: &Weak<Cache>| {
            let owner = OwnerPtr(weak.as_ptr().cast());
            Cache {
                id,
                node: Node::new(&config, id, owner, source),
                barn: Barn::new(config.barn.0, config.barn.1),
                locals: Lock::new(Locals::default()),
                counters: Counters::new(),
                ledger: lend::Ledger::new(),
                tightness: tightness::Tightness::new(),
                mode: BarrierMode::detect(),
                config,
            }
        });
        let out_of_memory = |what| BuildError::OutOfMemory {
            pool: cache.name().to_string(),
            what,
        };
        let weak: Weak<Cache> = Arc::downgrade(&cache);
        if !registry::register(id, weak) {
            return Err(out_of_memory("an entry in the registry"));
        }
        let hint = if cache.config.populate_reserve {
            Hint::NONE.populate()
        } else {
            Hint::NONE
        };
        let missing = cache.config.reserve;
        let mut supply = Supply::default();
        if missing > 0 && !cache.gather_slabs(missing, hint, &mut supply) {
            return Err(out_of_memory("its reserve"));
        }
        cache.node.bring_in(&mut supply);
        Ok(Self(Arc::new(Open { id, cache })))
    }

    #[inline(always)]
    pub(crate) fn id(&self) -> u32 {
        self.0.id
    }

    #[inline]
    pub(crate) fn cache(&self) -> &Cache {
        &self.0.cache
    }

    /// Handles of this cache, prefilled sheaves included.
    pub(crate) fn count(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Cache {
    pub(crate) fn name(&self) -> &Arc<str> {
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
        let fast_free = !self.config.zero_on_free;
        let local = Arc::new(Local::new(self.id, self.mode, fast_free));
        let mut locals = self.locals.lock();
        if locals.closed {
            return None;
        }
        locals.list.try_reserve(1).ok()?;
        if self.is_tight() {
            local.start_tight();
        }
        locals.list.push(Arc::clone(&local));
        drop(locals);
        let address = Arc::as_ptr(&local).addr();
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
            .position(|local| Arc::as_ptr(local).addr() == address)
        else {
            return;
        };
        let gone = locals.list.swap_remove(at);
        #[cfg(feature = "op-counters")]
        {
            locals.gone[0] += gone.ops.alloc.get();
            locals.gone[1] += gone.ops.free.get();
        }
        drop(locals);
        drop(gone);
    }
}

/// Takes a slot on the fast path of the running thread.
#[inline(always)]
pub(crate) fn pop(id: u32) -> Option<Slot> {
    own::pop(id)
}

/// Puts a slot on the fast path of the running thread.
#[inline(always)]
pub(crate) fn push(id: u32, slot: Slot) -> Result<(), Slot> {
    own::push(id, slot)
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
