//! The numbers of a snapshot by their names.
#![forbid(unsafe_code)]

use core::fmt;

use super::counter::Stats;

macro_rules! gauges {
    ($($field:ident)*) => {
        impl Stats {
            /// The gauges, with their names.
            pub fn gauges(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($field), self.$field)),*].into_iter()
            }

            /// The gauge or counter of this name.
            pub(crate) fn field_mut(&mut self, name: &str) -> Option<&mut u64> {
                match name {
                    $(stringify!($field) => Some(&mut self.$field),)*
                    _ => self.counter_mut(name),
                }
            }
        }
    };
}

gauges! {
    live prefilled retired cached barn free transit slots slabs blocks bytes block_bytes locals
}

impl Stats {
    /// The part of the slots that nobody uses, in percent: in sheaves, in the barn, in slabs.
    ///
    /// ```
    /// let pool: sheaves::Pool<[u8; 1000]> = sheaves::Pool::new("few");
    /// let kept = pool.alloc([0; 1000]);
    /// assert!(pool.stats().unused_percent() > 90);
    /// # drop(kept);
    /// ```
    pub fn unused_percent(&self) -> u64 {
        let used = self.live + self.prefilled + self.transit;
        let unused = self.slots.saturating_sub(used);
        (unused * 100).checked_div(self.slots).unwrap_or(0)
    }
}

/// The gauges on one line, and the counters that are not 0 on the next.
///
/// ```
/// let pool = sheaves::Pool::new("shown");
/// let kept = pool.alloc(1_u64);
/// let text = pool.stats().to_string();
/// assert!(text.starts_with("live 1, prefilled 0, "));
/// assert!(text.contains("\nalloc_slowpath 1, alloc_slab 1, "));
/// # drop(kept);
/// ```
impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(f, self.gauges())?;
        let mut counters = self.counters().filter(|(_, value)| *value > 0).peekable();
        if counters.peek().is_some() {
            writeln!(f)?;
        }
        list(f, counters)
    }
}

fn list(
    f: &mut fmt::Formatter<'_>,
    fields: impl Iterator<Item = (&'static str, u64)>,
) -> fmt::Result {
    for (place, (name, value)) in fields.enumerate() {
        let comma = if place > 0 { ", " } else { "" };
        write!(f, "{comma}{name} {value}")?;
    }
    Ok(())
}
