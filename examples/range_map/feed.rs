//! Where a map's nodes come from, and where they go.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use arrayvec::ArrayVec;
use crossbeam_epoch::{self as epoch, Shared};
use sheaves::{Pool, PoolBox, PrefilledSheaf};

use super::map::WORST;
use super::node::{Fresh, Node};

/// A way to feed a map.
pub(crate) trait Feed: Send + Sync + 'static {
    /// Nodes that a writer has set aside.
    type Stock: Default;

    fn new() -> Self;

    /// Sees to it that `n` nodes are set aside. May block.
    fn fill(&self, stock: &mut Self::Stock, n: usize);

    /// Whether `n` nodes are.
    fn has(stock: &Self::Stock, n: usize) -> bool;

    /// One of them, with what `make` makes in it.
    fn take(stock: &mut Self::Stock, make: impl FnOnce() -> Node) -> Fresh;

    /// Gives back what was set aside and not used.
    fn rest(stock: &mut Self::Stock);

    /// Frees a node after a grace period.
    ///
    /// # Safety
    ///
    /// The node came from [`Feed::take`] and has been unlinked; nobody retires or frees it again.
    unsafe fn retire(node: NonNull<Node>);

    /// Frees a node at once.
    ///
    /// # Safety
    ///
    /// As [`Feed::retire`], and nobody can see it.
    unsafe fn free(node: NonNull<Node>);
}

/// Nodes in `Box`, allocated when they are needed, under the lock.
#[derive(Debug)]
pub(crate) struct Boxes;

impl Feed for Boxes {
    type Stock = ();

    fn new() -> Self {
        Self
    }

    fn fill(&self, _stock: &mut (), _n: usize) {}

    fn has(_stock: &(), _n: usize) -> bool {
        true
    }

    fn take(_stock: &mut (), make: impl FnOnce() -> Node) -> Fresh {
        leak(Box::leak(Box::new(make())))
    }

    fn rest(_stock: &mut ()) {}

    unsafe fn retire(node: NonNull<Node>) {
        // SAFETY: a leaked box, given up by the caller. It is unlinked, and unpinned readers cannot find it.
        unsafe { defer_destroy(node) };
    }

    unsafe fn free(node: NonNull<Node>) {
        // SAFETY: a leaked box, given up by the caller, whom nobody else shares it with.
        drop(unsafe { Box::from_raw(node.as_ptr()) });
    }
}

/// The node of a box that was leaked.
fn leak(node: &'static mut Node) -> Fresh {
    // SAFETY: it lives until it is freed, and nobody else can have it.
    unsafe { Fresh::new(NonNull::from(node)) }
}

/// # Safety
///
/// The pointer is that of a leaked box, is given up, and can be found by nobody who is not pinned yet.
unsafe fn defer_destroy(node: NonNull<Node>) {
    let guard = epoch::pin();
    let shared: Shared<'_, Node> = Shared::from(node.as_ptr().cast_const());
    // SAFETY: as the caller says.
    unsafe { guard.defer_destroy(shared) };
}

/// Nodes in `Box`, as many as the worst case wants allocated before the lock is taken, and the rest freed after.
#[derive(Debug)]
pub(crate) struct BoxesAhead;

impl Feed for BoxesAhead {
    type Stock = ArrayVec<Box<MaybeUninit<Node>>, WORST>;

    fn new() -> Self {
        Self
    }

    fn fill(&self, stock: &mut Self::Stock, n: usize) {
        while stock.len() < n {
            stock.push(Box::new_uninit());
        }
    }

    fn has(stock: &Self::Stock, n: usize) -> bool {
        stock.len() >= n
    }

    fn take(stock: &mut Self::Stock, make: impl FnOnce() -> Node) -> Fresh {
        let slot = stock.pop().expect("the worst case was set aside");
        leak(Box::leak(slot).write(make()))
    }

    fn rest(stock: &mut Self::Stock) {
        stock.clear();
    }

    unsafe fn retire(node: NonNull<Node>) {
        // SAFETY: a leaked box, given up by the caller. It is unlinked, and unpinned readers cannot find it.
        unsafe { defer_destroy(node) };
    }

    unsafe fn free(node: NonNull<Node>) {
        // SAFETY: a leaked box, given up by the caller, whom nobody else shares it with.
        drop(unsafe { Box::from_raw(node.as_ptr()) });
    }
}

/// Nodes in a pool, allocated in bulk before the lock is taken, and the rest freed in bulk after.
#[derive(Debug)]
pub(crate) struct Bulk(Pool<Node>);

