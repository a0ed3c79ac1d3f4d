use sheaves::Pooled;

#[derive(Pooled)]
#[pool(order = 10, align = 48, sheaf_capacity = 32769)]
struct First;

#[derive(Pooled)]
#[pool(align = 65536, barn = (65, 0), min_partial = 65537)]
struct Second;

#[derive(Pooled)]
#[pool(align = 0, barn = (0, 65), limit = 0)]
struct Third;

#[derive(Pooled)]
#[pool(reserve = 1001, limit = 1000)]
struct Above;

#[derive(Pooled)]
#[pool(reserve = 99999999999999999999999)]
struct Huge;

#[derive(Pooled)]
#[pool(debug = "FZX")]
struct Letters;

fn main() {}
