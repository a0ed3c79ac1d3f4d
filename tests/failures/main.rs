//! Kinds of failure that broke pools like this one, each with a test that would have told.
//!
//! `docs/VERIFICATION.md` is the table of kinds. What the other test binaries show is not shown here again.

mod blocks;
mod depth;
mod edges;
mod glue;
mod hooks;
mod hostile;
#[path = "../common/isolated.rs"]
mod isolated;
#[path = "../common/machine.rs"]
mod machine;
mod section;
mod signals;
mod sources;
mod support;
#[path = "../common/watchdog.rs"]
mod watchdog;
