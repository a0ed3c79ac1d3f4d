//! The owner against those who drain, count, tighten and kill.
#![forbid(unsafe_code)]

use super::{Owner, drain, empty, kill, search, sheaf, spawn, tighten, unload};
use crate::slab::Slot;

/// Takes two and puts one back.
fn take_and_put(owner: &Owner, found: &mut Vec<Slot>) {
    if let Some(slot) = owner.pop() {
        found.extend(owner.push(slot).err());
    }
    found.extend(owner.pop());
}

/// Goes over both edges of arrays with one place.
fn over_the_edges(owner: &Owner, found: &mut Vec<Slot>) {
    let (first, second) = (owner.pop(), owner.pop());
    for slot in [first, second].into_iter().flatten() {
        found.extend(owner.push(slot).err());
    }
}

/// Puts another sheaf in the place of `main`, as after a trade, and goes on with it.
fn replace(owner: &Owner, found: &mut Vec<Slot>) {
    found.extend(owner.pop());
    let new = owner.hold().spare().take();
    if let Some(new) = new {
        let old = owner.hold().replace_main(new);
        *owner.hold().spare() = old;
    }
    found.extend(owner.pop());
}

#[test]
fn a_drainer_and_the_owner_share_the_slots() {
    search(|| {
        let owner = Owner::new(sheaf(4, 1..=2), None);
        let local = [owner.local()];
        let owner = spawn(owner, take_and_put);
        let mut found = drain(&local);
        let (owner, hands) = owner.join().unwrap();
        found.extend(hands);
        owner.assert_open();
        owner.account(found, 2);
    });
}

#[test]
fn two_drains_and_the_owner_share_the_slots() {
    search(|| {
        let owner = Owner::new(sheaf(4, 1..=2), None);
        let local = [owner.local()];
        let owner = spawn(owner, take_and_put);
        let mut found = drain(&local);
        found.extend(drain(&local));
        let (owner, hands) = owner.join().unwrap();
        found.extend(hands);
        owner.assert_open();
        owner.account(found, 2);
    });
}

#[test]
fn the_slow_path_swaps_while_a_drainer_works() {
    search(|| {
        let owner = Owner::new(sheaf(1, 1..=1), Some(sheaf(1, 2..=2)));
        let local = [owner.local()];
        let owner = spawn(owner, over_the_edges);
        let mut found = drain(&local);
        let (owner, hands) = owner.join().unwrap();
        found.extend(hands);
        owner.account(found, 2);
    });
}

#[test]
fn the_slow_path_replaces_main_while_a_drainer_works() {
    search(|| {
        let owner = Owner::new(sheaf(3, 1..=2), Some(sheaf(3, 3..=4)));
        let local = [owner.local()];
        let owner = spawn(owner, replace);
        let mut found = drain(&local);
        let (owner, hands) = owner.join().unwrap();
        found.extend(hands);
        owner.assert_open();
        owner.account(found, 4);
    });
}

#[test]
fn tokens_above_a_moved_floor_survive_a_swap() {
    search(|| {
        let owner = Owner::new(sheaf(3, 1..=2), Some(empty(3)));
        let local = [owner.local()];
        let owner = spawn(owner, |owner, found| {
            // Above the floor if the drainer was here already; the swap then moves it down.
            let slot = Slot::of_model(3);
            found.extend(owner.push(slot).err());
            owner.hold().swap();
            found.extend(owner.push(Slot::of_model(4)).err());
        });
        let mut found = drain(&local);
        let (owner, hands) = owner.join().unwrap();
        found.extend(hands);
        owner.assert_open();
        owner.account(found, 4);
    });
}

#[test]
fn main_is_taken_away_while_a_drainer_works() {
    search(|| {
        let owner = Owner::new(sheaf(3, 1..=2), None);
        let local = [owner.local()];
        let owner = spawn(owner, |owner, found| {
            let slot = owner.pop();
            let main = owner.hold().take_main();
            unload(main.expect("it has an array"), found);
            found.extend(slot.and_then(|slot| owner.push(slot).err()));
        });
        let mut found = drain(&local);
        let (owner, hands) = owner.join().unwrap();
        found.extend(hands);
        assert!(owner.hold().replace_main(empty(1)).is_none());
        owner.assert_open();
        owner.account(found, 2);
    });
}

