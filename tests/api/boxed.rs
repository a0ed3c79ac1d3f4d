//! Every function and trait of `PoolBox`.

use core::cell::Cell;
use core::hash::BuildHasher;
use core::panic::AssertUnwindSafe;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use std::collections::HashSet;
use std::hash::RandomState;
use std::panic::catch_unwind;

use sheaves::{Pool, PoolBox, ReportKind};

use crate::support::{Counted, Drops, collect_reports, reports_at};

#[test]
fn objects_are_dropped_exactly_once() {
    let drops = Drops::default();
    let pool = Pool::new("once");
    let boxes: Vec<PoolBox<Counted>> = (0..500).map(|id| pool.alloc(drops.object(id))).collect();
    assert_eq!(drops.count(), 0);
    assert!(boxes.iter().enumerate().all(|(id, boxed)| boxed.id == id));
    drop(boxes);
    assert_eq!(drops.count(), 500);
    let value = PoolBox::into_inner(pool.alloc(drops.object(1)));
    assert_eq!((drops.count(), value.id, pool.stats().live), (500, 1, 0));
    drop(value);
    assert_eq!(drops.count(), 501);
    // What was never written is not dropped.
    drop(pool.alloc_uninit());
    let written = PoolBox::write(pool.alloc_uninit(), drops.object(2));
    assert_eq!(drops.count(), 501);
    drop(written);
    assert_eq!(drops.count(), 502);
    assert_eq!(pool.stats().live, 0);
}

#[test]
fn a_slot_is_returned_when_the_destructor_unwinds() {
    let drops = Drops::default();
    let pool = Pool::new("unwinds");
    for id in 0..200 {
        let boxed = pool.alloc(drops.panicking(id));
        catch_unwind(AssertUnwindSafe(|| drop(boxed))).unwrap_err();
    }
    assert_eq!((drops.count(), pool.stats().live), (200, 0));
    pool.shrink();
    assert_eq!(pool.stats().bytes, 0);
}

#[test]
fn a_slot_is_returned_when_the_constructor_unwinds() {
    let pool = Pool::<u64>::new("constructor");
    for _ in 0..200 {
        catch_unwind(|| pool.alloc_with(|| panic!("no value"))).unwrap_err();
        catch_unwind(|| pool.try_alloc_with(|| panic!("no value")).is_ok()).unwrap_err();
        let mut sheaf = pool.prefill(1).unwrap();
        catch_unwind(AssertUnwindSafe(|| {
            sheaf.alloc_with(|| panic!("no value")).is_ok()
        }))
        .unwrap_err();
    }
    assert_eq!((pool.stats().live, pool.stats().prefilled), (0, 0));
}

#[test]
fn raw_pointers_go_and_come_back() {
    let drops = Drops::default();
    let pool = Pool::new("raw");
    let raw = PoolBox::into_raw(pool.alloc(drops.object(3)));
    assert_eq!((drops.count(), pool.stats().live), (0, 1));
    // SAFETY: it came from `into_raw` just now.
    let boxed = unsafe { PoolBox::from_raw(raw) };
    assert_eq!(PoolBox::as_ptr(&boxed), raw.cast_const());
    drop(boxed);
    let leaked: &'static mut Counted = PoolBox::leak(pool.alloc(drops.object(4)));
    leaked.id = 5;
    assert_eq!((drops.count(), pool.stats().live), (1, 1));
    // SAFETY: it came from `leak`, and the reference is not used any more.
    let boxed = unsafe { PoolBox::from_raw(core::ptr::from_mut(leaked)) };
    assert_eq!(boxed.id, 5);
    drop(boxed);
    assert_eq!((drops.count(), pool.stats().live), (2, 0));
}

#[test]
fn a_pointer_to_one_field_frees_the_whole_slot() {
    let pool = Pool::<[u64; 30]>::new("narrow");
    let raw = PoolBox::into_raw(pool.alloc([7; 30]));
    // SAFETY: it came from `into_raw` just now; nobody else uses it.
    let narrow: &mut u64 = unsafe { &mut (*raw)[0] };
    // SAFETY: the same address as the box's.
    drop(unsafe { PoolBox::from_raw(core::ptr::from_mut(narrow).cast::<[u64; 30]>()) });
    pool.shrink();
    assert_eq!(pool.stats().bytes, 0);
}

