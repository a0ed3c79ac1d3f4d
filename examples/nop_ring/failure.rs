//! What can go wrong in a run.

#![forbid(unsafe_code)]

use std::io;

/// Why a run ended early. Each of these ends the program with exit code 1.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A completion came for a place of the table that holds no request.
    #[error("a completion with user data {user_data:#x} came, but no such request is in flight")]
    NotInFlight { user_data: u64 },
    /// A completion came for a place that holds another request, or one that was written to.
    #[error(
        "the completion with user data {user_data:#x} found another request, or a damaged one, in its place"
    )]
    Mismatch { user_data: u64 },
    /// A NOP did not succeed.
    #[error("the NOP with user data {user_data:#x} completed with {result} instead of 0")]
    Result { user_data: u64, result: i32 },
    /// The kernel had no memory for a completion and dropped it.
    #[cfg(target_os = "linux")]
    #[error("the kernel dropped {0} completions")]
    Dropped(u32),
    /// The ring neither took nor completed anything for too long.
    #[error("the ring made no progress in {turns} turns with {in_flight} requests in flight")]
    Stalled { turns: u32, in_flight: u64 },
    /// The in-flight table is full although fewer requests than its places are in flight.
    #[error("the in-flight table has no free place")]
    TableFull,
    /// The ring could not be set up or entered.
    #[cfg(target_os = "linux")]
    #[error("io_uring failed: {0}")]
    Ring(#[source] io::Error),
    /// io_uring was asked for by `--ring io_uring` and cannot be had.
    #[error("{0}; use --ring auto or --ring in-process to run without it")]
    Forbidden(String),
    /// A pool could not be built.
    #[error("cannot build the pool: {0}")]
    Build(#[from] sheaves::BuildError),
    /// A pool had no memory for a sheaf.
    #[error("cannot borrow a prefilled sheaf: {0}")]
    Prefill(#[from] sheaves::AllocError),
    /// A prefilled sheaf held fewer objects than were asked for.
    #[error("the prefilled sheaf ran out before the burst ended")]
    Exhausted,
    /// Objects of a pool are still out after a round.
    #[error("pool {pool} still has {live} objects live and {prefilled} prefilled after the round")]
    Leaked {
        pool: &'static str,
        live: u64,
        prefilled: u64,
    },
    /// The results could not be written.
    #[error("cannot write the results: {0}")]
    Output(#[source] io::Error),
}