#[test]
fn a_tight_local_stays_empty_until_it_is_loosened() {
    search(|| {
        let owner = Owner::new(sheaf(4, 1..=2), None);
        let local = [owner.local()];
        let owner = spawn(owner, |owner, found| {
            let slot = owner.fast_pop();
            found.extend(slot.and_then(|slot| owner.fast_push(slot).err()));
        });
        let mut found = tighten(&local);
        assert_eq!(local[0].cached(), 0);
        let (owner, hands) = owner.join().unwrap();
        found.extend(hands);
        assert_eq!(local[0].cached(), 0);
        assert!(owner.hold().is_closed() && owner.fast_pop().is_none());
        local[0].loosen();
        owner.assert_open();
        owner.account(found, 2);
    });
}

#[test]
fn a_killer_and_the_owner_share_the_slots() {
    search(|| {
        let owner = Owner::new(sheaf(4, 1..=2), None);
        let local = [owner.local()];
        let owner = spawn(owner, take_and_put);
        let mut found = kill(&local);
        let (owner, hands) = owner.join().unwrap();
        found.extend(hands);
        owner.assert_dead();
        owner.account(found, 2);
    });
}

#[test]
fn the_slow_path_swaps_while_a_killer_works() {
    search(|| {
        let owner = Owner::new(sheaf(1, 1..=1), Some(sheaf(1, 2..=2)));
        let local = [owner.local()];
        let owner = spawn(owner, over_the_edges);
        let mut found = kill(&local);
        let (owner, hands) = owner.join().unwrap();
        found.extend(hands);
        owner.assert_dead();
        owner.account(found, 2);
    });
}

#[test]
fn a_killer_comes_after_a_drainer() {
    search(|| {
        let owner = Owner::new(sheaf(3, 1..=2), None);
        let local = [owner.local()];
        let owner = spawn(owner, take_and_put);
        let mut found = drain(&local);
        // What the owner has put above the moved floor is moved down for the sheaf.
        found.extend(kill(&local));
        let (owner, hands) = owner.join().unwrap();
        found.extend(hands);
        owner.assert_dead();
        owner.account(found, 2);
    });
}

/// The owner's thread ends: what the local held comes out, and others find it dead.
fn leave(owner: &Owner, found: &mut Vec<Slot>) {
    found.extend(owner.pop());
    for sheaf in owner.hold().kill().into_iter().flatten() {
        unload(sheaf, found);
    }
    owner.assert_dead();
}

#[test]
fn a_thread_ends_while_a_drainer_works() {
    search(|| {
        let owner = Owner::new(sheaf(3, 1..=2), Some(sheaf(1, 3..=3)));
        let local = [owner.local()];
        let owner = spawn(owner, leave);
        let mut found = drain(&local);
        let (owner, hands) = owner.join().unwrap();
        found.extend(hands);
        owner.account(found, 3);
    });
}

#[test]
fn a_thread_ends_while_a_killer_works() {
    search(|| {
        let owner = Owner::new(sheaf(3, 1..=2), Some(sheaf(1, 3..=3)));
        let local = [owner.local()];
        let owner = spawn(owner, leave);
        let mut found = kill(&local);
        let (owner, hands) = owner.join().unwrap();
        found.extend(hands);
        owner.account(found, 3);
    });
}

#[test]
fn one_drainer_empties_two_threads() {
    search(|| {
        let owners = [
            Owner::new(sheaf(2, 1..=1), None),
            Owner::new(sheaf(2, 2..=2), None),
        ];
        let locals = owners.each_ref().map(Owner::local);
        let [first, second] =
            owners.map(|owner| spawn(owner, |owner, found| found.extend(owner.fast_pop())));
        let mut found = drain(&locals);
        let (first, hands) = first.join().unwrap();
        found.extend(hands);
        let (second, hands) = second.join().unwrap();
        found.extend(hands);
        for sheaf in first.hold().kill().into_iter().flatten() {
            unload(sheaf, &mut found);
        }
        second.account(found, 2);
    });
}

#[test]
fn a_count_from_outside_stays_within_the_arrays() {
    search(|| {
        let owner = Owner::new(sheaf(2, 1..=2), Some(empty(2)));
        let local = owner.local();
        let owner = spawn(owner, |owner, found| {
            found.extend(owner.pop());
            owner.hold().swap();
            found.extend(owner.push(Slot::of_model(3)).err());
        });
        assert!(local.cached() <= 3);
        let (owner, found) = owner.join().unwrap();
        owner.account(found, 3);
    });
}
