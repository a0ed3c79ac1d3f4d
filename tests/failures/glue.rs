//! What is left of an object while it goes, and of what is never let go.

use core::cell::Cell;
use core::mem;

use sheaves::{AllocErrorKind, Pool, PoolBox};

use crate::support::assert_home;

thread_local! {
    /// Where the object that is being dropped lies.
    static GOING: Cell<usize> = const { Cell::new(0) };
    static FIELDS: Cell<usize> = const { Cell::new(0) };
}

struct Object {
    pool: Pool<Object>,
    /// Dropped after the object's own destructor: glue.
    field: Option<Field>,
}

struct Field(Pool<Object>);

impl Object {
    fn bare(pool: &Pool<Self>) -> Self {
        Self {
            pool: pool.clone(),
            field: None,
        }
    }

    fn whole(pool: &Pool<Self>) -> Self {
        Self {
            field: Some(Field(pool.clone())),
            pool: pool.clone(),
        }
    }
}

/// Takes slots while the object is not gone yet: its own must not be among them.
fn take_slots(pool: &Pool<Object>) {
    let taken: Vec<_> = (0..70).map(|_| pool.alloc_uninit()).collect();
    let going = GOING.get();
    assert!(
        taken
            .iter()
            .all(|uninit| PoolBox::as_ptr(uninit).addr() != going)
    );
}

impl Drop for Object {
    fn drop(&mut self) {
        if self.field.is_some() {
            GOING.set(core::ptr::from_ref(self).addr());
            take_slots(&self.pool);
        }
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        take_slots(&self.0);
        FIELDS.set(FIELDS.get() + 1);
    }
}

/// Promise 2: a slot is not handed out before all of its object is gone, whichever way it is freed.
#[test]
fn a_slot_is_not_used_again_before_its_glue_ran() {
    for capacity in [0, 1, 60] {
        let builder = Pool::builder("glue").sheaf_capacity(capacity);
        let pool: Pool<Object> = builder.build().unwrap();
        let new = || pool.alloc(Object::whole(&pool));
        drop(new());
        PoolBox::free_bulk((0..40).map(|_| new()));
        let mut sheaf = pool.prefill(2).unwrap();
        let taken = sheaf.alloc(Object::whole(&pool));
        assert!(
            sheaf
                .free(taken.unwrap_or_else(|_| panic!("two were promised")))
                .is_ok()
        );
        drop(sheaf);
        drop(PoolBox::into_pin(new()));
        let mut replaced = new();
        *replaced = Object::bare(&pool);
        drop(replaced);
        assert_eq!(FIELDS.replace(0), 44);
        assert_home(&pool);
    }
}

/// What is forgotten is never reused, is counted, and keeps its pool and no more than that.
#[test]
#[expect(clippy::mem_forget, reason = "what is forgotten is what this is about")]
fn forgotten_things_keep_what_they_had() {
    let pool: Pool<u64> = Pool::builder("forgotten").limit(10).build().unwrap();
    let boxed = pool.alloc(1);
    let address = PoolBox::as_ptr(&boxed).addr();
    mem::forget(boxed);
    mem::forget(pool.prefill(3).unwrap());
    pool.shrink();
    let rest: Vec<_> = (0..6).map(|i| pool.alloc(i)).collect();
    let error = pool.try_alloc(7).unwrap_err();
    assert_eq!(error.kind(), AllocErrorKind::LimitReached);
    assert!(
        rest.iter()
            .all(|boxed| PoolBox::as_ptr(boxed).addr() != address)
    );
    drop(rest);
    let busy = pool.close().unwrap_err();
    assert_eq!((busy.live(), busy.prefilled(), busy.handles()), (1, 3, 1));
    let pool = busy.into_pool();
    mem::forget(pool.clone());
    drop(pool);
    let mut others = sheaves::pools().into_iter();
    assert!(others.any(|info| info.name() == "forgotten"));
}
