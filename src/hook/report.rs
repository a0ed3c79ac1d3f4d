//! Reports of misuse, and the hook that receives them.
//!
//! What is reported can only be caused through `unsafe` functions. The pool goes on: the slot in question is
//! leaked, which is always sound, and counted.
#![forbid(unsafe_code)]

use core::fmt;

use crate::sync::{Arc, RwLock};

/// What kind of misuse was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReportKind {
    /// A slot was freed that is free already.
    DoubleFree,
    /// A pointer was freed into a pool that it does not belong to.
    WrongPool,
    /// A pointer was freed that belongs to no pool.
    NoPool,
    /// A pointer was freed that lies in a pool's memory but starts no slot.
    Interior,
}

/// One finding.
///
/// ```
/// sheaves::set_report_hook(Box::new(|report| {
///     eprintln!("{:?} at {:#x}: {report}", report.kind(), report.address());
/// }));
/// ```
#[derive(Clone, Debug)]
pub struct Report {
    kind: ReportKind,
    pool: Option<Arc<str>>,
    address: usize,
}

impl Report {
    pub(crate) fn new(kind: ReportKind, pool: Option<Arc<str>>, address: usize) -> Self {
        Self {
            kind,
            pool,
            address,
        }
    }

    /// What was found.
    pub fn kind(&self) -> ReportKind {
        self.kind
    }

    /// The name of the pool, if one is concerned.
    pub fn pool(&self) -> Option<&str> {
        self.pool.as_deref()
    }

    /// The address that was freed.
    pub fn address(&self) -> usize {
        self.address
    }

    /// Hands the report to the hook. Runs a user's code: never under a lock.
    #[cold]
    pub(crate) fn send(&self) {
        let hook = HOOK
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone();
        match hook {
            Some(hook) => hook(self),
            None => eprintln!("{self}"),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pool = self.pool().unwrap_or("none");
        let what = match self.kind {
            ReportKind::DoubleFree => "object is already free",
            ReportKind::WrongPool => "object belongs to another pool",
            ReportKind::NoPool => "pointer belongs to no pool",
            ReportKind::Interior => "pointer is not the start of an object",
        };
        write!(
            f,
            "sheaves: pool `{pool}`: {what}: {:#x} not freed, leaked",
            self.address
        )
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
pub fn set_report_hook(hook: Box<dyn Fn(&Report) + Send + Sync>) {
    let mut current = HOOK
        .write()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let old = current.replace(hook.into());
    drop(current);
    drop(old);
}
