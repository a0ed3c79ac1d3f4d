//! The NUMA nodes of the machine: which node a processor belongs to, and which node's memory it is given.
//!
//! A *node* is here what has a barn and a set of slabs in each cache. Its *home* is the node whose slabs its threads
//! draw on: itself, or, where it has no memory, the nearest that has some, as the system chooses memory too. A node
//! without processors counts only if it is the home of one that has them: nobody stands there, and nothing binds
//! memory to it.
//!
//! Where the system tells of one node, of none, or nothing that makes sense, there is one node, and nobody asks where
//! a thread stands.
#![forbid(unsafe_code)]

mod sysfs;

use std::path::Path;

use sysfs::{SYSFS, is_single, parse_list, read_nodes};

use crate::sync::{Arc, AtomicUsize, Cell, OnceLock, Ordering, current_cpu, thread_local};

/// Nodes that are told apart at most. There are larger machines, which are then used as one node.
pub(crate) const MAX_NODES: usize = 64;

/// Processors that are told apart at most: eight times what Linux can be built for.
const MAX_CPUS: usize = 1 << 16;

/// Makes nodes up for tests of this crate: the number of them. Threads wander between these.
const VARIABLE: &str = "SHEAVES_NODES";

/// Times that a wandering thread is asked for its node before it stands on the next.
const STEPS: usize = 5;

/// The nodes that pools know of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topology(Option<Arc<Map>>);

#[derive(Debug)]
struct Map {
    /// The node of each processor.
    of_cpu: Box<[u8]>,
    /// The home of each node.
    homes: Box<[u8]>,
    standing: Standing,
}

/// Where threads stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Where the system runs them.
    Real,
    /// Where a test has put them, see [`stand_on`].
    Told,
    /// On one node after the other.
    Wandering,
}

/// What is known of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeInfo {
    pub(crate) cpus: Vec<usize>,
    pub(crate) has_memory: bool,
    /// To each node, in the same order.
    pub(crate) distances: Vec<usize>,
}

thread_local! {
    /// The processor that a test has put the thread on.
    static TOLD: Cell<usize> = const { Cell::new(0) };
    /// How often a wandering thread was asked for its node, and 0 before.
    static WALKED: Cell<usize> = const { Cell::new(0) };
}

impl Topology {
    /// The machine's.
    pub(crate) fn system() -> Self {
        static SYSTEM: OnceLock<Topology> = OnceLock::new();
        SYSTEM
            .get_or_init(|| match Self::wandering() {
                Some(wandering) => wandering,
                None if is_single() => Self::default(),
                None => Self::read(Path::new(SYSFS)),
            })
            .clone()
    }

    /// What a folder says that is laid out as Linux's.
    pub(crate) fn read(sysfs: &Path) -> Self {
        read_nodes(sysfs).map_or_else(Self::default, |nodes| Self::of(&nodes, Standing::Real))
    }

    /// Nodes that the environment makes up.
    fn wandering() -> Option<Self> {
        let count: usize = std::env::var(VARIABLE).ok()?.parse().ok()?;
        let node = |cpu| NodeInfo {
            cpus: vec![cpu],
            has_memory: true,
            distances: Vec::new(),
        };
        let nodes: Vec<NodeInfo> = (0..count.min(MAX_NODES)).map(node).collect();
        Some(Self::of(&nodes, Standing::Wandering))
    }

    /// Nodes with these processors, with memory or without; the further apart they stand in the list the greater is
    /// the distance between them. Threads stand where a test puts them.
    pub(crate) fn made_up(nodes: &[(&str, bool)]) -> Option<Self> {
        let node = |(at, (cpus, has_memory)): (usize, &(&str, bool))| {
            Some(NodeInfo {
                cpus: parse_list(cpus)?,
                has_memory: *has_memory,
                distances: (0..nodes.len()).map(|other| at.abs_diff(other)).collect(),
            })
        };
        let nodes: Vec<NodeInfo> = nodes.iter().enumerate().map(node).collect::<Option<_>>()?;
        Some(Self::of(&nodes, Standing::Told))
    }

    /// One node where these make no sense.
    pub(crate) fn of(nodes: &[NodeInfo], standing: Standing) -> Self {
        Self(Map::of(nodes, standing).map(Arc::new))
    }

    /// How many nodes there are.
    pub(crate) fn nodes(&self) -> usize {
        self.0.as_ref().map_or(1, |map| map.homes.len())
    }

    /// The node that the running thread stands on: at any moment it may move to another.
    #[inline]
    pub(crate) fn here(&self) -> usize {
        self.0.as_ref().map_or(0, |map| map.here())
    }

    /// The home of the node that the running thread stands on.
    #[inline]
    pub(crate) fn home(&self) -> usize {
        self.0
            .as_ref()
            .map_or(0, |map| map.homes[map.here()].into())
    }
}

impl Map {
    fn of(nodes: &[NodeInfo], standing: Standing) -> Option<Self> {
        let homes: Vec<Option<usize>> = (0..nodes.len())
            .map(|node| home_of(nodes, node))
            .collect::<Option<_>>()?;
        let counts = |node: &usize| homes[*node].is_some() || homes.contains(&Some(*node));
        let kept: Vec<usize> = (0..nodes.len()).filter(counts).collect();
        // One node with processors is alone, even if its home is another.
        if kept.len() > MAX_NODES || homes.iter().flatten().count() < 2 {
            return None;
        }
        let place = |node: usize| {
            let at = kept.iter().position(|kept| *kept == node)?;
            u8::try_from(at).ok()
        };
        let cpus = nodes.iter().flat_map(|node| &node.cpus);
        let last = *cpus.max().filter(|last| **last < MAX_CPUS)?;
        let mut of_cpu = vec![None; last + 1];
        for (node, info) in nodes.iter().enumerate() {
            for cpu in &info.cpus {
                if of_cpu[*cpu].replace(place(node)?).is_some() {
                    return None;
                }
            }
        }
        let home = |node: &usize| place(homes[*node].unwrap_or(*node));
        Some(Self {
            of_cpu: of_cpu.into_iter().map(Option::unwrap_or_default).collect(),
            homes: kept.iter().map(home).collect::<Option<_>>()?,
            standing,
        })
    }

