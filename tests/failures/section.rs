//! Promise 6: the section that a prefilled sheaf is for: no system call, no page fault, no allocator.

use core::mem::MaybeUninit;
use std::hint::black_box;

use sheaves::{Order, Pool, PoolBox, PrefilledSheaf};

use crate::support::{assert_home, heap_calls, isolated, under_asan};

const N: usize = 300;

/// Takes everything, frees half of it into the sheaf, takes that again by the other way.
#[inline(never)]
fn section<T: Copy>(
    sheaf: &mut PrefilledSheaf<T>,
    value: &T,
    held: &mut [Option<PoolBox<T>>],
) -> bool {
    let mut good = true;
    for place in held.iter_mut() {
        *place = sheaf.alloc(*value).ok();
        good &= place.is_some();
    }
    for place in held.iter_mut().step_by(2) {
        good &= place.take().is_some_and(|boxed| sheaf.free(boxed).is_ok());
    }
    for place in held.iter_mut().step_by(2) {
        *place = sheaf.alloc_with(|| *value).ok();
        good &= place.is_some();
    }
    good
}

/// Page faults of the running thread so far.
fn faults() -> i64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is valid for a write of the structure.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    assert_eq!(result, 0);
    // SAFETY: zeroed, and written by the call; plain numbers.
    let usage = unsafe { usage.assume_init() };
    usage.ru_minflt + usage.ru_majflt
}

/// Faults and calls of the allocator in the section, and whether all went well.
fn watch<T: Copy>(pool: &Pool<T>, value: &T) -> (i64, usize, bool) {
    let mut held: Vec<_> = (0..N).map(|_| None).collect();
    let mut sheaf = pool.prefill(N).expect("memory");
    let (faults_before, calls_before) = (faults(), heap_calls());
    let good = section(&mut sheaf, black_box(value), &mut held);
    let (calls, faults) = (heap_calls() - calls_before, faults() - faults_before);
    (faults, calls, good)
}

fn is_calm<const SIZE: usize>() {
    let value = Box::new([7_u8; SIZE]);
    let orders = [Order::AUTO, Order::new(0), Order::LARGE];
    for order in orders {
        let Ok(warm): Result<Pool<[u8; SIZE]>, _> = Pool::builder("warm").order(order).build()
        else {
            continue;
        };
        // The stack through which the values go grows the first time.
        watch(&warm, &*value);
        // A pool of which nothing was ever used.
        let builder = Pool::builder("calm").order(order);
        let pool = builder.build().expect("one like it was built");
        let (faults, calls, good) = watch(&pool, &*value);
        assert!(good, "{SIZE} bytes, {order:?}: an allocation failed");
        assert_eq!(calls, 0, "{SIZE} bytes, {order:?}: the allocator");
        assert_eq!(faults, 0, "{SIZE} bytes, {order:?}: page faults");
        assert_home(&pool);
    }
}

/// Promise 6: no page fault and no call of the allocator, for objects of a byte to those of many pages, in pools of
/// which nothing was ever used.
#[test]
fn a_section_faults_no_page_and_calls_no_allocator() {
    if under_asan() {
        return;
    }
    isolated(
        "section::a_section_faults_no_page_and_calls_no_allocator",
        || {
            is_calm::<1>();
            is_calm::<240>();
            is_calm::<1024>();
            is_calm::<5000>();
            is_calm::<40_000>();
            is_calm::<98_304>();
        },
    );
}

/// Runs a body in a forked child in which every system call but the last one ends the process; how that went.
#[cfg(target_os = "linux")]
fn without_system_calls(body: impl FnOnce() -> bool) -> libc::c_int {
    // SAFETY: the child does nothing but what is tested and ends.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        forbid_system_calls();
        let good = body();
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(if good { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: `status` is valid for the call.
    let reaped = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(reaped, pid);
    status
}

#[cfg(target_os = "linux")]
fn forbid_system_calls() {
    let statement = |code: u32, jt, jf, k| libc::sock_filter {
        code: u16::try_from(code).expect("codes are small"),
        jt,
        jf,
        k,
    };
    let number = u32::try_from(libc::SYS_exit_group).expect("numbers are small");
    let mut filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, 0, number),
        statement(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_KILL_PROCESS,
        ),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: 4,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: takes numbers only.
    unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: the program is valid and is copied by the call.
    unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        )
    };
}

/// Promise 6: no system call, and no lock that another thread holds is waited for, which would be one.
#[cfg(target_os = "linux")]
#[test]
fn a_section_makes_no_system_call() {
    // The sanitizer's runtime may call the system at any time.
    if under_asan() {
        return;
    }
    isolated("section::a_section_makes_no_system_call", || {
        let pool: Pool<[u8; 240]> = Pool::new("quiet");
        let mut held: Vec<_> = (0..N).map(|_| None).collect();
        let mut sheaf = pool.prefill(N).expect("memory");
        let status = without_system_calls(|| section(&mut sheaf, &[7; 240], &mut held));
        assert!(libc::WIFEXITED(status), "killed: {status:#x}");
        assert_eq!(libc::WEXITSTATUS(status), 0, "an allocation failed");
        drop(sheaf);
        // The filter tells: what a plain allocation needs when nothing is at hand ends the child.
        let fresh: Pool<[u8; 240]> = Pool::new("fresh");
        let status = without_system_calls(|| {
            drop(
                (0..100_000)
                    .map(|_| fresh.alloc([7; 240]))
                    .collect::<Vec<_>>(),
            );
            true
        });
        assert!(libc::WIFSIGNALED(status), "nothing was forbidden");
    });
}
