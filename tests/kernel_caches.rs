//! The order arithmetic against caches of a running kernel.
//!
//! The table was read off Linux 6.18 on a machine with two processors and pages of 4096 bytes. Another one with
//! the same columns can be given by `KERNEL_CACHES_CSV`.
#![forbid(unsafe_code)]

use sheaves::private::KernelShape;

/// Processors of the machine that the table was read off.
const CPUS: usize = 2;

#[test]
fn kernel_caches() {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernel-caches.csv");
    let path = std::env::var("KERNEL_CACHES_CSV").unwrap_or_else(|_| own.to_owned());
    let table = std::fs::read_to_string(&path).expect("the table can be read");
    let mut lines = table.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let column = |name| {
        header
            .iter()
            .position(|h| *h == name)
            .expect("a known column")
    };
    let columns = ["slab_size", "order", "objs_per_slab", "min_partial"].map(column);
    let mut rows = 0;
    for line in lines.filter(|line| !line.is_empty()) {
        let fields: Vec<&str> = line.split(',').collect();
        let [size, order, objects, min_partial] =
            columns.map(|column| fields[column].parse::<usize>().expect("a number"));
        let plan = KernelShape { size }.plan(CPUS);
        let expected = (
            u8::try_from(order).expect("a small order"),
            objects,
            min_partial,
        );
        assert_eq!(plan, Some(expected), "{line}");
        rows += 1;
    }
    assert!(rows > 0, "{path} has no rows");
    println!("{rows} caches agree");
}