impl Feed for Bulk {
    type Stock = Vec<PoolBox<MaybeUninit<Node>>>;

    fn new() -> Self {
        Self(Pool::new("range_map_bulk"))
    }

    fn fill(&self, stock: &mut Self::Stock, n: usize) {
        let n = n.saturating_sub(stock.len());
        let got = self.0.try_alloc_uninit_bulk(n, stock);
        got.expect("there is memory");
    }

    fn has(stock: &Self::Stock, n: usize) -> bool {
        stock.len() >= n
    }

    fn take(stock: &mut Self::Stock, make: impl FnOnce() -> Node) -> Fresh {
        let slot = stock.pop().expect("the worst case was set aside");
        raw(PoolBox::write(slot, make()))
    }

    fn rest(stock: &mut Self::Stock) {
        PoolBox::free_bulk(stock.drain(..));
    }

    unsafe fn retire(node: NonNull<Node>) {
        // SAFETY: from `PoolBox::into_raw`, given up by the caller.
        PoolBox::retire(unsafe { PoolBox::from_raw(node.as_ptr()) });
    }

    unsafe fn free(node: NonNull<Node>) {
        // SAFETY: from `PoolBox::into_raw`, given up by the caller.
        drop(unsafe { PoolBox::from_raw(node.as_ptr()) });
    }
}

/// Nodes in a pool, from a sheaf that is borrowed before the lock is taken and given back after.
#[derive(Debug)]
pub(crate) struct Prefilled(Pool<Node>);

impl Feed for Prefilled {
    type Stock = Option<PrefilledSheaf<Node>>;

    fn new() -> Self {
        Self(Pool::new("range_map_prefilled"))
    }

    fn fill(&self, stock: &mut Self::Stock, n: usize) {
        match stock {
            Some(sheaf) => sheaf.refill(n).expect("there is memory"),
            None => *stock = Some(self.0.prefill(n).expect("there is memory")),
        }
    }

    fn has(stock: &Self::Stock, n: usize) -> bool {
        stock.as_ref().is_some_and(|sheaf| sheaf.len() >= n)
    }

    fn take(stock: &mut Self::Stock, make: impl FnOnce() -> Node) -> Fresh {
        let sheaf = stock.as_mut().expect("the worst case was set aside");
        match sheaf.alloc_with(make) {
            Ok(node) => raw(node),
            Err(_) => panic!("the worst case was set aside"),
        }
    }

    fn rest(stock: &mut Self::Stock) {
        drop(stock.take());
    }

    unsafe fn retire(node: NonNull<Node>) {
        // SAFETY: from `PoolBox::into_raw`, given up by the caller.
        PoolBox::retire(unsafe { PoolBox::from_raw(node.as_ptr()) });
    }

    unsafe fn free(node: NonNull<Node>) {
        // SAFETY: from `PoolBox::into_raw`, given up by the caller.
        drop(unsafe { PoolBox::from_raw(node.as_ptr()) });
    }
}

/// As [`Prefilled`], but a writer keeps its sheaf, and trades it for a fuller one when it holds less than the worst case
/// wants: sheaves of nodes that were reaped wait in the barn.
#[derive(Debug)]
pub(crate) struct Kept(Prefilled);

impl Feed for Kept {
    type Stock = Option<PrefilledSheaf<Node>>;

    fn new() -> Self {
        Self(Prefilled(Pool::new("range_map_kept")))
    }

    fn fill(&self, stock: &mut Self::Stock, n: usize) {
        match stock {
            Some(sheaf) if sheaf.len() >= n => {}
            _ => {
                drop(stock.take());
                self.0.fill(stock, n);
            }
        }
    }

    fn has(stock: &Self::Stock, n: usize) -> bool {
        Prefilled::has(stock, n)
    }

    fn take(stock: &mut Self::Stock, make: impl FnOnce() -> Node) -> Fresh {
        Prefilled::take(stock, make)
    }

    fn rest(_stock: &mut Self::Stock) {}

    unsafe fn retire(node: NonNull<Node>) {
        // SAFETY: as the caller says.
        unsafe { Prefilled::retire(node) };
    }

    unsafe fn free(node: NonNull<Node>) {
        // SAFETY: as the caller says.
        unsafe { Prefilled::free(node) };
    }
}

fn raw(node: PoolBox<Node>) -> Fresh {
    let node = NonNull::new(PoolBox::into_raw(node)).expect("boxes are never null");
    // SAFETY: the box is given up.
    unsafe { Fresh::new(node) }
}
