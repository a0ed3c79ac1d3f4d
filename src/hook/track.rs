//! Who did it: thread, time and backtrace.
#![forbid(unsafe_code)]

use core::fmt;
use core::time::Duration;
use std::backtrace::Backtrace;
use std::time::Instant;

use super::thread::Id;
use crate::sync::{Cell, thread_local};

thread_local! {
    /// Whether the running thread is taking a track: the memory that this needs may come from the very pool.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Frames that a report shows; the kernel's number.
const FRAMES: usize = 16;

/// Beginnings of the names of functions that say nothing about who called.
const INNER: [&str; 5] = ["sheaves::", "sheaves[", "std::", "core::", "alloc::"];

/// Parts of the paths of std's sources. Inlined functions may have short names.
const STD: [&str; 3] = [
    "/library/std/src/",
    "/library/core/src/",
    "/library/alloc/src/",
];

/// This file, from the root of the crate's sources on.
const OWN: &str = "hook/track.rs";

/// When, on which thread and from where something happened to an object.
///
/// Kept by pools with [`DebugFlags::USER`](crate::DebugFlags::USER).
///
/// ```
/// let pool = sheaves::Pool::builder("kept").debug(sheaves::DebugFlags::USER).build()?;
/// let kept = pool.alloc(7);
/// let leaks = pool.leaks();
/// let track = leaks.iter().next().and_then(|leak| leak.allocated()).expect("tracked");
/// println!("thread {}, {:?} ago, {}\n{}", track.thread(), track.age(), track.site(), track.backtrace());
/// # drop(kept);
/// # Ok::<(), sheaves::BuildError>(())
/// ```
#[derive(Debug)]
pub struct Track {
    thread: Id,
    at: Instant,
    backtrace: Backtrace,
}

impl Track {
    /// Takes a track of the running thread, here and now. `None` while it is taking one already.
    pub(crate) fn take() -> Option<Self> {
        if BUSY.replace(true) {
            return None;
        }
        let track = Self {
            thread: Id::current(),
            at: Instant::now(),
            backtrace: Backtrace::force_capture(),
        };
        BUSY.set(false);
        Some(track)
    }

    /// The name of the thread.
    pub fn thread(&self) -> &str {
        self.thread.name()
    }

    /// Time since then.
    pub fn age(&self) -> Duration {
        self.at.elapsed()
    }

    /// The whole backtrace.
    pub fn backtrace(&self) -> &Backtrace {
        &self.backtrace
    }

    /// The innermost function that is neither this crate's nor std's, with file and line where they are known.
    ///
    /// Resolves symbols: slow when a process does it first.
    pub fn site(&self) -> String {
        self.frames()
            .into_iter()
            .next()
            .unwrap_or_else(|| "unknown".to_owned())
    }

    /// The functions that are neither this crate's nor std's, innermost first, one line each.
    fn frames(&self) -> Vec<String> {
        let frames = parse(&self.backtrace.to_string());
        let own = frames.iter().filter_map(|(_, place)| place.as_ref());
        let root = own.filter_map(|place| place.split_once(OWN)).next();
        let root = root.map(|(root, _)| root.to_owned());
        let is_inner = |name: &str, place: &str| {
            let name = name.trim_start_matches(['<', '&', '_']);
            INNER.iter().any(|prefix| name.starts_with(prefix))
                || STD.iter().any(|part| place.contains(part))
                || root.as_ref().is_some_and(|root| place.starts_with(root))
        };
        // What is below `main` is the same in every program.
        let ours = frames
            .into_iter()
            .take_while(|(name, _)| !name.contains("__rust_begin_short_backtrace"));
        ours.filter(|(name, place)| !is_inner(name, place.as_deref().unwrap_or_default()))
            .take(FRAMES)
            .map(|(name, place)| match place {
                Some(place) => format!("{name} ({place})"),
                None => name,
            })
            .collect()
    }

    /// Writes the thread, the age at a time, and a line for each frame.
    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, now: Instant) -> fmt::Result {
        let age = now.saturating_duration_since(self.at);
        write!(f, "{age:.1?} ago by {}", self.thread)?;
        self.frames()
            .iter()
            .try_for_each(|frame| write!(f, "\n    {frame}"))
    }

    /// When it was taken.
    pub(super) fn at(&self) -> Instant {
        self.at
    }
}

/// Functions and places of a backtrace's text, which is all that std gives of it.
fn parse(text: &str) -> Vec<(String, Option<String>)> {
    let mut frames: Vec<(String, Option<String>)> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(place) = line.strip_prefix("at ") {
            if let Some((_, known)) = frames.last_mut() {
                *known = Some(place.to_owned());
            }
        } else if let Some((_, name)) = line.split_once(": ") {
            frames.push((name.to_owned(), None));
        }
    }
    frames
}

/// The thread, the age, and a line for each frame.
impl fmt::Display for Track {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, Instant::now())
    }
}
