//! Sequences on which a pool once did not do what the documentation says.
#![forbid(unsafe_code)]

use crate::drive::run;
use crate::op::{Config, Form, Op};

/// 13 objects to a slab, sheaves of four, and nothing else.
const PLAIN: Config = Config {
    size: 5000,
    sheaf_capacity: Some(4),
    barn: (0, 0),
    min_partial: 0,
    order: Some(0),
    limit: None,
    reserve: 0,
    zero_on_free: false,
    cache_line: false,
};

#[test]
fn a_bulk_of_none_does_nothing() {
    // It gave the thread a local.
    run(&PLAIN, &[Op::AllocBulk { thread: 0, n: 0 }]);
}

#[test]
fn a_slab_that_the_search_emptied_can_be_had_again() {
    // With the source dry, what another thread had parked was searched for. That emptied the one slab, which went
    // back to the source, and nobody asked for it again: memory was said to be out with none in use.
    let ops = [
        Op::Alloc {
            thread: 1,
            times: 1,
            form: Form::Value,
        },
        Op::Free {
            thread: 1,
            which: 0,
            times: 1,
        },
        Op::Memory { pages: Some(0) },
        Op::AllocBulk { thread: 0, n: 10 },
    ];
    run(&PLAIN, &ops);
}
