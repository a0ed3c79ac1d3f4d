//! A thread that does one call at a time and answers before the next.
#![forbid(unsafe_code)]

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::engine::{Action, Answer, Engine};

#[derive(Debug)]
pub(crate) struct Worker {
    calls: Sender<Action>,
    answers: Receiver<Answer>,
    thread: JoinHandle<()>,
}

impl Worker {
    pub(crate) fn new<const N: usize>(engine: &Arc<Mutex<Engine<N>>>) -> Self {
        let engine = Arc::clone(engine);
        let (calls, next) = channel::<Action>();
        let (done, answers) = channel();
        let thread = std::thread::spawn(move || {
            for action in next {
                let mut engine = engine.lock().unwrap_or_else(PoisonError::into_inner);
                let answer = engine.apply(action);
                drop(engine);
                if done.send(answer).is_err() {
                    return;
                }
            }
        });
        Self {
            calls,
            answers,
            thread,
        }
    }

    pub(crate) fn call(&self, action: Action) -> Answer {
        let sent = self.calls.send(action);
        let answer = sent.ok().and_then(|()| self.answers.recv().ok());
        // The thread has printed its message.
        answer.unwrap_or_else(|| panic!("the thread that was to do {action:?} panicked"))
    }

    /// Ends the thread; its destructors have run when this returns.
    pub(crate) fn end(self) {
        drop(self.calls);
        self.thread
            .join()
            .expect("a thread that answered all calls");
    }
}
