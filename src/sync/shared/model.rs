//! Owners that come and go: the last one drops the value, after all that was done to it, and no other does.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

use super::{Shared, Weak};

/// What an owner reads, and the last one writes to as it goes.
struct Watched(UnsafeCell<u32>, std::sync::Arc<AtomicUsize>);

impl Watched {
    fn new() -> (Shared<Self>, std::sync::Arc<AtomicUsize>) {
        let dropped = std::sync::Arc::new(AtomicUsize::new(0));
        let new = Self(UnsafeCell::new(7), std::sync::Arc::clone(&dropped));
        (Shared::try_new(new).expect("memory"), dropped)
    }

    fn read(&self) {
        // SAFETY: owners only read; loom tells if the one that drops it writes meanwhile.
        self.0.with(|value| assert_eq!(unsafe { *value }, 7));
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // SAFETY: nobody else has it any more, which is what loom looks at.
        self.0.with_mut(|value| unsafe { *value = 0 });
        self.1.fetch_add(1, Relaxed);
    }
}

#[test]
fn the_last_owner_drops_it() {
    loom::model(|| {
        let (shared, dropped) = Watched::new();
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.read();
            let another = other.clone();
            drop(other);
            another.read();
        });
        shared.read();
        drop(shared);
        thread.join().unwrap();
        assert_eq!(dropped.load(Relaxed), 1);
    });
}

#[test]
fn a_weak_share_becomes_one_or_finds_nothing() {
    loom::model(|| {
        let (shared, dropped) = Watched::new();
        // SAFETY: the same type.
        let weak: Weak<Watched> = unsafe { Shared::downgrade_as(&shared, |inner| inner) };
        let thread = thread::spawn(move || {
            if let Some(shared) = weak.upgrade() {
                shared.read();
            }
        });
        shared.read();
        drop(shared);
        thread.join().unwrap();
        assert_eq!(dropped.load(Relaxed), 1);
    });
}
