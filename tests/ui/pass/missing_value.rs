use sheaves::Pooled;

#[derive(Pooled)]
#[pool(order = auto)]
struct Bare;

#[derive(Pooled)]
#[pool(limit = 1, barn = (0, 0,),)]
struct Sign;

#[derive(Pooled)]
#[pool(barn = (10, 10))]
struct Call;

#[derive(Pooled)]
#[pool(crate = ::sheaves)]
struct Crate;

fn main() {}
