use sheaves::Pooled;

#[derive(Pooled)]
#[pool(name = "x")]
struct Empty;

#[derive(Pooled)]
#[pool(name = "io-kiocb")]
struct Space;

#[derive(Pooled)]
#[pool(name = "io:kiocb")]
struct Tab;

#[derive(Pooled)]
#[pool(name = "io0")]
struct Control;

#[derive(Pooled)]
#[pool(name = "a234567890123456789012345678901234567890123456789012345678901234")]
struct Long;

#[derive(Pooled)]
#[pool(name = "long")]
struct ATypeWhoseNameIsSoLongThatNoTableOfPoolsWouldEverShowItInOneColumn;

fn main() {}
