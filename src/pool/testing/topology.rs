//! Machines of several NUMA nodes, made up for tests.
#![forbid(unsafe_code)]

use std::path::Path;

use super::Pool;
use crate::base::error::BuildError;
use crate::base::topology;
use crate::pool::Builder;

/// The NUMA nodes of a machine that need not be there: pools that are [built on it](Topology::build) keep slabs and
/// sheaves for each of its nodes, and a thread draws on those of the node that a test [puts it on](Topology::stand_on).
///
/// ```
/// use sheaves::Pool;
/// use sheaves::testing::{NodeStats, Topology};
///
/// let machine = Topology::new(&[("0-1", true), ("2-3", true)]).expect("lists of processors");
/// let pool: Pool<u64> = machine.build(Pool::builder("numbers"))?;
/// Topology::stand_on(0);
/// let number = pool.alloc(7);
/// Topology::stand_on(2);
/// drop(number); // into a sheaf of this thread
/// pool.flush_thread();
/// let [home, other] = NodeStats::of(&pool)[..] else { panic!("two nodes") };
/// assert_eq!((home.slabs, home.free), (1, home.slots));
/// assert_eq!(other.slabs, 0);
/// # Ok::<(), sheaves::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Topology(topology::Topology);

/// What a pool has on one NUMA node: gauges, as in [`Stats`](crate::Stats).
///
/// ```
/// use sheaves::testing::NodeStats;
///
/// let pool = sheaves::Pool::new("numbers");
/// let _number = pool.alloc(7_u64);
/// let of_nodes = NodeStats::of(&pool);
/// assert_eq!(of_nodes.iter().map(|node| node.slabs).sum::<u64>(), 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeStats {
    /// Slots of the slabs that belong to the node.
    pub slots: u64,
    /// Those of them that are free in their slabs.
    pub free: u64,
    /// Slabs that belong to the node.
    pub slabs: u64,
    /// Free slots in the barn of the node.
    pub barn: u64,
}

impl NodeStats {
    /// What a pool has on each node, in their order; of one entry where there is one node.
    pub fn of<T>(pool: &Pool<T>) -> Vec<Self> {
        let of_nodes = pool.handle().cache().stats_of_nodes();
        let node = |gauges: [usize; 4]| {
            let [slots, free, slabs, barn] = gauges.map(|gauge| gauge as u64);
            Self {
                slots,
                free,
                slabs,
                barn,
            }
        };
        of_nodes.map(node).collect()
    }
}

impl Topology {
    /// A machine of these nodes: each with its processors, as a list such as `0-1,3`, and whether it has memory. The
    /// further apart nodes stand in the list the greater is the distance between them.
    ///
    /// A node without memory gets that of the nearest which has some. A node without processors counts only if it is
    /// the nearest with memory for one that has them. Where fewer than two nodes have processors, where none has
    /// memory, or where a processor is on two nodes, there is one node. `None` if a list is none.
    ///
    /// ```
    /// use sheaves::testing::Topology;
    ///
    /// let machine = Topology::new(&[("0", true), ("1", false), ("2", true), ("", true)]).expect("lists");
    /// assert_eq!(machine.nodes(), 3);
    /// Topology::stand_on(1);
    /// assert_eq!(machine.here(), (1, 0), "the nearest with memory");
    /// ```
    pub fn new(nodes: &[(&str, bool)]) -> Option<Self> {
        topology::Topology::made_up(nodes).map(Self)
    }

    /// The machine that a folder tells of which is laid out as Linux's `/sys/devices/system/node`; of one node where
    /// that makes no sense. Threads stand where the system runs them.
    ///
    /// ```
    /// use sheaves::testing::Topology;
    ///
    /// assert_eq!(Topology::read("/no/such/folder").nodes(), 1);
    /// ```
    pub fn read(folder: impl AsRef<Path>) -> Self {
        Self(topology::Topology::read(folder.as_ref()))
    }

    /// How many nodes count.
    pub fn nodes(&self) -> usize {
        self.0.nodes()
    }

    /// The node on which the running thread stands, and the one whose memory it gets there.
    pub fn here(&self) -> (usize, usize) {
        (self.0.here(), self.0.home())
    }

    /// Builds a pool on this machine. The thread that builds it decides which node has its reserve.
    ///
    /// # Errors
    ///
    /// As [`Builder::build`].
    pub fn build<T>(&self, builder: Builder<T>) -> Result<Pool<T>, BuildError> {
        builder.topology(self.0.clone()).build()
    }

    /// Puts the running thread on a processor of all machines that were made up by [`Topology::new`]; threads start on
    /// processor 0. One that no node has counts as the first node's.
    pub fn stand_on(cpu: usize) {
        topology::stand_on(cpu);
    }
}
