//! Faults that were found and fixed, one test each.

use core::hash::Hasher;
use core::mem::MaybeUninit;

use sheaves::{AllocErrorKind, BuildError, Fault, Pool, PoolBox};

/// Minor page faults of the running thread so far.
#[cfg(target_os = "linux")]
fn faults() -> i64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is valid for a write of the structure.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    assert_eq!(result, 0);
    // SAFETY: zeroed, and written by the call; plain numbers.
    unsafe { usage.assume_init() }.ru_minflt
}

/// Page faults while four objects are allocated from a sheaf that was prefilled where nobody wrote.
#[cfg(target_os = "linux")]
fn faults_of_a_section() -> i64 {
    let pool: Pool<[u8; 8192]> = Pool::new("unwritten");
    let unwritten: Vec<_> = (0..64).map(|_| pool.alloc_uninit()).collect();
    drop(unwritten);
    let mut sheaf = pool.prefill(4).expect("memory is plenty");
    let mut boxes = Vec::with_capacity(4);
    let before = faults();
    for _ in 0..4 {
        boxes.push(sheaf.alloc([7; 8192]).expect("four were asked for"));
    }
    let after = faults();
    assert!(boxes.iter().all(|boxed| boxed[8191] == 7));
    after - before
}

/// Promise 6: not even where objects were handed out and never written to.
#[cfg(target_os = "linux")]
#[test]
fn a_prefilled_sheaf_does_not_fault_where_nobody_wrote() {
    // AddressSanitizer has a shadow of its own that faults.
    if std::env::var_os("ASAN_OPTIONS").is_some() {
        return;
    }
    // The stack through which the values go grows the first time.
    faults_of_a_section();
    assert_eq!(faults_of_a_section(), 0);
}

/// Promise 3: what one borrower does not need is not another's refusal.
#[test]
fn under_a_limit_a_prefilled_sheaf_takes_no_more_than_asked() {
    let pool: Pool<[u64; 8]> = Pool::builder("lim")
        .limit(64)
        .sheaf_capacity(60)
        .build()
        .unwrap();
    let sheaves: Vec<_> = (0..16).map(|_| pool.prefill(4).unwrap()).collect();
    assert!(sheaves.iter().all(|sheaf| sheaf.len() == 4));
    assert_eq!(pool.stats().prefilled, 64);
    drop(sheaves);
    let mut sheaf = pool.prefill(1).unwrap();
    sheaf.refill(3).unwrap();
    assert_eq!(sheaf.len(), 3);
}

#[test]
fn a_reserve_beyond_the_address_space_is_refused() {
    let error = Pool::<u64>::builder("vast").reserve(usize::MAX).build();
    let expected = BuildError::ReserveTooLarge {
        value: usize::MAX,
        max: (1 << 46) / 8,
    };
    assert_eq!(error.unwrap_err(), expected);
}

/// Treats a number otherwise than its bytes.
#[derive(Default)]
struct Fussy(u64);

impl Hasher for Fussy {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 += bytes.len() as u64;
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = self.0 * 31 + value;
    }
}

#[test]
fn a_hasher_in_a_box_hashes_numbers_alike() {
    let pool = Pool::new("hashers");
    let mut boxed: PoolBox<Fussy> = pool.alloc(Fussy::default());
    let mut plain = Fussy::default();
    boxed.write_u64(77);
    plain.write_u64(77);
    assert_eq!(boxed.finish(), plain.finish());
}

/// Boxes stay valid, and nothing panics, where `membarrier` is forbidden after the first pool was built.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_sandbox_that_forbids_membarrier_later() {
    crate::support::isolated("fixed::a_sandbox_that_forbids_membarrier_later", || {
        let pool: Pool<[u64; 30]> = Pool::builder("sandboxed").limit(1000).build().unwrap();
        let kept: Vec<_> = (0..500).map(|i| pool.alloc([i; 30])).collect();
        drop((0..100).map(|i| pool.alloc([i; 30])).collect::<Vec<_>>());
        forbid_membarrier();
        pool.shrink();
        let more = pool.alloc([7; 30]);
        drop(pool);
        assert_eq!(PoolBox::pool_name(&more), "sandboxed");
        assert!((0..).zip(&kept).all(|(i, boxed)| boxed[0] == i));
        drop((kept, more));
        let later = Pool::new("later");
        drop((0..1000_u64).map(|i| later.alloc(i)).collect::<Vec<_>>());
        later.shrink();
        assert_eq!(later.stats().bytes, 0, "a new pool uses fences");
        later.close().unwrap();
    });
}

/// A fault reaches threads with full sheaves there too, once and again.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn faults_in_a_sandbox_that_forbids_membarrier() {
    crate::support::isolated("fixed::faults_in_a_sandbox_that_forbids_membarrier", || {
        let pool = Pool::new("sandboxed");
        drop((0..30).map(|i| pool.alloc(i)).collect::<Vec<_>>());
        forbid_membarrier();
        for _ in 0..2 {
            pool.set_fault(Some(Fault::every(1)));
            let error = pool.try_alloc(1).unwrap_err();
            assert_eq!(error.kind(), AllocErrorKind::Injected);
            pool.set_fault(None);
            assert!(pool.try_alloc(2).is_ok());
        }
    });
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn forbid_membarrier() {
    let statement = |code: u32, jt, jf, k| libc::sock_filter {
        code: u16::try_from(code).expect("codes are small"),
        jt,
        jf,
        k,
    };
    let number = u32::try_from(libc::SYS_membarrier).expect("numbers are small");
    let errno = u32::try_from(libc::EPERM).expect("numbers are small");
    let mut filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, number),
        statement(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | errno,
        ),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: 4,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: takes numbers only.
    let quiet = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(quiet, 0);
    // SAFETY: the program is valid and is copied by the call. It applies to this thread alone.
    let entered = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        )
    };
    assert_eq!(entered, 0);
}
