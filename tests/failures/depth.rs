//! Promise 1, deep: user code inside user code inside user code, a thousand times, that panics at the bottom.

use core::alloc::Layout;
use core::panic::AssertUnwindSafe;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicUsize};
use std::panic::catch_unwind;
use std::sync::OnceLock;

use sheaves::{Heap, Order, PageSource, Pool, PoolBox};

use crate::support::{SEQ, assert_home, on_a_deep_stack, panics};

const DEPTHS: [usize; 2] = [1, 1000];
const CAPACITIES: [usize; 3] = [0, 2, 60];

fn pool<T>(capacity: usize) -> Pool<T> {
    let builder = Pool::builder("deep").sheaf_capacity(capacity);
    builder.order(Order::new(0)).build().expect("a pool")
}

/// Runs a body for every depth and capacity, once to the end and once with a panic at the bottom.
fn everywhere(what: &str, body: impl Fn(usize, usize, bool) + Sync) {
    on_a_deep_stack(what, || {
        for depth in DEPTHS {
            for capacity in CAPACITIES {
                for at_bottom in [false, true] {
                    body(depth, capacity, at_bottom);
                }
            }
        }
    });
}

/// A constructor that constructs in the same pool.
fn construct(pool: &Pool<[u64; 30]>, depth: usize, panic_at_bottom: bool) -> u64 {
    if depth == 0 {
        assert!(!panic_at_bottom, "the innermost constructor panics");
        return 0;
    }
    let made = pool.alloc_with(|| [construct(pool, depth - 1, panic_at_bottom) + 1; 30]);
    made[29]
}

/// Promise 1: constructors inside constructors.
#[test]
fn constructors_inside_constructors() {
    everywhere("constructors", |depth, capacity, panic_at_bottom| {
        let pool = pool(capacity);
        let panicked = panics(|| {
            assert_eq!(construct(&pool, depth, panic_at_bottom), depth as u64);
        });
        assert_eq!(panicked, panic_at_bottom);
        assert_home(&pool);
    });
}

/// Owns the next one, and uses its pool while it goes.
struct Link {
    pool: Pool<Link>,
    next: Option<PoolBox<Link>>,
    /// Links below this one.
    below: usize,
    panics: bool,
}

impl Link {
    fn chain(pool: &Pool<Self>, depth: usize, panics: bool) -> Option<PoolBox<Self>> {
        (0..depth).fold(None, |next, below| {
            Some(pool.alloc(Self {
                pool: pool.clone(),
                next,
                below,
                panics: panics && below == 0,
            }))
        })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The pool of the link that goes, from inside its destructor; the new one goes at once.
        if self.below % 2 == 1 {
            drop(Self::chain(&self.pool, 1, false));
        }
        drop(self.next.take());
        if self.below == 500 {
            self.pool.shrink();
        }
        assert!(!self.panics, "the innermost destructor panics");
    }
}

impl Clone for Link {
    fn clone(&self) -> Self {
        assert!(!self.panics, "the innermost clone panics");
        Self {
            pool: self.pool.clone(),
            next: self.next.clone(),
            below: self.below,
            panics: self.panics,
        }
    }
}

/// Promise 1: destructors inside destructors, which allocate, free and shrink.
#[test]
fn destructors_inside_destructors() {
    everywhere("destructors", |depth, capacity, panic_at_bottom| {
        let pool = pool(capacity);
        let chain = Link::chain(&pool, depth, panic_at_bottom);
        assert_eq!(panics(|| drop(chain)), panic_at_bottom);
        assert_home(&pool);
    });
}

/// Promise 1: the same by way of a bulk free, which holds a batch of slots meanwhile.
#[test]
fn destructors_inside_a_bulk_free() {
    everywhere("bulk", |depth, capacity, panic_at_bottom| {
        let pool = pool(capacity);
        let chains = [false, panic_at_bottom, false].map(|panics| {
            let depth = if panics { depth } else { 1 };
            Link::chain(&pool, depth, panics).expect("it has a link")
        });
        let mut bulk = chains.into_iter();
        let panicked = panics(|| PoolBox::free_bulk(bulk.by_ref()));
        assert_eq!(panicked, panic_at_bottom);
        // What the iterator had not given yet is the caller's.
        drop(bulk);
        assert_home(&pool);
    });
}

