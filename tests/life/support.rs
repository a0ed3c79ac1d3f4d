//! A counting global allocator, children of the test, random numbers, a watchdog.

use core::alloc::Layout;
use core::sync::atomic::{AtomicIsize, Ordering};
use std::alloc::{GlobalAlloc, System};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};

pub(crate) use crate::random::Random;
pub(crate) use crate::watchdog::watched;

/// The order of the tests' own counters. Sequentially consistent, so that a reading is a fact.
pub(crate) const SEQ: Ordering = Ordering::SeqCst;

/// The system's allocator, which counts.
struct Counting;

static BLOCKS: AtomicIsize = AtomicIsize::new(0);
static BYTES: AtomicIsize = AtomicIsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(blocks: isize, layout: Layout) {
    BLOCKS.fetch_add(blocks, Ordering::Relaxed);
    let bytes = isize::try_from(layout.size()).unwrap_or(0);
    BYTES.fetch_add(blocks * bytes, Ordering::Relaxed);
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-1, layout);
        // SAFETY: passed on.
        unsafe { System.dealloc(block, layout) };
    }
}

/// Blocks and bytes of the heap that are in use.
pub(crate) fn heap() -> (isize, isize) {
    (BLOCKS.load(SEQ), BYTES.load(SEQ))
}

const MARK: &str = "LIFE_TEST_CHILD";

/// Runs the test with this path in a process of its own, which then ends as `body` wants it to. The child must exit
/// with code 0 and must have said that it ran, and so must whatever runs after `main`: see [`say`].
pub(crate) fn in_child(path: &str, expected: &[&str], body: impl FnOnce()) {
    if std::env::var_os(MARK).is_some_and(|value| value == path) {
        // SAFETY: no handler is set: the default ends the process, which the parent sees.
        unsafe { libc::alarm(100) };
        return body();
    }
    let exe = std::env::current_exe().expect("tests have an executable");
    let mut child = Command::new(exe);
    child
        .args([path, "--exact", "--nocapture", "--test-threads=1"])
        .env(MARK, path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = child.spawn().expect("the executable can be run again");
    let mut stderr = child.stderr.take().expect("it is a pipe");
    let reader = std::thread::spawn(move || {
        let mut said = Vec::new();
        stderr.read_to_end(&mut said).map(|_| said)
    });
    let status = child.wait().expect("it is a child");
    // A child of its own that hangs inside `fork` has no alarm yet, and would keep the pipe open for ever.
    let group = libc::pid_t::try_from(child.id()).expect("an id");
    // SAFETY: sends a signal to what is left of the group that was made above, or to nobody.
    unsafe { libc::kill(-group, libc::SIGKILL) };
    let said = reader.join().expect("it does not panic");
    let said = said.expect("the pipe can be read");
    let said = String::from_utf8_lossy(&said);
    assert!(status.success(), "{path} alone: {status}\n{said}");
    for line in expected {
        let count = said.lines().filter(|own| own == line).count();
        assert_eq!(
            count, 1,
            "{path} alone said {line:?} {count} times:\n{said}"
        );
    }
}

/// Tells the parent something, with nothing but a system call: this runs when everything else is gone.
pub(crate) fn say(line: &str) {
    let text = format!("{line}\n");
    // SAFETY: the bytes are there, and file 2 is stderr.
    let written = unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
    assert_eq!(usize::try_from(written), Ok(text.len()));
}

/// Forks; the child runs `body` under an alarm, which turns a hang into a failure, and ends without destructors
/// with 0, or 101 after a panic. The parent gets the child's id.
pub(crate) fn fork(body: impl FnOnce()) -> libc::pid_t {
    // SAFETY: what the child uses after this is what these tests are to show to be usable.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        // SAFETY: no handler is set: the default ends the child.
        unsafe { libc::alarm(20) };
        let result = catch_unwind(AssertUnwindSafe(body));
        if let Err(payload) = &result {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
            say(text.unwrap_or("a child panicked"));
        }
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(if result.is_ok() { 0 } else { 101 }) };
    }
    pid
}

/// Waits for a child; it must have ended with 0.
#[track_caller]
pub(crate) fn reap(pid: libc::pid_t, what: &str) {
    let mut status = 0;
    // SAFETY: `status` is valid for the call.
    let reaped = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(reaped, pid, "{what}: {}", std::io::Error::last_os_error());
    assert!(
        libc::WIFEXITED(status),
        "{what}: the child was ended by signal {}: a hang if it is {}",
        libc::WTERMSIG(status),
        libc::SIGALRM
    );
    assert_eq!(libc::WEXITSTATUS(status), 0, "{what}: the child failed");
}

/// Every slot is somewhere, when nobody else is inside a call.
#[track_caller]
pub(crate) fn assert_sums<T>(pool: &sheaves::Pool<T>) {
    let s = pool.stats();
    let sum = s.live + s.prefilled + s.retired + s.cached + s.barn + s.transit + s.free;
    assert_eq!((sum, s.transit), (s.slots, 0), "{s:?}");
}

/// A number from the environment, for longer runs by hand.
pub(crate) fn count_from(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} must be a number, not {text:?}"))
    })
}
