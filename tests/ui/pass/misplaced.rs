use sheaves::Pooled;

#[derive(Pooled)]
#[pool(align = cache_line)]
struct Field {
    field: u64,
}

#[derive(Pooled)]
#[pool(name = "variant", zero_on_free)]
enum Variant {
    Unit,
    Tuple(u8),
}

fn main() {
    let pooled = (Field { field: 1 }.pooled(), Variant::Unit.pooled(), Variant::Tuple(2).pooled());
    assert_eq!(pooled.0.field, 1);
    assert!(matches!(*pooled.1, Variant::Unit));
    assert!(matches!(*pooled.2, Variant::Tuple(2)));
}
