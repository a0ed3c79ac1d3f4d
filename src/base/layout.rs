//! Where slots lie in a slab.
//!
//! A slab is cut into *runs*. For objects that fit in a page with a header a run is one page; for larger
//! ones it is as many pages as one object and a header need, since a slot crosses a page only if it cannot
//! fit in one. Every run begins with a header, then the bitmap of its free slots, then the first slot at
//! its alignment. Strides are exact: the size rounded up to the alignment and not to a power of two. What
//! is left over at the end of a run shifts the first slot of successive runs (*colouring*), so that objects
//! whose stride is a multiple of a page do not all start in the same cache sets.
#![forbid(unsafe_code)]

use super::order::{SlabShape, first_order_with};

/// Bytes of a page, the unit of page order, as a power of two.
pub(crate) const PAGE_SHIFT: u32 = 16;

/// Bytes of a page: large enough that a header per page is a fraction of a percent, small enough that an
/// almost empty pool costs little.
pub(crate) const PAGE_SIZE: usize = 1 << PAGE_SHIFT;

/// The largest order: 32 MiB slabs, the largest block that page sources must serve.
pub(crate) const MAX_ORDER: u8 = 9;

/// The largest alignment of a slot: half a page, so that a header and an aligned slot share a page.
pub(crate) const MAX_ALIGN: usize = PAGE_SIZE / 2;

/// Bytes of the header at the start of a run, before its bitmap; the slab layer checks that it fits.
pub(crate) const RUN_HEADER: usize = 128;

/// Colours step by a cache line, the granule in which sets collide.
const COLOUR_STEP: usize = 64;

/// The shape of every slab of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Bytes of the object; at least 1, since even a zero-sized one has an address of its own.
    pub(crate) size: usize,
    /// Alignment of every slot, a power of two up to [`MAX_ALIGN`].
    pub(crate) align: usize,
    /// Bytes from one slot to the next.
    pub(crate) stride: usize,
    /// Pages in a run.
    pub(crate) run_pages: usize,
    /// Slots in a run.
    pub(crate) run_slots: usize,
    /// Offset of a run's first slot when its colour is 0.
    pub(crate) first: usize,
    /// Number of colours, at least 1.
    pub(crate) colours: usize,
    /// Bytes between colours.
    pub(crate) colour_step: usize,
    /// Bytes of the guard before each slot; 0 if there is none.
    pub(crate) lead: usize,
    /// Offset in its slot of the end of the guard after the object; the object's size if there is none.
    pub(crate) zone_end: usize,
    /// `ceil(2^32 / stride)`: turns the division of a slot's offset into a multiplication.
    magic: u64,
}

impl Geometry {
    /// The geometry of slots for objects of `size` bytes aligned to `align`.
    ///
    /// `align` must be a power of two up to [`MAX_ALIGN`], and `size` at most `isize::MAX` (as in `Layout`).
    pub(crate) const fn new(size: usize, align: usize) -> Self {
        Self::with_guards(size, align, 0)
    }

    /// The same with guard bytes: `guard` of them before each object, and from `guard` to `guard + 7` after it.
    pub(crate) const fn with_guards(size: usize, align: usize, guard: usize) -> Self {
        assert!(align.is_power_of_two() && align <= MAX_ALIGN);
        let size = if size == 0 { 1 } else { size };
        let zone_end = if guard == 0 {
            size
        } else {
            (size + guard).next_multiple_of(8)
        };
        let room = zone_end + guard;
        let stride = room.next_multiple_of(align);
        let run_slots = slots_in_page(stride, align, guard);
        let run_slots = if run_slots == 0 { 1 } else { run_slots };
        let first = first_offset(run_slots, align, guard);
        let run_pages = (first + room).div_ceil(PAGE_SIZE);
        let slack = run_pages * PAGE_SIZE - (first + (run_slots - 1) * stride + room);
        // A slot starts on the first page of its run: there its header is found.
        let slack = if slack < PAGE_SIZE - first {
            slack
        } else {
            PAGE_SIZE - first - 1
        };
        let colour_step = if align > COLOUR_STEP {
            align
        } else {
            COLOUR_STEP
        };
        // Colouring only matters where strides keep objects in step with the cache's sets; elsewhere a shift
        // by less than a line would only split objects over more lines.
        let colours = slack / colour_step + 1;
        let magic = (1_u64 << 32).div_ceil(stride as u64);
        Self {
            size,
            align,
            stride,
            run_pages,
            run_slots,
            first,
            colours,
            colour_step,
            lead: guard,
            zone_end,
            magic,
        }
    }

    /// Bytes of the largest object with this alignment that a slab of the largest order holds.
    pub(crate) const fn largest(align: usize) -> usize {
        (PAGE_SIZE << MAX_ORDER) - first_offset(1, align, 0)
    }

    /// Slots in a slab of `order`; 0 if it cannot hold a run.
    pub(crate) const fn slots_of(&self, order: u8) -> usize {
        self.runs_of(order) * self.run_slots
    }

    /// Bytes of a run.
    pub(crate) const fn run_bytes(&self) -> usize {
        self.run_pages * PAGE_SIZE
    }

    /// Runs in a slab of `order`.
    pub(crate) const fn runs_of(&self, order: u8) -> usize {
        (1_usize << order) / self.run_pages
    }

    /// The smallest order that holds one object, if there is one.
    pub(crate) fn min_order(&self) -> Option<u8> {
        first_order_with(self, 1)
    }

    /// Offset in its run of the first slot of a run with this colour.
    pub(crate) const fn first_of(&self, colour: usize) -> usize {
        self.first + colour % self.colours * self.colour_step
    }

