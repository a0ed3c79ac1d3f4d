//! The pool under test, with the boxes, handles and sheaves that its user has.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use sheaves::{
    Align, AllocError, AllocErrorKind, Exhausted, Order, Pool, PoolBox, PrefilledSheaf, Stats,
};

use crate::machine::on_one_node;
use crate::op::{Config, Form};
use crate::source::Source;

/// One call, with all choices made: numbers are places in the engine's lists. `serial` is the number of the
/// object that is made, or of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Alloc { form: Form, serial: u64 },
    AllocNow { serial: u64 },
    Free { at: usize },
    AllocBulk { n: usize, serial: u64 },
    FreeBulk { from: usize, n: usize },
    Prefill { n: usize },
    SheafAlloc { sheaf: usize, serial: u64 },
    SheafFree { sheaf: usize, at: usize },
    Refill { sheaf: usize, n: usize },
    GiveBack { sheaf: usize },
    Shrink,
    Flush,
    CloneBox { at: usize, serial: u64 },
    CloneHandle,
    DropHandle { handle: usize },
    Close { handle: usize },
    Faulted { what: usize, n: usize },
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    /// New objects.
    Placed(Vec<New>),
    Refused(AllocErrorKind),
    /// A prefilled sheaf had no slot, or no room.
    Unable,
    Bytes(usize),
    Busy {
        live: usize,
        prefilled: usize,
        handles: usize,
    },
}

/// A new object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct New {
    pub(crate) address: usize,
    /// Whether its slot was all zeros, if that was looked at.
    pub(crate) zeros: Option<bool>,
}

/// What is in the pool: bytes that tell one object from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object<const N: usize>([u8; N]);

impl<const N: usize> Object<N> {
    fn new(serial: u64) -> Self {
        let number = serial.to_le_bytes();
        // Never 0, so that an object is no cleared slot.
        let mut bytes = [number[0] | 0x40; N];
        for (place, byte) in bytes.iter_mut().skip(1).zip(number) {
            *place = byte;
        }
        Self(bytes)
    }
}

/// An object, and which it should be.
#[derive(Debug)]
struct Kept<const N: usize> {
    object: PoolBox<Object<N>>,
    serial: u64,
}

#[derive(Debug)]
pub(crate) struct Engine<const N: usize> {
    name: String,
    pub(crate) handles: Vec<Pool<Object<N>>>,
    kept: Vec<Kept<N>>,
    pub(crate) sheaves: Vec<PrefilledSheaf<Object<N>>>,
}

impl<const N: usize> Engine<N> {
    pub(crate) fn new(config: &Config, source: &Arc<Source>) -> Self {
        static BUILT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("oracle-{}", BUILT.fetch_add(1, Ordering::Relaxed));
        let mut builder = Pool::builder(&name)
            .source(Arc::clone(source))
            .barn(config.barn.0, config.barn.1)
            .min_partial(config.min_partial)
            .reserve(config.reserve);
        if let Some(slots) = config.sheaf_capacity {
            builder = builder.sheaf_capacity(slots);
        }
        if let Some(order) = config.order {
            builder = builder.order(Order::new(order));
        }
        if let Some(limit) = config.limit {
            builder = builder.limit(limit);
        }
        if config.zero_on_free {
            builder = builder.zero_on_free();
        }
        if config.cache_line {
            builder = builder.align(Align::CACHE_LINE);
        }
        let pool = on_one_node(builder);
        Self {
            name,
            handles: vec![pool],
            kept: Vec::new(),
            sheaves: Vec::new(),
        }
    }

    pub(crate) fn apply(&mut self, action: Action) -> Answer {
        match action {
            Action::Alloc { form, serial } => self.alloc(form, serial),
            Action::AllocNow { serial } => {
                let result = self.handles[0].try_alloc_now(Object::new(serial));
                self.keep(result, serial)
            }
            Action::Free { at } => {
                drop(self.kept.swap_remove(at).checked());
                Answer::Done
            }
            Action::AllocBulk { n, serial } => self.alloc_bulk(n, serial),
            Action::FreeBulk { from, n } => {
                PoolBox::free_bulk(self.kept.drain(from..from + n).map(Kept::checked));
                Answer::Done
            }
            Action::Prefill { n } => match self.handles[0].prefill(n) {
                Ok(sheaf) => {
                    self.sheaves.push(sheaf);
                    Answer::Done
                }
                Err(error) => Answer::Refused(error.kind()),
            },
            Action::SheafAlloc { sheaf, serial } => self.sheaf_alloc(sheaf, serial),
            Action::SheafFree { sheaf, at } => self.sheaf_free(sheaf, at),
            Action::Refill { sheaf, n } => match self.sheaves[sheaf].refill(n) {
                Ok(()) => Answer::Done,
                Err(error) => Answer::Refused(error.kind()),
            },
            Action::GiveBack { sheaf } => {
                self.sheaves.swap_remove(sheaf).give_back();
                Answer::Done
            }
            Action::Shrink => Answer::Bytes(self.handles[0].shrink()),
            Action::Flush => {
                self.handles[0].flush_thread();
                Answer::Done
            }
            Action::CloneBox { at, serial } => {
                let mut object = self.kept[at].object.clone();
                let as_before = *object == *self.kept[at].object;
                assert!(as_before, "a clone differs");
                *object = Object::new(serial);
                self.keep(Ok(object), serial)
            }
            Action::CloneHandle => {
                self.handles.push(self.handles[0].clone());
                Answer::Done
            }
            Action::DropHandle { handle } => {
                drop(self.handles.swap_remove(handle));
                Answer::Done
            }
            Action::Close { handle } => self.close(handle),
            Action::Faulted { what, n } => crate::faulted::apply(self, what, n),
        }
    }

