//! A TCP echo server whose connections, requests and buffers come from pools, beside the same server with `Box`.
//!
//! ```text
//! cargo run --release --example echo_server
//! cargo run --release --example echo_server -- --limit 1000      # sheds what is more
//! cargo run --release --example echo_server -- --export /tmp/pools & cargo run --example slabtop -- --file /tmp/pools
//! ```
//!
//! It listens on the loopback interface and is driven by its own client, which opens thousands of connections and keeps
//! them. Rounds with `Box` and with pools take turns. In each the client connects, sends its messages on all
//! connections at a time, checks what comes back, and the server shuts down while all connections are open. Then the
//! pools are closed, which fails if an object is still live.
//!
//! - [`args`]: the command line.
//! - [`stock`]: where objects come from.
//! - [`connection`]: a connection, its request, its buffer.
//! - [`server`]: who is let in, and how the server ends.
//! - `uring`, [`polled`]: a worker on io_uring, and one on poll(2).
//! - [`client`]: the other end.
//! - [`report`]: the table.
//! - [`system`]: calls that std has no name for.
//! - [`failure`]: what can go wrong.

mod args;
mod client;
mod connection;
mod failure;
mod polled;
mod report;
mod server;
mod stock;
mod system;
#[cfg(target_os = "linux")]
mod uring;

use core::time::Duration;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use clap::Parser;
use sheaves::export::Exporter;

use args::{Args, Mode};
use client::Client;
use failure::Failure;
use report::Round;
use server::{Server, Stop, Tally};
use stock::{ByBox, ByPool, Stock};

/// Descriptors besides those of connections: standard streams, rings, the exporter, wake-ups.
const OTHER_DESCRIPTORS: u64 = 200;

