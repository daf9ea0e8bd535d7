//! One timer thread for everything that is due later.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::{Duration, Instant};

use super::{JoinOutcome, ServiceContext, ServiceHandle, ServiceThread, run_caught};
use crate::sync::{Arc, Deadline, Mutex, Weak, add, now};

/// Runs tasks at their time, one after the other, on one thread.
///
/// A task must not block: it wakes a [`ServiceThread`], puts a token into a queue, or hands its work
/// to a pool. The thread sleeps until the next task is due, not a moment less. A panic in a task is
/// logged; the other tasks, and the later runs of a periodic one, go on.
#[derive(Debug)]
pub(crate) struct ScheduledService {
    handle: ServiceHandle<TimerThread>,
}

impl ScheduledService {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        let timer = TimerThread {
            name: name.into(),
            tasks: Mutex::new(Tasks::default()),
        };
        Self {
            handle: ServiceHandle::new(Arc::new(timer)),
        }
    }

    /// Starts the thread; `false` if it was started before. What was scheduled earlier waits for it.
    pub(crate) fn start(&self) -> io::Result<bool> {
        self.handle.start()
    }

    /// Runs `task` once, after `delay`.
    pub(crate) fn schedule_once<F>(&self, delay: Duration, task: F) -> TaskHandle
    where
        F: FnOnce() + Send + 'static,
    {
        self.schedule(delay, Task::Once(Box::new(task)))
    }

    /// Runs `task` after `initial_delay` and then each `period`, which is at least 1 ms. Runs that
    /// were missed, because the process was suspended say, are left out; Java makes up for each.
    pub(crate) fn schedule_at_fixed_rate<F>(
        &self,
        initial_delay: Duration,
        period: Duration,
        task: F,
    ) -> TaskHandle
    where
        F: FnMut() + Send + 'static,
    {
        let period = period.max(SHORTEST_PERIOD);
        self.schedule(initial_delay, Task::Periodic(period, Box::new(task)))
    }

    /// How many tasks wait for their time.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.handle.service().tasks.lock().queue.len()
    }

    /// Drops the tasks that wait, and joins the thread.
    pub(crate) fn shutdown(&self, deadline: Deadline) -> JoinOutcome {
        self.drop_tasks();
        self.handle.shutdown_until(deadline)
    }

    fn schedule(&self, delay: Duration, task: Task) -> TaskHandle {
        let timer = self.handle.service();
        let added = timer.tasks.lock().add(add(now(), delay), task);
        let id = match added {
            Ok((id, is_first)) => {
                if is_first {
                    self.handle.wakeup();
                }
                Some(id)
            }
            Err(refused) => {
                log::debug!("{}: a task came after the shutdown", timer.name);
                drop(refused);
                None
            }
        };
        TaskHandle {
            timer: Arc::downgrade(timer),
            id,
        }
    }

    fn drop_tasks(&self) {
        let dropped = self.handle.service().tasks.lock().close();
        // Outside of the lock: what a task owns may come back here in its drop.
        drop(dropped);
    }
}

impl Drop for ScheduledService {
    fn drop(&mut self) {
        self.drop_tasks();
    }
}

/// A scheduled task; dropping this leaves it scheduled.
#[derive(Clone, Debug)]
pub(crate) struct TaskHandle {
    timer: Weak<TimerThread>,
    /// `None` if the service was shut down before.
    id: Option<u64>,
}

impl TaskHandle {
    /// Takes the task out of the service: no run begins after this. Returns whether this call
    /// prevented a run; a run under way goes on to its end.
    pub(crate) fn cancel(&self) -> bool {
        let (Some(timer), Some(id)) = (self.timer.upgrade(), self.id) else {
            return false;
        };
        let cancelled = timer.tasks.lock().cancel(id);
        match cancelled {
            Cancelled::Waiting(task) => {
                drop(task);
                true
            }
            Cancelled::NextRun => true,
            Cancelled::Nothing => false,
        }
    }
}

struct TimerThread {
    name: String,
    tasks: Mutex<Tasks>,
}

impl std::fmt::Debug for TimerThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TimerThread")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl ServiceThread for TimerThread {
    fn service_name(&self) -> String {
        self.name.clone()
    }

    fn run(&self, context: &ServiceContext) {
        while !context.is_stopped() {
            let next = self.tasks.lock().next(now());
            match next {
                Next::Run(due) => self.run_task(due),
                Next::WaitUntil(instant) => {
                    context.wait_until(Deadline::at(instant));
                }
                Next::Wait => {
                    context.wait_for_running(Duration::MAX);
                }
            }
        }
    }
}

impl TimerThread {
    fn run_task(&self, Due { id, due, task }: Due) {
        match task {
            Task::Once(task) => {
                run_caught(&self.name, task);
            }
            Task::Periodic(period, mut task) => {
                run_caught(&self.name, &mut task);
                let next = next_run(due, period, now());
                let refused = self
                    .tasks
                    .lock()
                    .add_again(id, next, Task::Periodic(period, task));
                drop(refused);
            }
        }
    }
}