    fn keep(
        &mut self,
        result: Result<PoolBox<Object<N>>, AllocError<Object<N>>>,
        serial: u64,
    ) -> Answer {
        match result {
            Ok(object) => {
                let new = New {
                    address: PoolBox::as_ptr(&object).addr(),
                    zeros: None,
                };
                self.kept.push(Kept { object, serial });
                Answer::Placed(vec![new])
            }
            Err(error) => {
                let kind = error.kind();
                let value = error.into_value();
                assert!(value == Object::new(serial), "another value came back");
                Answer::Refused(kind)
            }
        }
    }

    fn alloc(&mut self, form: Form, serial: u64) -> Answer {
        let pool = &self.handles[0];
        match form {
            Form::Value => {
                let result = pool.try_alloc(Object::new(serial));
                self.keep(result, serial)
            }
            Form::With => match pool.try_alloc_with(|| Object::new(serial)) {
                Ok(object) => self.keep(Ok(object), serial),
                Err(error) => Answer::Refused(error.kind()),
            },
            Form::Uninit => match pool.try_alloc_uninit() {
                Ok(uninit) => {
                    let new = self.write(uninit, serial);
                    Answer::Placed(vec![new])
                }
                Err(error) => Answer::Refused(error.kind()),
            },
        }
    }

    /// Looks at what is in a new slot, then makes an object there.
    fn write(&mut self, uninit: PoolBox<MaybeUninit<Object<N>>>, serial: u64) -> New {
        // SAFETY: the source fills its blocks, so every byte of a slot is initialised, and any bytes are an
        // `Object`.
        let found = unsafe { PoolBox::assume_init(uninit) };
        let zeros = found.0 == [0; N];
        let mut object = found;
        *object = Object::new(serial);
        let address = PoolBox::as_ptr(&object).addr();
        self.kept.push(Kept { object, serial });
        New {
            address,
            zeros: Some(zeros),
        }
    }

    fn alloc_bulk(&mut self, n: usize, serial: u64) -> Answer {
        let mut boxes = Vec::new();
        match self.handles[0].try_alloc_uninit_bulk(n, &mut boxes) {
            Ok(()) => {
                assert_eq!(boxes.len(), n, "a bulk of another size");
                let numbered = boxes.into_iter().zip(serial..);
                Answer::Placed(numbered.map(|(b, serial)| self.write(b, serial)).collect())
            }
            Err(error) => {
                assert!(boxes.is_empty(), "a refused bulk gave something");
                Answer::Refused(error.kind())
            }
        }
    }

    fn sheaf_alloc(&mut self, sheaf: usize, serial: u64) -> Answer {
        match self.sheaves[sheaf].alloc(Object::new(serial)) {
            Ok(object) => self.keep(Ok(object), serial),
            Err(exhausted) => {
                let value = Exhausted::into_value(exhausted);
                assert!(value == Object::new(serial), "another value came back");
                Answer::Unable
            }
        }
    }

    fn sheaf_free(&mut self, sheaf: usize, at: usize) -> Answer {
        let kept = self.kept.swap_remove(at);
        let serial = kept.serial;
        match self.sheaves[sheaf].free(kept.checked()) {
            Ok(()) => Answer::Done,
            Err(object) => {
                // Where it was, so that the lists stay in step.
                self.kept.push(Kept { object, serial });
                let last = self.kept.len() - 1;
                self.kept.swap(at, last);
                Answer::Unable
            }
        }
    }

    fn close(&mut self, handle: usize) -> Answer {
        match self.handles.swap_remove(handle).close() {
            Ok(()) => Answer::Done,
            Err(busy) => {
                let answer = Answer::Busy {
                    live: busy.live(),
                    prefilled: busy.prefilled(),
                    handles: busy.handles(),
                };
                self.handles.push(busy.into_pool());
                let last = self.handles.len() - 1;
                self.handles.swap(handle, last);
                answer
            }
        }
    }

    /// The gauges, as long as there is a pool.
    pub(crate) fn stats(&self) -> Option<Stats> {
        if let Some(pool) = self.handles.first() {
            return Some(pool.stats());
        }
        let pools = sheaves::pools();
        let own = pools.iter().find(|info| info.name() == self.name);
        own.map(|info| *info.stats())
    }

    /// Whether every object is as it was made.
    pub(crate) fn check_objects(&self) {
        self.kept.iter().for_each(Kept::check);
    }
}

impl<const N: usize> Kept<N> {
    fn check(&self) {
        let serial = self.serial;
        let intact = *self.object == Object::new(serial);
        assert!(intact, "object {serial} changed");
    }

    fn checked(self) -> PoolBox<Object<N>> {
        self.check();
        self.object
    }
}
