//! A worker on io_uring.
//!
//! A connection is, in turn, polled until there is something to read, read, and answered; one operation of it is under
//! way at any time. What an operation carries, its user data, is the connection's place and what it waits for. The
//! system writes into buffers while nobody here looks, so what they belong to must stay until the operation has
//! completed: [`Worker`] lets nothing go before, and leaks its table if the ring fails.

use core::mem;
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use io_uring::{IoUring, opcode, squeue, types};

use super::connection::{Request, Table};
use super::failure::Failure;
use super::server::{Desk, Server, Tally};
use super::stock::Stock;
use super::system::thread_time;

/// Places in the submission queue: as many operations go to the system in one call.
const SUBMISSIONS: u32 = 1024;

/// The completion queue's bounds. What finds it full is kept by the system and costs a call.
const COMPLETIONS: (u32, u32) = (4096, 32_768);

/// What an operation is, in the low bits of its user data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum Kind {
    Accept,
    Wake,
    Cancel,
    Ready,
    Receive,
    Send,
}

/// Bits of the user data that are the kind.
const KIND_BITS: u32 = 3;

impl Kind {
    const fn at(self, place: usize) -> u64 {
        ((place as u64) << KIND_BITS) | self as u64
    }

    /// The kind and the place.
    fn of(user_data: u64) -> (Option<Self>, usize) {
        let kind = match user_data & ((1 << KIND_BITS) - 1) {
            0 => Some(Self::Accept),
            1 => Some(Self::Wake),
            2 => Some(Self::Cancel),
            3 => Some(Self::Ready),
            4 => Some(Self::Receive),
            5 => Some(Self::Send),
            _ => None,
        };
        let place = usize::try_from(user_data >> KIND_BITS).unwrap_or(usize::MAX);
        (kind, place)
    }
}

/// A ring for `connections` connections, with completion work kept out of interrupts where the kernel can do that.
fn open(connections: usize) -> io::Result<IoUring> {
    let (least, most) = COMPLETIONS;
    let completions = u32::try_from(connections)
        .unwrap_or(most)
        .clamp(least, most);
    let mut builder = IoUring::builder();
    builder.setup_cqsize(completions.next_power_of_two());
    let plain = builder.clone();
    builder.setup_single_issuer().setup_defer_taskrun();
    match builder.build(SUBMISSIONS) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => plain.build(SUBMISSIONS),
        other => other,
    }
}

/// Sets a ring up and sends a NOP through it: some sandboxes allow the one and forbid the other.
///
/// # Errors
///
/// Why io_uring cannot be had.
pub(crate) fn probe() -> io::Result<()> {
    let mut ring = open(1)?;
    let nop = opcode::Nop::new().build();
    // SAFETY: a NOP refers to no memory.
    let pushed = unsafe { ring.submission().push(&nop) };
    pushed.map_err(io::Error::other)?;
    ring.submit_and_wait(1)?;
    let result = ring.completion().next().map(|entry| entry.result());
    if result != Some(0) {
        return Err(io::Error::other("a NOP did not come back"));
    }
    let mut known = io_uring::Probe::new();
    ring.submitter().register_probe(&mut known)?;
    let needed = [
        opcode::Accept::CODE,
        opcode::AsyncCancel::CODE,
        opcode::PollAdd::CODE,
        opcode::Recv::CODE,
        opcode::Send::CODE,
    ];
    if needed.into_iter().all(|code| known.is_supported(code)) {
        Ok(())
    } else {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }
}

struct Worker<'a, S: Stock> {
    ring: IoUring,
    desk: Desk<'a, S>,
    /// Operations that have not completed.
    in_flight: usize,
}

impl<S: Stock> Drop for Worker<'_, S> {
    fn drop(&mut self) {
        if self.in_flight > 0 {
            // The system may still write into buffers.
            #[expect(clippy::mem_forget, reason = "leaking is the purpose")]
            mem::forget(mem::replace(&mut self.desk.table, Table::new()));
        }
    }
}

/// Serves until the server stops.
///
/// # Errors
///
/// When the ring fails, or the system accepts no more.
pub(crate) fn work<S: Stock>(server: &Server<S>, wake: &UnixStream) -> Result<Tally, Failure> {
    let mut worker = Worker {
        ring: open(server.connections).map_err(Failure::SetUp)?,
        desk: Desk::new(server),
        in_flight: 0,
    };
    let fd = types::Fd(wake.as_raw_fd());
    let woken = opcode::PollAdd::new(fd, poll_in()).build();
    worker.push(woken.user_data(Kind::Wake.at(0)))?;
    worker.accept()?;
    let mut batch = Vec::new();
    while worker.in_flight > 0 {
        match worker.ring.submit_and_wait(1) {
            Ok(_) => {}
            Err(error) if passing(&error) => {}
            Err(error) => return Err(Failure::Wait(error)),
        }
        let completed = worker.ring.completion();
        batch.extend(completed.map(|entry| (entry.user_data(), entry.result())));
        worker.in_flight -= batch.len();
        for (user_data, result) in batch.drain(..) {
            worker.complete(user_data, result)?;
        }
    }
    worker.desk.tally.busy = thread_time();
    Ok(worker.desk.tally)
}

/// What a poll waits for.
const fn poll_in() -> u32 {
    libc::POLLIN.unsigned_abs() as u32
}

