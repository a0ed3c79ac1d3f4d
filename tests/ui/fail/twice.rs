use sheaves::Pooled;

#[derive(Pooled)]
#[pool(order = large, name = "twice", order = max)]
struct OneAttribute;

#[derive(Pooled)]
#[pool(limit = 1000)]
#[pool(limit = 1000, zero_on_free)]
#[pool(zero_on_free, limit = 1000)]
struct ThreeAttributes;

fn main() {}
