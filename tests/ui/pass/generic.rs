use sheaves::{PoolBox, Pooled};

struct Generic<'a, T, const N: usize>(&'a T, [u8; N]);

#[derive(Pooled)]
struct Concrete(Generic<'static, u8, 4>);

fn main() {
    let concrete: PoolBox<Concrete> = Concrete(Generic(&1, [0; 4])).pooled();
    assert_eq!((*concrete.0.0, concrete.0.1), (1, [0; 4]));
}
