//! A named pool whose threads come when they are needed.

use std::collections::VecDeque;
use std::time::Duration;
use std::{fmt, io};

use super::run_caught;
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Arc, Condvar, Deadline, Mutex};

type Task = Box<dyn FnOnce() + Send>;

/// Runs tasks first in, first out, on threads named `{prefix}_{n}`.
///
/// A thread is started when a task finds none idle and the size allows one more; it ends after
/// 60 s without work (Java's keep-alive time of the consume pools). The queue has no bound: whoever
/// puts tasks in bounds them. A panic in a task is logged, and its thread goes on.
///
/// Dropping the pool drops what is queued, lets what runs come to its end, and waits for nothing.
///
/// # Java
///
/// `ThreadPoolExecutor` with `corePoolSize` = `maximumPoolSize`, an unbounded queue, and
/// `allowCoreThreadTimeOut`.
#[derive(Debug)]
pub(crate) struct ThreadPool {
    shared: Arc<Shared>,
}

/// What a [`ThreadPool::shutdown`] did until its deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PoolReport {
    /// Tasks that were queued or running when the shutdown began, and came to their end.
    pub(crate) drained: usize,
    /// Tasks that were queued, and were dropped without having run.
    pub(crate) abandoned: usize,
    /// Threads that were joined.
    pub(crate) joined: usize,
    /// Threads that run still: in a task, or because they are the caller.
    pub(crate) left: usize,
}

/// A task the pool did not take.
pub(crate) struct Rejected {
    pub(crate) task: Task,
    pub(crate) reason: RejectedReason,
}

/// Why the pool did not take a task.
#[derive(Debug)]
pub(crate) enum RejectedReason {
    /// The pool is shutting down, or has.
    ShutDown,
    /// The pool has no thread, and the operating system has none to give.
    NoThread(io::Error),
}

impl fmt::Debug for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rejected")
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}

impl ThreadPool {
    /// A pool without threads yet; a `size` of 0 counts as 1.
    pub(crate) fn new(name_prefix: impl Into<String>, size: usize) -> Self {
        Self::with_idle_time(name_prefix, size, IDLE_TIME)
    }

    fn with_idle_time(prefix: impl Into<String>, size: usize, idle_time: Duration) -> Self {
        let state = State {
            size: size.max(1),
            ..State::default()
        };
        Self {
            shared: Arc::new(Shared {
                name_prefix: prefix.into(),
                idle_time,
                state: Mutex::new(state),
                work: Condvar::new(),
                progress: Condvar::new(),
            }),
        }
    }

    /// Queues a task.
    ///
    /// # Errors
    ///
    /// The pool is shut down, or has no thread and cannot start one; the task is given back.
    pub(crate) fn execute<F>(&self, task: F) -> Result<(), Rejected>
    where
        F: FnOnce() + Send + 'static,
    {
        self.shared.execute(Box::new(task))
    }

    /// Changes the number of threads, 0 counting as 1. Threads too many end after the task they run.
    pub(crate) fn set_size(&self, size: usize) {
        let mut state = self.shared.state.lock();
        state.size = size.max(1);
        while state.wants_thread() {
            if let Err(error) = self.shared.start_thread(&mut state) {
                log::warn!(
                    "{}: cannot start a thread: {error}",
                    self.shared.name_prefix
                );
                break;
            }
        }
        drop(state);
        self.shared.work.notify_all();
    }

    pub(crate) fn size(&self) -> usize {
        self.shared.state.lock().size
    }

    /// How many tasks are running.
    pub(crate) fn active_count(&self) -> usize {
        self.shared.state.lock().active
    }

    /// How many tasks wait for a thread.
    pub(crate) fn queued(&self) -> usize {
        self.shared.state.lock().queue.len()
    }

    /// How many threads there are.
    pub(crate) fn thread_count(&self) -> usize {
        self.shared.state.lock().threads.len()
    }

