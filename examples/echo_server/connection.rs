//! A connection, and the request that it has under way.
//!
//! A connection that waits for bytes holds neither request nor buffer: it gets both when there is something to read,
//! and gives them back when all of it was echoed. So buffers are as many as messages in the server, not as connections.

use core::mem::MaybeUninit;
use core::time::Duration;
use std::net::TcpStream;
use std::time::Instant;

use super::stock::Stock;

/// Bytes of a buffer.
const BUFFER: usize = 4096;

/// A buffer's memory: written by the system, not by us.
pub(crate) type Memory = MaybeUninit<[u8; BUFFER]>;

/// One open connection.
pub(crate) struct Connection<S: Stock> {
    stream: TcpStream,
    /// What was read and is not yet echoed.
    pub(crate) request: Option<S::Own<Request<S>>>,
    pub(crate) account: Account,
}

/// What was done for a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    /// Requests that were answered; a message may take several.
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    /// The longest that a request was under way.
    pub(crate) slowest: Duration,
}

impl Account {
    pub(crate) fn add(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            bytes: self.bytes + other.bytes,
            slowest: self.slowest.max(other.slowest),
        }
    }
}

impl<S: Stock> Connection<S> {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            request: None,
            account: Account::default(),
        }
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Notes that `n` bytes of the request were sent. Whether those were the last; then it is freed.
    pub(crate) fn sent(&mut self, n: usize) -> bool {
        let Some(request) = &mut self.request else {
            return true;
        };
        self.account.bytes += n as u64;
        let answered = request.sent(n);
        if answered {
            self.account.requests += 1;
            self.account.slowest = self.account.slowest.max(request.began.elapsed());
            self.request = None;
        }
        answered
    }

    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }
}

/// Bytes on their way in and out again.
///
/// # Invariants
///
/// 1. The first `filled` bytes of the memory are written, and `sent <= filled <= BUFFER`.
pub(crate) struct Request<S: Stock> {
    memory: S::Own<Memory>,
    filled: usize,
    sent: usize,
    began: Instant,
}

impl<S: Stock> Request<S> {
    pub(crate) fn new(memory: S::Own<Memory>) -> Self {
        Self {
            memory,
            filled: 0,
            sent: 0,
            began: Instant::now(),
        }
    }

    /// Where the system may write, and how much.
    pub(crate) fn room(&mut self) -> (*mut u8, usize) {
        (self.memory.as_mut_ptr().cast::<u8>(), BUFFER)
    }

    /// Notes that the system wrote `n` bytes.
    ///
    /// # Safety
    ///
    /// It did, from where [`room`](Self::room) begins.
    pub(crate) unsafe fn received(&mut self, n: usize) {
        assert!(n <= BUFFER, "the system was given no more room");
        self.filled = n;
        self.sent = 0;
    }

    /// What is to be sent.
    pub(crate) fn rest(&self) -> &[u8] {
        let start = self.memory.as_ptr().cast::<u8>();
        // SAFETY: the first `filled` bytes are written (invariant 1), and borrowed as the request is.
        let filled = unsafe { core::slice::from_raw_parts(start, self.filled) };
        &filled[self.sent..]
    }

    /// Notes that `n` bytes of the rest were sent, and whether those were all.
    fn sent(&mut self, n: usize) -> bool {
        self.sent = self.filled.min(self.sent + n);
        self.sent == self.filled
    }
}

/// A worker's connections, by their places.
pub(crate) struct Table<S: Stock> {
    places: Vec<Option<S::Own<Connection<S>>>>,
    free: Vec<usize>,
}

impl<S: Stock> Table<S> {
    pub(crate) fn new() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Puts a connection into a free place.
    pub(crate) fn insert(&mut self, connection: S::Own<Connection<S>>) -> usize {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[place] = Some(connection);
        place
    }

    pub(crate) fn get(&mut self, place: usize) -> Option<&mut Connection<S>> {
        self.places.get_mut(place)?.as_deref_mut()
    }

    pub(crate) fn remove(&mut self, place: usize) -> Option<S::Own<Connection<S>>> {
        let taken = self.places.get_mut(place)?.take()?;
        self.free.push(place);
        Some(taken)
    }

    /// All connections.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Connection<S>> {
        self.places.iter().flatten().map(|own| &**own)
    }
}
