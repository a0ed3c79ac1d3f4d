//! Promise 8: a signal handler uses a prefilled sheaf of its own, wherever the thread that it interrupts is.

use core::cell::UnsafeCell;
use core::sync::atomic::AtomicUsize;

use sheaves::{Pool, PoolBox, PrefilledSheaf};

use crate::support::{SEQ, assert_home, count_from, isolated};

type Object = [usize; 30];

/// What the handler owns.
struct Own {
    sheaf: Option<PrefilledSheaf<Object>>,
    held: Option<PoolBox<Object>>,
}

/// Used by the handler alone, between the two calls that arm it; it does not interrupt itself.
struct Shared(UnsafeCell<Own>);

// SAFETY: see `Shared`: one thread gets the signal, and its handler blocks it.
unsafe impl Sync for Shared {}

static OWN: Shared = Shared(UnsafeCell::new(Own {
    sheaf: None,
    held: None,
}));
static HANDLED: AtomicUsize = AtomicUsize::new(0);
static WRONG: AtomicUsize = AtomicUsize::new(0);

/// Allocates one object from the sheaf and frees the one of the time before into it.
extern "C" fn handler(_signal: libc::c_int) {
    let round = HANDLED.fetch_add(1, SEQ);
    // SAFETY: see `Shared`.
    let own = unsafe { &mut *OWN.0.get() };
    let Some(sheaf) = &mut own.sheaf else { return };
    let Ok(new) = sheaf.alloc([round; 30]) else {
        WRONG.fetch_add(1, SEQ);
        return;
    };
    if let Some(old) = own.held.replace(new) {
        let whole = old.iter().all(|&word| word == round - 1);
        if !whole || sheaf.free(old).is_err() {
            WRONG.fetch_add(1, SEQ);
        }
    }
}

fn arm(pool: &Pool<Object>, signal: libc::c_int) {
    // SAFETY: the handler is not set yet, so nobody else uses it.
    unsafe { (*OWN.0.get()).sheaf = Some(pool.prefill(4).expect("memory")) };
    let handler: extern "C" fn(libc::c_int) = handler;
    // SAFETY: zeros are an action without flags and with an empty mask.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    // SAFETY: the action is whole, the old one is not asked for.
    let set = unsafe { libc::sigaction(signal, &raw const action, core::ptr::null_mut()) };
    assert_eq!(set, 0);
}

fn disarm(signal: libc::c_int) {
    // SAFETY: takes numbers only.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
    // SAFETY: no signal comes any more.
    let own = unsafe { &mut *OWN.0.get() };
    own.held = None;
    own.sheaf = None;
    assert_eq!(WRONG.load(SEQ), 0, "the handler found something wrong");
}

/// One of everything that the interrupted code may be doing with the same pool.
fn hammer(pool: &Pool<Object>, round: usize) {
    let few: Vec<_> = (0..7).map(|i| pool.alloc([round + i; 30])).collect();
    let mut bulk = Vec::new();
    pool.try_alloc_uninit_bulk(9, &mut bulk).expect("memory");
    let now = pool.try_alloc_now([round; 30]);
    let mut sheaf = pool.prefill(3).expect("memory");
    let lent = sheaf.alloc([round; 30]).expect("three were asked for");
    for (i, boxed) in few.iter().enumerate() {
        assert!(boxed.iter().all(|&word| word == round + i));
    }
    assert!(lent.iter().all(|&word| word == round));
    PoolBox::free_bulk(few);
    drop((bulk, now, lent));
    match round % 64 {
        0 => drop(pool.shrink()),
        1 => pool.flush_thread(),
        _ => {}
    }
}

/// A timer that sends `SIGALRM` to the running thread, again and again while it runs.
#[cfg(target_os = "linux")]
struct Alarm(libc::timer_t);

