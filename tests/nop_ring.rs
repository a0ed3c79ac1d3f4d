//! The request loop of the example `nop_ring`: its parts against rings that misbehave, and the program from outside.
//!
//! The parts are the example's own files, one of which pushes to io_uring and so may hold `unsafe`.
//! The program is the one `cargo test` builds beside this test.

#![cfg(not(loom))]

extern crate alloc;

#[path = "../examples/nop_ring/contender.rs"]
#[allow(dead_code, reason = "the program uses all of it, this test a part")]
mod contender;
#[path = "../examples/nop_ring/drive.rs"]
mod drive;
#[path = "../examples/nop_ring/failure.rs"]
#[allow(dead_code, reason = "the program uses all of it, this test a part")]
mod failure;
#[path = "nop_ring/program.rs"]
mod program;
#[path = "../examples/nop_ring/request.rs"]
mod request;
#[path = "../examples/nop_ring/ring.rs"]
mod ring;
#[cfg(target_os = "linux")]
#[path = "../examples/nop_ring/uring.rs"]
#[allow(dead_code, reason = "the program uses all of it, this test a part")]
mod uring;

use contender::{Boxed, Contender, InPool};
use drive::round;
use failure::Failure;
use ring::{Completion, InProcess, Ring, Wait};
use sheaves::Order;

/// What a [`Crooked`] ring does wrong, or only unusually.
#[derive(Clone, Copy, Debug)]
enum Habit {
    /// Completes newest first, and keeps one completion back as long as others are there.
    OutOfOrder,
    /// Answers by turns that a signal came and that it is busy, and only then takes anything.
    Hesitant,
    /// Delivers the tenth completion twice.
    Repeats,
    /// Gives the tenth completion the sequence number of another request.
    Forges,
    /// Names a place outside the table in the tenth completion.
    Strays,
    /// Fails the tenth request.
    Fails,
    /// Loses the tenth completion.
    Loses,
}

/// A ring with a habit.
struct Crooked {
    habit: Habit,
    queued: Vec<u64>,
    completed: Vec<Completion>,
    turns: u32,
    seen: u32,
}

impl Crooked {
    fn new(habit: Habit) -> Self {
        Self {
            habit,
            queued: Vec::new(),
            completed: Vec::new(),
            turns: 0,
            seen: 0,
        }
    }

    /// Completes the request with `user_data` as the habit wants it.
    fn finish(&mut self, user_data: u64) {
        self.seen += 1;
        let tenth = self.seen == 10;
        let good = Completion {
            user_data,
            result: 0,
        };
        match self.habit {
            Habit::Repeats if tenth => self.completed.extend([good, good]),
            Habit::Forges if tenth => {
                self.completed.push(Completion {
                    user_data: user_data ^ (1 << 20),
                    ..good
                });
            }
            Habit::Strays if tenth => {
                self.completed.push(Completion {
                    user_data: user_data | 0xffff,
                    ..good
                });
            }
            Habit::Fails if tenth => self.completed.push(Completion {
                result: -22,
                ..good
            }),
            Habit::Loses if tenth => {}
            _ => self.completed.push(good),
        }
    }
}

impl Ring for Crooked {
    fn queue(&mut self, mut next: impl FnMut() -> Option<u64>) {
        self.queued.extend(core::iter::from_fn(&mut next));
    }

    fn submit_and_wait(&mut self) -> Result<Wait, Failure> {
        self.turns += 1;
        if matches!(self.habit, Habit::Hesitant) {
            match self.turns % 3 {
                0 => return Ok(Wait::Interrupted),
                1 => return Ok(Wait::Busy),
                _ => {}
            }
        }
        for user_data in core::mem::take(&mut self.queued) {
            self.finish(user_data);
        }
        Ok(Wait::Done)
    }

    fn reap(&mut self, each: impl FnMut(Completion)) {
        let mut batch = core::mem::take(&mut self.completed);
        if matches!(self.habit, Habit::OutOfOrder) {
            batch.reverse();
            if batch.len() > 1 {
                self.completed.extend(batch.pop());
            }
        }
        batch.into_iter().for_each(each);
    }
}

