use sheaves::Pooled;

#[derive(Pooled)]
struct Slice {
    len: usize,
    bytes: [u8],
}

#[derive(Pooled)]
struct Text(str);

#[derive(Pooled)]
struct Object(u8, dyn Send);

fn main() {}
