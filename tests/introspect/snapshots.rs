//! Snapshots: of this process, through a file, through serde.

use core::time::Duration;
use std::path::PathBuf;
use std::sync::mpsc;

use sheaves::Pool;
use sheaves::export::{Exporter, PoolSnapshot, Snapshot};

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("sheaves-test-{name}-{}", std::process::id()))
}

fn of<'a>(snapshot: &'a Snapshot, name: &str) -> Option<&'a PoolSnapshot> {
    snapshot.pools.iter().find(|pool| pool.name == name)
}

#[test]
fn a_snapshot_has_every_number_of_a_pool() {
    let builder = Pool::<[u8; 240]>::builder("snapshot").limit(500);
    let pool = builder.sheaf_capacity(7).build().unwrap();
    let kept: Vec<_> = (0..100).map(|_| pool.alloc([0; 240])).collect();
    let snapshot = Snapshot::take();
    let shown = of(&snapshot, "snapshot").expect("it is there");
    let config = (
        shown.stride,
        shown.order,
        shown.slots_per_slab,
        shown.sheaf_capacity,
        shown.limit,
    );
    assert_eq!(config, (240, u64::from(pool.config().order()), 272, 7, 500));
    assert_eq!(shown.stats, pool.stats());
    assert_eq!(snapshot.to_string().parse(), Ok(snapshot.clone()));
    drop((kept, pool));
    assert_eq!(of(&Snapshot::take(), "snapshot"), None);
}

#[test]
fn another_version_is_read_as_far_as_it_goes() {
    let text =
        "sheaves-snapshot 1 pid=9 mood=fair time_ms=5\npool name=x=y live=3 colour=7 slots=4\n";
    let snapshot: Snapshot = text.parse().unwrap();
    assert_eq!((snapshot.pid, snapshot.time_ms), (9, 5));
    let pool = of(&snapshot, "x=y").expect("a name may have an equals sign");
    assert_eq!((pool.stats.live, pool.stats.slots, pool.stride), (3, 4, 0));
    for (text, line) in [
        ("", 1),
        ("slabinfo", 1),
        ("sheaves-snapshot 1\npond", 2),
        ("sheaves-snapshot 1\n\npool live=x", 2),
    ] {
        let error = text.parse::<Snapshot>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("line {line} ")), "{error}");
    }
}

#[test]
fn an_exporter_writes_until_it_is_dropped() {
    let path = file("exporter");
    let exporter = Exporter::start(&path, Duration::from_millis(10)).unwrap();
    assert_eq!(of(&Snapshot::read(&path).unwrap(), "late"), None);
    let pool = Pool::<u64>::new("late");
    while of(&Snapshot::read(&path).expect("whole at any time"), "late").is_none() {
        std::thread::yield_now();
    }
    drop(exporter);
    std::fs::remove_file(&path).unwrap();
    drop(pool);
    let nowhere = file("no-such-folder").join("file");
    assert!(Exporter::start(&nowhere, Duration::from_secs(1)).is_err());
    std::fs::write(&path, "no snapshot").unwrap();
    assert_eq!(
        Snapshot::read(&path).unwrap_err().kind(),
        std::io::ErrorKind::InvalidData
    );
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_slow_exporter_ends_at_once() {
    let path = file("slow");
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || {
        drop(Exporter::start(&path, Duration::from_secs(3600)).unwrap());
        std::fs::remove_file(&path).unwrap();
        done.send(()).unwrap();
    });
    wait.recv_timeout(Duration::from_secs(60))
        .expect("a drop does not wait for the interval");
}

#[test]
fn stats_are_shown_by_name() {
    let pool = Pool::<u64>::builder("named")
        .sheaf_capacity(4)
        .build()
        .unwrap();
    let kept = pool.alloc(1);
    let stats = pool.stats();
    let text = stats.to_string();
    for (name, value) in stats.gauges() {
        assert!(text.contains(&format!("{name} {value}")), "{text}");
    }
    assert!(stats.counters().any(|field| field == ("alloc_slab", 1)));
    assert!(
        !text.contains("order_fallback"),
        "what never happened is left out: {text}"
    );
    assert_eq!(stats.unused_percent(), 99);
    drop(kept);
}

#[cfg(feature = "serde")]
#[test]
fn serde_takes_snapshots_and_gives_them_back() {
    let pool = Pool::<u64>::new("serialized");
    let kept = pool.alloc(1);
    let snapshot = Snapshot::take();
    let json = serde_json::to_string(&snapshot).unwrap();
    assert_eq!(serde_json::from_str::<Snapshot>(&json).unwrap(), snapshot);
    let list = serde_json::to_value(sheaves::slabinfo()).unwrap();
    let pools = list.as_array().expect("a list of pools");
    let shown = pools
        .iter()
        .find(|pool| pool["name"] == "serialized")
        .expect("it is there");
    assert_eq!(
        (shown["stride"].as_u64(), shown["stats"]["live"].as_u64()),
        (Some(8), Some(1))
    );
    let stats: sheaves::Stats = serde_json::from_str(r#"{"live": 5}"#).unwrap();
    assert_eq!((stats.live, stats.slabs), (5, 0));
    drop(kept);
}
