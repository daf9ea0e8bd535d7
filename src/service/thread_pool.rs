//! A named pool whose threads come when they are needed.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Duration;
use std::{fmt, io};

use super::run_caught;
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Arc, Condvar, Deadline, Mutex, MutexGuard};

/// Runs once, on a thread of a pool.
pub(crate) type Task = Box<dyn FnOnce() + Send>;

/// Work in parts that may run side by side, in any order.
pub(crate) trait Parts: Send + Sync {
    /// Does one part, on a thread of a pool.
    fn run_part(&self);
}

/// Runs tasks first in, first out, on threads named `{prefix}_{n}`.
///
/// A thread is started when a task finds none idle and the size allows one more; it ends after
/// 60 s without work (Java's keep-alive time of the consume pools). The queue has no bound: whoever
/// puts tasks in bounds them. A panic in a task is logged, and its thread goes on.
///
/// Sleeping threads are woken one at a time: whoever takes a task and leaves others wakes the next.
/// So many short tasks that come at once do not wake as many threads, and long ones still get as many
/// as there are.
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

impl fmt::Display for RejectedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ShutDown => f.write_str("the pool is shut down"),
            Self::NoThread(error) => write!(f, "there is no thread to be had: {error}"),
        }
    }
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
        let task: Task = Box::new(task);
        let mut state = self.shared.state.lock();
        if let Err(reason) = self.shared.make_ready(&mut state) {
            return Err(Rejected { task, reason });
        }
        state.queue.push(task);
        self.shared.wake_one(state);
        Ok(())
    }

    /// Queues all parts of a work, as so many tasks one behind the other.
    ///
    /// # Errors
    ///
    /// As for [`execute`](Self::execute); no part was queued.
    pub(crate) fn execute_parts(
        &self,
        work: Arc<dyn Parts>,
        parts: usize,
    ) -> Result<(), RejectedReason> {
        let mut state = self.shared.state.lock();
        self.shared.make_ready(&mut state)?;
        state.queue.push_parts(work, parts);
        self.shared.wake_one(state);
        Ok(())
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

    /// How many threads it may have.
    pub(crate) fn size(&self) -> usize {
        self.shared.state.lock().size
    }

    /// How many tasks are running.
    pub(crate) fn active_count(&self) -> usize {
        self.shared.state.lock().active
    }

    /// How many tasks wait for a thread.
    pub(crate) fn queued(&self) -> usize {
        self.shared.state.lock().queue.len
    }

    /// How many threads there are.
    #[cfg(test)]
    pub(crate) fn thread_count(&self) -> usize {
        self.shared.state.lock().threads.len()
    }

    /// Takes no more tasks; what ends from here on counts as drained in the report of
    /// [`shutdown`](Self::shutdown).
    pub(crate) fn refuse_tasks(&self) {
        self.shared.state.lock().refuse_tasks();
        self.shared.work.notify_all();
    }

    /// Takes no more tasks, lets those it has run until the deadline, drops the rest, and joins the
    /// threads.
    ///
    /// In a task of this pool it waits for the other tasks only, and not at all when no thread is
    /// left to run them; the thread of the caller ends after its task.
    pub(crate) fn shutdown(&self, deadline: Deadline) -> PoolReport {
        let shared = &self.shared;
        let mut state = shared.state.lock();
        state.refuse_tasks();
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
        let abandoned = dropped.len;
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
        let drained = state.completed - state.completed_before_end;
        // A later report counts what ended since this one.
        state.completed_before_end = state.completed;
        let left = state.threads.len();
        drop(state);
        if left > 0 {
            let prefix = &shared.name_prefix;
            log::warn!("{prefix}: threads that have not ended in time: {left}");
        }
        PoolReport {
            drained,
            abandoned,
            joined,
            left,
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.refuse_tasks();
        let dropped = std::mem::take(&mut state.queue);
        drop(state);
        self.shared.work.notify_all();
        drop(dropped);
    }
}

thread_local! {
    /// The pools that this thread is to wake when it is done with what it does.
    static TO_WAKE: RefCell<Option<Vec<Arc<Shared>>>> = const { RefCell::new(None) };
}

/// Does work that may put many tasks into pools, and wakes their sleeping threads at its end only:
/// short tasks that come one by one would wake a thread each.
pub(crate) fn wake_at_the_end<R>(work: impl FnOnce() -> R) -> R {
    let is_outer = TO_WAKE
        .try_with(|to_wake| {
            let mut to_wake = to_wake.borrow_mut();
            let is_outer = to_wake.is_none();
            to_wake.get_or_insert_default();
            is_outer
        })
        .unwrap_or(false);
    let _waking = is_outer.then(|| WakesAtEnd);
    work()
}

/// Wakes them also when the work has panicked.
struct WakesAtEnd;

impl Drop for WakesAtEnd {
    fn drop(&mut self) {
        let pools = TO_WAKE.try_with(|to_wake| to_wake.borrow_mut().take());
        for pool in pools.ok().flatten().unwrap_or_default() {
            let state = pool.state.lock();
            pool.wake_one(state);
        }
    }
}

/// Notes a pool to be woken later; `false` where nobody will.
fn put_off(pool: &Arc<Shared>) -> bool {
    let noted = TO_WAKE.try_with(|to_wake| match to_wake.borrow_mut().as_mut() {
        Some(pools) => {
            if !pools.iter().any(|known| Arc::ptr_eq(known, pool)) {
                pools.push(Arc::clone(pool));
            }
            true
        }
        None => false,
    });
    noted.unwrap_or(false)
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

/// The tasks that wait for a thread; parts of one work are together, and count one by one.
#[derive(Default)]
struct Queue {
    works: VecDeque<Work>,
    len: usize,
}

enum Work {
    Task(Task),
    Parts { work: Arc<dyn Parts>, left: usize },
}

impl Queue {
    fn push(&mut self, task: Task) {
        self.works.push_back(Work::Task(task));
        self.len += 1;
    }

    fn push_parts(&mut self, work: Arc<dyn Parts>, parts: usize) {
        if parts > 0 {
            self.works.push_back(Work::Parts { work, left: parts });
            self.len += parts;
        }
    }

    fn pop(&mut self) -> Option<Next> {
        let next = match self.works.front_mut()? {
            Work::Parts { work, left } if *left > 1 => {
                *left -= 1;
                Next::Part(Arc::clone(work))
            }
            _ => match self.works.pop_front()? {
                Work::Task(task) => Next::Task(task),
                Work::Parts { work, .. } => Next::Part(work),
            },
        };
        self.len -= 1;
        Some(next)
    }
}

/// What a thread does next.
enum Next {
    Task(Task),
    Part(Arc<dyn Parts>),
}

impl Next {
    fn run(self) {
        match self {
            Self::Task(task) => task(),
            Self::Part(work) => work.run_part(),
        }
    }
}

/// While there is a task in the queue, there is a thread in `threads`; and while there is one and a
/// thread sleeps, a thread is on its way to take it.
#[derive(Default)]
struct State {
    queue: Queue,
    size: usize,
    /// Those that can take a task; a thread is in here until it decides to end.
    threads: Vec<JoinHandle>,
    /// Those that decided to end; the ones that have ended go when a thread is started.
    ended: Vec<JoinHandle>,
    started: u64,
    /// Threads that wait for a task, or were just started and have not looked for one yet.
    idle: usize,
    /// Of these, those that sleep, or have been woken and not yet arrived.
    sleeping: usize,
    /// One of them has been woken and has not arrived.
    waking: bool,
    active: usize,
    completed: usize,
    /// How many had run when the end began.
    completed_before_end: usize,
    /// Running tasks that are inside of `shutdown`; at most `active`.
    waiting_tasks: usize,
    shut_down: bool,
}

impl State {
    fn refuse_tasks(&mut self) {
        if !self.shut_down {
            self.shut_down = true;
            self.completed_before_end = self.completed;
        }
    }

    fn wants_thread(&self) -> bool {
        !self.shut_down && self.threads.len() < self.size && self.idle < self.queue.len
    }

    /// Whether a sleeping thread is to be woken, which the caller then does.
    fn wants_wake(&mut self) -> bool {
        let wants = self.queue.len > 0 && self.sleeping > 0 && !self.waking;
        self.waking |= wants;
        wants
    }

    fn is_drained(&self) -> bool {
        self.queue.len == 0 && self.active <= self.waiting_tasks
    }

    fn has_free_thread(&self) -> bool {
        self.threads.len() > self.waiting_tasks
    }
}

impl Shared {
    /// Sees to it that there is a thread for one task more.
    fn make_ready(self: &Arc<Self>, state: &mut State) -> Result<(), RejectedReason> {
        if state.shut_down {
            return Err(RejectedReason::ShutDown);
        }
        if state.threads.len() < state.size && state.idle <= state.queue.len {
            if let Err(error) = self.start_thread(state) {
                if state.threads.is_empty() {
                    return Err(RejectedReason::NoThread(error));
                }
                log::warn!("{}: cannot start a thread: {error}", self.name_prefix);
            }
        }
        Ok(())
    }

    /// Wakes a thread if that is needed, or has that done at the end of [`wake_at_the_end`].
    fn wake_one(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.queue.len > 0 && state.sleeping > 0 && !state.waking && put_off(self) {
            return;
        }
        let wake = state.wants_wake();
        drop(state);
        if wake {
            self.work.notify_one();
        }
    }

    /// Has somebody else look for what is left of the queue.
    fn pass_on(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        // A thread that was just started looks by itself.
        if state.idle == 0 && state.wants_thread() {
            if let Err(error) = self.start_thread(&mut state) {
                log::debug!("{}: cannot start a thread: {error}", self.name_prefix);
            }
        }
        self.wake_one(state);
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

    fn work(self: &Arc<Self>, name: &str) {
        let mut state = self.state.lock();
        state.idle -= 1;
        let mut timed_out = false;
        while state.threads.len() <= state.size {
            // After a time-out too: a task may have come while this thread waited for the lock.
            if let Some(next) = state.queue.pop() {
                state.active += 1;
                self.pass_on(state);
                run_caught(name, || next.run());
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
                state.sleeping += 1;
                let until = Deadline::after(self.idle_time);
                timed_out = self.work.wait_until(&mut state, until);
                // Whoever was woken: this thread is the one that has arrived.
                state.waking = false;
                state.sleeping -= 1;
                state.idle -= 1;
            }
        }
        if let Some(index) = state.threads.iter().position(JoinHandle::is_current) {
            let thread = state.threads.swap_remove(index);
            state.ended.push(thread);
        }
        // One that was woken and ends, because it is one too many, took no task.
        self.wake_one(state);
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

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::sync::channel::{Receiver, Sender, unbounded};

    const GENEROUS: Duration = Duration::from_secs(30);

    fn generous() -> Deadline {
        Deadline::after(GENEROUS)
    }

    /// Puts a task that reports its start and then runs until the returned sender is dropped.
    fn hold(pool: &ThreadPool, started: &Sender<()>) -> Sender<()> {
        let (release, held) = unbounded::<()>();
        let started = started.clone();
        pool.execute(move || {
            started.send(()).unwrap();
            let _ = held.recv();
        })
        .unwrap();
        release
    }

    fn thread_name(pool: &ThreadPool) -> String {
        let (name, named) = unbounded();
        pool.execute(move || {
            name.send(thread::current_name()).unwrap();
        })
        .unwrap();
        named.recv_timeout(GENEROUS).unwrap()
    }

    /// Waits for what the pool tells by `progress`.
    fn wait_until(pool: &ThreadPool, reached: impl Fn(&State) -> bool) {
        let deadline = generous();
        let mut state = pool.shared.state.lock();
        while !reached(&state) {
            assert!(
                !pool.shared.progress.wait_until(&mut state, deadline),
                "not reached"
            );
        }
    }

    #[test]
    fn threads_come_with_the_tasks_up_to_the_size() {
        let pool = ThreadPool::new("Consume", 2);
        assert_eq!(pool.thread_count(), 0);
        let (started, starts) = unbounded();
        let held = [(); 3].map(|()| hold(&pool, &started));
        starts.recv_timeout(GENEROUS).unwrap();
        starts.recv_timeout(GENEROUS).unwrap();
        assert_eq!(
            (pool.thread_count(), pool.active_count(), pool.queued()),
            (2, 2, 1)
        );
        drop(held);
        starts.recv_timeout(GENEROUS).unwrap();
        let report = pool.shutdown(generous());
        assert_eq!((report.abandoned, report.joined, report.left), (0, 2, 0));
    }

    #[test]
    fn one_thread_runs_one_task_after_the_other_in_order() {
        let pool = ThreadPool::new("Consume", 1);
        let (ran, received) = unbounded();
        for number in 0..100 {
            let ran = ran.clone();
            pool.execute(move || ran.send(number).unwrap()).unwrap();
        }
        drop(ran);
        assert!(received.iter().eq(0..100));
        assert_eq!(thread_name(&pool), "Consume_1");
    }

    #[test]
    fn a_larger_size_starts_threads_for_what_is_queued() {
        let pool = ThreadPool::new("Consume", 1);
        let (started, starts) = unbounded();
        let _held = [(); 2].map(|()| hold(&pool, &started));
        starts.recv_timeout(GENEROUS).unwrap();
        assert_eq!(pool.queued(), 1);
        pool.set_size(8);
        starts.recv_timeout(GENEROUS).unwrap();
        assert_eq!(pool.thread_count(), 2, "as many as there are tasks");
    }

    #[test]
    fn a_smaller_size_ends_threads_after_their_task() {
        let pool = ThreadPool::new("Consume", 2);
        let (started, starts) = unbounded();
        let held = [(); 2].map(|()| hold(&pool, &started));
        starts.recv_timeout(GENEROUS).unwrap();
        starts.recv_timeout(GENEROUS).unwrap();
        pool.set_size(0);
        assert_eq!(pool.size(), 1);
        assert_eq!(pool.active_count(), 2);
        drop(held);
        wait_until(&pool, |state| state.threads.len() == 1);
        thread_name(&pool);
    }

    #[test]
    fn an_idle_thread_ends_and_a_new_one_takes_its_place() {
        let pool = ThreadPool::with_idle_time("Consume", 1, Duration::from_millis(1));
        assert_eq!(thread_name(&pool), "Consume_1");
        wait_until(&pool, |state| state.threads.is_empty());
        assert_eq!(thread_name(&pool), "Consume_2");
    }

    #[test]
    fn tasks_that_come_together_wake_a_thread_at_the_end() {
        let pool = ThreadPool::new("Consume", 1);
        thread_name(&pool);
        wait_until_asleep(&pool);
        let (ran, received) = unbounded();
        wake_at_the_end(|| {
            for number in 0..3 {
                let ran = ran.clone();
                pool.execute(move || ran.send(number).unwrap()).unwrap();
            }
            assert_eq!(pool.queued(), 3, "nobody was woken");
            assert!(received.try_recv().is_err());
        });
        for number in 0..3 {
            assert_eq!(received.recv_timeout(GENEROUS), Ok(number));
        }
        assert_eq!(
            thread_name(&pool),
            "Consume_1",
            "later ones wake it as ever"
        );
    }

    struct Held {
        started: Sender<()>,
        held: Receiver<()>,
    }

    impl Parts for Held {
        fn run_part(&self) {
            self.started.send(()).unwrap();
            let _ = self.held.recv();
        }
    }

    #[test]
    fn parts_run_side_by_side_on_all_threads_one_waking_the_next() {
        let pool = ThreadPool::new("Consume", 4);
        let (started, starts) = unbounded();
        let (release, held) = unbounded();
        // Twice: on threads that are started for it, and on threads that sleep.
        for _ in 0..2 {
            let work = Held {
                started: started.clone(),
                held: held.clone(),
            };
            pool.execute_parts(Arc::new(work), 6).unwrap();
            for _ in 0..4 {
                starts.recv_timeout(GENEROUS).unwrap();
            }
            assert_eq!((pool.active_count(), pool.queued()), (4, 2));
            for _ in 0..6 {
                release.send(()).unwrap();
            }
            for _ in 0..2 {
                starts.recv_timeout(GENEROUS).unwrap();
            }
            wait_until_asleep(&pool);
        }
        let report = pool.shutdown(generous());
        assert_eq!((report.joined, report.left), (4, 0));
    }

    fn wait_until_asleep(pool: &ThreadPool) {
        let end = generous();
        let mut state = pool.shared.state.lock();
        while state.sleeping < state.threads.len() || state.queue.len > 0 {
            assert!(!end.has_passed(), "not asleep");
            // Nobody tells of it.
            let soon = Deadline::after(Duration::from_millis(1));
            pool.shared.progress.wait_until(&mut state, soon);
        }
    }

    #[test]
    fn a_panicking_task_costs_no_thread() {
        let pool = ThreadPool::new("Consume", 1);
        pool.execute(|| panic!("on purpose")).unwrap();
        assert_eq!(thread_name(&pool), "Consume_1");
        assert_eq!(pool.shutdown(generous()).joined, 1);
    }

    #[test]
    fn a_shutdown_runs_what_is_queued() {
        let pool = ThreadPool::new("Consume", 1);
        let (started, starts) = unbounded();
        let held = hold(&pool, &started);
        let (ran, received) = unbounded();
        pool.execute(move || ran.send(()).unwrap()).unwrap();
        starts.recv_timeout(GENEROUS).unwrap();
        drop(held);
        pool.shutdown(generous());
        received.try_recv().unwrap();
        let again = pool.shutdown(generous());
        assert_eq!((again.drained, again.abandoned, again.left), (0, 0, 0));
    }

    #[test]
    fn a_shutdown_drops_at_its_deadline_what_has_not_begun() {
        let pool = ThreadPool::new("Consume", 1);
        let (started, starts) = unbounded();
        let held = hold(&pool, &started);
        starts.recv_timeout(GENEROUS).unwrap();
        let (ran, received) = unbounded::<()>();
        pool.execute(move || ran.send(()).unwrap()).unwrap();
        let report = pool.shutdown(Deadline::after(Duration::from_millis(1)));
        assert_eq!(
            report,
            PoolReport {
                drained: 0,
                abandoned: 1,
                joined: 0,
                left: 1
            }
        );
        assert!(received.recv_timeout(GENEROUS).is_err(), "dropped, not run");
        drop(held);
        let report = pool.shutdown(generous());
        assert_eq!((report.joined, report.left), (1, 0));
    }

    #[test]
    fn a_pool_that_is_shut_down_gives_the_task_back() {
        let pool = ThreadPool::new("Consume", 1);
        pool.shutdown(generous());
        let (ran, received) = unbounded();
        let rejected = pool.execute(move || ran.send(()).unwrap()).unwrap_err();
        assert!(matches!(rejected.reason, RejectedReason::ShutDown));
        (rejected.task)();
        received.try_recv().unwrap();
    }

    /// Both tasks wait for the end of the pool whose threads they hold.
    fn shut_down_in_tasks(pool: &Arc<ThreadPool>, count: usize) -> Receiver<PoolReport> {
        let (report, reports) = unbounded();
        let (ready, all_ready) = unbounded::<()>();
        let go: Vec<_> = (0..count)
            .map(|_| {
                let (go, wait) = unbounded::<()>();
                let (pool, report, ready) = (Arc::clone(pool), report.clone(), ready.clone());
                let myself = Arc::clone(&pool);
                pool.execute(move || {
                    ready.send(()).unwrap();
                    let _ = wait.recv();
                    report
                        .send(myself.shutdown(Deadline::after(100 * GENEROUS)))
                        .unwrap();
                })
                .unwrap();
                go
            })
            .collect();
        for _ in 0..count {
            all_ready.recv_timeout(GENEROUS).unwrap();
        }
        pool.execute(|| {}).unwrap();
        drop(go);
        reports
    }

    #[test]
    fn a_shutdown_in_the_only_thread_waits_for_nothing() {
        let pool = Arc::new(ThreadPool::new("Consume", 1));
        let report = shut_down_in_tasks(&pool, 1).recv_timeout(GENEROUS).unwrap();
        assert_eq!(
            report,
            PoolReport {
                drained: 0,
                abandoned: 1,
                joined: 0,
                left: 1
            }
        );
        assert_eq!(pool.shutdown(generous()).left, 0);
    }

    #[test]
    fn two_tasks_that_shut_down_do_not_wait_for_each_other() {
        let pool = Arc::new(ThreadPool::new("Consume", 2));
        let reports = shut_down_in_tasks(&pool, 2);
        let abandoned: usize = (0..2)
            .map(|_| reports.recv_timeout(GENEROUS).unwrap().abandoned)
            .sum();
        // Either the second one came in time to take the task, or one of them dropped it.
        assert!(abandoned <= 1);
        assert_eq!(pool.shutdown(generous()).left, 0);
    }

    #[test]
    fn a_shutdown_in_a_task_waits_for_the_other_threads() {
        let pool = Arc::new(ThreadPool::new("Consume", 2));
        let (started, starts) = unbounded();
        let held = hold(&pool, &started);
        starts.recv_timeout(GENEROUS).unwrap();
        let reports = shut_down_in_tasks(&pool, 1);
        wait_until(&pool, |state| state.waiting_tasks == 1);
        drop(held);
        let report = reports.recv_timeout(GENEROUS).unwrap();
        assert_eq!((report.drained, report.abandoned, report.left), (2, 0, 1));
    }

    #[test]
    fn dropping_the_pool_drops_what_is_queued_and_ends_its_threads() {
        let pool = ThreadPool::new("Consume", 1);
        let (started, starts) = unbounded();
        let held = hold(&pool, &started);
        starts.recv_timeout(GENEROUS).unwrap();
        let (ran, received) = unbounded::<()>();
        pool.execute(move || ran.send(()).unwrap()).unwrap();
        let shared = Arc::downgrade(&pool.shared);
        let thread = pool.shared.state.lock().threads[0].clone();
        drop(pool);
        assert!(received.recv_timeout(GENEROUS).is_err(), "dropped, not run");
        drop(held);
        assert!(thread.join_until(generous()));
        assert!(shared.upgrade().is_none());
    }
}

#[cfg(test)]
#[cfg(loom)]
mod loom_tests {
    use super::*;
    use crate::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn loom_a_task_is_run_or_given_back_whatever_the_shutdown() {
        loom::model(|| {
            let pool = Arc::new(ThreadPool::new("Pool", 1));
            let putter = Arc::clone(&pool);
            let ran = Arc::new(AtomicUsize::new(0));
            let counter = Arc::clone(&ran);
            let putting = loom::thread::spawn(move || {
                let task = move || {
                    counter.fetch_add(1, Ordering::Relaxed);
                };
                usize::from(putter.execute(task).is_err())
            });
            let report = pool.shutdown(Deadline::after(Duration::from_secs(1)));
            let rejected = putting.join().unwrap();
            assert_eq!(ran.load(Ordering::Relaxed) + rejected + report.abandoned, 1);
            assert_eq!(report.left, 0);
        });
    }

    #[test]
    fn loom_two_tasks_are_both_run() {
        loom::model(|| {
            let pool = ThreadPool::new("Pool", 2);
            let ran = Arc::new(AtomicUsize::new(0));
            for _ in 0..2 {
                let counter = Arc::clone(&ran);
                let task = move || {
                    counter.fetch_add(1, Ordering::Relaxed);
                };
                assert!(pool.execute(task).is_ok());
            }
            let report = pool.shutdown(Deadline::after(Duration::from_secs(1)));
            assert_eq!(ran.load(Ordering::Relaxed), 2);
            assert_eq!((report.abandoned, report.left), (0, 0));
        });
    }
}
