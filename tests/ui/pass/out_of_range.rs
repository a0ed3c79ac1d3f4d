use sheaves::Pooled;

#[derive(Pooled)]
#[pool(order = 9, align = 64, sheaf_capacity = 32768)]
struct First;

#[derive(Pooled)]
#[pool(align = 32768, barn = (64, 0), min_partial = 65536)]
struct Second;

#[derive(Pooled)]
#[pool(align = 1, barn = (0, 64), limit = 1)]
struct Third;

#[derive(Pooled)]
#[pool(reserve = 1000, limit = 1000)]
struct Above;

#[derive(Pooled)]
#[pool(reserve = 0)]
struct Huge;

#[derive(Pooled)]
#[pool(debug = "FZPUTA")]
struct Letters;

fn main() {}
