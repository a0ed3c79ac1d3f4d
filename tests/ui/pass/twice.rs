use sheaves::Pooled;

#[derive(Pooled)]
#[pool(order = large, name = "twice")]
struct OneAttribute;

#[derive(Pooled)]
#[pool(limit = 1000)]
#[pool(zero_on_free)]
#[pool()]
struct ThreeAttributes;

fn main() {}
