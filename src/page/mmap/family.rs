//! The reservations of one kind, in address order.
#![forbid(unsafe_code)]

use core::ptr::NonNull;

use super::mapped::Mapped;
use super::reservation::{ALIGN_PAGES, MAX_PAGES, Reservation};
use crate::base::layout::PAGE_SIZE;

/// Pages of the first reservation: 32 MiB, as much as the largest run.
const FIRST_PAGES: usize = 512;

/// A list of reservations, lowest address first.
pub(super) struct Family {
    first: Option<Mapped<Reservation>>,
    count: u32,
    huge: bool,
}

/// What a step of a trim did.
pub(super) struct Step {
    /// The address at which the next step starts.
    pub(super) end: usize,
    /// Bytes given back.
    pub(super) bytes: usize,
}

impl Family {
    /// No reservations yet. Those to come ask for huge pages if `huge`.
    pub(super) const fn new(huge: bool) -> Self {
        Self {
            first: None,
            count: 0,
            huge,
        }
    }

    /// Takes the lowest free run of `run` pages at a multiple of `align` pages, at most [`ALIGN_PAGES`].
    pub(super) fn alloc(&mut self, run: usize, align: usize) -> Option<NonNull<u8>> {
        let mut link = &mut self.first;
        while let Some(reservation) = link {
            if let Some(page) = reservation.find(run, align) {
                return reservation.take(page, run);
            }
            link = &mut reservation.next;
        }
        // Every reservation is aligned as well as any run, so a fresh one fits from its first page on.
        self.grow(run)?.take(0, run)
    }

    /// The reservation that an address lies in, and the page there.
    pub(super) fn find(&mut self, addr: usize) -> Option<(&mut Reservation, usize)> {
        let mut link = &mut self.first;
        while let Some(reservation) = link {
            if let Some(page) = reservation.page_of(addr) {
                return Some((reservation, page));
            }
            link = &mut reservation.next;
        }
        None
    }

    /// Pages that are used.
    pub(super) fn used(&self) -> usize {
        self.iter().map(Reservation::used).sum()
    }

    /// Whether the run that [`alloc`](Self::alloc) would take may hold memory already.
    pub(super) fn has_warm(&self, run: usize, align: usize) -> bool {
        let mut found = self
            .iter()
            .filter_map(|reservation| Some((reservation, reservation.find(run, align)?)));
        let lowest = found.next();
        lowest.is_some_and(|(reservation, page)| reservation.is_warm(page, run))
    }

    fn iter(&self) -> impl Iterator<Item = &Reservation> {
        core::iter::successors(self.first.as_deref(), |before| before.next.as_deref())
    }

    /// Gives the first warm run at or after the address `from` back to the system, or part of it. `None` if
    /// there is no more.
    pub(super) fn purge_next(&mut self, from: usize) -> Option<Step> {
        let mut link = &mut self.first;
        while let Some(reservation) = link {
            let start = reservation.start();
            let page = from.saturating_sub(start) / PAGE_SIZE;
            if let Some(purged) = reservation.purge_next(page) {
                let end = start + purged.end * PAGE_SIZE;
                return Some(Step {
                    end,
                    bytes: purged.pages * PAGE_SIZE,
                });
            }
            link = &mut reservation.next;
        }
        None
    }

    /// Unmaps the reservations that no page is used of, but for the last one of the family, which the next
    /// allocation will want. Returns the bytes of warm pages that went with them.
    pub(super) fn release_idle(&mut self) -> usize {
        let mut warm = 0;
        let mut link = &mut self.first;
        while let Some(reservation) = link.as_mut() {
            if self.count > 1 && reservation.is_idle() {
                warm += reservation.warm();
                let next = reservation.next.take();
                *link = next;
                self.count -= 1;
            } else {
                link = &mut link.as_mut().expect("it was there a moment ago").next;
            }
        }
        warm * PAGE_SIZE
    }

    /// Number of reservations.
    #[cfg(test)]
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Adds a reservation of at least `run` pages: twice the last one if the system grants it.
    #[cold]
    fn grow(&mut self, run: usize) -> Option<&mut Reservation> {
        let least = run.next_multiple_of(ALIGN_PAGES);
        // The shift is capped before it is made, as a family may have any number of members.
        let doublings = self.count.min((MAX_PAGES / FIRST_PAGES).ilog2());
        let mut pages = (FIRST_PAGES << doublings).max(least);
        let reservation = loop {
            if let Some(reservation) = Reservation::new(pages, self.huge) {
                break reservation;
            }
            if pages == least {
                return None;
            }
            pages = (pages / 2).max(least);
        };
        self.count += 1;
        Some(self.insert(reservation))
    }

    fn insert(&mut self, mut new: Mapped<Reservation>) -> &mut Reservation {
        let mut link = &mut self.first;
        while link
            .as_ref()
            .is_some_and(|reservation| reservation.start() < new.start())
        {
            link = &mut link.as_mut().expect("it was there a moment ago").next;
        }
        new.next = link.take();
        link.insert(new)
    }
}
