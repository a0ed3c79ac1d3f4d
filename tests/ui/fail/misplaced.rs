use sheaves::Pooled;

#[derive(Pooled)]
struct Field {
    #[pool(align = cache_line)]
    field: u64,
}

#[derive(Pooled)]
enum Variant {
    #[pool(name = "variant")]
    Unit,
    Tuple(#[pool(zero_on_free)] u8),
}

fn main() {}
