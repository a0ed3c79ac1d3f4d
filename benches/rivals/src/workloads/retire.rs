//! Two threads allocate objects and retire each, or replace by each what readers may see.
#![forbid(unsafe_code)]

use std::time::Duration;

use super::Entry;
use super::threads::Race;
use crate::contenders::cells;
use crate::contenders::retire::{self, Record, Retire, VisitRetire};
use crate::object::Tags;

/// Objects between two looks at the flag that ends a turn.
const CHUNK: usize = 1024;

struct Entries(Vec<Entry>);

impl<T: Record> VisitRetire<T> for Entries {
    fn visit<R: Retire<T>>(&mut self) {
        self.0.push(Entry {
            name: R::NAME,
            kind: R::KIND,
            turn: Box::new(run::<T, R>),
        });
    }
}

/// Objects without a destructor, or with one.
pub fn retired<T: Record>() -> Vec<Entry> {
    let mut entries = Entries(Vec::new());
    retire::all::<T>(&mut entries);
    entries.0
}

/// Objects in cells.
pub fn replaced<T: Record>() -> Vec<Entry> {
    let mut entries = Entries(Vec::new());
    cells::all::<T>(&mut entries);
    entries.0
}

fn run<T: Record, R: Retire<T>>(budget: Duration) -> f64 {
    let way = R::new();
    let nanos = Race::run(2, budget, |number, race| {
        let mut tags = Tags::new(number);
        let mut done = 0;
        race.ready.wait();
        while race.goes_on() {
            for _ in 0..CHUNK {
                let tag = tags.give();
                tags.take(way.turn(number, tag));
            }
            done += CHUNK;
        }
        (done, tags)
    });
    way.settle();
    nanos
}