/// The tasks in the order they are due. Knows no clock and no thread.
#[derive(Default)]
struct Tasks {
    queue: BTreeMap<(Instant, u64), Task>,
    /// When each task is due; a periodic one stays here while it runs, until it is cancelled.
    due: HashMap<u64, Instant>,
    next_id: u64,
    closed: bool,
}

enum Task {
    Once(Box<dyn FnOnce() + Send>),
    Periodic(Duration, Box<dyn FnMut() + Send>),
}

struct Due {
    id: u64,
    due: Instant,
    task: Task,
}

enum Next {
    Run(Due),
    WaitUntil(Instant),
    Wait,
}

enum Cancelled {
    Waiting(Task),
    NextRun,
    Nothing,
}

impl Tasks {
    /// Returns the number of the task, and whether it is now the first one due.
    fn add(&mut self, due: Instant, task: Task) -> Result<(u64, bool), Task> {
        if self.closed {
            return Err(task);
        }
        let id = self.next_id;
        self.next_id += 1;
        self.due.insert(id, due);
        self.queue.insert((due, id), task);
        let is_first = self
            .queue
            .first_key_value()
            .is_some_and(|(first, _)| *first == (due, id));
        Ok((id, is_first))
    }

    /// Puts back a periodic task, unless it was cancelled while it ran.
    fn add_again(&mut self, id: u64, next: Instant, task: Task) -> Result<(), Task> {
        let Some(due) = self.due.get_mut(&id) else {
            return Err(task);
        };
        *due = next;
        self.queue.insert((next, id), task);
        Ok(())
    }

    fn next(&mut self, now: Instant) -> Next {
        let Some(first) = self.queue.first_entry() else {
            return Next::Wait;
        };
        let (due, id) = *first.key();
        if due > now {
            return Next::WaitUntil(due);
        }
        let task = first.remove();
        if let Task::Once(_) = task {
            self.due.remove(&id);
        }
        Next::Run(Due { id, due, task })
    }

    fn cancel(&mut self, id: u64) -> Cancelled {
        let Some(due) = self.due.remove(&id) else {
            return Cancelled::Nothing;
        };
        self.queue
            .remove(&(due, id))
            .map_or(Cancelled::NextRun, Cancelled::Waiting)
    }

    fn close(&mut self) -> BTreeMap<(Instant, u64), Task> {
        self.closed = true;
        self.due.clear();
        std::mem::take(&mut self.queue)
    }
}

/// The first `due + n * period` after `now`.
fn next_run(due: Instant, period: Duration, now: Instant) -> Instant {
    let next = add(due, period);
    if next > now {
        return next;
    }
    let late = now.saturating_duration_since(next);
    let into_period = late.as_nanos() % period.as_nanos();
    let into_period = u64::try_from(into_period).map_or(Duration::ZERO, Duration::from_nanos);
    add(now, period.saturating_sub(into_period))
}

