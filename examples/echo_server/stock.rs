//! Where connections, requests and buffers come from: `Box` on the system allocator, or three pools.
//!
//! The server is generic over [`Stock`], so that both run the very same code around their allocations. What the one
//! does by hand, counting its connections, and cannot do at all, telling what is live, the other has of its pools.

#![forbid(unsafe_code)]

use core::fmt::Write;
use core::mem::MaybeUninit;
use core::ops::DerefMut;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::net::TcpStream;

use sheaves::{Busy, Pool, PoolBox};

use super::connection::{Connection, Memory, Request};
use super::failure::Failure;

/// A connection that is one too many: its stream, and what it shall be told.
pub(crate) struct Shed {
    pub(crate) stream: TcpStream,
    pub(crate) why: String,
}

/// A source of objects.
pub(crate) trait Stock: Sized + Sync {
    /// Owns one object; dropping it frees it.
    type Own<T>: DerefMut<Target = T>;

    /// A stock of at most `limit` connections.
    ///
    /// # Errors
    ///
    /// When a pool refuses its options.
    fn new(limit: usize) -> Result<Self, Failure>;

    /// Takes a connection in, unless the limit is reached.
    ///
    /// # Errors
    ///
    /// With its stream, when it is one too many.
    fn admit(&self, connection: Connection<Self>) -> Result<Self::Own<Connection<Self>>, Shed>;

    /// Closes and frees a connection.
    fn dismiss(&self, connection: Self::Own<Connection<Self>>);

    /// A buffer whose bytes are not written yet.
    fn memory(&self) -> Self::Own<Memory>;

    /// Moves a request to a place of its own.
    fn request(&self, request: Request<Self>) -> Self::Own<Request<Self>>;

    /// What is live now, a line for each pool, where anybody knows.
    fn census(&self) -> Option<String>;

    /// Ends the stock when all work is done.
    ///
    /// # Errors
    ///
    /// When an object of a pool is live.
    fn close(self) -> Result<(), Failure>;
}

/// Everything in boxes.
pub(crate) struct ByBox {
    limit: usize,
    connections: AtomicUsize,
}

impl Stock for ByBox {
    type Own<T> = Box<T>;

    fn new(limit: usize) -> Result<Self, Failure> {
        Ok(Self {
            limit,
            connections: AtomicUsize::new(0),
        })
    }

    fn admit(&self, connection: Connection<Self>) -> Result<Box<Connection<Self>>, Shed> {
        // Relaxed: the count alone decides, and orders nothing.
        if self.connections.fetch_add(1, Ordering::Relaxed) < self.limit {
            return Ok(Box::new(connection));
        }
        // Relaxed: as above.
        self.connections.fetch_sub(1, Ordering::Relaxed);
        Err(Shed {
            stream: connection.into_stream(),
            why: format!("{} connections are open", self.limit),
        })
    }

    fn dismiss(&self, connection: Box<Connection<Self>>) {
        drop(connection);
        // Relaxed: as above.
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    fn memory(&self) -> Box<Memory> {
        Box::new(MaybeUninit::uninit())
    }

    fn request(&self, request: Request<Self>) -> Box<Request<Self>> {
        Box::new(request)
    }

    fn census(&self) -> Option<String> {
        None
    }

    fn close(self) -> Result<(), Failure> {
        Ok(())
    }
}

/// A pool for each kind of object.
pub(crate) struct ByPool {
    connections: Pool<Connection<ByPool>>,
    requests: Pool<Request<ByPool>>,
    buffers: Pool<Memory>,
}

/// The slots of a sheaf for requests and buffers. A turn of the server takes and frees them by the hundred, so a sheaf
/// holds as many: the default of 4 for 4 KiB is for objects that come one by one.
const BURST: usize = 256;

impl Stock for ByPool {
    type Own<T> = PoolBox<T>;

    fn new(limit: usize) -> Result<Self, Failure> {
        Ok(Self {
            connections: Pool::builder("connection").limit(limit).build()?,
            requests: Pool::builder("request").sheaf_capacity(BURST).build()?,
            buffers: Pool::builder("buffer").sheaf_capacity(BURST).build()?,
        })
    }

    fn admit(&self, connection: Connection<Self>) -> Result<PoolBox<Connection<Self>>, Shed> {
        self.connections.try_alloc(connection).map_err(|error| {
            let why = error.to_string();
            let stream = error.into_value().into_stream();
            Shed { stream, why }
        })
    }

    fn dismiss(&self, connection: PoolBox<Connection<Self>>) {
        drop(connection);
    }

    fn memory(&self) -> PoolBox<Memory> {
        self.buffers.alloc(MaybeUninit::uninit())
    }

    fn request(&self, request: Request<Self>) -> PoolBox<Request<Self>> {
        self.requests.alloc(request)
    }

    fn census(&self) -> Option<String> {
        let mut text = String::new();
        for info in sheaves::pools() {
            let stats = info.stats();
            let _ = writeln!(
                text,
                "{:<12} {:>6} live, {:>6} free in sheaves, {:>4} slabs, {:>6} KiB",
                info.name(),
                stats.live,
                stats.cached + stats.barn,
                stats.slabs,
                stats.bytes / 1024
            );
        }
        Some(text)
    }

    fn close(self) -> Result<(), Failure> {
        fn open<T>(busy: Busy<Pool<T>>) -> Failure {
            let text = busy.to_string();
            let name = busy.into_pool().name().to_owned();
            Failure::Open(format!("{name}: {text}"))
        }
        self.connections.close().map_err(open)?;
        self.requests.close().map_err(open)?;
        self.buffers.close().map_err(open)
    }
}
