use sheaves::Pooled;

#[derive(Pooled)]
#[pool]
struct NoList;

#[derive(Pooled)]
#[pool = "syntax"]
struct NoParentheses;

#[derive(Pooled)]
#[pool[order = large]]
struct Brackets;

#[derive(Pooled)]
#[pool("syntax", order = large)]
struct NoKey;

#[derive(Pooled)]
#[pool(order: large, limit => 5)]
struct NoSign;

#[derive(Pooled)]
#[pool(order = large limit = 5)]
struct NoComma;

#[derive(Pooled)]
#[pool(order = large,, limit = 5)]
struct Commas;

fn main() {}
