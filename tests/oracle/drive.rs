//! Runs a pool and its model side by side, one call at a time, and compares everything that can be seen.
#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sheaves::Stats;

use crate::atlas::Atlas;
use crate::engine::{Action, Engine};
use crate::model::{Lent, Model};
use crate::op::{Config, Op, THREADS};
use crate::slabs::{Place, Shape, Slabs};
use crate::source::{PAGE, Source};
use crate::worker::Worker;

/// Steps after which all objects are looked at; each is looked at when it is freed, too.
pub(crate) const LOOK: usize = 16;

/// Builds a pool, does `ops` to it, and frees everything in the end. Panics where pool and model differ. The answer
/// is what was reached on the way.
pub(crate) fn run(config: &Config, ops: &[Op]) -> Reached {
    // Runs look at the list of all pools.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    match config.size {
        1 => Run::<1>::new(config).all(ops),
        24 => Run::<24>::new(config).all(ops),
        240 => Run::<240>::new(config).all(ops),
        5000 => Run::<5000>::new(config).all(ops),
        40_000 => Run::<40_000>::new(config).all(ops),
        70_000 => Run::<70_000>::new(config).all(ops),
        size => panic!("no objects of {size} bytes were prepared"),
    }
}

/// States that are hard to come by, and how often a run met them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reached {
    pub(crate) refused_at_limit: usize,
    pub(crate) refused_for_memory: usize,
    pub(crate) loosened: usize,
    pub(crate) cloned_after_the_end: usize,
    /// The pool's own counters, when they were last seen.
    pub(crate) stats: Stats,
}

/// The gauges of a pool.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gauges {
    pub(crate) live: usize,
    pub(crate) prefilled: usize,
    pub(crate) cached: usize,
    pub(crate) barn: usize,
    pub(crate) free: usize,
    pub(crate) transit: usize,
    pub(crate) slots: usize,
    pub(crate) slabs: usize,
    pub(crate) blocks: usize,
    pub(crate) bytes: usize,
    pub(crate) locals: usize,
    /// Arrays of sheaves, wherever they are: a difference of two counters.
    pub(crate) arrays: usize,
}

impl Gauges {
    pub(crate) fn of(stats: &Stats) -> Self {
        let number = |gauge: u64| usize::try_from(gauge).expect("a small number");
        Self {
            live: number(stats.live),
            prefilled: number(stats.prefilled),
            cached: number(stats.cached),
            barn: number(stats.barn),
            free: number(stats.free),
            transit: number(stats.transit),
            slots: number(stats.slots),
            slabs: number(stats.slabs),
            blocks: number(stats.blocks),
            bytes: number(stats.bytes),
            locals: number(stats.locals),
            arrays: number(stats.sheaf_alloc - stats.sheaf_free),
        }
    }
}

pub(crate) struct Run<const N: usize> {
    pub(crate) engine: Arc<Mutex<Engine<N>>>,
    pub(crate) workers: [Option<Worker>; THREADS],
    pub(crate) source: Arc<Source>,
    pub(crate) atlas: Atlas,
    pub(crate) model: Model,
    /// Where the objects are, in the engine's order.
    pub(crate) live: Vec<Place>,
    pub(crate) lent: Vec<Lent>,
    pub(crate) handles: usize,
    /// Places that held an object once.
    pub(crate) used: HashSet<Place>,
    pub(crate) zero_on_free: bool,
    pub(crate) serial: u64,
    pub(crate) steps: usize,
    pub(crate) reached: Reached,
}

impl<const N: usize> Run<N> {
    fn new(config: &Config) -> Self {
        let source = Source::new();
        let engine = Engine::new(config, &source);
        let chosen = engine.handles[0].config();
        // All but the largest share a page, which then is a run.
        let run_pages = N.div_ceil(PAGE);
        let runs = (1 << chosen.order()) / run_pages;
        let shape = Shape {
            order: chosen.order(),
            min_order: u8::from(run_pages > 1),
            run_pages,
            run_slots: chosen.slots_per_slab() / runs,
        };
        let model = Model {
            capacity: chosen.sheaf_capacity(),
            max_full: config.barn.0,
            max_empty: config.barn.1,
            limit: config.limit.unwrap_or(usize::MAX),
            slabs: Slabs::new(shape, config.min_partial, config.reserve),
            locals: Vec::new(),
            full: Vec::new(),
            empty: 0,
            tight: None,
            closed: false,
        };
        let mut run = Self {
            atlas: Atlas::new(shape, chosen.stride(), chosen.align()),
            engine: Arc::new(Mutex::new(engine)),
            workers: [const { None }; THREADS],
            source,
            model,
            live: Vec::new(),
            lent: Vec::new(),
            handles: 1,
            used: HashSet::new(),
            zero_on_free: config.zero_on_free,
            serial: 0,
            steps: 0,
            reached: Reached::default(),
        };
        run.compare(&"the pool was built");
        run
    }

    fn all(mut self, ops: &[Op]) -> Reached {
        for op in ops {
            self.op(*op);
        }
        self.end();
        self.reached
    }

    /// Frees everything, and sees that nothing is left.
    fn end(&mut self) {
        while !self.lent.is_empty() {
            self.call(0, Action::GiveBack { sheaf: 0 });
        }
        let n = self.live.len();
        self.call(0, Action::FreeBulk { from: 0, n });
        if self.handles > 0 {
            // One free, one shrink: all memory but the reserve is back, whatever others have parked.
            self.call(THREADS - 1, Action::Shrink);
        }
        while self.handles > 0 {
            self.call(0, Action::DropHandle { handle: 0 });
        }
        assert!(
            self.lock().stats().is_none(),
            "the pool outlives its last object"
        );
        assert_eq!(self.source.log().out, [], "blocks never came back");
        for thread in 1..THREADS {
            self.exit(thread);
        }
        let owners = Arc::strong_count(&self.source);
        assert_eq!(owners, 1, "something still has the source");
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Engine<N>> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.handles > 0 || !self.lent.is_empty()
    }