    /// The index of the slot that starts `offset` bytes after the first of its run, if one starts there.
    pub(crate) fn index_at(&self, offset: usize) -> Option<usize> {
        let index = self.index_containing(offset);
        (index < self.run_slots && index * self.stride == offset).then_some(index)
    }

    /// The index of the slot that holds the byte `offset` bytes after the first slot of its run.
    ///
    /// Exact for offsets within a page; a run of several pages holds one slot only.
    #[inline]
    pub(crate) fn index_containing(&self, offset: usize) -> usize {
        if self.run_pages > 1 {
            return offset / self.stride;
        }
        // With `magic * stride = 2^32 + e` and `e < stride <= 2^16`, the error `offset * e / stride` stays
        // below 2^32 / stride for offsets below 2^16, so the quotient is exact.
        ((offset as u64 * self.magic) >> 32) as usize
    }
}

impl SlabShape for Geometry {
    const PAGE: usize = PAGE_SIZE;
    // Indices and counts of slots are 32 bits wide.
    const MAX_SLOTS: usize = u32::MAX as usize;
    const MAX_ORDER: u8 = MAX_ORDER;

    fn slots(&self, order: u8) -> usize {
        self.slots_of(order)
    }

    fn stride(&self) -> usize {
        self.stride
    }
}

/// Words of one bitmap for this many slots. A run has two: which slots are free, and which are retired.
pub(crate) const fn bitmap_words(slots: usize) -> usize {
    slots.div_ceil(64)
}

/// Offset of the first slot of an uncoloured run that holds `slots` slots, with `guard` bytes before it.
const fn first_offset(slots: usize, align: usize, guard: usize) -> usize {
    (RUN_HEADER + 2 * bitmap_words(slots) * 8 + guard).next_multiple_of(align)
}

/// Slots that fit in one page with header and bitmaps.
const fn slots_in_page(stride: usize, align: usize, guard: usize) -> usize {
    // Each slot costs its stride and two bits; start from that bound and step down over the roundings.
    let mut slots = (PAGE_SIZE - RUN_HEADER) * 8 / (stride.saturating_mul(8).saturating_add(2));
    while slots > 0 && first_offset(slots, align, guard) + slots * stride > PAGE_SIZE {
        slots -= 1;
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(size: usize, align: usize) {
        check_shape(Geometry::new(size, align));
        if size <= 100_000 {
            let g = check_shape(Geometry::with_guards(size, align, 8));
            assert!(g.lead == 8 && g.zone_end >= g.size + 8 && g.zone_end + 8 <= g.stride);
            assert!(g.first >= RUN_HEADER + 2 * bitmap_words(g.run_slots) * 8 + g.lead);
        }
    }

    fn check_shape(g: Geometry) -> Geometry {
        let (size, align) = (g.size, g.align);
        let run = g.run_pages * PAGE_SIZE;
        assert!(g.run_slots >= 1 && g.stride % align == 0 && g.stride >= size);
        assert!(g.first >= RUN_HEADER + 2 * bitmap_words(g.run_slots) * 8);
        for colour in [0, 1, g.colours - 1, g.colours] {
            let first = g.first_of(colour);
            assert_eq!(first % align, 0, "size {size} align {align}");
            assert!(first < PAGE_SIZE, "size {size} align {align}");
            assert!(
                first + (g.run_slots - 1) * g.stride + g.zone_end + g.lead <= run,
                "size {size} align {align}"
            );
        }
        if g.run_slots > 1 {
            assert_eq!(
                g.run_pages, 1,
                "only a slot too large for a page may cross one"
            );
        }
        g
    }

    #[test]
    fn every_small_size_at_every_alignment() {
        for shift in 0..=15 {
            let align = 1 << shift;
            for size in (0..=4096).chain((4097..200_000).step_by(997)) {
                check(size, align);
            }
        }
    }

    #[test]
    fn indices_are_exact_for_every_byte_of_a_page() {
        for size in [
            1, 2, 3, 7, 8, 24, 48, 63, 240, 248, 1000, 4096, 21_845, 32_700, 65_400,
        ] {
            let g = Geometry::new(size, 1);
            for offset in 0..g.run_slots * g.stride {
                assert_eq!(
                    g.index_containing(offset),
                    offset / g.stride,
                    "size {size} at {offset}"
                );
                let starts = offset % g.stride == 0;
                assert_eq!(g.index_at(offset), starts.then_some(offset / g.stride));
            }
            assert_eq!(g.index_at(g.run_slots * g.stride), None);
        }
    }

    #[test]
    fn a_240_byte_object_costs_240_bytes() {
        let g = Geometry::new(240, 8);
        assert_eq!((g.stride, g.run_slots, g.run_pages), (240, 272, 1));
        let payload = g.slots_of(0) * 240;
        assert!(PAGE_SIZE * 1000 < payload * 1005);
    }

    #[test]
    fn large_objects_take_runs_of_their_own() {
        let g = Geometry::new(40 << 10, 8);
        assert_eq!((g.run_pages, g.run_slots, g.min_order()), (1, 1, Some(0)));
        let g = Geometry::new(1 << 20, 64);
        assert_eq!((g.run_pages, g.run_slots, g.min_order()), (17, 1, Some(5)));
        let g = Geometry::new((32 << 20) + 1, 1);
        assert_eq!(g.min_order(), None);
    }

    #[test]
    fn page_sized_strides_are_coloured() {
        let g = Geometry::new(4096, 8);
        assert!(g.colours > 8);
        assert_ne!(g.first_of(0), g.first_of(1));
        assert_eq!(g.first_of(0), g.first_of(g.colours));
    }
}
