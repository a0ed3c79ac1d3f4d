//! What is live, told by where it comes from.

use sheaves::{DebugFlags, Pool, ReportKind};

use crate::support::{collect, reports_of, the_report_of};

#[inline(never)]
fn one_site(pool: &Pool<u64>) -> sheaves::PoolBox<u64> {
    pool.alloc(1)
}

#[inline(never)]
fn another_site(pool: &Pool<u64>) -> sheaves::PoolBox<u64> {
    pool.alloc(2)
}

#[test]
fn a_close_lists_live_objects_by_site_once() {
    collect();
    let pool = Pool::builder("leaky")
        .debug(DebugFlags::USER)
        .build()
        .unwrap();
    let mut kept: Vec<_> = (0..3).map(|_| one_site(&pool)).collect();
    kept.push(another_site(&pool));
    let pool = pool.close().unwrap_err().into_pool();
    let report = the_report_of("leaky");
    assert_eq!(report.kind(), ReportKind::Leak);
    let leaks = report.leaks().expect("a report of leaks has them");
    assert_eq!(leaks.len(), 4);
    let mut addresses: Vec<_> = kept
        .iter()
        .map(|object| sheaves::PoolBox::as_ptr(object).addr())
        .collect();
    addresses.sort_unstable();
    assert_eq!(
        leaks.iter().map(sheaves::Leak::address).collect::<Vec<_>>(),
        addresses
    );
    assert!(leaks.iter().all(|leak| leak.age().is_some()));
    let sites = leaks.by_site();
    assert_eq!(
        sites
            .iter()
            .map(|(_, leaks)| leaks.len())
            .collect::<Vec<_>>(),
        [3, 1]
    );
    assert!(
        sites[0].0.contains("one_site") && sites[1].0.contains("another_site"),
        "{leaks}"
    );
    let text = report.to_string();
    assert!(
        text.contains("4 live objects") && text.contains("3 from ") && text.contains(" old"),
        "{text}"
    );
    drop(kept);
    pool.close().unwrap();
    assert!(reports_of("leaky").is_empty());
}

#[test]
fn any_pool_lists_its_live_objects() {
    let pool = Pool::new("undebugged");
    let kept: Vec<_> = (0..500_u64).map(|i| pool.alloc(i)).collect();
    drop((0..500).map(|i| pool.alloc(i)).collect::<Vec<_>>());
    let leaks = pool.leaks();
    assert_eq!(leaks.len(), 500);
    assert!(
        leaks
            .iter()
            .zip(&kept)
            .all(|(leak, object)| leak.address() == sheaves::PoolBox::as_ptr(object).addr())
    );
    assert!(
        leaks
            .to_string()
            .starts_with("500 live objects\n  500 from unknown:"),
        "{leaks}"
    );
    assert_eq!(pool.validate(), 0);
    drop(kept);
    assert!(pool.leaks().is_empty());
    pool.close().unwrap();
}
