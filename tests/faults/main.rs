//! Injected faults: every way to allocate fails when it is told to, with the right error, and loses nothing.

#[path = "../common/random.rs"]
mod random_numbers;

#[cfg(feature = "rcu")]
mod deferred;
mod environment;
mod kinds;
mod random;
mod sweeps;

/// Has the process reclaim without the drain thread, which would meet faults that are meant for a test.
fn by_hand() {
    #[cfg(feature = "rcu")]
    sheaves::rcu::set_manual(true);
}
