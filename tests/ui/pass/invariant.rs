//! A box owns a value, so its type can be widened as that of `Box` can.

use sheaves::{Pool, PoolBox};

fn shorter<'a>(boxed: PoolBox<&'static str>, _witness: &'a str) -> PoolBox<&'a str> {
    boxed
}

fn main() {
    let pool: Pool<&'static str> = Pool::new("names");
    let local = String::from("local");
    let mut boxed = shorter(pool.alloc("static"), &local);
    assert_eq!(*boxed, "static");
    *boxed = &local;
    assert_eq!(*boxed, "local");
}
