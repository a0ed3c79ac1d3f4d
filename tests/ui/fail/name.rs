use sheaves::Pooled;

#[derive(Pooled)]
#[pool(name = "")]
struct Empty;

#[derive(Pooled)]
#[pool(name = "io kiocb")]
struct Space;

#[derive(Pooled)]
#[pool(name = "io\tkiocb")]
struct Tab;

#[derive(Pooled)]
#[pool(name = "io\0")]
struct Control;

#[derive(Pooled)]
#[pool(name = "a234567890123456789012345678901234567890123456789012345678901234x")]
struct Long;

#[derive(Pooled)]
struct ATypeWhoseNameIsSoLongThatNoTableOfPoolsWouldEverShowItInOneColumn;

fn main() {}
