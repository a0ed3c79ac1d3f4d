// What the derive writes trips no lint, not even under `forbid`, which no `allow` can lift.
#![forbid(unsafe_code)]
#![forbid(warnings, missing_docs, unused, nonstandard_style, future_incompatible, rust_2018_idioms)]
#![forbid(unreachable_pub, unused_qualifications, unused_results, missing_debug_implementations)]
#![forbid(trivial_casts, single_use_lifetimes, redundant_lifetimes, unnameable_types)]
//! Documented.

/// Documented.
#[derive(Debug, sheaves::Pooled)]
#[pool(order = large, align = 128, barn = (1, 2), debug = "FP", limit = 10, reserve = 3)]
#[pool(zero_on_free, strict_layout, sheaf_capacity = 16, min_partial = 2, crate = sheaves)]
pub struct Kiocb(pub u8);

fn main() {
    #[derive(Debug, sheaves::Pooled)]
    struct Inner(u8);

    assert_eq!(sheaves::Pooled::pooled(Kiocb(1)).0, 1);
    assert_eq!(sheaves::Pooled::pooled(Inner(2)).0, 2);
}