/// Promise 1: clones inside clones.
#[test]
fn clones_inside_clones() {
    everywhere("clones", |depth, capacity, panic_at_bottom| {
        let pool = pool(capacity);
        let mut chain = Link::chain(&pool, depth, panic_at_bottom).expect("it has a link");
        let copy = catch_unwind(AssertUnwindSafe(|| chain.clone()));
        assert_eq!(copy.is_err(), panic_at_bottom);
        drop(copy.ok());
        innermost(&mut chain).panics = false;
        drop(chain);
        assert_home(&pool);
    });
}

fn innermost(mut link: &mut Link) -> &mut Link {
    while link.next.is_some() {
        link = link.next.as_mut().expect("there is one");
    }
    link
}

/// Frees boxes from inside the iterator of another bulk free.
struct Nested<'a> {
    pool: &'a Pool<u64>,
    depth: usize,
    left: usize,
    panic_at_bottom: bool,
}

impl Iterator for Nested<'_> {
    type Item = PoolBox<u64>;

    fn next(&mut self) -> Option<PoolBox<u64>> {
        self.left = self.left.checked_sub(1)?;
        if self.depth > 0 && self.left == 1 {
            PoolBox::free_bulk(Nested {
                depth: self.depth - 1,
                left: 3,
                ..*self
            });
        }
        assert!(
            self.depth > 0 || !self.panic_at_bottom,
            "the innermost iterator panics"
        );
        Some(self.pool.alloc(self.left as u64))
    }

    /// A lie, in both directions.
    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, Some(0))
    }
}

/// Promise 1: iterators of bulk frees inside each other, which lie about their length.
#[test]
fn iterators_inside_iterators() {
    everywhere("iterators", |depth, capacity, panic_at_bottom| {
        let pool = pool(capacity);
        let nested = Nested {
            pool: &pool,
            depth,
            left: 3,
            panic_at_bottom,
        };
        assert_eq!(panics(|| PoolBox::free_bulk(nested)), panic_at_bottom);
        assert_home(&pool);
    });
}

/// Asks its pool for another object whenever it is asked for pages, down to a depth.
struct Reentrant {
    pool: OnceLock<Pool<Large>>,
    depth: usize,
    now: AtomicUsize,
    panic_at_bottom: AtomicBool,
}

/// Of which a page holds one.
type Large = [u8; 40_000];

// SAFETY: pages are the heap's.
unsafe impl PageSource for &'static Reentrant {
    fn alloc_pages(&self, layout: Layout) -> Option<NonNull<u8>> {
        let now = self.now.fetch_add(1, SEQ);
        if now < self.depth {
            let pool = self.pool.get().expect("it is set before the first call");
            // No value: a thousand of them would not fit on the stack.
            drop(pool.alloc_uninit());
        } else {
            let panics = self.panic_at_bottom.load(SEQ);
            assert!(!panics, "the innermost page source panics");
        }
        Heap.alloc_pages(layout)
    }

    unsafe fn free_pages(&self, pages: NonNull<u8>, layout: Layout) {
        // SAFETY: passed on.
        unsafe { Heap.free_pages(pages, layout) };
    }
}

/// Promise 1: page sources that allocate from the pool that they are growing, which asks them for pages.
#[test]
fn page_sources_inside_page_sources() {
    everywhere("page sources", |depth, capacity, panic_at_bottom| {
        let source: &'static Reentrant = Box::leak(Box::new(Reentrant {
            pool: OnceLock::new(),
            depth,
            now: AtomicUsize::new(0),
            panic_at_bottom: AtomicBool::new(panic_at_bottom),
        }));
        let builder = Pool::builder("grown").sheaf_capacity(capacity);
        let pool: Pool<Large> = builder.order(Order::new(0)).source(source).build().unwrap();
        source.pool.set(pool.clone()).expect("it was not set");
        let panicked = panics(|| drop(pool.alloc_uninit()));
        assert_eq!(panicked, panic_at_bottom);
        // The pool is as good as ever.
        source.panic_at_bottom.store(false, SEQ);
        drop(pool.alloc_uninit());
        assert_home(&pool);
    });
}
