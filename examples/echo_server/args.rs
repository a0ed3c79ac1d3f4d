//! The command line.

#![forbid(unsafe_code)]

use std::path::PathBuf;

use clap::{Parser, ValueEnum, value_parser};

/// What `--help` says before the options.
const ABOUT: &str = "\
Race an object pool against the system allocator in a TCP echo server.

A server on the loopback interface echoes what thousands of connections of this
program's own client send. Each connection, each request, and each buffer is an
object of its own, from Box in one half of the rounds and from three pools in
the other; the rest of the server is the same. Connections past the limit are
told so and closed. At the end of each round the server shuts down while all
connections are open, and the pools are closed, which fails if an object is
still live.";

/// Race an object pool against the system allocator in a TCP echo server
#[derive(Parser, Debug)]
#[command(name = "echo_server", long_about = ABOUT)]
pub(crate) struct Args {
    /// Connections that the client opens and keeps open
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4000,
        value_parser = value_parser!(u32).range(1..=50_000)
    )]
    pub(crate) connections: u32,

    /// Connections that the server takes; the others are shed. All, if it is not given
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,

    /// Messages on each connection in each round
    #[arg(
        long,
        value_name = "N",
        default_value_t = 50,
        value_parser = value_parser!(u32).range(1..)
    )]
    pub(crate) messages: u32,

    /// Bytes of a message
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 64,
        value_parser = value_parser!(u32).range(8..=16_384)
    )]
    pub(crate) size: u32,

    /// Rounds that count, with Box and with pools; one more of each runs first as a warm-up
    #[arg(
        long,
        value_name = "R",
        default_value_t = 5,
        value_parser = value_parser!(u32).range(1..=1000)
    )]
    pub(crate) rounds: u32,

    /// Threads of the server, and as many of the client
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = value_parser!(u32).range(1..=64)
    )]
    pub(crate) threads: u32,

    /// How the server waits for its connections
    #[arg(long, value_enum, default_value_t = Mode::Auto)]
    pub(crate) mode: Mode,

    /// Writes snapshots of the pools to this file, for `slabtop --file`
    #[arg(long, value_name = "PATH")]
    pub(crate) export: Option<PathBuf>,

    /// Act as if the system forbade io_uring, to try what happens then
    #[arg(long, hide = true)]
    pub(crate) forbid_io_uring: bool,
}

/// How the server waits.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// io_uring where the system allows it, else threads that poll
    Auto,
    /// io_uring or nothing
    #[value(name = "io_uring", alias = "io-uring")]
    IoUring,
    /// threads that wait in poll(2), then read and write
    Threads,
}
