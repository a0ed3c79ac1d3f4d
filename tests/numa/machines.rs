//! What is made of the folder in which Linux tells of its nodes.

use std::fs;
use std::path::PathBuf;

use sheaves::testing::Topology;

/// A folder that is laid out as `/sys/devices/system/node`, and goes when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir().join(format!("sheaves-{name}-{}", std::process::id()));
        for (file, text) in files {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().expect("in the folder")).expect("a writable folder");
            fs::write(path, text).expect("a writable folder");
        }
        Self(folder)
    }

    fn nodes(&self) -> usize {
        Topology::read(&self.0).nodes()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const TWO: [(&str, &str); 6] = [
    ("online", "0,2\n"),
    ("has_memory", "0,2\n"),
    ("node0/cpulist", "0-3,8-11\n"),
    ("node0/distance", "10 21\n"),
    ("node2/cpulist", "4-7,12-15\n"),
    ("node2/distance", "21 10\n"),
];

/// The folder of two nodes with a file that says something else.
fn with(name: &str, file: &'static str, text: &'static str) -> usize {
    let mut files = TWO.to_vec();
    files.retain(|(other, _)| *other != file);
    files.push((file, text));
    Folder::new(name, &files).nodes()
}

fn without(name: &str, file: &str) -> usize {
    let files: Vec<_> = TWO
        .into_iter()
        .filter(|(other, _)| *other != file)
        .collect();
    Folder::new(name, &files).nodes()
}

#[test]
fn two_nodes_are_read() {
    assert_eq!(Folder::new("two", &TWO).nodes(), 2);
    assert_eq!(without("far", "node2/distance"), 2);
    assert_eq!(with("apart", "node2/distance", "near"), 2);
}

#[test]
fn a_node_without_memory_or_processors_may_count() {
    assert_eq!(with("memoryless", "has_memory", "0\n"), 2);
    assert_eq!(
        with("idle", "node2/cpulist", "\n"),
        1,
        "nobody stands there"
    );
}

#[test]
fn odd_folders_are_of_one_node() {
    for (at, (file, _)) in TWO
        .iter()
        .enumerate()
        .filter(|(_, (file, _))| !file.ends_with("distance"))
    {
        assert_eq!(without(&format!("without-{at}"), file), 1, "{file}");
        assert_eq!(with(&format!("odd-{at}"), file, "0-1:2/3,x"), 1, "{file}");
    }
    assert_eq!(with("none", "online", ""), 1);
    assert_eq!(with("gone", "online", "0,2-3"), 1, "there is no node 3");
    assert_eq!(with("nowhere", "has_memory", ""), 1);
    assert_eq!(
        with("twice", "node2/cpulist", "3-7"),
        1,
        "processor 3 is on two nodes"
    );
    assert_eq!(with("huge", "node2/cpulist", "4-4294967295"), 1);
}

/// Whatever this machine has, it is read without a panic.
#[test]
fn this_machine_is_read() {
    let nodes = Topology::read("/sys/devices/system/node").nodes();
    assert!((1..=64).contains(&nodes));
}

#[test]
fn more_nodes_than_are_told_apart_are_one() {
    let lists: Vec<String> = (0..65).map(|cpu| cpu.to_string()).collect();
    let nodes: Vec<(&str, bool)> = lists.iter().map(|list| (list.as_str(), true)).collect();
    assert_eq!(Topology::new(&nodes[..64]).unwrap().nodes(), 64);
    assert_eq!(Topology::new(&nodes).unwrap().nodes(), 1);
    assert!(Topology::new(&[("0;1", true)]).is_none());
}
