// Every mistake is told, and none causes another where the type is used.
use sheaves::{Pool, PoolBox, Pooled};

#[derive(Pooled)]
#[pool(name = "", order = huge, zero_on_free = true)]
#[pool(sheaf_capacity = "256", barn = (65, 65))]
#[pool(limit = 5, reserve = 10, debug = "XYZ", nam = "kiocb")]
struct Kiocb<T> {
    #[pool(align = 64)]
    user_data: T,
}

fn main() {
    let pool: &Pool<Kiocb<u64>> = Kiocb::pool();
    let boxed: PoolBox<Kiocb<u64>> = Kiocb { user_data: 5 }.pooled();
    let _ = (pool, boxed.user_data, Kiocb::<u64>::prefill(4));
}
