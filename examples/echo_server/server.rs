//! The server: its listener, its workers, who is let in, and how it ends.
//!
//! Each worker is a thread that accepts on the common listener and keeps the connections it accepted. A connection is
//! greeted with [`WELCOME`], or with [`BUSY`], the reason, and the end of the stream. So a client that is shed learns
//! why before it has sent anything.
//!
//! To shut down, a byte is sent to each worker. It stops accepting, shuts the reading side of its connections, echoes
//! what it has read, and ends when the last connection has.

#![forbid(unsafe_code)]

use core::time::Duration;
use std::io::{self, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

use super::connection::{Account, Connection, Table};
use super::failure::Failure;
use super::stock::{Shed, Stock};

/// The greeting of a connection that is let in.
pub(crate) const WELCOME: &str = "WELCOME\n";

/// What the greeting of one that is not begins with.
pub(crate) const BUSY: &str = "BUSY ";

/// What a worker has done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Connections that were taken.
    pub(crate) admitted: u64,
    /// Connections that were not.
    pub(crate) shed: u64,
    /// What was done for those that have ended.
    pub(crate) account: Account,
    /// Processor time.
    pub(crate) busy: Duration,
}

impl Tally {
    pub(crate) fn add(self, other: Self) -> Self {
        Self {
            admitted: self.admitted + other.admitted,
            shed: self.shed + other.shed,
            account: self.account.add(other.account),
            busy: self.busy + other.busy,
        }
    }
}

/// What the workers have in common.
pub(crate) struct Server<S: Stock> {
    pub(crate) stock: S,
    pub(crate) listener: TcpListener,
    /// Connections that one worker may have at most, for the size of its queues.
    pub(crate) connections: usize,
}

impl<S: Stock> Server<S> {
    /// Binds to a free port.
    ///
    /// # Errors
    ///
    /// When the stock cannot be had, or no port.
    pub(crate) fn bind(limit: usize) -> Result<Self, Failure> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Failure::SetUp)?;
        Ok(Self {
            stock: S::new(limit)?,
            listener,
            connections: limit,
        })
    }

    pub(crate) fn address(&self) -> Result<SocketAddr, Failure> {
        self.listener.local_addr().map_err(Failure::SetUp)
    }
}

/// One worker's share of the server.
pub(crate) struct Desk<'a, S: Stock> {
    pub(crate) server: &'a Server<S>,
    pub(crate) table: Table<S>,
    pub(crate) tally: Tally,
    /// The server shuts down.
    pub(crate) stopping: bool,
}

impl<'a, S: Stock> Desk<'a, S> {
    pub(crate) fn new(server: &'a Server<S>) -> Self {
        Self {
            server,
            table: Table::new(),
            tally: Tally::default(),
            stopping: false,
        }
    }

    /// Greets a connection; its place if it is let in.
    pub(crate) fn greet(&mut self, stream: TcpStream) -> Option<usize> {
        // Answers are single writes, which shall not wait for one another.
        let _ = stream.set_nodelay(true);
        match self.server.stock.admit(Connection::new(stream)) {
            Ok(connection) => {
                self.tally.admitted += 1;
                let greeted = connection.stream().write_all(WELCOME.as_bytes());
                let place = self.table.insert(connection);
                if greeted.is_err() {
                    self.dismiss(place);
                    return None;
                }
                Some(place)
            }
            Err(Shed { stream, why }) => {
                self.tally.shed += 1;
                // The greeting fits into the empty buffer of the socket. Whoever is gone already misses nothing.
                let _ = (&stream).write_all(format!("{BUSY}{why}\n").as_bytes());
                None
            }
        }
    }

    /// Ends a connection.
    pub(crate) fn dismiss(&mut self, place: usize) {
        if let Some(connection) = self.table.remove(place) {
            self.tally.account = self.tally.account.add(connection.account);
            self.server.stock.dismiss(connection);
        }
    }

    /// Begins to shut down: no connection will send us any more.
    pub(crate) fn stop(&mut self) {
        self.stopping = true;
        for connection in self.table.iter() {
            // One that is closed already needs no more.
            let _ = connection.stream().shutdown(Shutdown::Read);
        }
    }
}

/// Shuts a server down when it is dropped.
pub(crate) struct Stop(Vec<UnixStream>);

impl Stop {
    /// One for `workers` workers, and what each of them waits for.
    ///
    /// # Errors
    ///
    /// When the system has no more sockets.
    pub(crate) fn new(workers: usize) -> io::Result<(Self, Vec<UnixStream>)> {
        let pairs: Vec<_> = (0..workers)
            .map(|_| UnixStream::pair())
            .collect::<io::Result<_>>()?;
        let (ours, theirs) = pairs.into_iter().unzip();
        Ok((Self(ours), theirs))
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        for stream in &mut self.0 {
            // A worker that has failed no longer listens.
            let _ = stream.write_all(&[1]);
        }
    }
}
