//! The `metrics` facade, with a recorder that remembers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString,
    Unit,
};
use sheaves::Pool;

#[derive(Debug, Default)]
struct Memory(Mutex<HashMap<String, f64>>);

#[derive(Debug)]
struct Place(Arc<Memory>, String);

impl Place {
    fn set(&self, value: f64) {
        let mut all = self.0.0.lock().expect("no panic before");
        all.insert(self.1.clone(), value);
    }
}

impl CounterFn for Place {
    fn increment(&self, _: u64) {
        unreachable!("counters are absolute");
    }

    fn absolute(&self, value: u64) {
        self.set(value as f64);
    }
}

impl GaugeFn for Place {
    fn increment(&self, _: f64) {
        unreachable!("gauges are set");
    }

    fn decrement(&self, _: f64) {
        unreachable!("gauges are set");
    }

    fn set(&self, value: f64) {
        Place::set(self, value);
    }
}

struct Memorizer(Arc<Memory>);

impl Memorizer {
    fn place(&self, key: &Key) -> Arc<Place> {
        let labels: Vec<_> = key
            .labels()
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        Arc::new(Place(
            Arc::clone(&self.0),
            format!("{} {}", key.name(), labels.join(",")),
        ))
    }
}

impl Recorder for Memorizer {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.place(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.place(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        unreachable!("there are none")
    }
}

#[test]
fn every_number_is_recorded_with_the_pools_name() {
    let pool = Pool::<u64>::new("recorded");
    let kept = pool.alloc(1);
    let memory = Arc::new(Memory::default());
    metrics::with_local_recorder(
        &Memorizer(Arc::clone(&memory)),
        sheaves::export::record_metrics,
    );
    let all = memory.0.lock().unwrap();
    let stats = pool.stats();
    for (name, value) in stats.gauges().chain(stats.counters()) {
        assert_eq!(
            all.get(&format!("sheaves_{name} pool=recorded")),
            Some(&(value as f64)),
            "{name}"
        );
    }
    drop(kept);
}
