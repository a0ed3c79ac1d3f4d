//! Many threads trade objects of pools with tiny sheaves while others drain, exit, build and close.
//!
//! Every object carries a stamp of whoever holds it, checked while it is held and when it is freed: a slot that
//! is handed out twice shows as a foreign stamp, and as a race to a sanitizer. At the end the gauges must say
//! that everything came home. Threads make the order of things random; `SHEAVES_STRESS_SEED` repeats the choices
//! of each thread.
#![allow(missing_docs, reason = "tests")]
#![forbid(unsafe_code)]

mod closing;
mod limit;
mod trade;

use std::env;
use std::process::Command;
use std::sync::{Mutex, OnceLock, TryLockError};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use sheaves::{Order, Pool};

/// Choices a thread makes before it ends: some seconds for the whole under a sanitizer.
const CHOICES: usize = 20_000;

/// An object: `N` words, of which the first and the last name the holder.
struct Stamped<const N: usize> {
    words: [u64; N],
}

impl<const N: usize> Stamped<N> {
    fn new(holder: u64) -> Self {
        let mut new = Self { words: [0; N] };
        new.stamp(holder);
        new
    }

    /// Names another holder.
    fn stamp(&mut self, holder: u64) {
        self.words[0] = holder;
        self.words[N - 1] = !holder;
    }

    fn check(&self, holder: u64) {
        assert_eq!(self.words[0], holder, "held by another");
        assert_eq!(self.words[N - 1], !holder, "half held by another");
    }
}

/// A thread's choices: xorshift, since the quality of the numbers does not matter.
struct Choices(u64);

impl Choices {
    fn new(thread: u64) -> Self {
        Self((seed() ^ thread.wrapping_mul(0x9e37_79b9_7f4a_7c15)).max(1))
    }

    /// A number below `n`.
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % n as u64).expect("below n")
    }
}

/// Objects on their way from one thread to another. Waits by trying: a sanitizer does not see std's own waiting.
struct Market<V>(Mutex<Vec<V>>);

impl<V> Market<V> {
    fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    fn with<R>(&self, f: impl FnOnce(&mut Vec<V>) -> R) -> R {
        loop {
            match self.0.try_lock() {
                Ok(mut objects) => return f(&mut objects),
                Err(TryLockError::WouldBlock) => thread::yield_now(),
                Err(TryLockError::Poisoned(_)) => panic!("another thread failed"),
            }
        }
    }

    fn put(&self, object: V) {
        self.with(|objects| objects.push(object));
    }

    fn take(&self) -> Option<V> {
        self.with(Vec::pop)
    }
}

fn seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| {
        let given = env::var("SHEAVES_STRESS_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .expect("after 1970");
            now.as_secs() ^ u64::from(now.subsec_nanos()) << 20
        });
        println!("SHEAVES_STRESS_SEED={seed}");
        seed
    })
}

/// A pool on which every edge is near: sheaves of 4, a barn of 2 and 2, slabs of one page.
fn tiny<const N: usize>(name: &str) -> sheaves::Builder<Stamped<N>> {
    Pool::builder(name)
        .order(Order::new(0))
        .sheaf_capacity(4)
        .barn(2, 2)
        .min_partial(1)
}

/// Everything came home, and one shrink gives all memory back.
fn assert_home<const N: usize>(pool: &Pool<Stamped<N>>) {
    let stats = pool.stats();
    assert_eq!(stats.live, 0, "seed {}: {stats:?}", seed());
    assert_eq!(
        stats.slots,
        stats.cached + stats.barn + stats.free,
        "seed {}: {stats:?}",
        seed()
    );
    pool.shrink();
    let stats = pool.stats();
    assert_eq!(stats.bytes, 0, "seed {}: {stats:?}", seed());
    assert_eq!(stats.reports, 0, "seed {}: {stats:?}", seed());
}

/// All of the above once more in a process that does without `membarrier`.
#[test]
fn the_same_with_fences() {
    let tests = env::current_exe().expect("a path");
    let skip = ["--skip", "the_same_with_fences"];
    let status = Command::new(tests)
        .args(skip)
        .env("SHEAVES_BARRIER", "fence")
        .status();
    assert!(status.expect("it starts").success());
}