    /// Takes no more tasks, lets those it has run until the deadline, drops the rest, and joins the
    /// threads.
    ///
    /// In a task of this pool it waits for the other tasks only, and not at all when no thread is
    /// left to run them; the thread of the caller ends after its task.
    pub(crate) fn shutdown(&self, deadline: Deadline) -> PoolReport {
        let shared = &self.shared;
        let mut state = shared.state.lock();
        state.shut_down = true;
        let completed_before = state.completed;
        let on_own_thread = state.threads.iter().any(JoinHandle::is_current);
        state.waiting_tasks += usize::from(on_own_thread);
        shared.work.notify_all();
        // Two tasks that both shut down must see each other, or each waits for the other's end.
        shared.progress.notify_all();
        while !state.is_drained() && state.has_free_thread() {
            if shared.progress.wait_until(&mut state, deadline) {
                break;
            }
        }
        let dropped = std::mem::take(&mut state.queue);
        let abandoned = dropped.len();
        // Without the lock: what a task owns may come back here in its drop.
        drop(state);
        drop(dropped);
        state = shared.state.lock();

        // On a thread of the pool: wait for the threads that can end, not for one that waits here.
        while on_own_thread && state.has_free_thread() {
            if shared.progress.wait_until(&mut state, deadline) {
                break;
            }
        }
        let mut threads = state.ended.clone();
        if !on_own_thread {
            threads.extend(state.threads.iter().cloned());
        }
        drop(state);
        let joined = threads
            .iter()
            .filter(|thread| thread.join_until(deadline))
            .count();

        let mut state = shared.state.lock();
        state.waiting_tasks -= usize::from(on_own_thread);
        PoolReport {
            drained: state.completed - completed_before,
            abandoned,
            joined,
            left: state.threads.len(),
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.shut_down = true;
        let dropped = std::mem::take(&mut state.queue);
        drop(state);
        self.shared.work.notify_all();
        drop(dropped);
    }
}

struct Shared {
    name_prefix: String,
    idle_time: Duration,
    state: Mutex<State>,
    /// A task was queued, the size changed, or the pool was shut down.
    work: Condvar,
    /// During a shutdown: a task came to its end, a thread ended, or a task began to wait.
    progress: Condvar,
}

/// While there is a task in the queue, there is a thread in `threads`.
#[derive(Default)]
struct State {
    queue: VecDeque<Task>,
    size: usize,
    /// Those that can take a task; a thread is in here until it decides to end.
    threads: Vec<JoinHandle>,
    /// Those that decided to end; the ones that have ended go when a thread is started.
    ended: Vec<JoinHandle>,
    started: u64,
    /// Threads that wait for a task, or were just started and have not looked for one yet.
    idle: usize,
    active: usize,
    completed: usize,
    /// Running tasks that are inside of `shutdown`; at most `active`.
    waiting_tasks: usize,
    shut_down: bool,
}

impl State {
    fn wants_thread(&self) -> bool {
        !self.shut_down && self.threads.len() < self.size && self.idle < self.queue.len()
    }

    fn is_drained(&self) -> bool {
        self.queue.is_empty() && self.active <= self.waiting_tasks
    }

    fn has_free_thread(&self) -> bool {
        self.threads.len() > self.waiting_tasks
    }
}

impl Shared {
    fn execute(self: &Arc<Self>, task: Task) -> Result<(), Rejected> {
        let mut state = self.state.lock();
        if state.shut_down {
            return Err(Rejected {
                task,
                reason: RejectedReason::ShutDown,
            });
        }
        state.queue.push_back(task);
        if state.wants_thread() {
            if let Err(error) = self.start_thread(&mut state) {
                if state.threads.is_empty() {
                    if let Some(task) = state.queue.pop_back() {
                        return Err(Rejected {
                            task,
                            reason: RejectedReason::NoThread(error),
                        });
                    }
                }
                log::warn!("{}: cannot start a thread: {error}", self.name_prefix);
            }
        }
        drop(state);
        self.work.notify_one();
        Ok(())
    }

    /// The lock is held over this, so the thread finds itself in `threads`.
    fn start_thread(self: &Arc<Self>, state: &mut State) -> io::Result<()> {
        state.ended.retain(|thread| !thread.has_exited());
        let name = format!("{}_{}", self.name_prefix, state.started + 1);
        let shared = Arc::clone(self);
        state
            .threads
            .push(thread::spawn(&name.clone(), move || shared.work(&name))?);
        state.started += 1;
        state.idle += 1;
        Ok(())
    }

    fn work(&self, name: &str) {
        let mut state = self.state.lock();
        state.idle -= 1;
        let mut timed_out = false;
        while state.threads.len() <= state.size {
            // After a time-out too: a task may have come while this thread waited for the lock.
            if let Some(task) = state.queue.pop_front() {
                state.active += 1;
                drop(state);
                run_caught(name, task);
                state = self.state.lock();
                state.active -= 1;
                state.completed += 1;
                timed_out = false;
                if state.shut_down {
                    self.progress.notify_all();
                }
            } else if timed_out || state.shut_down {
                break;
            } else {
                state.idle += 1;
                let until = Deadline::after(self.idle_time);
                timed_out = self.work.wait_until(&mut state, until);
                state.idle -= 1;
            }
        }
        if let Some(index) = state.threads.iter().position(JoinHandle::is_current) {
            let thread = state.threads.swap_remove(index);
            state.ended.push(thread);
        }
        self.progress.notify_all();
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("name_prefix", &self.name_prefix)
            .finish_non_exhaustive()
    }
}

const IDLE_TIME: Duration = Duration::from_secs(60);
