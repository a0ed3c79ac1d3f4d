use sheaves::{Pool, PoolBox, Pooled};

#[derive(Pooled)]
#[pool(name = "kiocb", order = large, zero_on_free)]
#[pool(sheaf_capacity = 256, barn = (64, 64))]
#[pool(limit = 10, reserve = 5, debug = "FZ", align = 64)]
struct Kiocb {
    user_data: u64,
}

fn main() {
    let pool: &Pool<Kiocb> = Kiocb::pool();
    let boxed: PoolBox<Kiocb> = Kiocb { user_data: 5 }.pooled();
    assert_eq!((pool.name(), boxed.user_data), ("kiocb", 5));
    assert!(Kiocb::prefill(4).is_ok());
}
