//! The end of a client: once, within a deadline, and from any thread.

use std::fmt;
use std::time::Duration;

use crate::sync::{Arc, Condvar, Deadline, Mutex, thread};

/// What a shutdown did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// The shutdown goes on in the background: it was called on a thread of this library, a
    /// listener's for instance, which it has to wait for; or another call is at it still. All other
    /// fields then say nothing. `await_termination` waits for its end.
    pub deferred: bool,
    /// Listener calls that were finished: the ones running, and those for messages before them. Later
    /// ones are not made; their messages go to whoever gets the queue.
    ///
    /// Of a producer: asynchronous sends, and messages that were gathered into batches, that ended
    /// meanwhile; their callbacks have returned.
    pub drained: usize,
    /// Listener calls that were dropped because time was up; their messages are delivered again, to
    /// whoever gets the queue.
    ///
    /// Of a producer: those sends that were under way still, or whose callbacks were. Each callback
    /// is told all the same, once: of the result, or that the connection was closed.
    pub abandoned: usize,
    /// Queues whose offset was sent to the broker.
    pub offsets_saved: usize,
    /// Whether all threads that had to end have ended in time.
    pub threads_joined: bool,
}

/// Ends a client exactly once; everybody else waits for that or is told so.
pub(crate) struct Termination {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Alive,
    Ending,
    Ended(ShutdownReport),
}

const DEFERRED: ShutdownReport = ShutdownReport {
    deferred: true,
    drained: 0,
    abandoned: 0,
    offsets_saved: 0,
    threads_joined: false,
};

impl Termination {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State::Alive),
            ended: Condvar::new(),
        })
    }

    /// Runs `begin`, which must not wait, and then `work` with what it returned, unless that was done
    /// before. On a thread of this library the work runs on a reaper thread, since that thread may
    /// be one that the work waits for.
    pub(crate) fn shut_down<B: Send + 'static>(
        self: &Arc<Self>,
        timeout: Duration,
        begin: impl FnOnce() -> B,
        work: impl FnOnce(B, Deadline) -> ShutdownReport + Send + 'static,
    ) -> ShutdownReport {
        let deadline = Deadline::after(timeout);
        let mut state = self.state.lock();
        match *state {
            State::Ended(report) => return report,
            State::Ending => {
                drop(state);
                return self.wait_for_end(deadline).unwrap_or(DEFERRED);
            }
            State::Alive => *state = State::Ending,
        }
        drop(state);
        let begun = begin();
        if !thread::is_library_thread() {
            return self.finish(work(begun, deadline));
        }
        let this = Arc::clone(self);
        let reaper = thread::spawn("ClientReaper", move || {
            this.finish(work(begun, deadline));
        });
        if let Err(error) = reaper {
            log::error!("no thread for the shutdown, it is not done: {error}");
            *self.state.lock() = State::Alive;
        }
        DEFERRED
    }

    fn finish(&self, report: ShutdownReport) -> ShutdownReport {
        *self.state.lock() = State::Ended(report);
        self.ended.notify_all();
        report
    }

    /// Waits until the shutdown has ended; `None` at the deadline, and at once on a thread that the
    /// shutdown may be waiting for.
    pub(crate) fn wait_for_end(&self, deadline: Deadline) -> Option<ShutdownReport> {
        let mut state = self.state.lock();
        loop {
            if let State::Ended(report) = *state {
                return Some(report);
            }
            if thread::is_library_thread() || self.ended.wait_until(&mut state, deadline) {
                return None;
            }
        }
    }
}

impl fmt::Debug for Termination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Termination")
            .field(&*self.state.lock())
            .finish()
    }
}
