//! Reports of misuse, and the hook that receives them.
//!
//! What is reported can only be caused through `unsafe` functions. The pool goes on: the slot in question is
//! leaked, which is always sound, and counted. Damage is mended, so that one fault is one report.
#![forbid(unsafe_code)]

use core::fmt;
use std::io::Write;
use std::time::Instant;

use super::event;
use super::leaks::Leaks;
use super::track::Track;
use crate::base::name::Name;
use crate::sync::{Arc, RwLock};

pub use super::damage::{Damage, ReportKind};

/// What became of the slot that a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was not freed, or will not be handed out again.
    Leaked,
    /// Nothing but the damage, if any, was mended.
    Kept,
}

/// One finding.
///
/// `Display` says what was found, in which pool, at which object and bytes, what should have been there, and, in a
/// pool that tracks users, who allocated and freed the object last.
///
/// ```
/// sheaves::set_report_hook(Box::new(|report| {
///     eprintln!("{:?} at {:#x}: {report}", report.kind(), report.address());
///     for track in [report.allocated(), report.freed()].into_iter().flatten() {
///         eprintln!("by {}", track.thread());
///     }
///     if let Some(text) = report.text() {
///         eprintln!("a destructor panicked with {text}");
///     }
/// }));
/// ```
#[derive(Clone, Debug)]
pub struct Report {
    kind: ReportKind,
    pool: Option<Name>,
    address: usize,
    text: Option<String>,
    damage: Option<Damage>,
    allocated: Option<Arc<Track>>,
    freed: Option<Arc<Track>>,
    leaks: Option<Leaks>,
    outcome: Outcome,
    /// When it was made: what follows takes its time.
    at: Instant,
}

impl Report {
    pub(crate) fn new(kind: ReportKind, pool: Option<Name>, address: usize) -> Self {
        Self {
            kind,
            pool,
            address,
            text: None,
            damage: None,
            allocated: None,
            freed: None,
            leaks: None,
            outcome: Outcome::Leaked,
            at: Instant::now(),
        }
    }

    pub(crate) fn with_damage(mut self, damage: Damage) -> Self {
        self.damage = Some(damage);
        self
    }

    pub(crate) fn with_tracks(
        mut self,
        allocated: Option<Arc<Track>>,
        freed: Option<Arc<Track>>,
    ) -> Self {
        (self.allocated, self.freed) = (allocated, freed);
        self
    }

    pub(crate) fn with_leaks(mut self, leaks: Leaks) -> Self {
        (self.leaks, self.outcome) = (Some(leaks), Outcome::Kept);
        self
    }

    pub(crate) fn with_outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = outcome;
        self
    }

    /// Adds what somebody else has to say.
    #[cfg(feature = "rcu")]
    pub(crate) fn with_text(mut self, text: Option<String>) -> Self {
        (self.text, self.outcome) = (text, Outcome::Kept);
        self
    }

    /// What a destructor panicked with, if that is a text.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// What was found.
    pub fn kind(&self) -> ReportKind {
        self.kind
    }

    /// The name of the pool, if one is concerned.
    pub fn pool(&self) -> Option<&str> {
        self.pool.as_deref()
    }

    /// The address of the object, or whatever was freed; 0 for a [`ReportKind::Leak`].
    pub fn address(&self) -> usize {
        self.address
    }

    /// The overwritten bytes, if that is what was found.
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// Who allocated the object last, if the pool tracks users.
    pub fn allocated(&self) -> Option<&Track> {
        self.allocated.as_deref()
    }

    /// Who freed the object last, if the pool tracks users.
    pub fn freed(&self) -> Option<&Track> {
        self.freed.as_deref()
    }

    /// The live objects, for a [`ReportKind::Leak`].
    pub fn leaks(&self) -> Option<&Leaks> {
        self.leaks.as_ref()
    }

    /// Hands the report to the hook. Runs a user's code: never under a lock.
    #[cold]
    pub(crate) fn send(&self) {
        event::reported(self);
        let hook = HOOK
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone();
        match hook {
            Some(hook) => hook(self),
            None => print(self),
        }
    }
}

/// Prints to stderr. A stderr that is closed is no reason to panic, in a destructor perhaps.
pub(crate) fn print(what: &dyn fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pool = self.pool().unwrap_or("none");
        write!(f, "sheaves: pool `{pool}`: {}: ", self.kind.what())?;
        if let Some(leaks) = &self.leaks {
            return write!(f, "{leaks}");
        }
        write!(f, "{:#x}", self.address)?;
        if self.kind == ReportKind::Destructor {
            write!(f, ": {}", self.text().unwrap_or("no text"))?;
        }
        if let Some(damage) = &self.damage {
            let end = damage.offset.saturating_add_unsigned(damage.len);
            let first = self.address.wrapping_add_signed(damage.offset);
            write!(
                f,
                ", bytes {}..{end} (from {first:#x}): found",
                damage.offset
            )?;
            damage
                .found
                .iter()
                .try_for_each(|byte| write!(f, " {byte:02x}"))?;
            if damage.len > damage.found.len() {
                f.write_str(" ...")?;
            }
            write!(f, ", expected {:02x}; restored", damage.expected)?;
            if self.outcome == Outcome::Leaked {
                f.write_str(", object leaked")?;
            }
        } else if self.outcome == Outcome::Leaked {
            f.write_str(" not freed, leaked")?;
        }
        for (what, track) in [("allocated", &self.allocated), ("freed", &self.freed)] {
            if let Some(track) = track {
                write!(f, "\n  {what} ")?;
                track.write(f, self.at)?;
            }
        }
        Ok(())
    }
}

type Hook = Arc<dyn Fn(&Report) + Send + Sync>;

static HOOK: RwLock<Option<Hook>> = RwLock::new(None);

/// Locks the hook, so that nobody else is setting it.
pub(crate) fn hold() -> impl Sized {
    HOOK.write()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Sets what is done with a [`Report`], for all pools of the process. The default prints it to stderr.
///
/// The hook runs on the thread that caused the report, under no lock of this crate, and may use any pool.
/// [`report::default_hook`](crate::report::default_hook) brings the default back, [`report::panic_hook`](crate::report::panic_hook) is one for
/// tests.
///
/// ```
/// sheaves::set_report_hook(Box::new(|report| eprintln!("found: {report}")));
/// # sheaves::set_report_hook(sheaves::report::default_hook());
/// ```
pub fn set_report_hook(hook: Box<dyn Fn(&Report) + Send + Sync>) {
    let mut current = HOOK
        .write()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let old = current.replace(hook.into());
    drop(current);
    drop(old);
}

/// A hook that prints, as the default does.
///
/// ```
/// use sheaves::{report, set_report_hook};
///
/// set_report_hook(Box::new(|report| println!("{:?}", report.kind())));
/// set_report_hook(report::default_hook());
/// ```
pub fn default_hook() -> Box<dyn Fn(&Report) + Send + Sync> {
    Box::new(|report| print(report))
}

/// A hook that panics with the report's text, so that a test fails where a fault is found. On a thread that is
/// panicking already it prints.
///
/// ```
/// sheaves::set_report_hook(sheaves::report::panic_hook());
/// ```
pub fn panic_hook() -> Box<dyn Fn(&Report) + Send + Sync> {
    Box::new(|report| {
        if std::thread::panicking() {
            print(report);
        } else {
            panic!("{report}");
        }
    })
}
