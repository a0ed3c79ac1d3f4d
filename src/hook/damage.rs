//! What a report can be about, and the bytes in question.
#![forbid(unsafe_code)]

/// What kind of misuse was found.
///
/// ```
/// use sheaves::{ReportKind, report, set_report_hook};
///
/// set_report_hook(Box::new(|report| {
///     if report.kind() == ReportKind::Leak {
///         eprintln!("pool {} was closed too early", report.pool().unwrap_or("none"));
///     }
/// }));
/// # set_report_hook(report::default_hook());
/// ```
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
    /// The destructor of a retired object panicked. Its slot was freed all the same.
    Destructor,
    /// Bytes after an object were written to.
    RedZone,
    /// Bytes before an object were written to.
    LeftRedZone,
    /// A free slot was written to.
    UseAfterFree,
    /// Bytes between slots that belong to nobody were written to.
    Padding,
    /// The header of a slab does not agree with itself.
    Header,
    /// A pool that was to be closed has live objects.
    Leak,
}

impl ReportKind {
    pub(super) fn what(self) -> &'static str {
        match self {
            Self::DoubleFree => "object is already free",
            Self::WrongPool => "object belongs to another pool",
            Self::NoPool => "pointer belongs to no pool",
            Self::Interior => "pointer is not the start of an object",
            Self::Destructor => "the destructor of a retired object panicked",
            Self::RedZone => "red zone after an object overwritten",
            Self::LeftRedZone => "red zone before an object overwritten",
            Self::UseAfterFree => "free object overwritten",
            Self::Padding => "padding overwritten",
            Self::Header => "slab header corrupted",
            Self::Leak => "objects are live at the close",
        }
    }
}

/// Bytes that were overwritten.
///
/// ```
/// sheaves::set_report_hook(Box::new(|report| {
///     if let Some(damage) = report.damage() {
///         let (first, bytes) = (damage.offset(), damage.len());
///         eprintln!("{bytes} bytes from {first}: {:x?}, not {:x}", damage.found(), damage.expected());
///     }
/// }));
/// # sheaves::set_report_hook(sheaves::report::default_hook());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub(super) kind: ReportKind,
    pub(super) offset: isize,
    pub(super) len: usize,
    pub(super) expected: u8,
    pub(super) found: Vec<u8>,
}

impl Damage {
    /// Bytes that a report keeps and shows.
    const SHOWN: usize = 64;

    pub(crate) fn new(kind: ReportKind, offset: isize, expected: u8, found: &[u8]) -> Self {
        Self {
            kind,
            offset,
            len: found.len(),
            expected,
            found: found.iter().copied().take(Self::SHOWN).collect(),
        }
    }

    pub(crate) fn kind(&self) -> ReportKind {
        self.kind
    }

    /// Offset of the first overwritten byte from the start of the object; negative before it.
    pub fn offset(&self) -> isize {
        self.offset
    }

    /// Bytes from the first overwritten one to the last, both included.
    #[expect(clippy::len_without_is_empty, reason = "damage is at least one byte")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// What the first of them should have been.
    pub fn expected(&self) -> u8 {
        self.expected
    }

    /// What was there instead: all bytes, or the first 64.
    pub fn found(&self) -> &[u8] {
        &self.found
    }
}