    /// Turns an operation into calls.
    fn op(&mut self, op: Op) {
        let has_handle = self.handles > 0;
        match op {
            Op::Alloc {
                thread,
                times,
                form,
            } if has_handle => {
                for _ in 0..times {
                    let serial = self.serial;
                    self.call(thread, Action::Alloc { form, serial });
                }
            }
            Op::AllocNow { thread } if has_handle => {
                let serial = self.serial;
                self.call(thread, Action::AllocNow { serial });
            }
            Op::Free {
                thread,
                which,
                times,
            } => {
                for _ in 0..times.min(self.live.len()) {
                    let at = which % self.live.len();
                    self.call(thread, Action::Free { at });
                }
            }
            Op::AllocBulk { thread, n } if has_handle => {
                let serial = self.serial;
                self.call(thread, Action::AllocBulk { n, serial });
            }
            Op::FreeBulk { thread, which, n } => {
                let from = which.checked_rem(self.live.len()).unwrap_or(0);
                let n = n.min(self.live.len() - from);
                self.call(thread, Action::FreeBulk { from, n });
            }
            Op::Churn { thread, times } if has_handle => self.churn(thread, times),
            Op::CloneBox { thread, which } if !self.live.is_empty() && self.may_clone() => {
                let at = which % self.live.len();
                let serial = self.serial;
                self.call(thread, Action::CloneBox { at, serial });
            }
            Op::Memory { pages } => {
                let bound = pages.map(|more| self.model.slabs.pages() + more);
                self.model.slabs.bound = bound;
                self.source.log().bound = bound;
            }
            Op::Exit { thread } => self.exit(thread),
            _ => self.handle_op(op),
        }
    }

    /// The operations on handles and lent sheaves.
    fn handle_op(&mut self, op: Op) {
        let (lent, handles) = (self.lent.len(), self.handles);
        match op {
            Op::Prefill { thread, n } if handles > 0 => self.call(thread, Action::Prefill { n }),
            Op::SheafAlloc {
                thread,
                sheaf,
                times,
            } if lent > 0 => {
                let sheaf = sheaf % lent;
                for _ in 0..times {
                    let serial = self.serial;
                    self.call(thread, Action::SheafAlloc { sheaf, serial });
                }
            }
            Op::SheafFree {
                thread,
                sheaf,
                which,
            } if lent > 0 && !self.live.is_empty() => {
                let (sheaf, at) = (sheaf % lent, which % self.live.len());
                self.call(thread, Action::SheafFree { sheaf, at });
            }
            Op::Refill { thread, sheaf, n } if lent > 0 => {
                let sheaf = sheaf % lent;
                self.call(thread, Action::Refill { sheaf, n });
            }
            Op::GiveBack { thread, sheaf } if lent > 0 => {
                let sheaf = sheaf % lent;
                self.call(thread, Action::GiveBack { sheaf });
            }
            Op::Shrink { thread } if handles > 0 => self.call(thread, Action::Shrink),
            Op::Flush { thread } if handles > 0 => self.call(thread, Action::Flush),
            Op::Faulted { thread, what, n } if handles > 0 => {
                self.call(thread, Action::Faulted { what, n });
            }
            Op::CloneHandle if handles > 0 => self.call(0, Action::CloneHandle),
            Op::DropHandle { thread, handle } if handles > 0 => {
                let handle = handle % handles;
                self.call(thread, Action::DropHandle { handle });
            }
            Op::Close { thread, handle } if handles > 0 => {
                let handle = handle % handles;
                self.call(thread, Action::Close { handle });
            }
            _ => {}
        }
    }

    fn churn(&mut self, thread: usize, times: usize) {
        for _ in 0..times {
            let (before, serial) = (self.live.len(), self.serial);
            let form = crate::op::Form::Uninit;
            self.call(thread, Action::Alloc { form, serial });
            if self.live.len() == before {
                return;
            }
            self.call(thread, Action::Free { at: before });
        }
    }

    /// Cloning a box panics or aborts where there is no slot.
    fn may_clone(&self) -> bool {
        let taken = self.live.len() + self.prefilled();
        self.model.slabs.bound.is_none() && taken < self.model.limit
    }

    pub(crate) fn prefilled(&self) -> usize {
        self.lent.iter().map(|lent| lent.slots.len()).sum()
    }

    fn exit(&mut self, thread: usize) {
        let Some(worker) = self.workers[thread].take() else {
            return;
        };
        worker.end();
        if self.is_open() {
            self.model.exit(thread);
        }
        self.compare(&Op::Exit { thread });
    }

    /// One call of the engine, on the given thread, and what the model says to it.
    fn call(&mut self, thread: usize, action: Action) {
        let was_tight = self.model.tight.is_some();
        let expected = self.expect(thread, action);
        let is_late = self.model.closed && matches!(action, Action::CloneBox { .. });
        self.reached.cloned_after_the_end += usize::from(is_late);
        self.reached.loosened += usize::from(was_tight && self.model.tight.is_none());
        let answer = match thread {
            0 => self.lock().apply(action),
            _ => {
                let engine = &self.engine;
                let worker = self.workers[thread].get_or_insert_with(|| Worker::new(engine));
                worker.call(action)
            }
        };
        self.match_answer(action, answer, expected);
        self.compare(&(thread, action));
    }
}
