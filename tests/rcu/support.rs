//! Objects that tell what becomes of them.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What was made and dropped.
#[derive(Debug, Default)]
pub(crate) struct Count {
    pub(crate) made: AtomicUsize,
    pub(crate) dropped: AtomicUsize,
}

impl Count {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn dropped(&self) -> usize {
        self.dropped.load(SeqCst)
    }
}

/// An object that counts, and that knows itself: its words are what they were made as, or it is not this object.
#[derive(Debug)]
pub(crate) struct Token {
    words: [AtomicU64; 4],
    count: Arc<Count>,
    gone: AtomicBool,
}

const GONE: u64 = 0xdead;

impl Token {
    pub(crate) fn new(id: u64, count: &Arc<Count>) -> Self {
        count.made.fetch_add(1, SeqCst);
        Self {
            words: core::array::from_fn(|i| AtomicU64::new(id * 4 + i as u64)),
            count: Arc::clone(count),
            gone: AtomicBool::new(false),
        }
    }

    /// Its id, if it is whole.
    #[track_caller]
    pub(crate) fn id(&self) -> u64 {
        let words: [u64; 4] = core::array::from_fn(|i| self.words[i].load(SeqCst));
        let id = words[0] / 4;
        assert_eq!(
            words,
            core::array::from_fn(|i| id * 4 + i as u64),
            "not an object, or several"
        );
        id
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.id();
        assert!(!self.gone.swap(true, SeqCst), "dropped twice");
        self.words[0].store(GONE, SeqCst);
        self.count.dropped.fetch_add(1, SeqCst);
    }
}

/// Calls a closure when it is dropped.
pub(crate) struct OnDrop(Option<Box<dyn FnOnce() + Send + Sync>>);

impl OnDrop {
    pub(crate) fn new(call: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(call)))
    }
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            call();
        }
    }
}

/// Of tests that change what the whole process does, one at a time.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The gauges of a pool add up.
#[track_caller]
pub(crate) fn check(stats: &sheaves::Stats) {
    let sum = stats.live
        + stats.prefilled
        + stats.retired
        + stats.cached
        + stats.barn
        + stats.transit
        + stats.free;
    assert_eq!(stats.slots, sum, "{stats:?}");
}
