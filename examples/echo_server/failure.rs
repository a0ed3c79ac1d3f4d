//! What can go wrong in a run.

#![forbid(unsafe_code)]

use std::io;

/// Why a run ended early. Each of these ends the program with exit code 1.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The listener or its wake-up could not be made.
    #[error("cannot set the server up: {0}")]
    SetUp(#[source] io::Error),
    /// A worker's ring or poll failed.
    #[error("the server cannot wait for its connections: {0}")]
    Wait(#[source] io::Error),
    /// No more connections can be taken.
    #[error("the server cannot accept: {0}")]
    Accept(#[source] io::Error),
    /// The client lost a connection, or waited too long for an answer.
    #[error("the client, on connection {connection}: {error}")]
    Client {
        connection: usize,
        #[source]
        error: io::Error,
    },
    /// A message came back changed.
    #[error("message {message} of connection {connection} came back changed")]
    Changed { connection: usize, message: u32 },
    /// After the shutdown a connection had more to say than was asked.
    #[error("connection {connection} was sent {bytes} bytes that nobody asked for")]
    Unasked { connection: usize, bytes: usize },
    /// The server's account and the client's differ.
    #[error("the client had {client} {what}, the server {server}")]
    Account {
        what: &'static str,
        client: u64,
        server: u64,
    },
    /// io_uring was asked for and cannot be had.
    #[error("io_uring cannot be used here ({0}); use --mode auto or --mode threads")]
    Forbidden(String),
    /// A pool could not be built.
    #[error("cannot build a pool: {0}")]
    Build(#[from] sheaves::BuildError),
    /// A pool has objects that are live although all work is done.
    #[error("a pool cannot be closed: {0}")]
    Open(String),
    /// The snapshots could not be written.
    #[error("cannot write snapshots: {0}")]
    Export(#[source] io::Error),
    /// Descriptors are too few for even one connection.
    #[error("{0} descriptors are too few for one connection; raise the limit of open files")]
    Descriptors(u64),
}
