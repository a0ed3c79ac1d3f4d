use sheaves::Pooled;

#[derive(Pooled)]
#[pool(zero_on_free)]
struct Bool;

#[derive(Pooled)]
#[pool(strict_layout, order = max)]
struct Text;

#[derive(Pooled)]
#[pool(zero_on_free, strict_layout)]
struct Empty;

fn main() {}
