//! Which list a slab belongs in.
#![forbid(unsafe_code)]

/// Lists of partial slabs, by eighths of fullness: enough to tell a slab that will soon be empty from one
/// that will not, few enough that slabs seldom change lists.
pub(super) const PARTIAL_LISTS: u32 = 8;
/// The list of slabs of which no slot is out.
pub(super) const EMPTY: u32 = PARTIAL_LISTS;
/// The list of slabs of which every slot is out. Kept so that every slab is on a list.
pub(super) const FULL: u32 = PARTIAL_LISTS + 1;
pub(super) const LISTS: usize = FULL as usize + 1;

/// The list for a slab with `out` of `total` slots out, and the counts between which it stays there.
pub(super) fn list_for(out: u32, total: u32) -> (u32, u32, u32) {
    if out == 0 {
        return (EMPTY, 0, 0);
    }
    if out == total {
        return (FULL, total, total);
    }
    let wide = |n: u64| n * u64::from(total);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "quotients by the total are below the lists"
    )]
    let list = (u64::from(out) * u64::from(PARTIAL_LISTS) / u64::from(total)) as u32;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "parts of a total that is a u32"
    )]
    let bound = |eighth: u32| wide(u64::from(eighth)).div_ceil(u64::from(PARTIAL_LISTS)) as u32;
    (
        list,
        bound(list).max(1),
        (bound(list + 1) - 1).min(total - 1),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_partition_every_count() {
        for total in [1, 2, 3, 7, 8, 9, 272, 65_000] {
            for out in 0..=total {
                let (list, low, high) = list_for(out, total);
                assert!(low <= out && out <= high, "{out} of {total}");
                assert_eq!(list_for(low, total).0, list);
                assert_eq!(list_for(high, total).0, list);
            }
        }
    }
}
