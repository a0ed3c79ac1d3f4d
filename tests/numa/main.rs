//! Pools on machines with several NUMA nodes, which are made up.

#[path = "../common/random.rs"]
mod random;

mod homes;
mod limits;
mod machines;
mod oracle;
mod support;
