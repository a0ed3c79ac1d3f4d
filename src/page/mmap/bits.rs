//! A bitmap of the pages of a reservation, and the search for runs in it.
#![forbid(unsafe_code)]

use core::ops::Range;

/// Bits of a word.
const WORD: usize = u64::BITS as usize;

/// Words of a bitmap. All are as large as the largest reservation needs: 2 KiB, for 1 GiB of pages.
const WORDS: usize = MAX_LEN / WORD;

/// The most bits a bitmap may have: the pages of 1 GiB.
pub(super) const MAX_LEN: usize = 1 << 14;

/// A set of bit numbers below a length.
///
/// # Invariants
///
/// 1. `ones` is the number of bits set; none is set at or above `len`.
/// 2. All bits of the words below `low` are set.
pub(super) struct Bitmap {
    words: [u64; WORDS],
    len: usize,
    ones: usize,
    /// Where searches start, so that they need not pass through all that is full.
    low: usize,
}

impl Bitmap {
    /// `len` clear bits.
    pub(super) fn new(len: usize) -> Self {
        assert!(len <= MAX_LEN, "a reservation is no larger than this");
        Self {
            words: [0; WORDS],
            len,
            ones: 0,
            low: 0,
        }
    }

    /// Number of bits, set or clear.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Number of bits set.
    pub(super) fn ones(&self) -> usize {
        self.ones
    }

    /// The lowest run of `run` clear bits that starts at a multiple of `align`, a power of two.
    ///
    /// Time in proportion to the words, and to the runs of set bits within them, that it passes.
    pub(super) fn find_clear(&self, run: usize, align: usize) -> Option<usize> {
        if self.len - self.ones < run {
            return None;
        }
        let mut at = (self.low * WORD).next_multiple_of(align);
        while at + run <= self.len {
            // Whatever starts at or before the last set bit in the way is out of the question.
            match self.last_set(at, run) {
                None => return Some(at),
                Some(bit) => at = self.next_clear(bit + 1).next_multiple_of(align),
            }
        }
        None
    }

    /// The first run of set bits at or after `from`, cut off after `max` bits.
    pub(super) fn next_run(&self, from: usize, max: usize) -> Option<Range<usize>> {
        let start = self.next(from, 0);
        if start >= self.len {
            return None;
        }
        Some(start..self.next_clear(start).min(start + max))
    }

    /// Whether all bits of a run are set.
    pub(super) fn all_set(&self, at: usize, run: usize) -> bool {
        segments(at, run).all(|(word, mask)| self.words[word] & mask == mask)
    }

    /// Whether all bits of a run are clear.
    pub(super) fn all_clear(&self, at: usize, run: usize) -> bool {
        self.last_set(at, run).is_none()
    }

    /// Sets a run of bits.
    pub(super) fn set(&mut self, at: usize, run: usize) {
        assert!(at + run <= self.len, "the run is within the bitmap");
        for (word, mask) in segments(at, run) {
            self.ones += (mask & !self.words[word]).count_ones() as usize;
            self.words[word] |= mask;
        }
        while self.low < WORDS && self.words[self.low] == u64::MAX {
            self.low += 1;
        }
    }

    /// Clears a run of bits.
    pub(super) fn clear(&mut self, at: usize, run: usize) {
        assert!(at + run <= self.len, "the run is within the bitmap");
        for (word, mask) in segments(at, run) {
            self.ones -= (mask & self.words[word]).count_ones() as usize;
            self.words[word] &= !mask;
        }
        self.low = self.low.min(at / WORD);
    }

    /// The highest set bit of a run.
    fn last_set(&self, at: usize, run: usize) -> Option<usize> {
        segments(at, run).rev().find_map(|(word, mask)| {
            let bits = self.words[word] & mask;
            bits.checked_ilog2().map(|bit| word * WORD + bit as usize)
        })
    }

    /// The lowest clear bit at or after `from`; at least `len` if there is none.
    fn next_clear(&self, from: usize) -> usize {
        self.next(from, u64::MAX)
    }

    /// The lowest bit at or after `from` that is set once words are combined with `flip` by exclusive or; at
    /// least `len` if there is none.
    fn next(&self, from: usize, flip: u64) -> usize {
        let mut mask = u64::MAX << (from % WORD);
        for word in from / WORD..self.len.div_ceil(WORD) {
            let bits = (self.words[word] ^ flip) & mask;
            if bits != 0 {
                return word * WORD + bits.trailing_zeros() as usize;
            }
            mask = u64::MAX;
        }
        self.len.max(from)
    }
}

