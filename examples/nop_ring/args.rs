//! The command line.

#![forbid(unsafe_code)]

use clap::{Parser, ValueEnum, value_parser};

/// What one round may hold at most, so that sequence numbers fit beside the place in the user data.
const MOST_NOPS: u64 = 1_000_000_000_000;

/// What `--help` says before the options.
const ABOUT: &str = "\
Race an object pool against the system allocator in an io_uring request loop.

The loop sends NOPs, requests that do nothing, through a ring: it fills the
submission queue to its depth, enters the kernel once, and reaps the completions
in a batch. Each NOP has one 240-byte request object, allocated when it is
submitted and freed when it completes, as a kernel does for every I/O. Three
contenders run the same code in turn:

  box         Box and Vec on the system allocator
  pool-auto   a pool with slabs of the order the pool picks
  pool-large  a pool with 2 MiB slabs

The pools take the requests of each burst from a prefilled sheaf, and the table
of requests in flight lives in the pool as well. Every completion is checked
against its request.";

/// What `--help` says after the options.
const AFTER: &str = "\
Figures are medians over the rounds; a ratio above 1 means more NOPs per second
than box. Turn off other work on the machine before you believe them.

Exit codes: 0 when every request was matched and freed, 1 when one was not or
the ring failed, 2 for a wrong option.";

/// Race an object pool against the system allocator in an io_uring request loop
#[derive(Parser, Debug)]
#[command(
    name = "nop_ring",
    long_about = ABOUT,
    after_long_help = AFTER,
    allow_negative_numbers = true
)]
pub(crate) struct Args {
    /// NOPs in each round of each contender
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5_000_000,
        value_parser = value_parser!(u64).range(1..=MOST_NOPS)
    )]
    pub(crate) nops: u64,

    /// Requests in flight at a time, 1 to 4096
    #[arg(
        long,
        value_name = "D",
        default_value_t = 256,
        value_parser = value_parser!(u16).range(1..=4096)
    )]
    pub(crate) depth: u16,

    /// Rounds that count; one more of each contender runs first as a warm-up
    #[arg(
        long,
        value_name = "R",
        default_value_t = 7,
        value_parser = value_parser!(u32).range(1..=1000)
    )]
    pub(crate) rounds: u32,

    /// Which ring to send the NOPs through
    #[arg(long, value_enum, default_value_t = RingChoice::Auto)]
    pub(crate) ring: RingChoice,

    /// Print one JSON object a line instead of tables, and no progress bar
    #[arg(long)]
    pub(crate) json: bool,

    /// Act as if the system forbade io_uring, to try what happens then
    #[arg(long, hide = true)]
    pub(crate) forbid_io_uring: bool,
}

/// Which ring to use.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RingChoice {
    /// io_uring where the system allows it, else the one in the process
    Auto,
    /// io_uring or nothing
    #[value(name = "io_uring", alias = "io-uring")]
    IoUring,
    /// a queue inside the process: no system call, so allocation weighs most
    InProcess,
}
