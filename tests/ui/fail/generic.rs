use sheaves::{PoolBox, Pooled};

#[derive(Pooled)]
struct OfType<T>(T);

#[derive(Pooled)]
struct OfLifetime<'a>(&'a str);

#[derive(Pooled)]
enum OfConst<const N: usize> {
    Some([u8; N]),
}

#[derive(Pooled)]
struct OfAll<'a, T: ?Sized + 'a, const N: usize = 4>(&'a T, [u8; N])
where
    T: Clone;

fn main() {
    let _: PoolBox<OfType<u8>> = OfType(1).pooled();
    let _: PoolBox<OfLifetime<'static>> = OfLifetime("text").pooled();
    let _: PoolBox<OfConst<4>> = OfConst::Some([0; 4]).pooled();
    let _: PoolBox<OfAll<'static, u8>> = OfAll(&1, [0; 4]).pooled();
}
