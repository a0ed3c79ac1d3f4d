//! Vectors in pools and on mallocs.
#![forbid(unsafe_code)]

use std::alloc::System;
use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

use allocator_api2::alloc::Allocator;
use allocator_api2::vec::Vec as VecIn;
use mimalloc::MiMalloc;
use sheaves::Pool;
use snmalloc_rs::SnMalloc;
use tikv_jemallocator::Jemalloc;

use super::{Entry, timed};
use crate::contenders::allocators::On;
use crate::contenders::raw::Named;
use crate::heap::Kind;
use crate::object::{MID_240, Object};

type Object240 = Object<MID_240>;

pub const OURS: &str = "Vec in &Pool";
pub const GLIBC: &str = "Vec, glibc";
pub const MIMALLOC: &str = "Vec, mimalloc";
const JEMALLOC: &str = "Vec, jemalloc";
const SNMALLOC: &str = "Vec, snmalloc";

/// Elements of the one vector.
const ELEMENTS: u64 = 16_384;
/// Vectors that grow side by side, and the elements of each.
const VECTORS: usize = 1000;
const EACH: u64 = 40;
const ALL: usize = EACH as usize * VECTORS;

/// What is done with vectors.
#[derive(Clone, Copy)]
pub enum Growth {
    /// One vector, to 16,384 elements.
    One,
    /// A thousand in turn, to 40 elements each: once, in a process of its own.
    Fresh,
    /// On a heap where the same went on before.
    Used,
}

/// The contenders on it.
pub fn entries(growth: Growth) -> Vec<Entry> {
    let ours = Entry {
        name: OURS,
        kind: Kind::Ours,
        turn: Box::new(move |budget| {
            let pool: Pool<Object240> = Pool::new("vectors");
            run(&pool, OURS, budget, growth)
        }),
    };
    let mallocs = [
        malloc::<System>(GLIBC, growth),
        malloc::<MiMalloc>(MIMALLOC, growth),
        malloc::<Jemalloc>(JEMALLOC, growth),
        malloc::<SnMalloc>(SNMALLOC, growth),
    ];
    std::iter::once(ours).chain(mallocs).collect()
}

fn malloc<A: Named>(name: &'static str, growth: Growth) -> Entry {
    Entry {
        name,
        kind: Kind::Malloc,
        turn: Box::new(move |budget| run(On::<A>::new(), name, budget, growth)),
    }
}

/// Nanoseconds an element.
fn run<A: Allocator + Copy>(allocator: A, name: &str, budget: Duration, growth: Growth) -> f64 {
    match growth {
        Growth::One => timed(budget, ELEMENTS as usize, || one(allocator)),
        Growth::Used => timed(budget, ALL, || side_by_side(allocator)),
        Growth::Fresh => child(name),
    }
}

fn child(name: &str) -> f64 {
    let program = env::current_exe().expect("the program has a path");
    let output = Command::new(program).args(["--vectors-of", name]).output();
    let output = output.expect("a child can be started");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().expect("the child prints a number")
}

/// What the child does: nanoseconds an element.
pub fn in_child(name: &str) -> Option<f64> {
    let pool: Pool<Object240> = Pool::new("vectors");
    let start = Instant::now();
    match name {
        OURS => side_by_side(&pool),
        GLIBC => side_by_side(On::<System>::new()),
        MIMALLOC => side_by_side(On::<MiMalloc>::new()),
        JEMALLOC => side_by_side(On::<Jemalloc>::new()),
        SNMALLOC => side_by_side(On::<SnMalloc>::new()),
        _ => return None,
    }
    Some(start.elapsed().as_nanos() as f64 / ALL as f64)
}

fn one<A: Allocator>(allocator: A) {
    let mut vector = VecIn::new_in(allocator);
    for i in 0..ELEMENTS {
        vector.push(Object240::new(i));
    }
    check(&vector, ELEMENTS);
}

fn side_by_side<A: Allocator + Copy>(allocator: A) {
    let mut vectors: Vec<VecIn<Object240, A>> = Vec::with_capacity(VECTORS);
    vectors.extend((0..VECTORS).map(|_| VecIn::new_in(allocator)));
    for i in 0..EACH {
        for vector in &mut vectors {
            vector.push(Object240::new(i));
        }
    }
    vectors.iter().for_each(|vector| check(vector, EACH));
}

/// Looks at one element: all of them would be most of the time.
fn check(vector: &[Object240], len: u64) {
    assert_eq!(vector.len() as u64, len);
    assert_eq!(vector[vector.len() - 1].check(), len - 1);
}
