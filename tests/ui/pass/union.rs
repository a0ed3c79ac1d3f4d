use sheaves::Pooled;

union Inner {
    bytes: [u8; 8],
    number: u64,
}

#[derive(Pooled)]
#[pool(order = large)]
struct Word(Inner);

fn main() {
    let word = Word(Inner { number: 1 }).pooled();
    assert_eq!(unsafe { word.0.number }, u64::from_le_bytes(unsafe { word.0.bytes }));
}
