//! The client: opens the connections, sends on all of them before it reads from any, and checks what comes back.

#![forbid(unsafe_code)]

use core::time::Duration;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::failure::Failure;
use super::server::{BUSY, WELCOME};

/// How long the server may take for an answer: longer than any load here makes it, and not for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest greeting.
const GREETING: u64 = 512;

/// The open connections of one thread of the client.
pub(crate) struct Client {
    first: usize,
    open: Vec<TcpStream>,
    shed: Vec<String>,
}

impl Client {
    /// Opens `count` connections, which are number `first` and following. Those that are shed are told apart by their
    /// greeting.
    ///
    /// # Errors
    ///
    /// When a connection cannot be had, or is not greeted.
    pub(crate) fn connect(
        address: SocketAddr,
        first: usize,
        count: usize,
    ) -> Result<Self, Failure> {
        let mut client = Self {
            first,
            open: Vec::with_capacity(count),
            shed: Vec::new(),
        };
        for connection in first..first + count {
            let failed = |error| Failure::Client { connection, error };
            let stream = connect(address).map_err(failed)?;
            match greeting(&stream).map_err(failed)? {
                None => client.open.push(stream),
                Some(why) => client.shed.push(why),
            }
        }
        Ok(client)
    }

    /// Connections that the server took.
    pub(crate) fn open(&self) -> usize {
        self.open.len()
    }

    /// What those that it did not take were told.
    pub(crate) fn shed(&self) -> &[String] {
        &self.shed
    }

    /// Sends `messages` messages of `size` bytes on each connection, one after the other.
    ///
    /// # Errors
    ///
    /// When a message does not come back, or comes back changed.
    pub(crate) fn talk(&mut self, messages: u32, size: usize) -> Result<(), Failure> {
        let mut received = vec![0; size];
        for message in 0..messages {
            for (connection, stream) in (self.first..).zip(&mut self.open) {
                stream
                    .write_all(&text(connection, message, size))
                    .map_err(|error| Failure::Client { connection, error })?;
            }
            for (connection, stream) in (self.first..).zip(&mut self.open) {
                stream
                    .read_exact(&mut received)
                    .map_err(|error| Failure::Client { connection, error })?;
                if received != text(connection, message, size) {
                    return Err(Failure::Changed {
                        connection,
                        message,
                    });
                }
            }
        }
        Ok(())
    }

    /// Waits for the server to end every connection.
    ///
    /// # Errors
    ///
    /// When it does not, or says something before it does.
    pub(crate) fn expect_end(self) -> Result<(), Failure> {
        for (connection, stream) in (self.first..).zip(self.open) {
            // To the end, which also goes on after an interruption: completions of a ring come as such.
            let mut rest = Vec::new();
            match stream.take(GREETING).read_to_end(&mut rest) {
                Ok(0) => {}
                Ok(bytes) => return Err(Failure::Unasked { connection, bytes }),
                Err(error) => return Err(Failure::Client { connection, error }),
            }
        }
        Ok(())
    }
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Reads the greeting: nothing if the connection was taken, else the reason.
fn greeting(mut stream: &TcpStream) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut byte = [0];
    while line.last() != Some(&b'\n') && (line.len() as u64) < GREETING {
        stream.read_exact(&mut byte)?;
        line.push(byte[0]);
    }
    let line = String::from_utf8_lossy(&line);
    if line == WELCOME {
        return Ok(None);
    }
    match line.strip_prefix(BUSY) {
        Some(why) => Ok(Some(why.trim_end().to_owned())),
        None => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("greeted with {line:?}"),
        )),
    }
}

/// What is sent: the connection, the message, and bytes that follow from them.
fn text(connection: usize, message: u32, size: usize) -> Vec<u8> {
    let seed = (connection as u64) << 32 | u64::from(message);
    let mut text = seed.to_le_bytes().to_vec();
    let mix = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes();
    text.extend(mix.into_iter().cycle().take(size - text.len()));
    text
}
