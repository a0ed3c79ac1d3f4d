//! Pools as on a machine of one node, whatever the one is that runs the tests.

use sheaves::testing::Topology;
use sheaves::{Builder, Pool};

/// Builds a pool whose slabs and sheaves are counted.
pub(crate) fn on_one_node<T>(builder: Builder<T>) -> Pool<T> {
    let machine = Topology::new(&[("0", true)]).expect("a list of processors");
    machine.build(builder).expect("the options are possible")
}