/// Whether a call only has to be made again.
fn passing(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)
    )
}

impl<S: Stock> Worker<'_, S> {
    /// Queues an operation. What it refers to stays in the table until it has completed.
    fn push(&mut self, entry: squeue::Entry) -> Result<(), Failure> {
        loop {
            // SAFETY: the entry's buffer, if it has one, belongs to the request of a connection in the table, which
            // is not let go before the completion came; a failed ring has the table leaked.
            if unsafe { self.ring.submission().push(&entry) }.is_ok() {
                self.in_flight += 1;
                return Ok(());
            }
            match self.ring.submit() {
                Ok(_) => {}
                Err(error) if passing(&error) => {}
                Err(error) => return Err(Failure::Wait(error)),
            }
        }
    }

    fn accept(&mut self) -> Result<(), Failure> {
        let fd = types::Fd(self.desk.server.listener.as_raw_fd());
        let none = core::ptr::null_mut();
        let entry = opcode::Accept::new(fd, none, none.cast()).build();
        self.push(entry.user_data(Kind::Accept.at(0)))
    }

    fn complete(&mut self, user_data: u64, result: i32) -> Result<(), Failure> {
        match Kind::of(user_data) {
            (Some(Kind::Accept), _) => self.accepted(result),
            (Some(Kind::Wake), _) => {
                self.desk.stop();
                let cancel = opcode::AsyncCancel::new(Kind::Accept.at(0)).build();
                self.push(cancel.user_data(Kind::Cancel.at(0)))
            }
            (Some(Kind::Ready), place) => self.receive(place),
            (Some(Kind::Receive), place) => self.received(place, result),
            (Some(Kind::Send), place) => self.sent(place, result),
            (Some(Kind::Cancel) | None, _) => Ok(()),
        }
    }

    fn accepted(&mut self, result: i32) -> Result<(), Failure> {
        if result >= 0 {
            // SAFETY: a completed accept gives a descriptor that is ours alone.
            let fd = unsafe { OwnedFd::from_raw_fd(result) };
            let stream = TcpStream::from(fd);
            if self.desk.stopping {
                return Ok(());
            }
            if let Some(place) = self.desk.greet(stream) {
                self.poll(place)?;
            }
        } else if !matches!(-result, libc::ECANCELED | libc::ECONNABORTED | libc::EINTR) {
            let error = io::Error::from_raw_os_error(-result);
            return Err(Failure::Accept(error));
        }
        if self.desk.stopping {
            Ok(())
        } else {
            self.accept()
        }
    }

    /// Waits until there is something to read.
    fn poll(&mut self, place: usize) -> Result<(), Failure> {
        let Some(connection) = self.desk.table.get(place) else {
            return Ok(());
        };
        let fd = types::Fd(connection.stream().as_raw_fd());
        let entry = opcode::PollAdd::new(fd, poll_in()).build();
        self.push(entry.user_data(Kind::Ready.at(place)))
    }

    fn receive(&mut self, place: usize) -> Result<(), Failure> {
        let stock = &self.desk.server.stock;
        let Some(connection) = self.desk.table.get(place) else {
            return Ok(());
        };
        let fd = types::Fd(connection.stream().as_raw_fd());
        let request = stock.request(Request::new(stock.memory()));
        let (start, length) = connection.request.insert(request).room();
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        let entry = opcode::Recv::new(fd, start, length).build();
        self.push(entry.user_data(Kind::Receive.at(place)))
    }

    fn received(&mut self, place: usize, result: i32) -> Result<(), Failure> {
        let Some(connection) = self.desk.table.get(place) else {
            return Ok(());
        };
        match (usize::try_from(result), &mut connection.request) {
            (Ok(n), Some(request)) if n > 0 => {
                // SAFETY: the completion says that the system wrote so many bytes into the request's room.
                unsafe { request.received(n) };
                self.send(place)
            }
            (Err(_), _) if matches!(-result, libc::EINTR | libc::EAGAIN) => {
                connection.request = None;
                self.poll(place)
            }
            _ => {
                self.desk.dismiss(place);
                Ok(())
            }
        }
    }

    fn send(&mut self, place: usize) -> Result<(), Failure> {
        let Some(connection) = self.desk.table.get(place) else {
            return Ok(());
        };
        let Some(request) = &connection.request else {
            return Ok(());
        };
        let rest = request.rest();
        let length = u32::try_from(rest.len()).unwrap_or(u32::MAX);
        let fd = types::Fd(connection.stream().as_raw_fd());
        // MSG_NOSIGNAL: a peer that is gone is an error, not the end of the process.
        let entry = opcode::Send::new(fd, rest.as_ptr(), length).flags(libc::MSG_NOSIGNAL);
        self.push(entry.build().user_data(Kind::Send.at(place)))
    }

    fn sent(&mut self, place: usize, result: i32) -> Result<(), Failure> {
        let Some(connection) = self.desk.table.get(place) else {
            return Ok(());
        };
        match usize::try_from(result) {
            Ok(n) if connection.sent(n) => self.poll(place),
            Ok(_) => self.send(place),
            Err(_) if matches!(-result, libc::EINTR | libc::EAGAIN) => self.send(place),
            Err(_) => {
                self.desk.dismiss(place);
                Ok(())
            }
        }
    }
}
