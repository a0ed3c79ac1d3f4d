//! The letters of `slab_debug`.
#![forbid(unsafe_code)]

use core::fmt;
use core::ops::{BitOr, BitOrAssign};
use core::str::FromStr;

/// Debugging of a pool, in the letters of the kernel's `slab_debug`.
///
/// A pool with any flag set has no sheaves: every allocation and free goes to its slab under a lock and is
/// checked there at once, so a double free is told exactly. What is found goes to the hook of
/// [`set_report_hook`](crate::set_report_hook); then damage is mended, the slot is leaked, and the pool goes on.
///
/// The variable `SHEAVES_DEBUG` sets flags from outside: `FZPU,io_*` for the pools whose names match, `FZ` for
/// all; several groups are separated by semicolons, and the last that fits counts. A group without letters means
/// `FZPU`, the letter `-` switches debugging off. It is read when the first pool is built.
///
/// ```
/// use sheaves::DebugFlags;
///
/// assert_eq!("FP".parse(), Ok(DebugFlags::SANITY | DebugFlags::POISON));
/// assert!("FX".parse::<DebugFlags>().is_err());
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct DebugFlags(u8);

const LETTERS: [(char, DebugFlags); 6] = [
    ('F', DebugFlags::SANITY),
    ('Z', DebugFlags::RED_ZONE),
    ('P', DebugFlags::POISON),
    ('U', DebugFlags::USER),
    ('T', DebugFlags::TRACE),
    ('A', DebugFlags::FAULTS),
];

impl DebugFlags {
    /// No debugging.
    pub const NONE: Self = Self(0);
    /// `F`: every free is checked against its slab.
    #[doc(alias = "SLAB_CONSISTENCY_CHECKS")]
    pub const SANITY: Self = Self(1);
    /// `Z`: guard bytes before and after each object, checked when the object is allocated and freed, and by
    /// [`Pool::validate`](crate::Pool::validate). Dropped where the object and its guards do not fit the order.
    #[doc(alias = "SLAB_RED_ZONE")]
    pub const RED_ZONE: Self = Self(2);
    /// `P`: free slots and the gaps between slots are filled with patterns, checked as guard bytes are.
    #[doc(alias = "SLAB_POISON")]
    pub const POISON: Self = Self(4);
    /// `U`: thread, time and backtrace of the last allocation and the last free of each slot.
    #[doc(alias = "SLAB_STORE_USER")]
    pub const USER: Self = Self(8);
    /// `T`: every allocation and free is printed to stderr.
    #[doc(alias = "SLAB_TRACE")]
    pub const TRACE: Self = Self(16);
    /// `A`: the pool takes part in the faults that `SHEAVES_FAULT` asks for.
    #[doc(alias = "SLAB_FAILSLAB")]
    pub const FAULTS: Self = Self(32);

    /// Whether no flag is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The flags that are set here and not in `other`.
    ///
    /// ```
    /// use sheaves::DebugFlags;
    ///
    /// let flags = DebugFlags::SANITY | DebugFlags::POISON;
    /// assert_eq!(flags.without(DebugFlags::POISON), DebugFlags::SANITY);
    /// ```
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether every flag of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for DebugFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for DebugFlags {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

/// A letter that names no debugging option.
///
/// ```
/// let error = "FX".parse::<sheaves::DebugFlags>().unwrap_err();
/// assert!(error.to_string().starts_with("`X` is no debugging option"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{letter}` is no debugging option; the letters are F, Z, P, U, T and A")]
pub struct ParseDebugFlagsError {
    letter: char,
}

impl FromStr for DebugFlags {
    type Err = ParseDebugFlagsError;

    /// Reads letters in any order; an empty string is [`DebugFlags::NONE`].
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.chars().try_fold(Self::NONE, |flags, letter| {
            let found = LETTERS.iter().find(|(known, _)| *known == letter);
            found
                .map(|(_, flag)| flags | *flag)
                .ok_or(ParseDebugFlagsError { letter })
        })
    }
}

impl fmt::Display for DebugFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = LETTERS.iter().filter(|(_, flag)| self.contains(*flag));
        set.map(|(letter, _)| *letter)
            .try_for_each(|letter| fmt::Write::write_char(f, letter))
    }
}

impl fmt::Debug for DebugFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DebugFlags({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_round_trip() {
        let flags: DebugFlags = "UPZF".parse().expect("known letters");
        assert_eq!(flags.to_string(), "FZPU");
        assert_eq!(flags.to_string().parse(), Ok(flags));
        assert_eq!("".parse(), Ok(DebugFlags::NONE));
        assert_eq!(
            "Fz".parse::<DebugFlags>(),
            Err(ParseDebugFlagsError { letter: 'z' })
        );
    }
}
