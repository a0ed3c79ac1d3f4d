use sheaves::Pooled;

#[derive(Pooled)]
struct NoList;

#[derive(Pooled)]
#[pool(name = "syntax")]
struct NoParentheses;

#[derive(Pooled)]
#[pool(order = large)]
struct Brackets;

#[derive(Pooled)]
#[pool(name = "syntax", order = large)]
struct NoKey;

#[derive(Pooled)]
#[pool(order = large, limit = 5)]
struct NoSign;

#[derive(Pooled)]
#[pool(order = large, limit = 5,)]
struct NoComma;

#[derive(Pooled)]
#[pool()]
struct Commas;

fn main() {}
