//! Names that only one place may use: atomics, cells, locks, thread-locals and loom only in `sync`
//! (so that a model replaces all of them), the global allocator's raw functions only in the one
//! page source that wraps it. Code compiled for tests only is free.

use crate::layers::layer_of;
use crate::tree::{self, Source};
use crate::{Violation, assert_lines, assert_none};

/// Of `std::sync`: shared ownership and plain values. All else waits or orders.
const PLAIN: [&str; 5] = ["Arc", "Weak", "LockResult", "PoisonError", "TryLockError"];

/// Files that may call the global allocator's functions, and why.
const RAW_ALLOCATION: [(&str, &str); 1] = [("page/heap.rs", "the page source over it")];

/// The functions themselves; layouts and errors of the same module are free.
const RAW_FUNCTIONS: [&str; 5] = ["alloc", "alloc_zeroed", "dealloc", "realloc", "*"];

fn check(source: &Source) -> Vec<Violation> {
    let Some(path) = source.in_src().filter(|_| !source.test) else {
        return Vec::new();
    };
    let in_sync = layer_of(path) == "sync";
    let may_allocate = RAW_ALLOCATION.iter().any(|(file, _)| *file == path);
    let own_macro = source
        .names
        .iter()
        .any(|named| match named.parts().as_slice() {
            ["crate", "sync", .., last] => *last == "thread_local",
            _ => false,
        });
    let mut violations = Vec::new();
    for named in source.names.iter().filter(|named| !named.test) {
        let parts = named.parts();
        let synchronises = !in_sync
            && (names_synchronisation(&parts)
                || (parts == ["thread_local"] && named.bang && !own_macro));
        let door = if synchronises {
            "only `sync` names"
        } else if !may_allocate && names_raw_allocation(&parts) {
            "raw memory comes from page sources; only page/heap.rs names"
        } else {
            continue;
        };
        violations
            .push(source.violation(named.place.line, format!("{door} `{}`", parts.join("::"))));
    }
    violations
}

fn names_synchronisation(parts: &[&str]) -> bool {
    match parts {
        ["std" | "core" | "alloc", "sync"] => true,
        ["std" | "core" | "alloc", "sync", what, ..] => !PLAIN.contains(what),
        ["std" | "core", "cell", ..] | ["std", "thread_local", ..] | ["loom", _, ..] => true,
        _ => false,
    }
}

fn names_raw_allocation(parts: &[&str]) -> bool {
    match parts {
        ["std" | "alloc", "alloc"] => true,
        ["std" | "alloc", "alloc", what, ..] => RAW_FUNCTIONS.contains(what) || *what == "self",
        _ => false,
    }
}

#[test]
fn guarded_names_stay_behind_their_doors() {
    assert_none(tree::src().iter().flat_map(check).collect());
}

#[test]
fn names_at_their_place_pass() {
    let good = "//! Not `std::sync::atomic`.
        use crate::sync::{atomic::AtomicU32, thread_local, Mutex};
        use std::sync::{Arc, PoisonError, Weak};
        use alloc::alloc::{Layout, handle_alloc_error};
        thread_local! { static X: u8 = 0; }
        #[cfg(test)] mod tests { use std::sync::Barrier; use core::cell::Cell; }";
    assert_lines(&check(&Source::snippet("src/local/mod.rs", good)), &[]);
    let shim = "pub use loom::sync::Mutex; pub use core::sync::atomic::*; thread_local! {}";
    assert_lines(&check(&Source::snippet("src/sync/model.rs", shim)), &[]);
    let heap = "fn f() { alloc::alloc::alloc(l); std::alloc::dealloc(p, l); }";
    assert_lines(&check(&Source::snippet("src/page/heap.rs", heap)), &[]);
    assert_lines(
        &check(&Source::snippet(
            "tests/api/main.rs",
            "use std::sync::Mutex;",
        )),
        &[],
    );
}

#[test]
fn names_elsewhere_are_told() {
    let bad = "use std::sync::{Arc,
        Mutex};
        use core::{fmt,
            sync::atomic::AtomicU8};
        thread_local! { static X: u8 = 0; }
        std::thread_local! { static Y: u8 = 0; }
        use core::cell::UnsafeCell;
        fn f() { loom::thread::yield_now(); m!(std::sync::LazyLock::new(g)); }
        use std::sync;
        use alloc::alloc::{dealloc, Layout};
        fn g() { std::alloc::alloc(l); }
        use std::alloc;";
    let found = check(&Source::snippet("src/page/mmap.rs", bad));
    assert_lines(&found, &[2, 4, 5, 6, 7, 8, 8, 9, 10, 11, 12]);
}
