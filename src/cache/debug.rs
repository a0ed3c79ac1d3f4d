//! What a debugged pool knows of its slots, and what it checks.
//!
//! A pool with [`DebugFlags`] has no sheaves, so each allocation and each free passes here, between the user and
//! the slab. A *book* says of every slot that was ever handed out whether it is live, and who had it.
//!
//! # Rules
//!
//! 1. A slot changes between live and free, and its patterns with it, under the lock of the book only. So under
//!    that lock the patterns of every slot are those of its state: of a slot that is in the book as live, those of a
//!    live one, and of any other, those of a free one.
//! 2. The book may be locked while the node is, and not the other way round.
//! 3. Reports are collected under the lock and sent without: a hook is a user's code.
#![forbid(unsafe_code)]

use std::collections::HashMap;

use super::Cache;
use crate::base::flags::DebugFlags;
use crate::hook::counter::Counter;
use crate::hook::leaks::{Leak, Leaks};
use crate::hook::poison::{Pattern, Site};
use crate::hook::report::{Damage, Outcome, Report, ReportKind, print};
use crate::hook::thread::Id;
use crate::hook::track::Track;
use crate::slab::Slot;
use crate::sync::{Arc, Lock};

/// The debugging of one cache.
#[derive(Debug)]
pub(super) struct Debug {
    flags: DebugFlags,
    book: Lock<HashMap<usize, Entry>>,
}

/// What is known of one slot.
#[derive(Debug, Default)]
struct Entry {
    state: State,
    allocated: Option<Arc<Track>>,
    freed: Option<Arc<Track>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// In its slab, or in a sheaf that is lent.
    #[default]
    Free,
    Live,
    /// Damaged once, and out for good.
    Leaked,
}

/// Why a slot does not change hands.
pub(super) enum Rejected {
    /// No memory for what is to be known of it.
    Memory,
    Found(Vec<Report>),
}

impl Debug {
    pub(super) fn new(flags: DebugFlags) -> Option<Self> {
        (!flags.is_empty()).then(|| Self {
            flags,
            book: Lock::new(HashMap::new()),
        })
    }

    /// Locks the book.
    pub(super) fn hold(&self) -> impl Sized + '_ {
        self.book.lock()
    }

    fn track(&self) -> Option<Arc<Track>> {
        let tracks = self.flags.contains(DebugFlags::USER);
        tracks.then(Track::take).flatten().map(Arc::new)
    }
}

impl Entry {
    fn report(&self, kind: ReportKind, cache: &Cache, address: usize) -> Report {
        Report::new(kind, Some(cache.name().clone()), address)
            .with_tracks(self.allocated.clone(), self.freed.clone())
    }

    fn damaged(&self, damage: Vec<Damage>, cache: &Cache, address: usize) -> Vec<Report> {
        damage
            .into_iter()
            .map(|damage| {
                self.report(damage.kind(), cache, address)
                    .with_damage(damage)
            })
            .collect()
    }
}

