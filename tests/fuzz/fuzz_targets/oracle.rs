//! The engine against its plain model, on operations that the fuzzer makes up.
//!
//! The input is a configuration and then operations of a fixed length, as `tests/oracle/op.rs` decodes them. The
//! harness is the property test's; only the source of the bytes differs.

#![no_main]

#[path = "../../oracle/atlas.rs"]
mod atlas;
#[path = "../../oracle/drive.rs"]
mod drive;
#[path = "../../oracle/engine.rs"]
mod engine;
#[path = "../../oracle/faulted.rs"]
mod faulted;
#[path = "../../oracle/judge.rs"]
mod judge;
#[path = "../../common/machine.rs"]
mod machine;
#[path = "../../oracle/model.rs"]
mod model;
#[path = "../../oracle/op.rs"]
mod op;
#[path = "../../oracle/slabs.rs"]
mod slabs;
#[path = "../../oracle/source.rs"]
mod source;
#[path = "../../oracle/steps.rs"]
mod steps;
#[path = "../../oracle/worker.rs"]
mod worker;

use libfuzzer_sys::fuzz_target;

use crate::op::{CONFIG_BYTES, Config, OP_BYTES, Op};

fuzz_target!(|bytes: &[u8]| {
    let Some((config, rest)) = bytes.split_first_chunk::<CONFIG_BYTES>() else {
        return;
    };
    let encoded = rest.chunks_exact(OP_BYTES);
    let ops: Vec<Op> = encoded
        .filter_map(|chunk| chunk.try_into().ok())
        .map(Op::decode)
        .collect();
    drive::run(&Config::decode(*config), &ops);
});
