//! Patterns in memory that nobody may write to.
//!
//! ```text
//! | guard | object, or a pattern while it is free | guard | padding | guard of the next slot
//!  0xbb    0x6b ...                         0xa5   0xcc     0x5a
//!                                                  0xbb while it is free
//! ```
//!
//! A stray write leaves another byte there. It is told once: whoever finds it puts the pattern back. A write that
//! runs from one part into the next, and on into the guard of the next slot, is one finding.

use core::ops::Range;
use core::ptr::{self, NonNull};
use core::slice;

use super::report::{Damage, ReportKind};
use super::shadow;
use crate::base::flags::DebugFlags;
use crate::base::layout::Geometry;

/// The object while it is free: as a number or as a pointer it looks like nothing that is in use.
const FREE: u8 = 0x6b;
/// Its last byte, so that a read past the end of a string stops looking like the middle of it.
const FREE_END: u8 = 0xa5;
/// Between guards, and what is left over in a run.
const PADDING: u8 = 0x5a;
/// The guard before an object, and the one after it while it is free.
const RED_FREE: u8 = 0xbb;
/// The guard after a live object.
const RED_LIVE: u8 = 0xcc;

/// What slots of one cache look like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pattern<'a> {
    pub(crate) geometry: &'a Geometry,
    pub(crate) flags: DebugFlags,
}

/// The memory of one slot.
///
/// # Invariants
///
/// 1. From `lead` bytes before `start` to `room` bytes after it the memory is readable and writable, and nobody
///    who keeps to the rules uses any of it but the object's bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    start: NonNull<u8>,
    /// Bytes from the start of the slot to the end of its run.
    room: usize,
}

/// A part of a slot, by offsets from the start of the object, and the byte that fills it.
#[derive(Clone, Copy, Debug)]
struct Part {
    kind: ReportKind,
    from: isize,
    to: isize,
    byte: u8,
}

impl Site {
    /// # Safety
    ///
    /// A slot starts at `start`, in a standing slab whose provenance it has; `room` is the distance to the end of
    /// its run. The memory around the object is touched by no other thread while the site is used.
    pub(crate) unsafe fn new(start: NonNull<u8>, room: usize) -> Self {
        Self { start, room }
    }

    pub(crate) fn addr(self) -> usize {
        self.start.addr().get()
    }

    fn at(self, offset: isize) -> NonNull<u8> {
        // SAFETY: parts lie between the guard before the slot and the end of the run (invariant 1).
        unsafe { self.start.offset(offset) }
    }

    fn bytes<'a>(self, part: Part) -> &'a [u8] {
        // SAFETY: the part is readable (invariant 1), and every byte of it was written when the run was set up or
        // since; who writes to it now breaks the rules.
        unsafe { slice::from_raw_parts(self.at(part.from).as_ptr(), part.len()) }
    }

    fn fill(self, part: Part) {
        // SAFETY: the part is writable and no object is in it (invariant 1).
        unsafe { ptr::write_bytes(self.at(part.from).as_ptr(), part.byte, part.len()) };
    }
}

impl Part {
    fn new(kind: ReportKind, range: Range<usize>, byte: u8) -> Self {
        // Slots are at most 32 MiB long.
        let offset = |at: usize| isize::try_from(at).unwrap_or(isize::MAX);
        Self {
            kind,
            from: offset(range.start),
            to: offset(range.end),
            byte,
        }
    }

    fn len(self) -> usize {
        usize::try_from(self.to - self.from).unwrap_or(0)
    }

    /// Offsets of the first and past the last byte that is not as it should be.
    fn damage(self, site: Site) -> Option<(isize, isize)> {
        let bytes = site.bytes(self);
        let wrong = |byte: &u8| *byte != self.byte;
        let first = bytes.iter().position(wrong)?;
        let last = bytes.iter().rposition(wrong)?;
        let offset = |at: usize| isize::try_from(at).unwrap_or(isize::MAX);
        Some((self.from + offset(first), self.from + offset(last) + 1))
    }
}

