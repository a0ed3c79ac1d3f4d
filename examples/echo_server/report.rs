//! What a run has found.

#![forbid(unsafe_code)]

use core::fmt::Write;
use core::time::Duration;

use super::server::Tally;

/// The figures of one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// Messages that came back.
    pub(crate) messages: u64,
    /// From the first message to the last.
    pub(crate) elapsed: Duration,
    pub(crate) tally: Tally,
}

/// The middle one of an odd number of values, the upper of the two middle ones of an even number.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[expect(clippy::cast_precision_loss, reason = "for people to read")]
fn per_message(rounds: &[Round], time: impl Fn(&Round) -> Duration) -> f64 {
    let each = |round: &Round| time(round).as_nanos() as f64 / round.messages.max(1) as f64;
    median(rounds.iter().map(each).collect())
}

/// One contender's line.
fn line(text: &mut String, name: &str, rounds: &[Round], base: f64) -> f64 {
    let wall = per_message(rounds, |round| round.elapsed);
    let server = per_message(rounds, |round| round.tally.busy);
    let slowest = median(
        rounds
            .iter()
            .map(|round| round.tally.account.slowest.as_secs_f64() * 1e3)
            .collect(),
    );
    let base = if base.is_nan() { server } else { base };
    let _ = writeln!(
        text,
        "{name:<8} {:>12.0} {server:>20.0} {:>10.3} {slowest:>18.2}",
        1e9 / wall,
        server / base
    );
    base
}

/// Box before, pools after.
pub(crate) fn table(by_box: &[Round], by_pool: &[Round]) -> String {
    let mut text = format!(
        "{:<8} {:>12} {:>20} {:>10} {:>18}\n",
        "objects", "messages/s", "server ns a message", "to box", "slowest request ms"
    );
    let base = line(&mut text, "box", by_box, f64::NAN);
    line(&mut text, "pool", by_pool, base);
    text
}
