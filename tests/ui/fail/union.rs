use sheaves::Pooled;

#[derive(Pooled)]
#[pool(order = large)]
union Word {
    bytes: [u8; 8],
    number: u64,
}

fn main() {
    let _ = Word { number: 1 }.pooled();
}
