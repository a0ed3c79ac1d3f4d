//! A barn: where the threads of a node trade whole sheaves.
//!
//! Two bounded stacks behind one short lock, full sheaves and empty ones, both last in first out so that the
//! warmest goes first. A thread whose sheaf ran empty trades it for a full one, a thread whose sheaf ran
//! full trades it for an empty one, and neither touches a slab. The limits are exact: what does not fit is
//! handed back for the caller to flush or to free.
//!
//! The counts can be read without the lock, so a barn that cannot help costs its callers no lock. Such a
//! reading may be stale; the answer under the lock is what counts.
#![forbid(unsafe_code)]

use crate::sheaf::Sheaf;
use crate::sync::{AtomicUsize, Guard, Lock, Ordering};

/// The full and empty sheaves of one node.
#[derive(Debug)]
pub(crate) struct Barn {
    stacks: Lock<Stacks>,
    max_full: usize,
    max_empty: usize,
    nr_full: AtomicUsize,
    nr_empty: AtomicUsize,
}

#[derive(Debug, Default)]
struct Stacks {
    full: Vec<Sheaf>,
    empty: Vec<Sheaf>,
    /// Slots in `full`.
    slots: usize,
    /// Nothing is taken in any more.
    closed: bool,
}

/// Why a full sheaf could not be traded for an empty one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There are as many full sheaves as allowed.
    NoRoom,
    /// There is no empty sheaf to give in return.
    NoEmpty,
}

impl Barn {
    pub(crate) fn new(max_full: usize, max_empty: usize) -> Self {
        Self {
            stacks: Lock::new(Stacks::default()),
            max_full,
            max_empty,
            nr_full: AtomicUsize::new(0),
            nr_empty: AtomicUsize::new(0),
        }
    }

    /// Takes the warmest full sheaf, which has slots but may not be quite full.
    pub(crate) fn get_full(&self) -> Option<Sheaf> {
        if Self::looks_empty(&self.nr_full) {
            return None;
        }
        self.get_full_locked(self.stacks.lock())
    }

    /// As [`Barn::get_full`], but gives up if the lock is held.
    pub(crate) fn try_get_full(&self) -> Option<Sheaf> {
        self.get_full_locked(self.stacks.try_lock()?)
    }

    fn get_full_locked(&self, mut stacks: Guard<'_, Stacks>) -> Option<Sheaf> {
        let sheaf = stacks.full.pop()?;
        stacks.slots -= sheaf.len();
        self.publish(&stacks);
        Some(sheaf)
    }

    /// Takes the warmest empty sheaf.
    pub(crate) fn get_empty(&self) -> Option<Sheaf> {
        if Self::looks_empty(&self.nr_empty) {
            return None;
        }
        let mut stacks = self.stacks.lock();
        let sheaf = stacks.empty.pop();
        self.publish(&stacks);
        sheaf
    }

    /// Puts a sheaf with slots among the full ones; gives it back if there is no room.
    pub(crate) fn put_full(&self, sheaf: Sheaf) -> Result<(), Sheaf> {
        // Relaxed: a hint; decided again under the lock.
        if self.nr_full.load(Ordering::Relaxed) >= self.max_full {
            return Err(sheaf);
        }
        let Some(mut stacks) = self.lock_with_room() else {
            return Err(sheaf);
        };
        if stacks.closed || stacks.full.len() >= self.max_full {
            return Err(sheaf);
        }
        stacks.slots += sheaf.len();
        stacks.full.push(sheaf);
        self.publish(&stacks);
        Ok(())
    }

    /// Puts an empty sheaf among the empty ones; gives it back if there is no room.
    pub(crate) fn put_empty(&self, sheaf: Sheaf) -> Result<(), Sheaf> {
        // Relaxed: a hint; decided again under the lock.
        if self.nr_empty.load(Ordering::Relaxed) >= self.max_empty {
            return Err(sheaf);
        }
        let Some(mut stacks) = self.lock_with_room() else {
            return Err(sheaf);
        };
        if stacks.closed || stacks.empty.len() >= self.max_empty {
            return Err(sheaf);
        }
        stacks.empty.push(sheaf);
        self.publish(&stacks);
        Ok(())
    }

