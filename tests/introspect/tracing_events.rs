//! Events of the `tracing` crate.

use core::fmt::Write;
use std::sync::Mutex;

use sheaves::{AllocErrorKind, DebugFlags, Pool, PoolBox};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Collector;

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn core::fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).expect("a string takes all");
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "sheaves"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(event.metadata().level().to_string());
        event.record(&mut text);
        TOLD.lock().expect("no panic before").push(text.0);
    }

    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn told(words: &[&str]) -> bool {
    let told = TOLD.lock().expect("no panic before");
    told.iter()
        .any(|text| words.iter().all(|word| text.contains(word)))
}

#[test]
fn pools_slabs_searches_and_reports_are_told() {
    tracing::subscriber::set_global_default(Collector).unwrap();
    sheaves::set_report_hook(Box::new(|_| {}));
    let builder = Pool::<[u8; 64]>::builder("traced").limit(1);
    let pool = builder.debug(DebugFlags::SANITY).build().unwrap();
    assert!(told(&["DEBUG", "pool built", "traced", "slot=64"]));
    let raw = PoolBox::into_raw(pool.alloc([0; 64]));
    assert!(told(&["TRACE", "slabs gathered", "traced", "all=true"]));
    assert_eq!(
        pool.try_alloc([0; 64]).unwrap_err().kind(),
        AllocErrorKind::LimitReached
    );
    assert!(told(&["DEBUG", "limit reached", "traced", "limit=1"]));
    for _ in 0..2 {
        // SAFETY: none, the second time: this is the fault to be told.
        drop(unsafe { PoolBox::from_raw(raw) });
    }
    assert!(told(&["WARN", "object is already free", "traced"]));
    pool.shrink();
    assert!(told(&["DEBUG", "pool shrunk", "traced", "bytes=65536"]));
    #[cfg(feature = "rcu")]
    batches_are_told();
}

/// One event for each batch that was reaped.
#[cfg(feature = "rcu")]
fn batches_are_told() {
    let pool = Pool::builder("reaped").sheaf_capacity(8).build().unwrap();
    // One batch is full, the other is what was left.
    let guard = sheaves::rcu::pin();
    (0..11_u64).for_each(|i| PoolBox::retire(pool.alloc(i)));
    drop(guard);
    pool.rcu_barrier().unwrap();
    assert!(told(&[
        "TRACE",
        "retired objects reaped",
        "reaped",
        "nr_records=8"
    ]));
    assert!(told(&[
        "TRACE",
        "retired objects reaped",
        "reaped",
        "nr_records=3"
    ]));
}