#[test]
fn pointers_of_no_pool_are_told() {
    collect_reports();
    let mut on_the_stack = 5_u64;
    let foreign = &raw mut on_the_stack;
    let heap = Box::into_raw(Box::new(6_u64));
    for pointer in [
        foreign,
        heap,
        core::ptr::without_provenance_mut(usize::MAX & !7),
    ] {
        // SAFETY: none: this is what must be told instead of believed.
        let result = catch_unwind(|| unsafe { PoolBox::from_raw(pointer) });
        let payload = result.map(drop).unwrap_err();
        let text = payload
            .downcast_ref::<String>()
            .expect("a formatted message");
        assert!(text.contains(&format!("{:#x}", pointer.addr())), "{text}");
        assert_eq!(reports_at(pointer.addr()), [(ReportKind::NoPool, None)]);
    }
    // SAFETY: as above.
    catch_unwind(|| drop(unsafe { PoolBox::<u64>::from_raw(core::ptr::null_mut()) })).unwrap_err();
    // SAFETY: it came from `Box::into_raw`, and nothing freed it.
    assert_eq!(unsafe { *Box::from_raw(heap) }, 6);
}

#[test]
fn clones_live_in_the_same_pool_even_after_its_last_handle() {
    let drops = Drops::default();
    let pool = Pool::new("clones");
    let first = pool.alloc(drops.object(7));
    let second = first.clone();
    assert_eq!(pool.stats().live, 2);
    drop(pool);
    let mut clones: Vec<_> = (0..1000).map(|_| second.clone()).collect();
    drop((first, second));
    assert!(
        clones
            .iter()
            .all(|boxed| boxed.id == 7 && PoolBox::pool_name(boxed) == "clones")
    );
    let last = clones.pop().unwrap();
    drop(clones);
    let again = last.clone();
    std::thread::spawn(move || drop(last.clone()))
        .join()
        .unwrap();
    drop(again);
    assert_eq!(drops.count(), 1004);
}

#[test]
fn a_panicking_clone_returns_its_slot() {
    let drops = Drops::default();
    let pool = Pool::new("bad_clone");
    let boxed = pool.alloc(drops.panicking(1));
    for _ in 0..100 {
        catch_unwind(AssertUnwindSafe(|| drop(boxed.clone()))).unwrap_err();
    }
    assert_eq!(pool.stats().live, 1);
    catch_unwind(AssertUnwindSafe(|| drop(boxed))).unwrap_err();
}

#[test]
fn a_box_outlives_its_pool_on_another_thread() {
    let pool = Pool::new("outlived");
    let boxes: Vec<_> = (0..300).map(|i| pool.alloc(i)).collect();
    let thread = std::thread::spawn(move || {
        drop(pool);
        let sum: u64 = boxes.iter().map(|boxed| **boxed).sum();
        (sum, boxes)
    });
    let (sum, boxes) = thread.join().unwrap();
    assert_eq!(sum, 299 * 150);
    assert!(boxes.iter().zip(0..).all(|(boxed, i)| **boxed == i));
}

#[test]
fn pinned_objects_stay() {
    let pool = Pool::new("pinned");
    let pinned: Pin<PoolBox<core::marker::PhantomPinned>> =
        pool.alloc_pin(core::marker::PhantomPinned);
    let moved = pinned;
    drop(moved);
    let pinned = PoolBox::pin_in(core::marker::PhantomPinned, &pool);
    let other: Pin<PoolBox<_>> = pool.alloc(core::marker::PhantomPinned).into();
    assert!(pool.try_alloc_pin(core::marker::PhantomPinned).is_ok());
    drop((pinned, other));
    let future = Pool::new("futures").alloc(core::future::ready(5));
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(pin!(future).as_mut().poll(&mut context), Poll::Ready(5));
}

