use sheaves::Pooled;

#[derive(Pooled)]
#[pool(order)]
struct Bare;

#[derive(Pooled)]
#[pool(limit =, barn =)]
struct Sign;

#[derive(Pooled)]
#[pool(barn(10, 10))]
struct Call;

#[derive(Pooled)]
#[pool(crate)]
struct Crate;

fn main() {}