    /// Trades a full sheaf for an empty one.
    pub(crate) fn exchange_full(&self, sheaf: Sheaf) -> Result<Sheaf, (Sheaf, Refusal)> {
        // Relaxed: a hint; decided again under the lock.
        if self.nr_full.load(Ordering::Relaxed) >= self.max_full {
            return Err((sheaf, Refusal::NoRoom));
        }
        if Self::looks_empty(&self.nr_empty) {
            return Err((sheaf, Refusal::NoEmpty));
        }
        let mut stacks = self.stacks.lock();
        if stacks.closed || stacks.full.len() >= self.max_full {
            return Err((sheaf, Refusal::NoRoom));
        }
        let Some(empty) = stacks.empty.pop() else {
            return Err((sheaf, Refusal::NoEmpty));
        };
        stacks.slots += sheaf.len();
        stacks.full.push(sheaf);
        self.publish(&stacks);
        Ok(empty)
    }

    /// Trades an empty sheaf for a full one; the empty one comes back too if there is no room for it.
    pub(crate) fn exchange_empty(&self, sheaf: Sheaf) -> Result<(Sheaf, Option<Sheaf>), Sheaf> {
        if Self::looks_empty(&self.nr_full) {
            return Err(sheaf);
        }
        let mut stacks = self.stacks.lock();
        let Some(full) = stacks.full.pop() else {
            return Err(sheaf);
        };
        stacks.slots -= full.len();
        let back = if !stacks.closed && stacks.empty.len() < self.max_empty {
            stacks.empty.push(sheaf);
            None
        } else {
            Some(sheaf)
        };
        self.publish(&stacks);
        Ok((full, back))
    }

    /// Takes nothing in until [`Barn::open`]; what is there can still be got.
    pub(crate) fn close(&self) {
        self.stacks.lock().closed = true;
    }

    /// Takes sheaves in again.
    pub(crate) fn open(&self) {
        self.stacks.lock().closed = false;
    }

    /// Locks the barn.
    pub(crate) fn hold(&self) -> impl Sized + '_ {
        self.stacks.lock()
    }

    /// Full and empty sheaves, and the slots in them.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let stacks = self.stacks.lock();
        (stacks.full.len(), stacks.empty.len(), stacks.slots)
    }

    /// Locks the stacks once they have the memory they need, asked for outside the lock when first needed; `None`
    /// where there is none.
    ///
    /// A pool that is never contended by more sheaves than a thread keeps never pays for its barn.
    fn lock_with_room(&self) -> Option<Guard<'_, Stacks>> {
        let stacks = self.stacks.lock();
        if stacks.has_room(self) {
            return Some(stacks);
        }
        drop(stacks);
        self.make_room()
    }

    #[cold]
    fn make_room(&self) -> Option<Guard<'_, Stacks>> {
        let mut new = Stacks::default();
        new.full.try_reserve_exact(self.max_full).ok()?;
        new.empty.try_reserve_exact(self.max_empty).ok()?;
        let mut stacks = self.stacks.lock();
        if !stacks.has_room(self) {
            // Nothing was ever put in: putting needs room. So what is replaced has no memory to free.
            new.closed = stacks.closed;
            *stacks = new;
        }
        Some(stacks)
    }

    fn looks_empty(count: &AtomicUsize) -> bool {
        // Relaxed: a hint; a sheaf that is put in while this looks away is found by the next trade.
        count.load(Ordering::Relaxed) == 0
    }

    fn publish(&self, stacks: &Stacks) {
        // Relaxed: hints for those who look before they lock.
        self.nr_full.store(stacks.full.len(), Ordering::Relaxed);
        // Relaxed: as above.
        self.nr_empty.store(stacks.empty.len(), Ordering::Relaxed);
    }
}

