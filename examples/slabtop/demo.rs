//! A workload to look at: two threads that use four pools, each in its own way.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use sheaves::{Pool, PoolBox};

/// Runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Demo {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Demo {
    pub(crate) fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let requests = Pool::new("io_kiocb");
        let spawn = |work: fn(&AtomicBool, &Pool<[u64; 30]>)| {
            let (stop, requests) = (Arc::clone(&stop), requests.clone());
            thread::spawn(move || work(&stop, &requests))
        };
        let threads = vec![spawn(connections), spawn(trees)];
        Self { stop, threads }
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Turns of a thread, with a pause after each, until the demo ends.
fn turns(stop: &AtomicBool) -> impl Iterator<Item = usize> {
    (0..).take_while(|_| {
        thread::sleep(Duration::from_millis(2));
        !stop.load(Ordering::Relaxed)
    })
}

/// Requests that are short-lived, and connections whose number swells and ebbs.
fn connections(stop: &AtomicBool, requests: &Pool<[u64; 30]>) {
    let connections = Pool::new("connection");
    let mut open: VecDeque<PoolBox<[u64; 120]>> = VecDeque::new();
    for turn in turns(stop) {
        for _ in 0..20 {
            drop((0..50).map(|i| requests.alloc([i; 30])).collect::<Vec<_>>());
        }
        if turn / 500 % 2 == 0 {
            open.extend((0..8).map(|_| connections.alloc([0; 120])));
        } else {
            open.drain(..open.len().min(8));
        }
    }
}

/// A queue of nodes, and now and then a burst of buffers.
fn trees(stop: &AtomicBool, requests: &Pool<[u64; 30]>) {
    let nodes = Pool::new("tree_node");
    let buffers = Pool::new("buffer");
    let mut queue = VecDeque::new();
    for turn in turns(stop) {
        for i in 0..200 {
            queue.push_back(nodes.alloc([i as u64; 6]));
            if queue.len() > 5000 {
                queue.pop_front();
            }
        }
        drop(
            (0..100)
                .map(|i| requests.alloc([i; 30]))
                .collect::<Vec<_>>(),
        );
        if turn % 100 == 0 {
            drop(
                (0..500)
                    .map(|_| buffers.alloc([0_u8; 4096]))
                    .collect::<Vec<_>>(),
            );
        }
        if turn % 1000 == 999 {
            buffers.shrink();
        }
    }
}
