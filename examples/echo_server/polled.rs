//! A worker that waits in poll(2): for systems without io_uring.

#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

use super::connection::Request;
use super::failure::Failure;
use super::server::{Desk, Server, Tally};
use super::stock::Stock;
use super::system::{entry, receive, thread_time, wait};

/// The places of the wake-up and the listener among the entries; the connections follow.
const WAKE: usize = 0;
const LISTENER: usize = 1;
const FIRST: usize = 2;

/// An entry that nobody waits for.
const NOBODY: RawFd = -1;

/// What a connection does next.
enum Next {
    /// It waits until it can be read.
    Read,
    /// It waits until it can be written.
    Write,
    /// It is over.
    End,
}

/// Serves until the server stops.
///
/// # Errors
///
/// When the system can neither wait nor accept.
pub(crate) fn work<S: Stock>(server: &Server<S>, wake: &UnixStream) -> Result<Tally, Failure> {
    let mut desk = Desk::new(server);
    let listener = &server.listener;
    listener.set_nonblocking(true).map_err(Failure::SetUp)?;
    let mut entries = vec![
        entry(wake.as_raw_fd(), libc::POLLIN),
        entry(server.listener.as_raw_fd(), libc::POLLIN),
    ];
    let mut open = 0_usize;
    while !(desk.stopping && open == 0) {
        wait(&mut entries).map_err(Failure::Wait)?;
        for place in 0..entries.len() - FIRST {
            let entry = &mut entries[FIRST + place];
            if entry.fd == NOBODY || entry.revents == 0 {
                continue;
            }
            entry.events = match serve(&mut desk, place) {
                Next::Read => libc::POLLIN,
                Next::Write => libc::POLLOUT,
                Next::End => {
                    entry.fd = NOBODY;
                    open -= 1;
                    desk.dismiss(place);
                    0
                }
            };
        }
        if entries[WAKE].revents != 0 {
            entries[WAKE].fd = NOBODY;
            entries[LISTENER].fd = NOBODY;
            desk.stop();
        } else if entries[LISTENER].revents != 0 {
            accept(&mut desk, &mut entries, &mut open)?;
        }
    }
    desk.tally.busy = thread_time();
    Ok(desk.tally)
}

/// Takes in whoever waits at the listener.
fn accept<S: Stock>(
    desk: &mut Desk<'_, S>,
    entries: &mut Vec<libc::pollfd>,
    open: &mut usize,
) -> Result<(), Failure> {
    loop {
        let stream = match desk.server.listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if passing(&error) => return Ok(()),
            Err(error) => return Err(Failure::Accept(error)),
        };
        let fd = stream.as_raw_fd();
        stream.set_nonblocking(true).map_err(Failure::Accept)?;
        let Some(place) = desk.greet(stream) else {
            continue;
        };
        *open += 1;
        if entries.len() <= FIRST + place {
            entries.resize(FIRST + place + 1, entry(NOBODY, 0));
        }
        entries[FIRST + place] = entry(fd, libc::POLLIN);
    }
}

/// Whether an error tells only that nothing is there, or that who was there has gone.
fn passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(error.kind(), ConnectionAborted | Interrupted | WouldBlock)
}

/// Reads once, and writes what was read, as far as that goes without waiting.
fn serve<S: Stock>(desk: &mut Desk<'_, S>, place: usize) -> Next {
    let stock = &desk.server.stock;
    let Some(connection) = desk.table.get(place) else {
        return Next::End;
    };
    if connection.request.is_none() {
        let fd = connection.stream().as_raw_fd();
        let mut request = stock.request(Request::new(stock.memory()));
        match receive(fd, &mut request) {
            Ok(0) => return Next::End,
            Ok(_) => connection.request = Some(request),
            Err(error) if passing(&error) => return Next::Read,
            Err(_) => return Next::End,
        }
    }
    while let Some(request) = &connection.request {
        match connection.stream().write(request.rest()) {
            Ok(sent) => connection.sent(sent),
            Err(error) if passing(&error) => return Next::Write,
            Err(_) => return Next::End,
        };
    }
    Next::Read
}