impl Stacks {
    fn has_room(&self, barn: &Barn) -> bool {
        self.full.capacity() >= barn.max_full && self.empty.capacity() >= barn.max_empty
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::sync::{Arc, Mutex};
    use loom::thread;

    use super::{Barn, Sheaf};
    use crate::slab::Slot;

    fn search(scene: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(Some(3));
        builder.check(scene);
    }

    fn full(content: usize) -> Sheaf {
        let mut sheaf = empty();
        assert!(sheaf.push(Slot::of_model(content)).is_ok());
        sheaf
    }

    fn empty() -> Sheaf {
        Sheaf::try_new(1).expect("memory")
    }

    /// Everything in the barn and in these hands: the contents in order, and the number of empty sheaves.
    fn account(barn: &Barn, hands: impl IntoIterator<Item = Sheaf>) -> (Vec<usize>, usize) {
        let (nr_full, nr_empty, slots) = barn.counts();
        assert!(nr_full <= barn.max_full && nr_empty <= barn.max_empty && slots == nr_full);
        let rest = core::iter::from_fn(|| barn.get_full().or_else(|| barn.get_empty()));
        let (mut contents, mut empties) = (Vec::new(), 0);
        for mut sheaf in hands.into_iter().chain(rest) {
            empties += usize::from(sheaf.is_empty());
            contents.extend(sheaf.drain().map(Slot::end));
        }
        assert_eq!(barn.counts(), (0, 0, 0));
        contents.sort_unstable();
        (contents, empties)
    }

    #[test]
    fn full_and_empty_change_hands() {
        search(|| {
            let barn = Arc::new(Barn::new(1, 1));
            assert!(barn.put_full(full(1)).is_ok() && barn.put_empty(empty()).is_ok());
            let other = Arc::clone(&barn);
            let freeing = thread::spawn(move || match other.exchange_full(full(2)) {
                Ok(sheaf) | Err((sheaf, _)) => sheaf,
            });
            let mine: Vec<Sheaf> = match barn.exchange_empty(empty()) {
                Ok((sheaf, back)) => [sheaf].into_iter().chain(back).collect(),
                Err(back) => vec![back],
            };
            let hands = mine.into_iter().chain([freeing.join().unwrap()]);
            assert_eq!(account(&barn, hands), (vec![1, 2], 2));
        });
    }

    #[test]
    fn the_first_to_put_share_one_room() {
        search(|| {
            let barn = Arc::new(Barn::new(1, 1));
            let other = Arc::clone(&barn);
            let putting = thread::spawn(move || other.put_full(full(1)).err());
            let mine = barn.put_full(full(2)).err();
            let (got, theirs) = (barn.get_full(), putting.join().unwrap());
            assert!(
                mine.is_none() || theirs.is_none() || got.is_some(),
                "nobody got the room"
            );
            let hands = [mine, got, theirs].into_iter().flatten();
            assert_eq!(account(&barn, hands), (vec![1, 2], 0));
        });
    }

    #[test]
    fn nothing_is_taken_in_after_the_close() {
        search(|| {
            let barn = Arc::new(Barn::new(1, 1));
            let other = Arc::clone(&barn);
            let putting = thread::spawn(move || {
                let back = [other.put_empty(empty()), other.put_full(full(1))];
                let traded = match other.exchange_full(full(2)) {
                    Ok(sheaf) | Err((sheaf, _)) => sheaf,
                };
                back.into_iter()
                    .filter_map(Result::err)
                    .chain([traded])
                    .collect::<Vec<_>>()
            });
            barn.close();
            let mut mine: Vec<Sheaf> = core::iter::from_fn(|| barn.get_full()).collect();
            mine.extend(core::iter::from_fn(|| barn.get_empty()));
            let theirs = putting.join().unwrap();
            assert_eq!(barn.counts(), (0, 0, 0), "a closed barn took something in");
            assert_eq!(
                account(&barn, mine.into_iter().chain(theirs)),
                (vec![1, 2], 1)
            );
        });
    }

    /// The twin of the barn that trusts its hint.
    #[test]
    #[should_panic(expected = "over the limit")]
    fn a_limit_that_is_looked_at_before_the_lock_is_exceeded() {
        search(|| {
            let stack = Arc::new(Mutex::new(0));
            let other = Arc::clone(&stack);
            let put = |stack: &Mutex<usize>| {
                let has_room = *stack.lock().unwrap() < 1;
                if has_room {
                    *stack.lock().unwrap() += 1;
                }
            };
            let putting = thread::spawn(move || put(&other));
            put(&stack);
            putting.join().unwrap();
            assert!(*stack.lock().unwrap() <= 1, "over the limit");
        });
    }
}
