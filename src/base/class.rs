//! Which layouts the caches beside a pool's own serve.
//!
//! What a collection asks for is seldom one object. Arrays of a few objects come from *run caches*, whose slots
//! are 2, 4, 8 and so on objects long, so that a vector that doubles wastes nothing; other small layouts come
//! from *byte caches*, whose slots are powers of two, each aligned to its own size. Both go up to a quarter of a
//! page; what is larger gets whole pages.
#![forbid(unsafe_code)]

use core::alloc::Layout;
use core::fmt::Write;

use arrayvec::ArrayString;

use super::layout::PAGE_SIZE;

/// Bytes of the largest slot of these caches. A page with a header holds three of them; of a larger one it
/// would waste a third and more.
const LARGEST: usize = PAGE_SIZE / 4;

/// Bytes of the smallest byte cache, as a power of two: the alignment that hash tables ask for.
const LEAST_SHIFT: u32 = 4;

/// Bytes of a cache line on the machines this is tuned for.
const CACHE_LINE: usize = 64;

/// Run caches a pool may have: of 2 to 16,384 objects, if they are a byte long.
const RUNS: u32 = LARGEST.ilog2();

/// Byte caches a pool may have.
const BYTES: u32 = LARGEST.ilog2() - LEAST_SHIFT + 1;

/// Caches a pool may have beside its own.
pub(crate) const CLASSES: usize = (RUNS + BYTES) as usize;

/// One of the caches beside a pool's own.
///
/// The run caches come first, by length, then the byte caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class(u32);

impl Class {
    /// The class that serves `layout` in a pool of `object`; `None` if only whole pages will do.
    ///
    /// The layout is not empty, and not that of one object.
    #[inline(always)]
    pub(crate) const fn of(object: Layout, layout: Layout) -> Option<Self> {
        let (size, align) = (layout.size(), layout.align());
        if size > LARGEST || align > LARGEST {
            return None;
        }
        if object.size() != 0 && align <= object.align() && size % object.size() == 0 {
            let objects = (size / object.size()).next_power_of_two();
            if objects > 1 && objects * object.size() <= LARGEST {
                return Some(Self(objects.trailing_zeros() - 1));
            }
        }
        let least = 1 << LEAST_SHIFT;
        let wide = if size > align { size } else { align };
        let wide = if wide > least { wide } else { least };
        Some(Self(
            RUNS + wide.next_power_of_two().trailing_zeros() - LEAST_SHIFT,
        ))
    }

    /// Its place among the [`CLASSES`].
    #[inline(always)]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// The layout of its slots in a pool of `object`.
    ///
    /// Arrays start on cache lines where their length allows that for nothing: they are copied as vectors grow.
    #[inline(always)]
    pub(crate) const fn slot(self, object: Layout) -> (usize, usize) {
        if self.0 < RUNS {
            let size = object.size() << (self.0 + 1);
            let even = 1 << size.trailing_zeros();
            let lines = if even < CACHE_LINE { even } else { CACHE_LINE };
            let align = object.align();
            (size, if align > lines { align } else { lines })
        } else {
            let size = 1 << (self.0 - RUNS + LEAST_SHIFT);
            (size, size)
        }
    }

    /// What the name of its cache adds to that of the pool.
    pub(crate) fn suffix(self) -> ArrayString<24> {
        let mut suffix = ArrayString::new();
        let (kind, number) = if self.0 < RUNS {
            ("run", 2 << self.0)
        } else {
            ("byte", 1 << (self.0 - RUNS + LEAST_SHIFT))
        };
        let written = write!(suffix, "-{kind}-{number}");
        debug_assert!(written.is_ok(), "there is room for a number");
        suffix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    fn name(object: Layout, size: usize, align: usize) -> Option<String> {
        Class::of(object, layout(size, align)).map(|class| class.suffix().to_string())
    }

    #[test]
    fn vectors_get_runs_and_tables_get_bytes() {
        let object = layout(240, 8);
        let names = [(480, 8), (720, 8), (960, 8), (15_360, 8)];
        let runs = names.map(|(size, align)| name(object, size, align).unwrap());
        assert_eq!(runs, ["-run-2", "-run-4", "-run-4", "-run-64"]);
        let names = [
            (52, 16),
            (1, 1),
            (480, 16),
            (1012, 16),
            (8, 64),
            (16_000, 8),
        ];
        let bytes = names.map(|(size, align)| name(object, size, align).unwrap());
        assert_eq!(
            bytes,
            [
                "-byte-64",
                "-byte-16",
                "-byte-512",
                "-byte-1024",
                "-byte-64",
                "-byte-16384"
            ]
        );
        assert_eq!(name(object, 16_385, 1), None);
        assert_eq!(name(object, 1, 32_768), None);
        assert_eq!(name(layout(0, 8), 64, 8).unwrap(), "-byte-64");
        assert_eq!(name(layout(1, 1), 16_384, 1).unwrap(), "-run-16384");
    }

    #[test]
    fn every_slot_holds_what_it_is_for() {
        for (size, align) in [
            (0, 1),
            (1, 1),
            (3, 1),
            (8, 8),
            (24, 8),
            (240, 8),
            (4096, 64),
            (9000, 8),
        ] {
            let object = layout(size, align);
            for shift in 0..=16 {
                for bytes in (1..600).chain((600..20_000).step_by(61)) {
                    let wanted = layout(bytes, 1 << shift);
                    let Some(class) = Class::of(object, wanted) else {
                        assert!(bytes > LARGEST || 1 << shift > LARGEST);
                        continue;
                    };
                    let (size, align) = class.slot(object);
                    assert!(class.index() < CLASSES);
                    assert!(
                        size >= bytes && align >= wanted.align(),
                        "{wanted:?}: {class:?}"
                    );
                    assert!(size <= LARGEST && size < 2 * bytes.max(1 << shift).max(16));
                }
            }
        }
    }
}
