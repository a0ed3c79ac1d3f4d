//! The heavy half of the asymmetric barrier.
//!
//! Linux runs a full fence on every processor that runs a thread of this process when asked by
//! `membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)`. A process registers for it once, and children made by
//! `fork` stay registered. Where the call is missing (other systems, kernels before 4.14, a sandbox that
//! forbids it) both halves are ordinary fences and every gate stays on its slow side.
//!
//! With `SHEAVES_BARRIER=fence` in its environment a process uses the fences even where the call is there: for
//! tests, and for processors set aside for real-time work, which a `membarrier` would interrupt. Any other value
//! changes nothing; the variable is read once, when the first pool is built.

use super::OnceLock;

/// Names the slower variant; see the module.
const VARIABLE: &str = "SHEAVES_BARRIER";

/// How the two halves of the asymmetric barrier are made; one answer for the life of a process.
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
pub(crate) fn heavy_barrier(mode: BarrierMode) {
    match mode {
        BarrierMode::Membarrier => imp::membarrier(),
        BarrierMode::Fence => super::full_fence(),
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

    pub(super) fn membarrier() {
        let result = call(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
        // Going on without the barrier could hand a slot out twice; the kernel gives no reason to fail once
        // registration has succeeded.
        assert!(
            result == 0,
            "membarrier failed after it had been registered"
        );
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn membarrier() {
        super::super::full_fence();
    }
}
