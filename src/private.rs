//! What derived code and this crate's own tests call; no part of the public interface.
#![forbid(unsafe_code)]

use crate::base::config::MAX_NAME;
use crate::base::flags::DebugFlags;
use crate::base::layout::{Geometry, MAX_ALIGN, MAX_ORDER};
use crate::pool::{Builder, Pool};
use crate::sync::OnceLock;

pub use crate::base::order::KernelShape;

/// The pool of a type, built when first used.
#[derive(Debug)]
pub struct StaticPool<T> {
    pool: OnceLock<Pool<T>>,
}

impl<T> StaticPool<T> {
    /// A pool that is not built yet.
    pub const fn new() -> Self {
        Self {
            pool: OnceLock::new(),
        }
    }

    /// The pool.
    ///
    /// # Panics
    ///
    /// If it cannot be built.
    #[inline]
    pub fn get_or_build(&'static self, build: fn() -> Builder<T>) -> &'static Pool<T> {
        match self.pool.get() {
            Some(pool) => pool,
            None => self.build(build),
        }
    }

    /// Built outside the cell's own lock: a process that forks meanwhile, or a page source that asks for the
    /// very pool, must not find it taken. Of two that are built at once one is dropped.
    #[cold]
    fn build(&'static self, build: fn() -> Builder<T>) -> &'static Pool<T> {
        let pool = build().build().unwrap_or_else(|error| panic!("{error}"));
        self.pool.get_or_init(|| pool)
    }
}

impl<T> Default for StaticPool<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Debug flags from letters that the derive macro has checked.
///
/// # Panics
///
/// If a letter is none.
pub fn debug_flags(letters: &str) -> DebugFlags {
    letters.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// Refuses, in a constant, an order or an alignment that cannot hold a `T`. `order` is `u8::MAX` for the
/// automatic choice.
///
/// # Panics
///
/// If it cannot.
#[track_caller]
pub const fn assert_fits<T>(order: u8, align: usize) {
    assert!(
        align_of::<T>() <= MAX_ALIGN,
        "the type's alignment exceeds 32 KiB"
    );
    let align = if align > align_of::<T>() {
        align
    } else {
        align_of::<T>()
    };
    assert!(
        size_of::<T>() <= Geometry::largest(align),
        "the type is too large for a pool"
    );
    let geometry = Geometry::new(size_of::<T>(), align);
    if order != u8::MAX {
        assert!(
            geometry.slots_of(order) > 0,
            "this order is too small to hold one object"
        );
    }
}

/// Bounds that the derive macro checks on its own.
pub const BOUNDS: (u8, usize, usize) = (MAX_ORDER, MAX_ALIGN, MAX_NAME);
