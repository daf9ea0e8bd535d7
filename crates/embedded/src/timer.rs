use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt;
use std::io;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

type Task = Box<dyn FnOnce() + Send>;

/// The one timer thread of a server: runs tasks at their time, in order.
///
/// A task may write to a connection and so take up to that connection's write timeout.
pub(crate) struct Timer {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    tasks: BinaryHeap<Entry>,
    next_number: u64,
    stopped: bool,
}

struct Entry {
    at: Instant,
    number: u64,
    task: Task,
}

/// Longest delay that is kept apart: a year is for ever in a process like this.
pub(crate) const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

impl Timer {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    pub(crate) fn start(self: &Arc<Self>, name: &str) -> io::Result<JoinHandle<()>> {
        let timer = Arc::clone(self);
        thread::Builder::new()
            .name(format!("embedded-{name}-timer"))
            .spawn(move || timer.run())
    }

    /// Runs a task after some time; never once the timer is stopped.
    pub(crate) fn schedule(&self, after: Duration, task: impl FnOnce() + Send + 'static) {
        let task: Task = Box::new(task);
        let mut state = self.state.lock();
        if state.stopped {
            // The task may own what takes other locks when it is dropped.
            drop(state);
            drop(task);
            return;
        }
        let number = state.next_number;
        state.next_number = number.wrapping_add(1);
        state.tasks.push(Entry {
            at: Instant::now() + after.min(FOREVER),
            number,
            task,
        });
        self.changed.notify_one();
    }

    /// Runs a task again and again, as long as its owner lives. The period is asked for each time.
    pub(crate) fn repeat<T: Send + Sync + 'static>(
        self: &Arc<Self>,
        owner: Weak<T>,
        period: impl Fn(&T) -> Duration + Send + 'static,
        task: impl Fn(&T) + Send + 'static,
    ) {
        let Some(after) = owner.upgrade().map(|owner| period(&owner)) else {
            return;
        };
        // The timer keeps its tasks; they must not keep the timer.
        let timer = Arc::downgrade(self);
        self.schedule(after, move || {
            if let Some(owner) = owner.upgrade() {
                task(&owner);
            }
            if let Some(timer) = timer.upgrade() {
                timer.repeat(owner, period, task);
            }
        });
    }

    /// Forgets all tasks and ends the thread after the task it is running.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        state.stopped = true;
        let forgotten = std::mem::take(&mut state.tasks);
        self.changed.notify_one();
        drop(state);
        drop(forgotten);
    }

    fn run(&self) {
        let mut state = self.state.lock();
        while !state.stopped {
            let Some(next) = state.tasks.peek().map(|entry| entry.at) else {
                self.changed.wait(&mut state);
                continue;
            };
            if next > Instant::now() {
                self.changed.wait_until(&mut state, next);
                continue;
            }
            if let Some(entry) = state.tasks.pop() {
                drop(state);
                (entry.task)();
                state = self.state.lock();
            }
        }
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer")
            .field("tasks", &self.state.lock().tasks.len())
            .finish_non_exhaustive()
    }
}

/// The heap gives its greatest first, so the earliest entry is the greatest.
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn tasks_run_in_the_order_of_their_times() {
        let timer = Timer::new();
        let (sender, receiver) = mpsc::channel();
        for (name, millis) in [("late", 60), ("first", 0), ("second", 0)] {
            let sender = sender.clone();
            timer.schedule(Duration::from_millis(millis), move || {
                sender.send(name).unwrap();
            });
        }
        let thread = timer.start("test").unwrap();
        let wait = Duration::from_secs(30);
        let ran: Vec<_> = (0..3)
            .map(|_| receiver.recv_timeout(wait).unwrap())
            .collect();
        assert_eq!(ran, ["first", "second", "late"]);
        timer.stop();
        thread.join().unwrap();
    }

    #[test]
    fn stopping_drops_what_waits_and_what_comes_later() {
        let timer = Timer::new();
        let held = Arc::new(());
        let task = |held: &Arc<()>| {
            let held = Arc::clone(held);
            move || drop(held)
        };
        timer.schedule(Duration::MAX, task(&held));
        let thread = timer.start("test").unwrap();
        timer.stop();
        thread.join().unwrap();
        timer.schedule(Duration::ZERO, task(&held));
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
