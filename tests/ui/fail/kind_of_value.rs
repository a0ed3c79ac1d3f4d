use sheaves::{Order, Pooled};

const CAPACITY: usize = 256;

#[derive(Pooled)]
#[pool(order = Large, align = cacheline)]
struct Misspelt;

#[derive(Pooled)]
#[pool(order = Order::LARGE, sheaf_capacity = CAPACITY)]
struct Constant;

#[derive(Pooled)]
#[pool(limit = -1, reserve = 1.5, min_partial = 10kb)]
struct Number;

#[derive(Pooled)]
#[pool(sheaf_capacity = 4 * 64, order = <large>)]
struct Expression;

#[derive(Pooled)]
#[pool(barn = 10)]
struct One;

#[derive(Pooled)]
#[pool(barn = (10, 10, 10))]
struct Three;

#[derive(Pooled)]
#[pool(barn = ("10", -1))]
struct Parts;

#[derive(Pooled)]
#[pool(crate = sheaves<u8>, name = 5, debug = true)]
struct Others;

fn main() {
    let _ = (Order::LARGE, CAPACITY);
}
