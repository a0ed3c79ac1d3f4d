//! What is shown: snapshots, and what changed between two.

use std::collections::{HashMap, VecDeque};

use sheaves::export::{PoolSnapshot, Snapshot};

use crate::args::Sort;

/// Points of a sparkline that are kept.
const HISTORY: usize = 200;

/// One line of the list.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) pool: PoolSnapshot,
    /// Allocations and frees a second.
    pub(crate) activity: f64,
    /// The share of them on the fast path, if those are counted.
    pub(crate) fast: Option<f64>,
    /// Activities, oldest first.
    pub(crate) history: Vec<f64>,
}

impl Row {
    /// Slots that nobody uses, in percent.
    pub(crate) fn unused(&self) -> u64 {
        self.pool.stats.unused_percent()
    }
}

/// The list, and what is remembered of it.
#[derive(Debug, Default)]
pub(crate) struct Model {
    last: Snapshot,
    histories: HashMap<String, VecDeque<f64>>,
    pub(crate) rows: Vec<Row>,
}

/// Operations so far: all, and those on the fast path.
fn operations(pool: &PoolSnapshot) -> (u64, u64) {
    let s = &pool.stats;
    let fast = s.alloc_fastpath + s.free_fastpath;
    (fast + s.alloc_slowpath + s.free_slowpath, fast)
}

impl Model {
    pub(crate) fn pid(&self) -> u32 {
        self.last.pid
    }

    /// Whether fast paths are counted, which takes the feature `op-counters`.
    pub(crate) fn counts_fast_paths(&self) -> bool {
        self.last.pools.iter().any(|pool| operations(pool).1 > 0)
    }

    /// Takes in a new snapshot.
    pub(crate) fn update(&mut self, new: Snapshot) {
        if new.pid != self.last.pid {
            self.histories.clear();
            self.last = Snapshot::default();
        }
        let elapsed = new.time_ms.saturating_sub(self.last.time_ms);
        if elapsed == 0 && !self.rows.is_empty() {
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "for people to read")]
        let seconds = elapsed as f64 / 1000.0;
        let counted = new.pools.iter().any(|pool| operations(pool).1 > 0);
        self.rows = new
            .pools
            .iter()
            .map(|pool| self.row(pool, seconds, counted))
            .collect();
        self.last = new;
    }

    fn row(&mut self, pool: &PoolSnapshot, seconds: f64, counted: bool) -> Row {
        let before = self.last.pools.iter().find(|old| old.name == pool.name);
        let (all, fast) = operations(pool);
        let (all_before, fast_before) = before.map_or((all, fast), operations);
        let all = all.saturating_sub(all_before);
        let fast = fast.saturating_sub(fast_before);
        #[expect(clippy::cast_precision_loss, reason = "for people to read")]
        let (all, fast) = (all as f64, fast as f64);
        let activity = if seconds > 0.0 { all / seconds } else { 0.0 };
        let history = self.histories.entry(pool.name.clone()).or_default();
        history.push_back(activity);
        if history.len() > HISTORY {
            history.pop_front();
        }
        Row {
            pool: pool.clone(),
            activity,
            fast: (counted && all > 0.0).then(|| fast / all),
            history: history.iter().copied().collect(),
        }
    }

    /// Sorts the list, largest first but for names.
    pub(crate) fn sort(&mut self, sort: Sort, reverse: bool) {
        self.rows.sort_by(|a, b| {
            let order = match sort {
                Sort::Name => a.pool.name.cmp(&b.pool.name),
                Sort::Bytes => b.pool.stats.bytes.cmp(&a.pool.stats.bytes),
                Sort::Activity => b.activity.total_cmp(&a.activity),
                Sort::Fast => b.fast.unwrap_or(0.0).total_cmp(&a.fast.unwrap_or(0.0)),
                Sort::Unused => b.unused().cmp(&a.unused()),
            };
            let order = order.then_with(|| a.pool.name.cmp(&b.pool.name));
            if reverse { order.reverse() } else { order }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(time_ms: u64, slow: u64, fast: u64) -> Snapshot {
        let text = format!(
            "sheaves-snapshot 1 pid=7 time_ms={time_ms}\npool name=a bytes=10 slots=4 live=1 alloc_slowpath={slow} \
             alloc_fastpath={fast}\npool name=b bytes=20\n"
        );
        text.parse().unwrap()
    }

    #[test]
    fn rates_are_of_the_time_between_two_snapshots() {
        let mut model = Model::default();
        model.update(snapshot(1000, 100, 300));
        assert_eq!(model.rows[0].activity, 0.0);
        model.update(snapshot(1500, 110, 390));
        let row = &model.rows[0];
        assert_eq!(
            (row.activity, row.fast, row.unused()),
            (200.0, Some(0.9), 75)
        );
        assert_eq!(row.history, [0.0, 200.0]);
        model.sort(Sort::Bytes, false);
        assert_eq!(model.rows[0].pool.name, "b");
        model.sort(Sort::Name, false);
        assert_eq!(model.rows[0].pool.name, "a");
        model.sort(Sort::Activity, true);
        assert_eq!(model.rows[0].pool.name, "b");
    }
}
