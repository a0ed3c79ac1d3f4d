//! The loop: fill the queue to its depth, submit and wait, reap what is done, again.
//!
//! Each request has a place in the table while it is in flight. Its user data is that place and its
//! sequence number, so that a completion leads to the request in one step, and one that comes late,
//! twice or for another is told.

#![forbid(unsafe_code)]

use core::time::Duration;
use std::time::Instant;

use super::contender::Contender;
use super::failure::Failure;
use super::ring::{Completion, Ring, Wait};

/// How many low bits of the user data are the place in the table; the rest is the sequence number.
const PLACE_BITS: u32 = 16;

/// How long a turn without any progress gives others, who may hold what the ring is short of.
const PAUSE: Duration = Duration::from_millis(1);

/// How many such turns in a row are too many: half a second of shortage does not pass by itself.
const MOST_IDLE_TURNS: u32 = 500;

/// The requests in flight, and the account of a round.
struct Flight<'a, C: Contender + 'a> {
    table: C::Table<'a>,
    /// The places of `table` that hold no request; its top is the one freed last, which is still in
    /// the CPU's caches.
    free: Vec<u16>,
    submitted: u64,
    completed: u64,
}

impl<'a, C: Contender> Flight<'a, C> {
    fn new(contender: &'a C, depth: u16) -> Self {
        Self {
            table: contender.table(usize::from(depth)),
            free: (0..depth).rev().collect(),
            submitted: 0,
            completed: 0,
        }
    }

    const fn in_flight(&self) -> u64 {
        self.submitted - self.completed
    }

    /// How many requests the next burst is: as many as there are free places, or the rest of
    /// `nops`.
    fn burst(&self, nops: u64) -> usize {
        let left = usize::try_from(nops - self.submitted).unwrap_or(usize::MAX);
        self.free.len().min(left)
    }

    /// Makes the next request and puts it into the table. Returns its user data.
    #[inline]
    fn submit(&mut self, burst: &mut C::Burst) -> Result<u64, Failure> {
        let Some(place) = self.free.pop() else {
            return Err(Failure::TableFull);
        };
        let sequence = self.submitted;
        let user_data = (sequence << PLACE_BITS) | u64::from(place);
        let request = C::allocate(burst, super::request::Kiocb::nop(sequence, user_data))?;
        self.table[usize::from(place)] = Some(request);
        self.submitted += 1;
        Ok(user_data)
    }

    /// Takes the request of `completion` out of the table, checks it and frees it.
    #[inline]
    fn complete(&mut self, completion: Completion) -> Result<(), Failure> {
        let Completion { user_data, result } = completion;
        #[expect(clippy::cast_possible_truncation, reason = "the place is the low bits")]
        let place = user_data as u16;
        let taken = self
            .table
            .get_mut(usize::from(place))
            .and_then(Option::take);
        let Some(mut request) = taken else {
            return Err(Failure::NotInFlight { user_data });
        };
        if !request.complete(user_data >> PLACE_BITS, user_data, result) {
            return Err(Failure::Mismatch { user_data });
        }
        if result != 0 {
            return Err(Failure::Result { user_data, result });
        }
        drop(request);
        self.free.push(place);
        self.completed += 1;
        Ok(())
    }
}

/// Runs `nops` NOPs through `ring`, at most `depth` at a time, with requests of `contender`.
/// Returns how long it took.
///
/// # Errors
///
/// When a completion does not match its request, the ring fails or stops, a request cannot be had,
/// or the contender still misses one at the end.
pub(crate) fn round<C: Contender, R: Ring>(
    contender: &C,
    ring: &mut R,
    nops: u64,
    depth: u16,
) -> Result<Duration, Failure> {
    let start = Instant::now();
    let mut flight = Flight::new(contender, depth);
    let mut idle_turns = 0;
    while flight.completed < nops {
        let before = flight.submitted + flight.completed;
        let burst = flight.burst(nops);
        if burst > 0 {
            submit_burst(contender, ring, &mut flight, burst)?;
        }
        let wait = ring.submit_and_wait()?;
        reap_batch(ring, &mut flight)?;
        if flight.submitted + flight.completed != before {
            idle_turns = 0;
        } else if wait != Wait::Interrupted {
            idle_turns += 1;
            give_way(idle_turns, flight.in_flight())?;
        }
    }
    assert_eq!(flight.in_flight(), 0, "every request came back");
    drop(flight);
    let elapsed = start.elapsed();
    contender.settled()?;
    Ok(elapsed)
}

/// Borrows a burst, queues a request for each of its objects, and gives back what the ring had no
/// room for.
fn submit_burst<C: Contender, R: Ring>(
    contender: &C,
    ring: &mut R,
    flight: &mut Flight<'_, C>,
    requests: usize,
) -> Result<(), Failure> {
    let mut burst = contender.borrow(requests)?;
    let mut left = requests;
    let mut outcome = Ok(());
    ring.queue(|| {
        left = left.checked_sub(1)?;
        match flight.submit(&mut burst) {
            Ok(user_data) => Some(user_data),
            Err(failure) => {
                outcome = Err(failure);
                None
            }
        }
    });
    C::give_back(burst);
    outcome
}

/// Completes what the ring has finished. After a failure the rest of the batch is passed over.
fn reap_batch<C: Contender, R: Ring>(
    ring: &mut R,
    flight: &mut Flight<'_, C>,
) -> Result<(), Failure> {
    let mut first_failure = None;
    ring.reap(|completion| {
        if first_failure.is_none() {
            first_failure = flight.complete(completion).err();
        }
    });
    first_failure.map_or(Ok(()), Err)
}

/// Waits a moment, unless that has been tried often enough.
#[cold]
fn give_way(turns: u32, in_flight: u64) -> Result<(), Failure> {
    if turns >= MOST_IDLE_TURNS {
        return Err(Failure::Stalled { turns, in_flight });
    }
    std::thread::sleep(PAUSE);
    Ok(())
}