impl Pattern<'_> {
    fn has(&self, flag: DebugFlags) -> bool {
        self.flags.contains(flag)
    }

    /// Whether runs must be filled before their slots are handed out.
    pub(crate) fn is_empty(&self) -> bool {
        !self.has(DebugFlags::RED_ZONE) && !self.has(DebugFlags::POISON)
    }

    /// The guard before the object.
    fn before(&self) -> Option<Part> {
        let lead = isize::try_from(self.geometry.lead).unwrap_or(0);
        self.has(DebugFlags::RED_ZONE).then_some(Part {
            kind: ReportKind::LeftRedZone,
            from: -lead,
            to: 0,
            byte: RED_FREE,
        })
    }

    /// The parts from the object on, in order.
    fn after(&self, room: usize, live: bool) -> impl Iterator<Item = Part> {
        let g = self.geometry;
        let (red, poison) = (self.has(DebugFlags::RED_ZONE), self.has(DebugFlags::POISON));
        let free = ReportKind::UseAfterFree;
        let end = (g.stride - g.lead).min(room);
        let byte = if live { RED_LIVE } else { RED_FREE };
        let parts = [
            (poison && !live).then(|| Part::new(free, 0..g.size - 1, FREE)),
            (poison && !live).then(|| Part::new(free, g.size - 1..g.size, FREE_END)),
            red.then(|| Part::new(ReportKind::RedZone, g.size..g.zone_end, byte)),
            (red || poison).then(|| Part::new(ReportKind::Padding, g.zone_end..end, PADDING)),
        ];
        parts
            .into_iter()
            .flatten()
            .filter(|part| part.from < part.to)
    }

    /// The guard of the next slot, which a long overrun reaches.
    fn next(&self, room: usize) -> Option<Part> {
        let g = self.geometry;
        let next = Part::new(
            ReportKind::LeftRedZone,
            g.stride - g.lead..g.stride,
            RED_FREE,
        );
        (self.has(DebugFlags::RED_ZONE) && g.stride <= room).then_some(next)
    }

    /// Lets this module at a slot and its guards, whatever a memory checker was told of them.
    fn open(&self, site: Site) {
        let g = self.geometry;
        let lead = isize::try_from(g.lead).unwrap_or(0);
        shadow::reopen(site.at(-lead), g.lead + g.stride.min(site.room));
    }

    /// Closes a slot again, but for the object of a live one.
    fn close(&self, site: Site, live: bool) {
        let g = self.geometry;
        let lead = isize::try_from(g.lead).unwrap_or(0);
        let end = g.stride.min(site.room);
        shadow::close(site.at(-lead), g.lead);
        let from = if live { g.size } else { 0 };
        shadow::close(site.at(isize::try_from(from).unwrap_or(0)), end - from);
    }

    /// Writes the patterns of a slot that becomes live or free.
    pub(crate) fn mark(&self, site: Site, live: bool) {
        self.open(site);
        self.after(site.room, live)
            .filter(|part| part.kind != ReportKind::Padding)
            .for_each(|part| site.fill(part));
        self.close(site, live);
    }

    /// What is damaged in a slot and around it; mended.
    pub(crate) fn check(&self, site: Site, live: bool) -> Vec<Damage> {
        let mut found = Vec::new();
        self.open(site);
        if let Some(part) = self.before() {
            found.extend(Self::check_group(site, [part].into_iter(), None));
        }
        let after = self.after(site.room, live);
        found.extend(Self::check_group(site, after, self.next(site.room)));
        self.close(site, live);
        found
    }

    /// Checks parts that lie one after the other: what is damaged in several of them is one finding. The last
    /// is another slot's, and looked at only if the damage runs on into it.
    fn check_group(
        site: Site,
        parts: impl Iterator<Item = Part>,
        last: Option<Part>,
    ) -> Option<Damage> {
        let mut first: Option<(Part, isize)> = None;
        let mut end = 0;
        let mut damaged = Vec::new();
        for part in parts {
            if let Some((from, to)) = part.damage(site) {
                first.get_or_insert((part, from));
                end = to;
                damaged.push(part);
            }
        }
        let (part, from) = first?;
        let runs_on = |next: &Part| end == next.from;
        if let Some((next, to)) = last
            .filter(runs_on)
            .and_then(|next| Some((next, next.damage(site)?.1)))
        {
            end = to;
            damaged.push(next);
        }
        let range = Part {
            from,
            to: end,
            ..part
        };
        let damage = Damage::new(part.kind, from, part.byte, site.bytes(range));
        damaged.into_iter().for_each(|part| site.fill(part));
        Some(damage)
    }
}

/// Fills a run whose slots are all free, from the end of its bitmap to its own end.
///
/// # Safety
///
/// `run` is the start of a run of the geometry, which may be written to as a whole; its first slot is at `first`,
/// its bitmap ends at `from`, and no slot of it is out.
pub(crate) unsafe fn fill_run(run: NonNull<u8>, from: usize, first: usize, pattern: Pattern<'_>) {
    let g = pattern.geometry;
    let end = g.run_bytes();
    // SAFETY: the bitmap ends within the run.
    let slack = unsafe { run.add(from) };
    shadow::open(slack, end - from);
    // SAFETY: the rest of the run may be written to, by the caller's word.
    unsafe { ptr::write_bytes(slack.as_ptr(), PADDING, end - from) };
    for index in 0..g.run_slots {
        let offset = first + index * g.stride;
        // SAFETY: slots lie within their run.
        let start = unsafe { run.add(offset) };
        // SAFETY: a slot of the run, which is nobody else's.
        let site = unsafe { Site::new(start, end - offset) };
        // The guard is the end of the slot before, which is closed by now.
        pattern.open(site);
        pattern
            .before()
            .into_iter()
            .for_each(|part| site.fill(part));
        pattern.mark(site, false);
    }
    shadow::close(slack, end - from);
}