    #[cold]
    fn here(&self) -> usize {
        let cpu = match self.standing {
            Standing::Real => current_cpu(),
            Standing::Told => TOLD.get(),
            Standing::Wandering => walk() % self.of_cpu.len(),
        };
        // A processor that came later belongs to the first node.
        self.of_cpu.get(cpu).copied().unwrap_or(0).into()
    }
}

/// The nearest node with memory for one that has processors; none for one that has not, and `None` if no node has
/// memory.
fn home_of(nodes: &[NodeInfo], node: usize) -> Option<Option<usize>> {
    let info = &nodes[node];
    if info.cpus.is_empty() {
        return Some(None);
    }
    let distance = |other: &usize| match info.distances.get(*other) {
        _ if *other == node => 0,
        Some(distance) => *distance,
        None => usize::MAX,
    };
    let with_memory = (0..nodes.len()).filter(|other| nodes[*other].has_memory);
    with_memory.min_by_key(distance).map(Some)
}

/// Puts the running thread on a processor of the nodes that tests make up.
pub(crate) fn stand_on(cpu: usize) {
    TOLD.set(cpu);
}

/// A step of a wandering thread; threads start on one node after the other.
fn walk() -> usize {
    let mut walked = WALKED.get();
    if walked == 0 {
        walked = next_thread().wrapping_mul(STEPS);
    }
    WALKED.set(walked.wrapping_add(1).max(1));
    walked / STEPS
}

#[cfg(not(all(loom, any(test, feature = "loom"))))]
fn next_thread() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: nothing is ordered by a count.
    THREADS.fetch_add(1, Ordering::Relaxed)
}

// loom's atomics are not made in constants.
#[cfg(all(loom, any(test, feature = "loom")))]
fn next_thread() -> usize {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(cpus: &str, has_memory: bool, distances: &[usize]) -> NodeInfo {
        NodeInfo {
            cpus: parse_list(cpus).expect("a list"),
            has_memory,
            distances: distances.to_vec(),
        }
    }

    /// The nodes of processors 0, 1, 2 ..., and the homes of nodes.
    fn map(nodes: &[NodeInfo]) -> Option<(Vec<u8>, Vec<u8>)> {
        let map = Map::of(nodes, Standing::Told)?;
        Some((map.of_cpu.into(), map.homes.into()))
    }

    #[test]
    fn nodes_with_processors_and_memory_are_their_own_homes() {
        let nodes = [node("0,2", true, &[10, 20]), node("1,3", true, &[20, 10])];
        assert_eq!(map(&nodes), Some((vec![0, 1, 0, 1], vec![0, 1])));
    }

    #[test]
    fn a_node_without_memory_has_the_nearest_as_its_home() {
        let nodes = [
            node("0", true, &[10, 40, 20, 40]),
            node("1", false, &[40, 10, 40, 20]),
            node("2", true, &[20, 40, 10, 40]),
            node("3", true, &[40, 20, 40, 10]),
        ];
        assert_eq!(map(&nodes), Some((vec![0, 1, 2, 3], vec![0, 3, 2, 3])));
        let mut unknown = nodes.to_vec();
        unknown[1].distances.clear();
        assert_eq!(map(&unknown), Some((vec![0, 1, 2, 3], vec![0, 0, 2, 3])));
    }

    #[test]
    fn a_node_without_processors_counts_if_it_is_a_home() {
        let far = node("", true, &[40, 40, 10]);
        let nodes = [
            node("0", true, &[10, 20, 40]),
            node("1", true, &[20, 10, 40]),
            far.clone(),
        ];
        assert_eq!(map(&nodes), Some((vec![0, 1], vec![0, 1])));
        let nodes = [node("0", false, &[]), node("1", false, &[]), far];
        assert_eq!(map(&nodes), Some((vec![0, 1], vec![2, 2, 2])));
    }

    #[test]
    fn what_makes_no_sense_is_one_node() {
        let one = node("0-3", true, &[10]);
        for nodes in [
            vec![],
            vec![one.clone()],
            // Two in one place, no memory, no processors, too many of either.
            vec![one.clone(), one.clone()],
            vec![node("0", false, &[]), node("1", false, &[])],
            vec![node("", true, &[]), node("", true, &[])],
            vec![node("0", true, &[]), node("", true, &[])],
            vec![node("0", false, &[]), node("", true, &[])],
            (0..=MAX_NODES)
                .map(|cpu| node(&cpu.to_string(), true, &[]))
                .collect(),
        ] {
            assert_eq!(map(&nodes), None, "{nodes:?}");
        }
        let most: Vec<NodeInfo> = (0..MAX_NODES)
            .map(|cpu| node(&cpu.to_string(), true, &[]))
            .collect();
        assert!(map(&most).is_some());
    }

    #[test]
    fn a_folder_that_is_not_there_is_one_node() {
        assert_eq!(Topology::read(Path::new("/nowhere")).nodes(), 1);
    }
}