/// Runs 1,000 NOPs, 16 deep, over a ring with `habit`: with boxes and with a pool, which must agree.
fn outcome(habit: Habit) -> Result<(), Failure> {
    let by_box = round(&Boxed, &mut Crooked::new(habit), 1_000, 16);
    let pool = InPool::new("crooked", Order::AUTO, 16).expect("plain options");
    let by_pool = round(&pool, &mut Crooked::new(habit), 1_000, 16);
    pool.settled()
        .expect("a round that fails frees its requests too");
    match (&by_box, &by_pool) {
        (Ok(_), Ok(_)) => {}
        (Err(one), Err(other)) => assert_eq!(one.to_string(), other.to_string()),
        _ => panic!("{by_box:?} with boxes, {by_pool:?} with a pool"),
    }
    by_box.map(drop)
}

#[test]
fn every_nop_is_matched_in_any_order_and_after_any_hesitation() {
    outcome(Habit::OutOfOrder).expect("order does not matter");
    outcome(Habit::Hesitant).expect("signals and shortages are waited out");
}

#[test]
fn a_completion_that_matches_no_request_is_told() {
    assert!(matches!(
        outcome(Habit::Repeats),
        Err(Failure::NotInFlight { .. })
    ));
    assert!(matches!(
        outcome(Habit::Forges),
        Err(Failure::Mismatch { .. })
    ));
    assert!(matches!(
        outcome(Habit::Strays),
        Err(Failure::NotInFlight { .. })
    ));
}

#[test]
fn a_failed_nop_is_told() {
    assert!(matches!(
        outcome(Habit::Fails),
        Err(Failure::Result { result: -22, .. })
    ));
}

#[test]
fn a_lost_completion_ends_the_round_instead_of_hanging_it() {
    assert!(matches!(
        outcome(Habit::Loses),
        Err(Failure::Stalled { in_flight: 1, .. })
    ));
}

#[test]
fn the_ring_in_the_process_is_bounded_and_keeps_the_order() {
    let mut ring = InProcess::new(4);
    let mut given = 0..100;
    for _ in 0..3 {
        ring.queue(|| given.next());
        ring.submit_and_wait().expect("it cannot fail");
    }
    let mut reaped = Vec::new();
    ring.reap(|completion| reaped.push(completion.user_data));
    assert_eq!(
        reaped,
        (0..8).collect::<Vec<_>>(),
        "8 completions fit, 4 more requests wait"
    );
    ring.submit_and_wait().expect("it cannot fail");
    ring.reap(|completion| reaped.push(completion.user_data));
    assert_eq!(reaped, (0..12).collect::<Vec<_>>());
}

#[test]
fn rounds_of_any_shape_end_with_nothing_in_flight() {
    for (nops, depth) in [
        (1, 1),
        (7, 1),
        (1, 4096),
        (1_000, 3),
        (5_000, 4096),
        (4_097, 256),
    ] {
        let pool = InPool::new("shapes", Order::LARGE, usize::from(depth)).expect("plain options");
        let mut ring = InProcess::new(usize::from(depth));
        round(&Boxed, &mut ring, nops, depth).expect("a straight ring");
        round(&pool, &mut ring, nops, depth).expect("a straight ring");
        let stats = pool.pool().stats();
        assert_eq!(
            (stats.live, stats.prefilled),
            (0, 0),
            "{nops} NOPs, {depth} deep"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn more_completions_than_the_queue_holds_are_delivered_late_but_whole() {
    let mut ring = match uring::Uring::open(4) {
        Ok(ring) => ring,
        Err(error) => {
            assert!(uring::forbidden(&error), "{error}");
            return;
        }
    };
    // 40 NOPs through queues of 4 and 8 without reaping, unless the kernel insists.
    let mut left = 0..40;
    let mut reaped = Vec::new();
    while !left.is_empty() {
        ring.queue(|| left.next());
        if ring.submit_and_wait().expect("a plain ring") != Wait::Done {
            ring.reap(|completion| reaped.push(completion));
        }
    }
    while reaped.len() < 40 {
        ring.submit_and_wait().expect("a plain ring");
        ring.reap(|completion| reaped.push(completion));
    }
    reaped.sort_by_key(|completion| completion.user_data);
    let all = (0..40).map(|user_data| Completion {
        user_data,
        result: 0,
    });
    assert_eq!(reaped, all.collect::<Vec<_>>());
}
