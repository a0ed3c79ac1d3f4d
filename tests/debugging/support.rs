//! Reports of one pool, and faults to be told.

use std::sync::{Mutex, Once, PoisonError};

use sheaves::{Report, set_report_hook};

static REPORTS: Mutex<Vec<Report>> = Mutex::new(Vec::new());

/// Collects the reports of the whole process from now on.
pub(crate) fn collect() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        set_report_hook(Box::new(|report: &Report| {
            REPORTS
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(report.clone());
        }));
    });
}

/// What was reported about a pool since it was asked for last.
pub(crate) fn reports_of(pool: &str) -> Vec<Report> {
    let mut reports = REPORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let (of_pool, others) = reports
        .drain(..)
        .partition(|report| report.pool() == Some(pool));
    *reports = others;
    of_pool
}

/// The one report about a pool.
#[track_caller]
pub(crate) fn the_report_of(pool: &str) -> Report {
    let mut reports = reports_of(pool);
    assert_eq!(reports.len(), 1, "{pool}: {reports:?}");
    reports.remove(0)
}

/// Writes a byte at an offset from an object, where none must be written.
pub(crate) fn clobber(object: *const u8, offset: isize, byte: u8) {
    let pool = object.expose_provenance().wrapping_add_signed(offset);
    let place = std::ptr::with_exposed_provenance_mut::<u8>(pool);
    // SAFETY: the tests write within a standing slab, to bytes that hold nothing but a pattern.
    unsafe { place.write_volatile(byte) };
}

/// A byte at an offset from an object.
pub(crate) fn peek(object: *const u8, offset: isize) -> u8 {
    let pool = object.expose_provenance().wrapping_add_signed(offset);
    let place = std::ptr::with_exposed_provenance::<u8>(pool);
    // SAFETY: as in `clobber`.
    unsafe { place.read_volatile() }
}