/// The words that a run of at least one bit touches, each with a mask of the run's bits in it.
fn segments(at: usize, run: usize) -> impl DoubleEndedIterator<Item = (usize, u64)> {
    debug_assert!(run != 0, "a run has bits");
    let last = at + run - 1;
    (at / WORD..=last / WORD).map(move |word| {
        let from = if word == at / WORD { at % WORD } else { 0 };
        let to = if word == last / WORD {
            last % WORD
        } else {
            WORD - 1
        };
        (word, (u64::MAX << from) & (u64::MAX >> (WORD - 1 - to)))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The dull way to do what `find_clear` does.
    fn find_clear(model: &[bool], run: usize, align: usize) -> Option<usize> {
        (0..model.len())
            .step_by(align)
            .find(|&at| at + run <= model.len() && !model[at..at + run].contains(&true))
    }

    fn next_run(model: &[bool], from: usize, max: usize) -> Option<Range<usize>> {
        let start = (from..model.len()).find(|&bit| model[bit])?;
        let end = (start..model.len())
            .find(|&bit| !model[bit])
            .unwrap_or(model.len());
        Some(start..end.min(start + max))
    }

    fn check(bits: &Bitmap, model: &[bool]) {
        assert_eq!(bits.ones(), model.iter().filter(|&&bit| bit).count());
        for (bit, &set) in model.iter().enumerate() {
            assert_eq!(bits.all_set(bit, 1), set, "bit {bit}");
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Take { run: usize, align: usize },
        Free { pick: usize },
        Set { at: usize, run: usize },
        Clear { at: usize, run: usize },
        Runs { from: usize, max: usize },
    }

    fn step() -> impl Strategy<Value = Step> {
        let run = prop_oneof![6 => 1_usize..40, 2 => prop::sample::select(vec![64, 65, 128, 200])];
        let align = (0_u32..7).prop_map(|log| 1_usize << log);
        prop_oneof![
            8 => (run.clone(), align).prop_map(|(run, align)| Step::Take { run, align }),
            6 => any::<usize>().prop_map(|pick| Step::Free { pick }),
            1 => (0_usize..600, run.clone()).prop_map(|(at, run)| Step::Set { at, run }),
            1 => (0_usize..600, run).prop_map(|(at, run)| Step::Clear { at, run }),
            2 => (0_usize..700, 1_usize..80).prop_map(|(from, max)| Step::Runs { from, max }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn agrees_with_a_list_of_bools(
            len in prop::sample::select(vec![1_usize, 63, 64, 65, 320, 512, 601]),
            steps in prop::collection::vec(step(), 1..200),
        ) {
            let mut bits = Bitmap::new(len);
            let mut model = vec![false; len];
            let mut taken = Vec::new();
            for step in steps {
                match step {
                    Step::Take { run, align } => {
                        let found = bits.find_clear(run, align);
                        prop_assert_eq!(found, find_clear(&model, run, align));
                        if let Some(at) = found {
                            bits.set(at, run);
                            model[at..at + run].fill(true);
                            taken.push((at, run));
                        }
                    }
                    Step::Free { pick } if !taken.is_empty() => {
                        let (at, run) = taken.swap_remove(pick % taken.len());
                        bits.clear(at, run);
                        model[at..at + run].fill(false);
                    }
                    Step::Set { at, run } if at + run <= len => {
                        bits.set(at, run);
                        model[at..at + run].fill(true);
                    }
                    Step::Clear { at, run } if at + run <= len => {
                        bits.clear(at, run);
                        model[at..at + run].fill(false);
                    }
                    Step::Runs { from, max } => {
                        prop_assert_eq!(bits.next_run(from, max), next_run(&model, from, max));
                    }
                    _ => {}
                }
            }
            check(&bits, &model);
        }
    }

    #[test]
    fn the_largest_bitmap_fills_and_empties() {
        let mut bits = Bitmap::new(MAX_LEN);
        assert_eq!(bits.find_clear(MAX_LEN, 1), Some(0));
        for at in (0..MAX_LEN).step_by(512) {
            assert_eq!(bits.find_clear(512, 32), Some(at));
            bits.set(at, 512);
        }
        assert_eq!((bits.ones(), bits.find_clear(1, 1)), (MAX_LEN, None));
        assert_eq!(bits.next_run(0, usize::MAX / 2), Some(0..MAX_LEN));
        bits.clear(MAX_LEN - 1, 1);
        assert_eq!(bits.find_clear(1, 1), Some(MAX_LEN - 1));
        bits.clear(0, MAX_LEN);
        assert_eq!((bits.ones(), bits.next_run(0, 1)), (0, None));
    }
}
