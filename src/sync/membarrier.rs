//! The heavy half of the asymmetric barrier.
//!
//! Linux runs a full fence on every processor that runs a thread of this process when asked by
//! `membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)`. A process registers for it once, and children made by
//! `fork` stay registered. Where the call is missing (other systems, kernels before 4.14, a sandbox that
//! forbids it) both halves are ordinary fences and every gate stays on its slow side. A sandbox that is entered
//! after the first pool was built and forbids the call leaves the gates of older pools as they are: nobody can
//! drain other threads' sheaves any more, which costs memory and no more than that.
//!
//! With `SHEAVES_BARRIER=fence` in its environment a process uses the fences even where the call is there: for
//! tests, and for processors set aside for real-time work, which a `membarrier` would interrupt. Any other value
//! changes nothing; the variable is read once, when the first pool is built.

use super::{AtomicU32, OnceLock, Ordering};

/// Names the slower variant; see the module.
const VARIABLE: &str = "SHEAVES_BARRIER";

/// Whether `membarrier` was refused after the process had registered for it.
static REFUSED: AtomicU32 = AtomicU32::new(0);

/// How the two halves of the asymmetric barrier are made; one answer for the life of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarrierMode {
    /// Light half: a compiler fence. Heavy half: `membarrier`.
    Membarrier,
    /// Both halves are full fences.
    Fence,
}

impl BarrierMode {
    /// The mode of this process; the first call registers with the kernel.
    pub(crate) fn detect() -> Self {
        static MODE: OnceLock<BarrierMode> = OnceLock::new();
        // Relaxed: it orders nothing.
        if REFUSED.load(Ordering::Relaxed) != 0 {
            return Self::Fence;
        }
        *MODE.get_or_init(|| {
            let asked_for_fences = std::env::var_os(VARIABLE).is_some_and(|value| value == "fence");
            if !asked_for_fences && imp::register() {
                Self::Membarrier
            } else {
                Self::Fence
            }
        })
    }

    pub(crate) fn is_fence(self) -> bool {
        self == Self::Fence
    }
}

/// Orders all of this thread's earlier stores before all loads that other threads make after their light
/// half. Costs some microseconds in membarrier mode.
///
/// `false` if the system refuses although the process is registered: a sandbox that was entered later. Then
/// nothing is ordered, and pools that are built from now on use fences.
pub(crate) fn heavy_barrier(mode: BarrierMode) -> bool {
    match mode {
        BarrierMode::Membarrier => {
            let passed = imp::membarrier();
            if !passed {
                // Relaxed: it orders nothing.
                REFUSED.store(1, Ordering::Relaxed);
            }
            passed
        }
        BarrierMode::Fence => {
            super::full_fence();
            true
        }
    }
}

#[cfg(target_os = "linux")]
mod imp {
    fn call(command: libc::c_int) -> libc::c_long {
        // SAFETY: `membarrier` takes a command and flags by value and touches no memory of the caller; an
        // unknown command is an error, not undefined behaviour.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0_i32, 0_i32) }
    }

    pub(super) fn register() -> bool {
        call(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0
            && call(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0
    }

    pub(super) fn membarrier() -> bool {
        call(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn membarrier() -> bool {
        false
    }
}
