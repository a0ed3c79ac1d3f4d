use sheaves::Pooled;

#[derive(Pooled)]
struct Slice {
    len: usize,
    bytes: Box<[u8]>,
}

#[derive(Pooled)]
struct Text(&'static str);

#[derive(Pooled)]
struct Object(u8, Box<dyn Send>);

fn main() {
    let slice = Slice { len: 1, bytes: Box::new([1]) }.pooled();
    assert_eq!(slice.len, slice.bytes.len());
    assert_eq!(Text("text").pooled().0, "text");
    let Object(number, _boxed) = &*Object(1, Box::new(())).pooled();
    assert_eq!(*number, 1);
}
