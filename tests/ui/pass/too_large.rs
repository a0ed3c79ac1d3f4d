use sheaves::Pooled;

#[derive(Pooled)]
#[pool(name = "for_the_order", order = 2)]
struct ForTheOrder([u8; 1 << 17]);

#[derive(Pooled)]
struct ForAnyOrder([u8; 1 << 24]);

#[derive(Pooled)]
#[pool(align = natural)]
#[repr(align(32768))]
struct TooAligned(u8);

fn main() {
    assert_eq!(ForTheOrder::pool().config().order(), 2);
    assert!(ForAnyOrder::pool().config().slots_per_slab() > 0);
    assert_eq!(TooAligned::pool().config().align(), 32768);
}
