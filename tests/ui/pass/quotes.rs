use sheaves::Pooled;

#[derive(Pooled)]
#[pool(sheaf_capacity = 256, limit = 1_000)]
struct Number;

#[derive(Pooled)]
#[pool(order = large, align = cache_line, barn = (10, 10))]
struct Word;

#[derive(Pooled)]
#[pool(crate = sheaves)]
struct Crate;

#[derive(Pooled)]
#[pool(name = "io_kiocb", debug = "FP")]
struct Text;

#[derive(Pooled)]
#[pool(name = r#"io_kiocb"#, debug = "F")]
struct OtherText;

#[derive(Pooled)]
#[pool(order = max, min_partial = 5)]
struct QuotedAndWrong;

fn main() {}
