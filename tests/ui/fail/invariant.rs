//! A pool takes values as well as it gives them, so its type can be neither widened nor narrowed.

use sheaves::{Pool, PrefilledSheaf};

fn shorter<'a>(pool: Pool<&'static str>) -> Pool<&'a str> {
    pool
}

fn longer<'a>(sheaf: PrefilledSheaf<&'a str>) -> PrefilledSheaf<&'static str> {
    sheaf
}

fn main() {
    let _ = (shorter, longer);
}