#[cfg(target_os = "linux")]
impl Alarm {
    fn every(nanoseconds: libc::c_long) -> Self {
        // SAFETY: zeros are valid for the numbers and pointers of the structure.
        let mut event: libc::sigevent = unsafe { core::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGALRM;
        // SAFETY: takes nothing.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        let mut timer = core::ptr::null_mut();
        // SAFETY: both pointers are valid for the call.
        let made =
            unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) };
        assert_eq!(made, 0);
        let time = libc::timespec {
            tv_sec: 0,
            tv_nsec: nanoseconds,
        };
        let times = libc::itimerspec {
            it_interval: time,
            it_value: time,
        };
        // SAFETY: the timer was just made, the times are whole, the old ones are not asked for.
        let set = unsafe { libc::timer_settime(timer, 0, &raw const times, core::ptr::null_mut()) };
        assert_eq!(set, 0);
        Self(timer)
    }
}

#[cfg(target_os = "linux")]
impl Drop for Alarm {
    fn drop(&mut self) {
        // SAFETY: the timer is this one's own.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Promise 8: 20,000 interruptions by `SIGALRM` at moments that have nothing to do with what is interrupted.
#[cfg(target_os = "linux")]
#[test]
fn an_alarm_interrupts_the_same_pool() {
    isolated("signals::an_alarm_interrupts_the_same_pool", || {
        let capacities = [0, 2, 60];
        let wanted = count_from("SHEAVES_TEST_SIGNALS", 20_000) / capacities.len();
        for capacity in capacities {
            let builder = Pool::builder("alarmed").sheaf_capacity(capacity);
            let pool: Pool<Object> = builder.barn(2, 2).build().unwrap();
            HANDLED.store(0, SEQ);
            arm(&pool, libc::SIGALRM);
            // Longer than the handler and shorter than a round of the hammer.
            let alarm = Alarm::every(20_000);
            let mut round = 0;
            while HANDLED.load(SEQ) < wanted {
                hammer(&pool, round);
                round += 1;
            }
            drop(alarm);
            disarm(libc::SIGALRM);
            assert_home(&pool);
            pool.close().unwrap();
        }
    });
}

/// Runs `body` with the processor's trap flag set: a `SIGTRAP` after each of its instructions.
#[cfg(target_arch = "x86_64")]
fn stepped(body: impl FnOnce()) {
    // SAFETY: sets a flag that only makes the system send signals, for which there is a handler; the stack is as
    // it was.
    unsafe {
        core::arch::asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq");
    }
    body();
    // SAFETY: clears the flag again.
    unsafe {
        core::arch::asm!("pushfq", "and qword ptr [rsp], -0x101", "popfq");
    }
}

/// Promise 8: an interruption between any two instructions of the fast paths and of the slow ones.
#[cfg(target_arch = "x86_64")]
#[test]
fn every_instruction_is_interrupted() {
    isolated("signals::every_instruction_is_interrupted", || {
        for capacity in [0, 2, 60] {
            let builder = Pool::builder("stepped").sheaf_capacity(capacity);
            let pool: Pool<Object> = builder.barn(1, 1).build().unwrap();
            HANDLED.store(0, SEQ);
            arm(&pool, libc::SIGTRAP);
            let mut held = Vec::with_capacity(8);
            stepped(|| {
                // Past the edges of small sheaves, up and down.
                for round in 0..2 {
                    held.extend((0..6).map(|i| pool.alloc([round + i; 30])));
                    while let Some(boxed) = held.pop() {
                        assert_eq!(boxed[0], boxed[29]);
                    }
                }
                let mut sheaf = pool.prefill(2).expect("memory");
                drop(sheaf.alloc([1; 30]));
                drop(sheaf);
                if capacity == 2 {
                    pool.shrink();
                }
            });
            disarm(libc::SIGTRAP);
            let steps = HANDLED.load(SEQ);
            println!("capacity {capacity}: {steps} instructions");
            assert!(steps > 2000, "{steps} instructions were interrupted");
            assert_home(&pool);
        }
    });
}
