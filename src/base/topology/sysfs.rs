//! What Linux tells of its nodes.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use super::{MAX_CPUS, NodeInfo};

/// Where Linux tells of its nodes.
pub(super) const SYSFS: &str = "/sys/devices/system/node";

/// Whether the machine has one node, or tells of none. Needs no memory, so that the first pool can be built, or
/// refused, where there is none.
pub(super) fn is_single() -> bool {
    let mut list = [0; 64];
    let online = File::open("/sys/devices/system/node/online");
    let len = online.and_then(|mut online| online.read(&mut list));
    let len = len.unwrap_or(0);
    list[..len].trim_ascii().iter().all(u8::is_ascii_digit)
}

/// The nodes of a folder that is laid out as `/sys/devices/system/node`; `None` where that makes no sense.
pub(super) fn read_nodes(sysfs: &Path) -> Option<Vec<NodeInfo>> {
    let read = |name: String| fs::read_to_string(sysfs.join(name)).ok();
    let online = parse_list(&read("online".into())?)?;
    let with_memory = parse_list(&read("has_memory".into())?)?;
    let node = |id: &usize| {
        let distances = read(format!("node{id}/distance")).unwrap_or_default();
        Some(NodeInfo {
            cpus: parse_list(&read(format!("node{id}/cpulist"))?)?,
            has_memory: with_memory.contains(id),
            distances: distances
                .split_whitespace()
                .map(|distance| distance.parse().unwrap_or(usize::MAX))
                .collect(),
        })
    };
    online.iter().map(node).collect()
}

/// A list of numbers as Linux writes it, such as `0-1,3`, in rising order; an empty one is a list too. `None` for
/// anything else.
pub(super) fn parse_list(text: &str) -> Option<Vec<usize>> {
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number: usize = digits.then(|| text.parse().ok())??;
        (number < MAX_CPUS).then_some(number)
    };
    let mut list: Vec<usize> = Vec::new();
    let text = text.trim();
    for range in text.split(',').filter(|_| !text.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (number(first)?, number(last)?);
        if first > last || list.last().is_some_and(|before| *before >= first) {
            return None;
        }
        list.extend(first..=last);
    }
    Some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_linux_writes_them() {
        let some = |list: &[usize]| Some(list.to_vec());
        for (text, list) in [
            ("0\n", some(&[0])),
            ("0-1,3", some(&[0, 1, 3])),
            ("0-2,4-5,7\n", some(&[0, 1, 2, 4, 5, 7])),
            ("5-5", some(&[5])),
            ("", some(&[])),
            ("\n", some(&[])),
            (",", None),
            ("0,", None),
            ("-1", None),
            ("1-", None),
            ("3-1", None),
            ("0-3,2", None),
            ("0,0", None),
            ("+1", None),
            ("0x1", None),
            ("0-31:1/2", None),
            ("all", None),
            ("0-18446744073709551615", None),
            ("99999999999999999999999", None),
            ("65536", None),
        ] {
            assert_eq!(parse_list(text), list, "{text:?}");
        }
    }
}
