//! The object that every contender allocates, and how its work is checked.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::mem::MaybeUninit;

/// `16 + 8 * MID` bytes, of which the first and the last word are written: the first touch of an object is
/// part of what an allocation costs, filling it is not.
///
/// The last word is the complement of the first, so that a neighbour that writes too far is found out.
#[repr(C)]
#[derive(Debug)]
pub struct Object<const MID: usize> {
    first: u64,
    middle: MaybeUninit<[u64; MID]>,
    last: u64,
}

/// Words between the first and the last of 240 bytes, the size of a kernel's I/O request.
pub const MID_240: usize = 28;

impl<const MID: usize> Object<MID> {
    #[inline(always)]
    pub const fn new(tag: u64) -> Self {
        Self {
            first: tag,
            middle: MaybeUninit::uninit(),
            last: !tag,
        }
    }

    #[inline(always)]
    pub fn stamp(&mut self, tag: u64) {
        self.first = tag;
        self.last = !tag;
    }

    /// The tag, read back.
    #[inline(always)]
    pub fn check(&self) -> u64 {
        if self.first != !self.last {
            corrupt();
        }
        self.first
    }

    /// Writes the object `times` times, and adds as much to its tag.
    #[inline(always)]
    pub fn touch(&mut self, times: u64) {
        for _ in 0..times {
            let tag = self.first.wrapping_add(1);
            self.stamp(tag);
            black_box(&mut *self);
        }
    }
}

impl<const MID: usize> Default for Object<MID> {
    fn default() -> Self {
        Self::new(0)
    }
}

#[cold]
#[inline(never)]
fn corrupt() {
    panic!("an object was overwritten while it was live");
}

/// Tags given and taken back. A slot handed out twice loses one of its two tags, and the sums differ.
#[derive(Debug, Default)]
pub struct Tags {
    next: u64,
    given: u64,
    taken: u64,
}

impl Tags {
    /// Tags that those of another seed are not likely to meet.
    pub fn new(seed: usize) -> Self {
        Self {
            next: (seed as u64) << 32,
            ..Self::default()
        }
    }

    #[inline(always)]
    pub fn give(&mut self) -> u64 {
        // An odd constant with many bits: sums of few tags do not collide.
        self.next = self.next.wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.given = self.given.wrapping_add(self.next);
        self.next
    }

    /// `by` was added to a tag that is out.
    #[inline(always)]
    pub fn raise(&mut self, by: u64) {
        self.given = self.given.wrapping_add(by);
    }

    #[inline(always)]
    pub fn take(&mut self, tag: u64) {
        self.taken = self.taken.wrapping_add(tag);
    }

    pub fn add(&mut self, other: &Self) {
        self.given = self.given.wrapping_add(other.given);
        self.taken = self.taken.wrapping_add(other.taken);
    }

    /// Every object is freed: what was given must have come back.
    pub fn settle(&self) {
        assert_eq!(
            self.given, self.taken,
            "an object was handed out twice or lost"
        );
    }
}
