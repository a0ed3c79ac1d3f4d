use sheaves::Pooled;

#[derive(Pooled)]
#[pool(zero_on_free = true)]
struct Bool;

#[derive(Pooled)]
#[pool(strict_layout = "yes", order = max)]
struct Text;

#[derive(Pooled)]
#[pool(zero_on_free(), strict_layout =)]
struct Empty;

fn main() {}
