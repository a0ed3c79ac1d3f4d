use sheaves::Pooled;

#[derive(Pooled)]
#[pool(order = large, align = cache_line)]
struct Misspelt;

#[derive(Pooled)]
#[pool(order = large, sheaf_capacity = 256)]
struct Constant;

#[derive(Pooled)]
#[pool(limit = 1, reserve = 1, min_partial = 10usize)]
struct Number;

#[derive(Pooled)]
#[pool(sheaf_capacity = 0x100, order = 0b101u8)]
struct Expression;

#[derive(Pooled)]
#[pool(barn = (10, 0))]
struct One;

#[derive(Pooled)]
#[pool(barn = (10, 10))]
struct Three;

#[derive(Pooled)]
#[pool(barn = (10u32, 1_0))]
struct Parts;

#[derive(Pooled)]
#[pool(crate = sheaves, name = "5", debug = "")]
struct Others;

fn main() {}
