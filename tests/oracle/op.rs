//! What may happen to a pool: configurations and operations, both decoded from a few bytes.
//!
//! One decoder serves the property test and the fuzz target. Every operation takes the same number of bytes, so
//! that leaving one out does not change the others. Every byte string means something: numbers that choose an
//! object are taken modulo what there is.
#![forbid(unsafe_code)]

/// Threads that use the pool; the first is the test's own, the others can exit and start anew.
pub(crate) const THREADS: usize = 3;

/// Bytes of an encoded [`Config`].
pub(crate) const CONFIG_BYTES: usize = 10;

/// Bytes of an encoded [`Op`].
pub(crate) const OP_BYTES: usize = 4;

/// How a pool is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    /// Bytes of an object.
    pub(crate) size: usize,
    /// `None`: the automatic capacity.
    pub(crate) sheaf_capacity: Option<usize>,
    pub(crate) barn: (usize, usize),
    pub(crate) min_partial: usize,
    /// `None`: the automatic order.
    pub(crate) order: Option<u8>,
    pub(crate) limit: Option<usize>,
    pub(crate) reserve: usize,
    pub(crate) zero_on_free: bool,
    pub(crate) cache_line: bool,
}

impl Config {
    pub(crate) fn decode(bytes: [u8; CONFIG_BYTES]) -> Self {
        let [
            size,
            capacity,
            full,
            empty,
            partial,
            order,
            limit,
            reserve,
            flags,
            more,
        ] = bytes.map(usize::from);
        let size = [5000, 5000, 40_000, 240, 24, 1, 70_000, 5000][size % 8];
        let limit = match limit % 4 {
            0 | 1 => None,
            2 => Some(1 + more % 16),
            _ => Some(1 + more),
        };
        let order = match order % 4 {
            0 => None,
            1 => Some(if size > 65_000 { 1 } else { 0 }),
            2 => Some(1),
            _ => Some(2),
        };
        let reserve = if reserve % 4 == 1 { reserve / 4 } else { 0 };
        Self {
            size,
            sheaf_capacity: [Some(4), Some(0), Some(1), Some(2), Some(3), Some(60), None]
                [capacity % 7],
            barn: (full % 3, empty % 3),
            min_partial: partial % 3,
            order,
            limit,
            reserve: reserve.min(limit.unwrap_or(usize::MAX)),
            zero_on_free: flags % 4 == 1,
            cache_line: flags / 4 % 4 == 1,
        }
    }
}

/// How one object is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Value,
    With,
    Uninit,
}

/// One step. `thread` is below [`THREADS`]; `which`, `sheaf` and `handle` count modulo what there is, and the step
/// is left out where there is nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Alloc {
        thread: usize,
        times: usize,
        form: Form,
    },
    AllocNow {
        thread: usize,
    },
    Free {
        thread: usize,
        which: usize,
        times: usize,
    },
    AllocBulk {
        thread: usize,
        n: usize,
    },
    FreeBulk {
        thread: usize,
        which: usize,
        n: usize,
    },
    Prefill {
        thread: usize,
        n: usize,
    },
    SheafAlloc {
        thread: usize,
        sheaf: usize,
        times: usize,
    },
    SheafFree {
        thread: usize,
        sheaf: usize,
        which: usize,
    },
    Refill {
        thread: usize,
        sheaf: usize,
        n: usize,
    },
    GiveBack {
        thread: usize,
        sheaf: usize,
    },
    Shrink {
        thread: usize,
    },
    Flush {
        thread: usize,
    },
    /// Allocates and frees one object again and again.
    Churn {
        thread: usize,
        times: usize,
    },
    CloneBox {
        thread: usize,
        which: usize,
    },
    CloneHandle,
    DropHandle {
        thread: usize,
        handle: usize,
    },
    Close {
        thread: usize,
        handle: usize,
    },
    /// The thread ends; the first one cannot.
    Exit {
        thread: usize,
    },
    /// A call is told to fail.
    Faulted {
        thread: usize,
        what: usize,
        n: usize,
    },
    /// The source of pages gives this many more pages than the pool has now; `None`: any number.
    Memory {
        pages: Option<usize>,
    },
}

impl Op {
    pub(crate) fn decode(bytes: [u8; OP_BYTES]) -> Self {
        let [kind, thread, a, b] = bytes.map(usize::from);
        let thread = thread % THREADS;
        // Mostly one, now and then enough to fill the largest sheaf.
        let times = match b % 8 {
            0..=3 => 1,
            4 | 5 => 2 + b / 8 % 8,
            _ => 10 + b / 4,
        };
        match kind % 64 {
            0..=9 => Self::Alloc {
                thread,
                times,
                form: [Form::Value, Form::With, Form::Uninit][a % 3],
            },
            10..=21 => Self::Free {
                thread,
                which: a,
                times,
            },
            22 | 23 => Self::AllocNow { thread },
            24..=28 => Self::AllocBulk { thread, n: a % 11 },
            29..=33 => Self::FreeBulk {
                thread,
                which: a,
                // Batches of a bulk free hold 32.
                n: if b % 8 == 7 { 30 + b / 16 } else { b % 11 },
            },
            34..=37 => Self::Prefill { thread, n: a % 9 },
            38..=41 => Self::SheafAlloc {
                thread,
                sheaf: a,
                times: 1 + b % 4,
            },
            42 | 43 => Self::SheafFree {
                thread,
                sheaf: a,
                which: b,
            },
            44..=46 => Self::Refill {
                thread,
                sheaf: a,
                n: b % 9,
            },
            47..=49 => Self::GiveBack { thread, sheaf: a },
            50 | 51 => Self::Shrink { thread },
            52 | 53 => Self::Flush { thread },
            54 => Self::Churn {
                thread,
                times: 1 + a + b % 64,
            },
            55 => Self::CloneBox { thread, which: a },
            56 => Self::CloneHandle,
            57 => Self::DropHandle { thread, handle: a },
            58 => Self::Close { thread, handle: a },
            59..=61 => Self::Exit { thread },
            62 => Self::Faulted {
                thread,
                what: a,
                n: b % 9,
            },
            _ => Self::Memory {
                pages: (a % 4 != 0).then_some(b % 5),
            },
        }
    }
}
