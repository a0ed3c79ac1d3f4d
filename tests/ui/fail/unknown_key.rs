use sheaves::Pooled;

#[derive(Pooled)]
#[pool(oder = large)]
struct Letter;

#[derive(Pooled)]
#[pool(capacity = 256)]
struct Part;

#[derive(Pooled)]
#[pool(zeroOnFree, Align = natural)]
struct Case;

#[derive(Pooled)]
#[pool(colour = "red")]
struct Foreign;

fn main() {}