/// Between two snapshots.
const EXPORT_INTERVAL: Duration = Duration::from_millis(250);

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("echo_server: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// What all rounds have in common.
struct Plan {
    uring: bool,
    connections: usize,
    limit: usize,
    messages: u32,
    size: usize,
    threads: usize,
}

fn run(args: &Args) -> Result<(), Failure> {
    let plan = plan(args)?;
    let exporter = args.export.as_deref();
    let exporter = exporter
        .map(|path| Exporter::start(path, EXPORT_INTERVAL))
        .transpose()
        .map_err(Failure::Export)?;
    println!(
        "{} connections, of which {} are let in; {} messages of {} bytes on each; {} server threads on {}",
        plan.connections,
        plan.limit.min(plan.connections),
        plan.messages,
        plan.size,
        plan.threads,
        if plan.uring { "io_uring" } else { "poll" },
    );
    let (mut by_box, mut by_pool) = (Vec::new(), Vec::new());
    for number in 0..=args.rounds {
        let last = number == args.rounds;
        let boxed = round::<ByBox>(&plan, false)?;
        let pooled = round::<ByPool>(&plan, last)?;
        if number > 0 {
            by_box.push(boxed);
            by_pool.push(pooled);
        }
    }
    print!("\n{}", report::table(&by_box, &by_pool));
    println!(
        "\nevery message came back; every connection was ended by the server; every pool was closed"
    );
    drop(exporter);
    Ok(())
}

/// Finds out what can be had of what was asked for.
fn plan(args: &Args) -> Result<Plan, Failure> {
    let mut connections = u64::from(args.connections);
    // Both ends of each connection are in this process.
    let wanted = 2 * connections + OTHER_DESCRIPTORS;
    let descriptors = system::raise_descriptors(wanted).map_err(Failure::SetUp)?;
    if descriptors < wanted {
        connections = descriptors.saturating_sub(OTHER_DESCRIPTORS) / 2;
        println!(
            "{descriptors} descriptors are allowed, so that {connections} connections are opened \
             instead of {}; the limit of open files decides",
            args.connections
        );
    }
    if connections == 0 {
        return Err(Failure::Descriptors(descriptors));
    }
    let limit = args.limit.map_or(connections, u64::from);
    let uring = match (args.mode, open_io_uring(args)) {
        (Mode::Threads, _) => false,
        (_, Ok(())) => true,
        (Mode::Auto, Err(why)) => {
            println!("io_uring cannot be used here ({why}); threads poll instead");
            false
        }
        (Mode::IoUring, Err(why)) => return Err(Failure::Forbidden(why)),
    };
    let to_usize = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    Ok(Plan {
        uring,
        connections: to_usize(connections),
        limit: to_usize(limit),
        messages: args.messages,
        size: args.size as usize,
        threads: args.threads as usize,
    })
}

/// Whether io_uring can be had, or why not.
fn open_io_uring(args: &Args) -> Result<(), String> {
    if args.forbid_io_uring {
        return Err("the command line forbids it".to_owned());
    }
    #[cfg(target_os = "linux")]
    return uring::probe().map_err(|error| error.to_string());
    #[cfg(not(target_os = "linux"))]
    return Err("it is Linux's".to_owned());
}

/// One worker, in the way of the plan.
fn work<S: Stock>(plan: &Plan, server: &Server<S>, wake: &UnixStream) -> Result<Tally, Failure> {
    #[cfg(target_os = "linux")]
    if plan.uring {
        return uring::work(server, wake);
    }
    let _ = plan;
    polled::work(server, wake)
}

/// Starts a server, drives it, and shuts it down.
fn round<S: Stock>(plan: &Plan, show: bool) -> Result<Round, Failure> {
    let server = Server::<S>::bind(plan.limit)?;
    let (stop, wakes) = Stop::new(plan.threads).map_err(Failure::SetUp)?;
    let (driven, worked) = thread::scope(|scope| {
        let server = &server;
        let workers: Vec<_> = wakes
            .iter()
            .map(|wake| scope.spawn(move || work(plan, server, wake)))
            .collect();
        let driven = drive(plan, server, stop, show);
        let worked = workers
            .into_iter()
            .map(join)
            .try_fold(Tally::default(), |sum, tally| -> Result<Tally, Failure> {
                Ok(sum.add(tally?))
            });
        (driven, worked)
    });
    // A worker that failed is why the client lost its connection, so it is told first.
    let tally = worked?;
    let driven = driven?;
    server.stock.close()?;
    let messages = driven.open * u64::from(plan.messages);
    let bytes = messages * plan.size as u64;
    same("connections open", driven.open, tally.admitted)?;
    same("connections shed", driven.shed, tally.shed)?;
    same("bytes", bytes, tally.account.bytes)?;
    Ok(Round {
        messages,
        elapsed: driven.elapsed,
        tally,
    })
}

/// Compares what both ends counted.
fn same(what: &'static str, client: u64, server: u64) -> Result<(), Failure> {
    if client == server {
        return Ok(());
    }
    Err(Failure::Account {
        what,
        client,
        server,
    })
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    match thread.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// What the client found.
struct Driven {
    open: u64,
    shed: u64,
    /// From the first message to the last.
    elapsed: Duration,
}

/// The client's part.
fn drive<S: Stock>(
    plan: &Plan,
    server: &Server<S>,
    stop: Stop,
    show: bool,
) -> Result<Driven, Failure> {
    let address = server.address()?;
    let share = plan.connections.div_ceil(plan.threads);
    let shares = (0..plan.connections)
        .step_by(share)
        .map(|first| (first, share.min(plan.connections - first)));
    let mut clients = shares
        .map(|(first, count)| Client::connect(address, first, count))
        .collect::<Result<Vec<_>, _>>()?;
    let start = Instant::now();
    each(&mut clients, |client| client.talk(plan.messages, plan.size))?;
    let elapsed = start.elapsed();
    let sum = |of: fn(&Client) -> usize| clients.iter().map(of).sum::<usize>() as u64;
    let (open, shed) = (sum(Client::open), sum(|client| client.shed().len()));
    if show {
        tell(server, &clients);
    }
    drop(stop);
    clients.into_iter().try_for_each(Client::expect_end)?;
    Ok(Driven {
        open,
        shed,
        elapsed,
    })
}

/// Runs `part` for each client on a thread of its own.
fn each(
    clients: &mut [Client],
    part: impl Fn(&mut Client) -> Result<(), Failure> + Sync,
) -> Result<(), Failure> {
    let part = &part;
    thread::scope(|scope| {
        let threads: Vec<_> = clients
            .iter_mut()
            .map(|client| scope.spawn(move || part(client)))
            .collect();
        threads.into_iter().try_for_each(join)
    })
}

/// Shows the pools while all connections are open, and what those were told that were shed.
fn tell<S: Stock>(server: &Server<S>, clients: &[Client]) {
    let shed: Vec<&String> = clients.iter().flat_map(Client::shed).collect();
    if let Some(why) = shed.first() {
        println!("\n{} connections were shed, and told: {why}", shed.len());
    }
    if let Some(census) = server.stock.census() {
        print!("\nwith all connections open:\n{census}");
    }
}
