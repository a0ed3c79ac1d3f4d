use sheaves::Pooled;

#[derive(Pooled)]
#[pool(order = large)]
struct Letter;

#[derive(Pooled)]
#[pool(sheaf_capacity = 256)]
struct Part;

#[derive(Pooled)]
#[pool(zero_on_free, align = natural)]
struct Case;

#[derive(Pooled)]
#[pool(name = "red")]
struct Foreign;

fn main() {}
