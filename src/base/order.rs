//! How many pages a slab gets: the kernel's order and `min_partial` arithmetic.
//!
//! An order is tried for each tolerated waste, first a sixteenth of the slab, then an eighth, a quarter and
//! a half, from the smallest order that holds a sensible number of objects up to a ceiling. The functions
//! are pure and know neither this crate's page size nor its headers: they ask the caller how many slots a
//! slab of an order holds. Fed with the kernel's numbers they give the kernel's answers.
#![forbid(unsafe_code)]

/// Above this order the automatic choice only goes when a single object needs it: large slabs are slow to
/// empty and hold on to memory for one live object.
pub(crate) const AUTO_MAX_ORDER: u8 = 3;

/// What a slab may waste, as divisors of its size, strictest first.
const WASTE_FRACTIONS: [usize; 4] = [16, 8, 4, 2];

/// What the order arithmetic must know of slabs.
pub(crate) trait SlabShape {
    /// Bytes of a slab of order 0.
    const PAGE: usize;
    /// Slots that a slab may hold at most.
    const MAX_SLOTS: usize;
    /// Orders above this one do not exist.
    const MAX_ORDER: u8;
    /// Slots in a slab of this order; never falls as the order rises.
    fn slots(&self, order: u8) -> usize;
    /// Bytes from one slot to the next.
    fn stride(&self) -> usize;
}

/// Objects a slab should hold so that its bookkeeping, and the trips to the node, are worth it: more where
/// more processors fight for the node's lock.
pub(crate) const fn min_objects(cpus: usize) -> usize {
    4 * (usize::BITS - cpus.leading_zeros() + 1) as usize
}

/// Partial slabs, empty ones included, up to which a node keeps an emptied slab: more for large objects, whose
/// slabs are dear.
///
/// `size` is the stride in bytes, at least 1.
pub(crate) const fn min_partial(size: usize) -> usize {
    let half_log = size.ilog2() as usize / 2;
    if half_log < 5 {
        5
    } else if half_log > 10 {
        10
    } else {
        half_log
    }
}

/// The automatic order for a machine with `cpus` processors, or `None` if no order holds one object.
pub(crate) fn calculate_order<S: SlabShape>(shape: &S, cpus: usize) -> Option<u8> {
    let ceiling = shape.slots(AUTO_MAX_ORDER).max(1);
    let wanted = min_objects(cpus).min(ceiling);
    let mut min_order = first_order_with(shape, wanted).unwrap_or(0);
    while min_order > 0 && shape.slots(min_order) > S::MAX_SLOTS {
        min_order -= 1;
    }
    for fraction in WASTE_FRACTIONS {
        for order in min_order..=AUTO_MAX_ORDER {
            let bytes = S::PAGE << order;
            let used = shape.slots(order) * shape.stride();
            if used > 0 && bytes - used <= bytes / fraction {
                return Some(order);
            }
        }
    }
    first_order_with(shape, 1)
}

/// The smallest order whose slabs hold `slots` slots.
pub(crate) fn first_order_with<S: SlabShape>(shape: &S, slots: usize) -> Option<u8> {
    (0..=S::MAX_ORDER).find(|&order| shape.slots(order) >= slots)
}

/// Slabs of the kernel: pages of 4096 bytes, no header, whole slots one after the other.
#[derive(Clone, Copy, Debug)]
pub struct KernelShape {
    /// Bytes of one slot with its metadata (`slab_size` in sysfs).
    pub size: usize,
}

impl SlabShape for KernelShape {
    const PAGE: usize = 4096;
    const MAX_SLOTS: usize = 32_767;
    const MAX_ORDER: u8 = 10;

    fn slots(&self, order: u8) -> usize {
        (Self::PAGE << order) / self.size
    }

    fn stride(&self) -> usize {
        self.size
    }
}

impl KernelShape {
    /// Order, objects per slab and `min_partial` as the kernel computes them on a machine of `cpus`.
    pub fn plan(&self, cpus: usize) -> Option<(u8, usize, usize)> {
        let order = calculate_order(self, cpus)?;
        Some((order, self.slots(order), min_partial(self.size)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn min_objects_grows_with_the_logarithm_of_processors() {
        let seen = [1, 2, 4, 16, 64, 256].map(min_objects);
        assert_eq!(seen, [8, 12, 16, 24, 32, 40]);
    }

    #[test]
    fn min_partial_is_clamped_at_both_ends() {
        assert_eq!(min_partial(1), 5);
        assert_eq!(min_partial(4095), 5);
        assert_eq!(min_partial(4096), 6);
        assert_eq!(min_partial(1 << 20), 10);
        assert_eq!(min_partial(1 << 25), 10);
    }

    #[test]
    fn an_object_larger_than_the_ceiling_gets_the_order_that_holds_it() {
        assert_eq!(calculate_order(&KernelShape { size: 51_488 }, 2), Some(4));
        assert_eq!(
            calculate_order(&KernelShape { size: 4096 << 10 }, 2),
            Some(10)
        );
        assert_eq!(
            calculate_order(
                &KernelShape {
                    size: (4096 << 10) + 1
                },
                2
            ),
            None
        );
    }
}