#[test]
fn boxes_forward_to_their_objects() {
    let pool = Pool::new("numbers");
    let [one, two] = [1_u32, 2].map(|n| PoolBox::new_in(n, &pool));
    assert!(one < two && one == one.clone() && one.max(two.clone()) == two);
    assert_eq!(
        (format!("{two}"), format!("{two:?}")),
        ("2".into(), "2".into())
    );
    assert_eq!(format!("{two:p}"), format!("{:p}", PoolBox::as_ptr(&two)));
    assert_eq!((*two.as_ref(), *AsRef::<u32>::as_ref(&two)), (2, 2));
    let state = RandomState::new();
    assert_eq!(state.hash_one(&two), state.hash_one(2_u32));
    let set: HashSet<PoolBox<u32>> = (0..100).map(|n| pool.alloc(n % 10)).collect();
    assert!(
        set.len() == 10 && set.contains(&7),
        "found by the borrowed object"
    );
    let mut changed = PoolBox::try_new_in(5, &pool).unwrap();
    *changed.as_mut() += 1;
    *PoolBox::leak(changed) += 1;
    let numbers = Pool::new("iterators").alloc(0..10);
    assert_eq!((numbers.len(), numbers.rev().nth(1)), (10, Some(8)));
    let error = Pool::new("errors").alloc("x".parse::<u32>().unwrap_err());
    let error: &dyn core::error::Error = &error;
    assert_eq!(error.to_string(), "invalid digit found in string");
    // SAFETY: zeros are a `u32`.
    let zero = unsafe { PoolBox::assume_init(pool.alloc_with_zeros()) };
    assert_eq!(*zero, 0);
}

trait AllocZeros<T> {
    fn alloc_with_zeros(&self) -> PoolBox<core::mem::MaybeUninit<T>>;
}

impl<T> AllocZeros<T> for Pool<T> {
    fn alloc_with_zeros(&self) -> PoolBox<core::mem::MaybeUninit<T>> {
        let mut boxed = self.alloc_uninit();
        *boxed = core::mem::MaybeUninit::zeroed();
        boxed
    }
}

#[test]
fn comparisons_use_the_object_only_once() {
    struct Picky<'a>(&'a Cell<usize>);
    impl PartialEq for Picky<'_> {
        fn eq(&self, _: &Self) -> bool {
            self.0.set(self.0.get() + 1);
            false
        }
    }
    let calls = Cell::new(0);
    let pool = Pool::new("picky");
    let boxed = pool.alloc(Picky(&calls));
    assert!(
        boxed != pool.alloc(Picky(&calls)),
        "identity is not equality"
    );
    assert_eq!(calls.get(), 1);
}

#[test]
fn zero_on_free_leaves_nothing_behind() {
    let pool = Pool::<[u64; 30]>::builder("zeros")
        .zero_on_free()
        .build()
        .unwrap();
    let boxes: Vec<_> = (0..300).map(|_| pool.alloc([u64::MAX; 30])).collect();
    let mut boxes = boxes.into_iter();
    boxes.by_ref().take(100).for_each(drop);
    PoolBox::free_bulk(boxes.by_ref().take(100));
    boxes
        .by_ref()
        .take(50)
        .for_each(|boxed| _ = PoolBox::into_inner(boxed));
    let mut sheaf = pool.prefill(60).unwrap();
    let used: Vec<_> = (0..60)
        .map(|_| sheaf.alloc([u64::MAX; 30]).unwrap())
        .collect();
    used.into_iter()
        .for_each(|boxed| sheaf.free(boxed).unwrap());
    drop((sheaf, boxes));
    let slots: Vec<_> = (0..300).map(|_| pool.alloc_uninit()).collect();
    for slot in &slots {
        let start = PoolBox::as_ptr(slot).cast::<[u64; 30]>();
        // SAFETY: pages come zeroed from the system, and every slot was zeroed when it was freed.
        assert_eq!(unsafe { *start }, [0; 30]);
    }
}
