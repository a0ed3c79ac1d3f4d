//! Whether the drain thread runs, and whether somebody has asked for it.
//!
//! Who needs the thread asks, and starts one if there was none. The thread takes the asking back before each look, and
//! stops only if nobody has asked since: so what its last look did not see was asked for after, and whoever asked either
//! keeps it running or starts another. At most one runs, since only who finds none starts one, and only the one that
//! runs says that there is none.
#![forbid(unsafe_code)]

use crate::sync::{AtomicU32, Ordering};

/// No thread.
const IDLE: u32 = 0;
/// The thread runs, and nobody has asked since its last look.
const RUNS: u32 = 1;
/// The thread runs, and has to look once more before it stops.
const ASKED: u32 = 2;

/// The word between those who ask and the thread.
#[derive(Debug)]
pub(super) struct Summons(AtomicU32);

macro_rules! constructor {
    ($($const:ident)?) => {
        impl Summons {
            pub(super) $($const)? fn new() -> Self {
                Self(AtomicU32::new(IDLE))
            }
        }
    };
}

#[cfg(not(all(loom, any(test, feature = "loom"))))]
constructor!(const);
// loom's atomics are not made in constants.
#[cfg(all(loom, any(test, feature = "loom")))]
constructor!();

impl Summons {
    /// Asks for a look; whether there is no thread, and the caller has to start it.
    pub(super) fn ask(&self) -> bool {
        // AcqRel: pairs with the thread's own exchanges; it sees what was done before.
        self.0.swap(ASKED, Ordering::AcqRel) == IDLE
    }

    /// The thread is about to look.
    pub(super) fn begin(&self) {
        // AcqRel: sees what was done before somebody asked; who asks from now on is seen by `stop`.
        self.0.swap(RUNS, Ordering::AcqRel);
    }

    /// The thread stops, unless somebody has asked since the last `begin`; whether it does.
    pub(super) fn stop(&self) -> bool {
        // AcqRel: what the thread did is seen by the next. Acquire: somebody asked.
        let stopped = self
            .0
            .compare_exchange(RUNS, IDLE, Ordering::AcqRel, Ordering::Acquire);
        stopped.is_ok()
    }

    /// The thread stops, whoever has asked, or could not be started. Who asked did not start another: the caller sees to
    /// them after this.
    pub(super) fn abandon(&self) {
        // AcqRel: pairs with the exchange in `ask`: either whoever asks finds no thread, or the caller sees what they
        // did before they asked.
        self.0.swap(IDLE, Ordering::AcqRel);
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::sync::Arc;
    use loom::thread;

    use super::{IDLE, Summons};
    use crate::sync::{AtomicUsize, Ordering};

    #[derive(Clone, Copy, PartialEq)]
    enum Flaw {
        None,
        /// The thread says once more that there is none, after it said so by the exchange.
        SaysTwice,
        /// The thread that stops since it may not run does not look whether it may again.
        Deaf,
        /// Who needs the thread looks whether it may run before asking.
        Early,
    }

    struct World {
        summons: Summons,
        retired: AtomicUsize,
        allowed: AtomicUsize,
        running: AtomicUsize,
        flaw: Flaw,
    }

    impl World {
        fn new(flaw: Flaw) -> Arc<Self> {
            Arc::new(Self {
                summons: Summons::new(),
                retired: AtomicUsize::new(0),
                allowed: AtomicUsize::new(1),
                running: AtomicUsize::new(0),
                flaw,
            })
        }

        fn may_run(&self) -> bool {
            // Relaxed: a choice that orders nothing.
            self.allowed.load(Ordering::Relaxed) != 0
        }

        /// Who asks and finds no thread becomes it.
        fn need(&self) {
            if self.flaw == Flaw::Early && !self.may_run() {
                return;
            }
            while self.summons.ask() {
                if self.may_run() {
                    return self.run();
                }
                self.summons.abandon();
                if !self.may_run() {
                    return;
                }
            }
        }

        fn retire(&self) {
            // Relaxed: the exchange of `ask` orders it.
            self.retired.fetch_add(1, Ordering::Relaxed);
            self.need();
        }

        fn run(&self) {
            // Relaxed: a count of who is inside.
            let others = self.running.fetch_add(1, Ordering::Relaxed);
            assert_eq!(others, 0, "two threads run");
            loop {
                self.summons.begin();
                let allowed = self.may_run();
                if allowed {
                    // Relaxed: ordered by the exchange before.
                    self.retired.store(0, Ordering::Relaxed);
                }
                // Relaxed: as above; out before the state says so.
                self.running.fetch_sub(1, Ordering::Relaxed);
                if self.summons.stop() {
                    if self.flaw == Flaw::SaysTwice {
                        // Relaxed: the flaw is that there is a store at all.
                        self.summons.0.store(IDLE, Ordering::Relaxed);
                    }
                    return;
                }
                if !self.may_run() {
                    self.summons.abandon();
                    if self.flaw != Flaw::Deaf && self.may_run() {
                        self.need();
                    }
                    return;
                }
                // Relaxed: as above.
                self.running.fetch_add(1, Ordering::Relaxed);
            }
        }

        fn assert_nothing_left(&self) {
            // Relaxed: everybody is gone.
            assert_eq!(self.retired.load(Ordering::Relaxed), 0, "forgotten");
        }
    }

    fn search(scene: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        // The deaf thread is caught out by four switches, and a word of three states is soon searched.
        builder.preemption_bound = Some(builder.preemption_bound.map_or(4, |bound| bound.max(4)));
        builder.check(scene);
    }

    /// Three who retire: one of them at a time is the thread, and nothing is forgotten.
    fn retired(flaw: Flaw) {
        search(move || {
            let world = World::new(flaw);
            let others = [Arc::clone(&world), Arc::clone(&world)];
            let others = others.map(|other| thread::spawn(move || other.retire()));
            world.retire();
            for other in others {
                other.join().expect("no panic");
            }
            world.assert_nothing_left();
        });
    }

    #[test]
    fn one_thread_runs_and_forgets_nothing() {
        retired(Flaw::None);
    }

    #[test]
    #[should_panic(expected = "two threads run")]
    fn a_thread_that_says_twice_that_it_is_gone_hides_the_next() {
        retired(Flaw::SaysTwice);
    }

    /// The thread is forbidden, asked for, and allowed again beside one that runs.
    fn allowed_again(flaw: Flaw) {
        search(move || {
            let world = World::new(flaw);
            let other = Arc::clone(&world);
            let retiring = thread::spawn(move || other.retire());
            // Relaxed: a choice that orders nothing.
            world.allowed.store(0, Ordering::Relaxed);
            world.retire();
            // Relaxed: the exchange of `ask` orders it.
            world.allowed.store(1, Ordering::Relaxed);
            world.need();
            retiring.join().expect("no panic");
            world.assert_nothing_left();
        });
    }

    #[test]
    fn who_allows_the_thread_again_is_heard() {
        allowed_again(Flaw::None);
    }

    #[test]
    #[should_panic(expected = "forgotten")]
    fn who_does_not_ask_first_is_forgotten() {
        allowed_again(Flaw::Early);
    }

    #[test]
    #[should_panic(expected = "forgotten")]
    fn a_deaf_thread_forgets_who_allowed_it_again() {
        allowed_again(Flaw::Deaf);
    }
}
