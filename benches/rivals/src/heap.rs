//! What a contender is.
#![forbid(unsafe_code)]

/// How a contender counts in ratios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Does nothing: its time is the harness.
    Harness,
    Ours,
    Malloc,
    /// A pool that hands out pointers and whose safe interface is sound.
    Pool,
    /// Printed, not compared with: keys instead of pointers, or a known unsoundness.
    Other,
}

/// Place of [`Local::alloc`]: the object freed last.
pub const LAST: usize = usize::MAX;

/// A contender, for one turn.
pub trait Heap: 'static {
    const NAME: &'static str;
    const KIND: Kind;
    /// Live objects beyond which it is not asked: it would not end.
    const MOST: usize = usize::MAX;
    /// Hands out keys: objects cannot be written through what is handed out.
    const KEYS: bool = false;

    /// What a thread works with.
    type Local<'a>: Local
    where
        Self: 'a;

    /// For up to `most` live objects at a time.
    fn new(most: usize) -> Self;

    /// Called by the thread that uses it, which has up to `held` objects at a time.
    fn local(&self, held: usize) -> Self::Local<'_>;

    /// Gives back memory that is not used, as far as the contender offers that.
    fn purge(&self) {}
}

/// A contender, on one thread.
pub trait Local {
    /// Owns an object.
    type Owned: Send;

    /// Allocates an object and stamps it. `place` is the number of the holder's place, or [`LAST`]; only the
    /// harness contender looks at it.
    fn alloc(&mut self, place: usize, tag: u64) -> Self::Owned;

    /// Checks an object and frees it; its tag.
    fn free(&mut self, owned: Self::Owned) -> u64;

    /// Writes the object some times.
    fn touch(owned: &mut Self::Owned, times: u64);

    /// Allocates `n` objects.
    #[inline(always)]
    fn alloc_many(&mut self, n: usize, mut tag: impl FnMut() -> u64, held: &mut Vec<Self::Owned>) {
        for place in 0..n {
            held.push(self.alloc(place, tag()));
        }
    }

    /// Checks and frees them all.
    #[inline(always)]
    fn free_many(&mut self, held: &mut Vec<Self::Owned>, mut tag: impl FnMut(u64)) {
        for owned in held.drain(..) {
            tag(self.free(owned));
        }
    }
}
