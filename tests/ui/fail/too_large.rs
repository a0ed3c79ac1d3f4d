use sheaves::Pooled;

#[derive(Pooled)]
#[pool(name = "for_the_order", order = 0)]
struct ForTheOrder([u8; 1 << 17]);

#[derive(Pooled)]
struct ForAnyOrder([u8; 1 << 26]);

#[derive(Pooled)]
#[pool(align = natural)]
#[repr(align(65536))]
struct TooAligned(u8);

fn main() {}
