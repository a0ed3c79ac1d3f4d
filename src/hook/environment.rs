//! Debugging by the environment: `SHEAVES_DEBUG` and `SHEAVES_FAULT`.
//!
//! ```text
//! SHEAVES_DEBUG = group { ";" group }      the last group that fits a pool counts
//! group         = letters { "," glob }     without globs it fits every pool
//! SHEAVES_FAULT = the same with a fault in the place of letters; without globs it fits pools with the flag A
//! letters       = { F | Z | P | U | T | A }, or nothing for FZPU, or "-" for none at all
//! glob          = a name in which * stands for any text and ? for one character
//! ```
//!
//! Nothing in it keeps a pool from being built. What makes no sense is told on stderr, once: a letter that is none
//! when the variable is read, a glob that fitted no pool when the process ends.
#![forbid(unsafe_code)]

use core::fmt;

use super::exit::at_exit;
use super::fault::Fault;
use super::report::print;
use crate::base::flags::DebugFlags;
use crate::sync::{AtomicUsize, OnceLock, Ordering};

/// A group of a variable: what it says, and the pools that it fits.
#[derive(Debug)]
struct Group<T> {
    value: T,
    globs: Vec<Glob>,
}

/// A pattern for names.
#[derive(Debug)]
struct Glob {
    text: String,
    /// Pools that it fitted.
    hits: AtomicUsize,
}

impl Glob {
    fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            hits: AtomicUsize::new(0),
        }
    }

    fn fits(&self, name: &str) -> bool {
        let fits = matches(self.text.as_bytes(), name.as_bytes());
        // Relaxed: a count.
        self.hits.fetch_add(usize::from(fits), Ordering::Relaxed);
        fits
    }
}

/// Whether a name fits a glob. At a mismatch the last star takes one character more.
fn matches(glob: &[u8], name: &[u8]) -> bool {
    let (mut g, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match glob.get(g) {
            Some(b'*') => {
                star = Some((g, n));
                g += 1;
            }
            Some(&c) if c == b'?' || c == name[n] => (g, n) = (g + 1, n + 1),
            _ => {
                let Some((at, taken)) = star else {
                    return false;
                };
                star = Some((at, taken + 1));
                (g, n) = (at + 1, taken + 1);
            }
        }
    }
    glob[g..].iter().all(|c| *c == b'*')
}

/// Reads a variable's groups. What `read` does not understand is told and left out.
fn groups<T, E: fmt::Display>(
    variable: &str,
    text: &str,
    read: impl Fn(&str) -> Result<T, E>,
) -> Vec<Group<T>> {
    let mut groups = Vec::new();
    for group in text.split(';').map(str::trim).filter(|g| !g.is_empty()) {
        let mut words = group.split(',').map(str::trim);
        let first = words.next().unwrap_or_default();
        match read(first) {
            Ok(value) => groups.push(Group {
                value,
                globs: words.filter(|w| !w.is_empty()).map(Glob::new).collect(),
            }),
            Err(error) => print(&format_args!(
                "sheaves: {variable}: {error}; `{group}` is ignored"
            )),
        }
    }
    groups
}

/// The last group that fits a name; groups without globs do if `all` says so. Every glob is asked, so that those that
/// never fit can be told.
fn find<'a, T>(groups: &'a [Group<T>], name: &str, all: bool) -> Option<&'a Group<T>> {
    let mut found = None;
    for group in groups {
        let hits = group.globs.iter().filter(|glob| glob.fits(name)).count();
        if hits > 0 || (all && group.globs.is_empty()) {
            found = Some(group);
        }
    }
    found
}

/// Tells of globs that fitted no pool.
fn tell_idle<T>(variable: &str, groups: &[Group<T>]) {
    for glob in groups.iter().flat_map(|group| &group.globs) {
        // Relaxed: a count.
        if glob.hits.load(Ordering::Relaxed) == 0 {
            let text = &glob.text;
            print(&format_args!(
                "sheaves: {variable}: `{text}` matched no pool"
            ));
        }
    }
}

const DEBUG: &str = "SHEAVES_DEBUG";
const FAULT: &str = "SHEAVES_FAULT";

/// What the environment asks for.
#[derive(Debug)]
struct Settings {
    debug: Vec<Group<Option<DebugFlags>>>,
    faults: Vec<Group<Fault>>,
}

/// The settings, read once.
fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        let text = |variable| std::env::var(variable).unwrap_or_default();
        let settings = Settings {
            debug: groups(DEBUG, &text(DEBUG), letters),
            faults: groups(FAULT, &text(FAULT), str::parse),
        };
        if !settings.debug.is_empty() || !settings.faults.is_empty() {
            at_exit(tell);
        }
        settings
    })
}

extern "C" fn tell() {
    tell_idle(DEBUG, &settings().debug);
    tell_idle(FAULT, &settings().faults);
}

/// The flags of a group's letters; `None` for those that switch debugging off.
fn letters(text: &str) -> Result<Option<DebugFlags>, crate::base::flags::ParseDebugFlagsError> {
    match text {
        "-" => Ok(None),
        "" => "FZPU".parse().map(Some),
        letters => letters.parse().map(Some),
    }
}

/// The flags of a pool with this name that asked for `own`.
pub(crate) fn debug_flags(name: &str, own: DebugFlags) -> DebugFlags {
    match find(&settings().debug, name, true).map(|group| group.value) {
        None => own,
        Some(None) => DebugFlags::NONE,
        Some(Some(flags)) => own | flags,
    }
}

/// The fault of a pool with this name and these flags that has none of its own.
pub(crate) fn fault(name: &str, flags: DebugFlags) -> Option<Fault> {
    let all = flags.contains(DebugFlags::FAULTS);
    find(&settings().faults, name, all).map(|group| group.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        let fits = |glob: &str, name: &str| matches(glob.as_bytes(), name.as_bytes());
        for (glob, name) in [
            ("*", ""),
            ("*", "x"),
            ("io_*", "io_kiocb"),
            ("io_kiocb", "io_kiocb"),
            ("*kiocb", "io_kiocb"),
            ("i?_*b", "io_kiocb"),
            ("*a*b*", "xxaxxbxx"),
            ("**", "x"),
        ] {
            assert!(fits(glob, name), "{glob} {name}");
        }
        for (glob, name) in [
            ("", "x"),
            ("io_*", "vm_area"),
            ("io_kioc", "io_kiocb"),
            ("io_kiocb?", "io_kiocb"),
            ("*a*b", "xxaxxbxx"),
        ] {
            assert!(!fits(glob, name), "{glob} {name}");
        }
    }

    #[test]
    fn the_last_group_that_fits_counts() {
        let groups = groups(DEBUG, "FZ;P,io_*, tree; -,io_quiet;;,all?", letters);
        let flags = |name: &str| find(&groups, name, true).and_then(|group| group.value);
        assert_eq!(flags("other"), "FZ".parse().ok());
        assert_eq!(flags("io_kiocb"), Some(DebugFlags::POISON));
        assert_eq!(flags("tree"), Some(DebugFlags::POISON));
        assert_eq!(flags("io_quiet"), None);
        assert_eq!(flags("all1"), "FZPU".parse().ok());
    }

    #[test]
    fn a_group_with_a_wrong_letter_is_left_out() {
        let groups = groups(DEBUG, "FX,io_*;Z", letters);
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].value, Some(DebugFlags::RED_ZONE));
        assert!(groups[0].globs.is_empty());
    }
}