const SHORTEST_PERIOD: Duration = Duration::from_millis(1);

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::sync::Clock;
    use crate::sync::atomic::{AtomicU32, Ordering};
    use crate::sync::channel::unbounded;

    const GENEROUS: Duration = Duration::from_secs(30);
    const SECOND: Duration = Duration::from_secs(1);

    fn started() -> ScheduledService {
        let service = ScheduledService::new("Timer");
        service.start().unwrap();
        service
    }

    fn noop() -> Task {
        Task::Once(Box::new(|| {}))
    }

    /// The number of the task that is to be run now.
    fn run_now(tasks: &mut Tasks, clock: &Clock) -> Option<u64> {
        match tasks.next(clock.now()) {
            Next::Run(due) => Some(due.id),
            Next::WaitUntil(_) | Next::Wait => None,
        }
    }

    #[test]
    fn tasks_come_in_the_order_they_are_due_and_not_before() {
        let clock = Clock::manual();
        let mut tasks = Tasks::default();
        assert!(matches!(tasks.next(clock.now()), Next::Wait));
        assert!(matches!(
            tasks.add(clock.now() + 2 * SECOND, noop()),
            Ok((0, true))
        ));
        assert!(matches!(
            tasks.add(clock.now() + SECOND, noop()),
            Ok((1, true))
        ));
        assert!(matches!(
            tasks.add(clock.now() + 2 * SECOND, noop()),
            Ok((2, false))
        ));
        let first = clock.now() + SECOND;
        assert!(matches!(tasks.next(clock.now()), Next::WaitUntil(due) if due == first));
        clock.advance(SECOND);
        assert_eq!(run_now(&mut tasks, &clock), Some(1));
        assert_eq!(run_now(&mut tasks, &clock), None);
        clock.advance(SECOND);
        assert_eq!(run_now(&mut tasks, &clock), Some(0), "first in, first out");
        assert_eq!(run_now(&mut tasks, &clock), Some(2));
        assert!(tasks.due.is_empty());
    }

    #[test]
    fn a_cancelled_task_leaves_the_queue() {
        let mut tasks = Tasks::default();
        let Ok((id, _)) = tasks.add(now(), noop()) else {
            panic!("refused")
        };
        assert!(matches!(tasks.cancel(id), Cancelled::Waiting(_)));
        assert!(tasks.queue.is_empty() && tasks.due.is_empty());
        assert!(matches!(tasks.cancel(id), Cancelled::Nothing));
    }

    #[test]
    fn a_periodic_task_cancelled_while_it_runs_does_not_come_back() {
        let clock = Clock::manual();
        let mut tasks = Tasks::default();
        let task = Task::Periodic(SECOND, Box::new(|| {}));
        let Ok((id, _)) = tasks.add(clock.now(), task) else {
            panic!("refused")
        };
        let Next::Run(Due { task, .. }) = tasks.next(clock.now()) else {
            panic!("not due")
        };
        assert!(matches!(tasks.cancel(id), Cancelled::NextRun));
        assert!(tasks.add_again(id, clock.now() + SECOND, task).is_err());
        assert!(tasks.queue.is_empty());
    }

    #[test]
    fn missed_runs_are_left_out_and_the_rhythm_stays() {
        let due = now();
        assert_eq!(next_run(due, SECOND, due), due + SECOND);
        assert_eq!(next_run(due, SECOND, due + SECOND / 2), due + SECOND);
        assert_eq!(
            next_run(due, SECOND, due + SECOND * 7 / 2),
            due + 4 * SECOND
        );
        assert_eq!(next_run(due, SECOND, due + 3 * SECOND), due + 4 * SECOND);
    }

    #[test]
    fn an_earlier_task_shortens_the_wait_of_the_thread() {
        let service = started();
        let (ran, received) = unbounded();
        service.schedule_once(100 * GENEROUS, || {});
        // The first one may meet the thread before its wait; not all of them do.
        for _ in 0..100 {
            let ran = ran.clone();
            service.schedule_once(Duration::ZERO, move || ran.send(()).unwrap());
            received.recv_timeout(GENEROUS).unwrap();
        }
        assert_eq!(service.len(), 1);
        assert_eq!(
            service.shutdown(Deadline::after(GENEROUS)),
            JoinOutcome::Joined
        );
    }

    #[test]
    fn a_panicking_task_does_not_stop_the_others_nor_its_own_next_runs() {
        let service = started();
        let (ran, received) = unbounded();
        let runs = AtomicU32::new(0);
        service.schedule_at_fixed_rate(Duration::ZERO, SHORTEST_PERIOD, move || {
            let run = runs.fetch_add(1, Ordering::Relaxed);
            let _ = ran.send(run);
            assert!(run != 0, "on purpose");
        });
        assert_eq!(received.recv_timeout(GENEROUS), Ok(0));
        assert_eq!(received.recv_timeout(GENEROUS), Ok(1));
        assert_eq!(
            service.shutdown(Deadline::after(GENEROUS)),
            JoinOutcome::Joined
        );
    }

    #[test]
    fn a_task_may_cancel_itself() {
        let service = started();
        let (give, taken) = unbounded::<TaskHandle>();
        let (ran, received) = unbounded();
        let task = service.schedule_at_fixed_rate(Duration::ZERO, SHORTEST_PERIOD, move || {
            ran.send(taken.recv().unwrap().cancel()).unwrap();
        });
        give.send(task.clone()).unwrap();
        assert_eq!(received.recv_timeout(GENEROUS), Ok(true));
        let gone = received.recv_timeout(GENEROUS).unwrap_err();
        assert_eq!(gone, crate::sync::channel::RecvTimeoutError::Disconnected);
        assert!(!task.cancel());
        assert_eq!(
            service.shutdown(Deadline::after(GENEROUS)),
            JoinOutcome::Joined
        );
    }

    #[test]
    fn a_shutdown_drops_what_waits_and_refuses_what_comes() {
        let service = started();
        let (owned, dropped) = unbounded::<()>();
        let late = owned.clone();
        let task = service.schedule_once(100 * GENEROUS, move || drop(owned));
        assert_eq!(
            service.shutdown(Deadline::after(GENEROUS)),
            JoinOutcome::Joined
        );
        assert!(!task.cancel());
        assert!(
            !service
                .schedule_once(Duration::ZERO, move || drop(late))
                .cancel()
        );
        assert!(dropped.recv_timeout(GENEROUS).is_err());
        assert_eq!(service.len(), 0);
    }

    #[test]
    fn dropping_the_service_ends_its_thread() {
        let service = started();
        let (owned, dropped) = unbounded::<()>();
        service.schedule_once(100 * GENEROUS, move || drop(owned));
        let timer = Arc::downgrade(service.handle.service());
        drop(service);
        let gone = dropped.recv_timeout(GENEROUS).unwrap_err();
        assert_eq!(gone, crate::sync::channel::RecvTimeoutError::Disconnected);
        drop(timer);
    }
}