impl Cache {
    fn pattern(&self, debug: &Debug) -> Pattern<'_> {
        Pattern {
            geometry: &self.config.geometry,
            flags: debug.flags,
        }
    }

    /// Makes a free slot live. One that is damaged is left out for good.
    pub(super) fn activate(&self, debug: &Debug, slot: &Slot) -> Result<(), Rejected> {
        let track = debug.track();
        let pattern = self.pattern(debug);
        let mut book = debug.book.lock();
        if book.try_reserve(1).is_err() {
            return Err(Rejected::Memory);
        }
        let entry = book.entry(slot.addr()).or_default();
        let site = self.site(slot);
        let damage = site.map_or_else(Vec::new, |site| pattern.check(site, false));
        if !damage.is_empty() {
            entry.state = State::Leaked;
            return Err(Rejected::Found(entry.damaged(damage, self, slot.addr())));
        }
        if let Some(site) = site {
            pattern.mark(site, true);
        }
        entry.state = State::Live;
        entry.allocated = track;
        drop(book);
        self.trace(debug, "alloc", slot);
        Ok(())
    }

    /// Makes a live slot free. One that is not live, or is damaged, is left as it is.
    pub(super) fn deactivate(&self, debug: &Debug, slot: &Slot) -> Result<(), Vec<Report>> {
        let track = debug.track();
        let pattern = self.pattern(debug);
        let mut book = debug.book.lock();
        let site = self.site(slot);
        let entry = match book.get_mut(&slot.addr()) {
            Some(entry) if entry.state == State::Live => entry,
            other => {
                let kind = if site.is_some() {
                    ReportKind::DoubleFree
                } else {
                    ReportKind::Interior
                };
                let mut unknown = Entry::default();
                let entry = other.unwrap_or(&mut unknown);
                return Err(vec![entry.report(kind, self, slot.addr())]);
            }
        };
        let damage = site.map_or_else(Vec::new, |site| pattern.check(site, true));
        if !damage.is_empty() {
            entry.state = State::Leaked;
            return Err(entry.damaged(damage, self, slot.addr()));
        }
        if !debug.flags.contains(DebugFlags::POISON) {
            self.clear(slot);
        }
        if let Some(site) = site {
            pattern.mark(site, false);
        }
        entry.state = State::Free;
        entry.freed = track;
        drop(book);
        self.trace(debug, "free", slot);
        Ok(())
    }

    fn trace(&self, debug: &Debug, what: &str, slot: &Slot) {
        if debug.flags.contains(DebugFlags::TRACE) {
            let (name, addr, thread) = (self.name(), slot.addr(), Id::current());
            print(&format_args!(
                "sheaves: pool `{name}`: {what} {addr:#x} by {thread}"
            ));
        }
    }

    /// Sends reports. Runs a user's hook: never under a lock.
    #[cold]
    pub(super) fn tell(&self, reports: Vec<Report>) {
        self.counters.add(Counter::Reports, reports.len());
        reports.iter().for_each(Report::send);
    }

    /// Checks headers, patterns and free slots of all slabs; how much was found and told.
    pub(crate) fn validate(&self) -> usize {
        let mut reports = Vec::new();
        let mut broken = Vec::new();
        self.nodes.inspect(|slabs| {
            let Some(debug) = &self.debug else {
                return slabs.inspect(|_, _| {}, |addr| broken.push(addr));
            };
            let pattern = self.pattern(debug);
            let book = debug.book.lock();
            let unknown = Entry::default();
            let check = |site: Site, _free: bool| {
                let entry = book.get(&site.addr()).unwrap_or(&unknown);
                if entry.state != State::Leaked {
                    let damage = pattern.check(site, entry.state == State::Live);
                    reports.extend(entry.damaged(damage, self, site.addr()));
                }
            };
            slabs.inspect(check, |addr| broken.push(addr));
        });
        broken.dedup();
        let headers = broken
            .into_iter()
            .map(|addr| Report::new(ReportKind::Header, Some(self.name().clone()), addr));
        reports.extend(headers);
        let found = reports.len();
        let kept = |report: Report| report.with_outcome(Outcome::Kept);
        self.tell(reports.into_iter().map(kept).collect());
        let of_classes = self.classes.iter().map(|class| class.validate());
        found + of_classes.sum::<usize>()
    }

    /// The live objects, and other layouts in slots; slots of prefilled sheaves too, in a pool that is not debugged.
    pub(crate) fn leaks(&self) -> Leaks {
        let mut live = self.live_objects();
        for class in self.classes.iter() {
            live.extend(class.live_objects());
        }
        Leaks::new(self.name(), live)
    }

    fn live_objects(&self) -> Vec<Leak> {
        let mut live = Vec::new();
        if let Some(debug) = &self.debug {
            let book = debug.book.lock();
            let out = book
                .iter()
                .filter(|(_, entry)| entry.state != State::Free)
                .map(|(addr, entry)| Leak::new(*addr, entry.allocated.clone()));
            live.extend(out);
        } else {
            self.drain();
            self.nodes.inspect(|slabs| {
                let each = |site: Site, free: bool| {
                    if !free {
                        live.push(Leak::new(site.addr(), None));
                    }
                };
                slabs.inspect(each, |_| {});
            });
        }
        live
    }

    /// Tells of the live objects of a debugged pool that was to be closed.
    pub(crate) fn tell_leaks(&self) {
        if self.debug.is_none() {
            return;
        }
        let leaks = self.leaks();
        if !leaks.is_empty() {
            let report = Report::new(ReportKind::Leak, Some(self.name().clone()), 0);
            self.tell(vec![report.with_leaks(leaks)]);
        }
    }
}
