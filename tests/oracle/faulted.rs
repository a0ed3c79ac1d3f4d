//! Calls that are told to fail: the first thing that each allocates is refused, and nothing changes.
#![forbid(unsafe_code)]

use sheaves::Fault;

use crate::engine::{Action, Answer, Engine};

/// Kinds of calls that allocate.
const KINDS: usize = 4;

/// A call with a fault in the pool, which takes it away again. The gates of all threads are shut for it and opened
/// after it, with slots in their sheaves.
pub(crate) fn apply<const N: usize>(engine: &mut Engine<N>, what: usize, n: usize) -> Answer {
    let action = match what % KINDS {
        0 => Action::Alloc {
            form: crate::op::Form::Value,
            serial: 0,
        },
        1 => Action::AllocNow { serial: 0 },
        2 => Action::AllocBulk {
            n: n + 1,
            serial: 0,
        },
        _ => Action::Prefill { n },
    };
    engine.handles[0].set_fault(Some(Fault::every(1)));
    let answer = engine.apply(action);
    engine.handles[0].set_fault(None);
    answer
}
