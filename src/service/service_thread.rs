//! A thread that works, waits to be woken, works again, and ends when asked to.

use std::time::Duration;
use std::{fmt, io};

use super::run_caught;
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Arc, Deadline, Mutex, Wakeup};

/// The work of a service thread; a [`ServiceHandle`] gives it the thread.
///
/// # Java
///
/// `ServiceThread`. There the work and the thread are one class; here the thread owns the work and
/// nothing above it, so that a service can be dropped without being shut down.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use std::sync::mpsc::{Sender, channel};
/// use std::time::Duration;
///
/// use rocketmq_blocking::service::{JoinOutcome, ServiceContext, ServiceHandle, ServiceThread};
///
/// struct SaveOffsets {
///     saved: Sender<()>,
/// }
///
/// impl ServiceThread for SaveOffsets {
///     fn service_name(&self) -> String {
///         "SaveOffsets".to_owned()
///     }
///
///     fn run(&self, context: &ServiceContext) {
///         while !context.is_stopped() {
///             context.wait_for_running(Duration::from_secs(300));
///             let _ = self.saved.send(());
///         }
///     }
/// }
///
/// let (saved, rounds) = channel();
/// let service = ServiceHandle::new(Arc::new(SaveOffsets { saved }));
/// assert!(service.start()?);
/// assert!(!service.start()?, "it runs already");
/// service.wakeup();
/// rounds.recv_timeout(Duration::from_secs(30)).expect("it was woken");
/// assert_eq!(service.shutdown(Duration::from_secs(30)), JoinOutcome::Joined);
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait ServiceThread: Send + Sync + 'static {
    /// Names the thread, in logs and in stack dumps; the operating system may cut it short.
    fn service_name(&self) -> String;

    /// Runs on the thread of its own, once, and returns soon after
    /// [`is_stopped`](ServiceContext::is_stopped) turns true. A panic is logged and ends the thread.
    fn run(&self, context: &ServiceContext);

    /// Runs on the service's thread at the end of each [`ServiceContext::wait_for_running`].
    fn on_wait_end(&self) {}

    /// How long [`ServiceHandle::shutdown_in_join_time`] waits for the thread: 90 s; Java
    /// `ServiceThread#getJoinTime`.
    fn join_time(&self) -> Duration {
        Duration::from_secs(90)
    }
}

/// What a running service sees of its handle.
pub struct ServiceContext {
    service: Arc<dyn ServiceThread>,
    wakeup: Arc<Wakeup>,
}

impl ServiceContext {
    /// Waits until the service is woken, and returns whether it was; a wake-up that came before is
    /// taken at once, and several that came before are one. Then calls
    /// [`ServiceThread::on_wait_end`].
    ///
    /// # Blocking
    ///
    /// At most `interval`; a wake-up ends it early, and a stopped service never waits.
    ///
    /// # Java
    ///
    /// `ServiceThread#waitForRunning`, which loses a wake-up that falls between its test of the flag
    /// and its reset of the latch. Here that is one step.
    pub fn wait_for_running(&self, interval: Duration) -> bool {
        self.wait_until(Deadline::after(interval))
    }

    /// [`wait_for_running`](Self::wait_for_running) to a point in time.
    pub(crate) fn wait_until(&self, deadline: Deadline) -> bool {
        let woken = self.wakeup.wait(deadline);
        self.service.on_wait_end();
        woken
    }

    /// What ends the service's waits, for those who have something for it to do.
    pub(crate) fn wakeup_of_thread(&self) -> Arc<Wakeup> {
        Arc::clone(&self.wakeup)
    }

    /// Whether the service was asked to end.
    pub fn is_stopped(&self) -> bool {
        self.wakeup.is_closed()
    }
}

impl fmt::Debug for ServiceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceContext")
            .field("service_name", &self.service.service_name())
            .field("stopped", &self.is_stopped())
            .finish()
    }
}

/// Owns a service: starts its thread, wakes it, and ends it.
///
/// Dropping the handle asks the thread to end and does not wait for it.
pub struct ServiceHandle<S: ServiceThread> {
    service: Arc<S>,
    wakeup: Arc<Wakeup>,
    /// Held while the thread is started, so that a shutdown sees either no thread or its handle.
    /// The thread itself never takes it.
    thread: Mutex<Option<JoinHandle>>,
}

/// How a [`ServiceHandle::shutdown`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[must_use = "the thread may be running still"]
pub enum JoinOutcome {
    /// The thread has ended.
    Joined,
    /// The thread was asked to end, and had not ended in time.
    TimedOut,
    /// There was no thread, and there will be none.
    NotStarted,
    /// The thread asked this of itself: it ends when its `run` returns.
    OnOwnThread,
}

impl JoinOutcome {
    /// Whether nothing of the service runs any more.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Joined | Self::NotStarted)
    }
}

impl<S: ServiceThread> ServiceHandle<S> {
    /// A service that is not started yet.
    pub fn new(service: Arc<S>) -> Self {
        Self {
            service,
            wakeup: Arc::new(Wakeup::new()),
            thread: Mutex::new(None),
        }
    }

    /// The work of this service.
    pub fn service(&self) -> &Arc<S> {
        &self.service
    }

    /// Starts the thread: `true` if this call did, `false` if it was started before or is stopped.
    /// A service has one life; after a shutdown it takes a new handle.
    ///
    /// # Errors
    ///
    /// The operating system has no thread to give; the call may be repeated.
    pub fn start(&self) -> io::Result<bool> {
        let name = self.service.service_name();
        let mut thread = self.thread.lock();
        if thread.is_some() || self.wakeup.is_closed() {
            return Ok(false);
        }
        let service = Arc::clone(&self.service);
        let context = ServiceContext {
            service: Arc::<S>::clone(&self.service),
            wakeup: Arc::clone(&self.wakeup),
        };
        *thread = Some(thread::spawn(&name.clone(), move || {
            log::debug!("{name} started");
            if run_caught(&name, || service.run(&context)) {
                log::debug!("{name} ended");
            }
        })?);
        Ok(true)
    }

    /// Ends the wait of the service, or its next one; never waits itself.
    pub fn wakeup(&self) {
        self.wakeup.wakeup();
    }

    /// Whether the service was asked to end; its thread may be running still.
    pub fn is_stopped(&self) -> bool {
        self.wakeup.is_closed()
    }

    /// Asks the service to end, and wakes it so that it sees that; waits for nothing.
    ///
    /// # Java
    ///
    /// `ServiceThread#makeStop`, which does not wake the thread.
    pub fn make_stop(&self) {
        self.wakeup.close();
    }

    /// Whether the thread was started and has ended, by itself, when asked to, or by a panic.
    pub fn has_ended(&self) -> bool {
        self.thread
            .lock()
            .as_ref()
            .is_some_and(JoinHandle::has_exited)
    }

    /// Asks the service to end, wakes it, and waits for its thread. May be called again, to wait
    /// again.
    ///
    /// # Blocking
    ///
    /// At most `timeout`; not at all on the service's own thread.
    pub fn shutdown(&self, timeout: Duration) -> JoinOutcome {
        self.shutdown_until(Deadline::after(timeout))
    }

    /// [`shutdown`](Self::shutdown) within the service's own
    /// [`join_time`](ServiceThread::join_time).
    ///
    /// # Blocking
    ///
    /// At most the join time.
    pub fn shutdown_in_join_time(&self) -> JoinOutcome {
        self.shutdown(self.service.join_time())
    }

    /// [`shutdown`](Self::shutdown) to a point in time, for callers that end several things.
    pub(crate) fn shutdown_until(&self, deadline: Deadline) -> JoinOutcome {
        self.make_stop();
        let Some(thread) = self.thread.lock().clone() else {
            return JoinOutcome::NotStarted;
        };
        if thread.is_current() {
            JoinOutcome::OnOwnThread
        } else if thread.join_until(deadline) {
            JoinOutcome::Joined
        } else {
            log::warn!("{} has not ended in time", self.service.service_name());
            JoinOutcome::TimedOut
        }
    }
}

impl<S: ServiceThread> Drop for ServiceHandle<S> {
    fn drop(&mut self) {
        self.make_stop();
    }
}

impl<S: ServiceThread> fmt::Debug for ServiceHandle<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceHandle")
            .field("service_name", &self.service.service_name())
            .field("stopped", &self.is_stopped())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::sync::atomic::{AtomicU32, Ordering};
    use crate::sync::channel::{Receiver, Sender, unbounded};

    const GENEROUS: Duration = Duration::from_secs(30);

    /// Tells the test about each round, and waits as long as the test says.
    struct Rounds {
        interval: Duration,
        rounds: Sender<bool>,
        wait_ends: AtomicU32,
    }

    impl ServiceThread for Rounds {
        fn service_name(&self) -> String {
            "Rounds".to_owned()
        }

        fn run(&self, context: &ServiceContext) {
            while !context.is_stopped() {
                let woken = context.wait_for_running(self.interval);
                let _ = self.rounds.send(woken);
            }
        }

        fn on_wait_end(&self) {
            self.wait_ends.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn rounds(interval: Duration) -> (ServiceHandle<Rounds>, Receiver<bool>) {
        let (rounds, receiver) = unbounded();
        let service = Rounds {
            interval,
            rounds,
            wait_ends: AtomicU32::new(0),
        };
        (ServiceHandle::new(Arc::new(service)), receiver)
    }

    /// Runs a closure with its context, once.
    struct Once<F>(F);

    impl<F: Fn(&ServiceContext) + Send + Sync + 'static> ServiceThread for Once<F> {
        fn service_name(&self) -> String {
            "Once".to_owned()
        }

        fn run(&self, context: &ServiceContext) {
            (self.0)(context);
        }
    }

    fn once<F>(run: F) -> ServiceHandle<Once<F>>
    where
        F: Fn(&ServiceContext) + Send + Sync + 'static,
    {
        ServiceHandle::new(Arc::new(Once(run)))
    }

    #[test]
    fn a_service_starts_once() {
        let (service, _receiver) = rounds(GENEROUS);
        assert!(service.start().unwrap());
        assert!(!service.start().unwrap());
        assert_eq!(service.shutdown(GENEROUS), JoinOutcome::Joined);
        assert!(!service.start().unwrap());
    }

    #[test]
    fn a_wakeup_before_the_start_counts() {
        let (service, receiver) = rounds(2 * GENEROUS);
        service.wakeup();
        service.start().unwrap();
        assert!(receiver.recv_timeout(GENEROUS).unwrap());
        assert_eq!(service.shutdown(GENEROUS), JoinOutcome::Joined);
    }

    #[test]
    fn an_interval_that_passes_is_a_round_without_a_wakeup() {
        let (service, receiver) = rounds(Duration::from_millis(1));
        service.start().unwrap();
        assert!(!receiver.recv_timeout(GENEROUS).unwrap());
        assert_eq!(service.shutdown(GENEROUS), JoinOutcome::Joined);
    }

    #[test]
    fn each_wait_ends_with_on_wait_end() {
        let (service, receiver) = rounds(2 * GENEROUS);
        service.start().unwrap();
        for waits in 1..=2 {
            service.wakeup();
            receiver.recv_timeout(GENEROUS).unwrap();
            let ends = service.service().wait_ends.load(Ordering::Relaxed);
            assert_eq!(ends, waits);
        }
        assert_eq!(service.shutdown(GENEROUS), JoinOutcome::Joined);
    }

    #[test]
    fn a_shutdown_before_the_start_prevents_it() {
        let (service, _receiver) = rounds(GENEROUS);
        assert_eq!(service.shutdown(GENEROUS), JoinOutcome::NotStarted);
        assert!(service.is_stopped());
        assert!(!service.start().unwrap());
    }

    #[test]
    fn a_second_shutdown_is_harmless() {
        let (service, _receiver) = rounds(2 * GENEROUS);
        service.start().unwrap();
        assert_eq!(service.shutdown_in_join_time(), JoinOutcome::Joined);
        assert_eq!(service.shutdown(Duration::ZERO), JoinOutcome::Joined);
    }

    #[test]
    fn a_service_that_does_not_end_times_out_and_can_be_joined_later() {
        let (release, held) = unbounded::<()>();
        let service = once(move |_| {
            let _ = held.recv();
        });
        service.start().unwrap();
        assert_eq!(
            service.shutdown(Duration::from_millis(1)),
            JoinOutcome::TimedOut
        );
        drop(release);
        assert_eq!(service.shutdown(GENEROUS), JoinOutcome::Joined);
    }

    #[test]
    fn a_service_can_shut_itself_down() {
        let (give, taken) = unbounded::<Arc<dyn Fn() -> JoinOutcome + Send + Sync>>();
        let (answer, answered) = unbounded();
        let service = Arc::new(once(move |_| {
            if let Ok(shutdown) = taken.recv() {
                answer.send(shutdown()).unwrap();
            }
        }));
        service.start().unwrap();
        let own = Arc::downgrade(&service);
        give.send(Arc::new(move || own.upgrade().unwrap().shutdown(GENEROUS)))
            .unwrap();
        assert_eq!(
            answered.recv_timeout(GENEROUS),
            Ok(JoinOutcome::OnOwnThread)
        );
        assert_eq!(service.shutdown(GENEROUS), JoinOutcome::Joined);
    }

    #[test]
    fn a_panic_in_run_ends_the_service() {
        let service = once(|_| panic!("on purpose"));
        service.start().unwrap();
        assert_eq!(service.shutdown(GENEROUS), JoinOutcome::Joined);
        assert!(service.has_ended());
    }

    #[test]
    fn the_thread_bears_the_name_of_the_service() {
        let (name, named) = unbounded();
        let service = once(move |_| {
            name.send(thread::current_name()).unwrap();
        });
        service.start().unwrap();
        assert_eq!(named.recv_timeout(GENEROUS).unwrap(), "Once");
        assert_eq!(service.shutdown(GENEROUS), JoinOutcome::Joined);
    }

    /// The receiver hears of the service's end, because the thread lets go of the work last.
    #[test]
    fn a_dropped_handle_stops_the_thread_which_then_lets_the_service_go() {
        let (service, receiver) = rounds(2 * GENEROUS);
        service.start().unwrap();
        let weak = Arc::downgrade(service.service());
        drop(service);
        while receiver.recv_timeout(GENEROUS).is_ok() {}
        assert_eq!(
            receiver.try_recv(),
            Err(crate::sync::channel::TryRecvError::Disconnected),
            "the service was dropped"
        );
        assert!(weak.upgrade().is_none());
    }
}

#[cfg(test)]
#[cfg(loom)]
mod loom_tests {
    use super::*;
    use crate::sync::atomic::{AtomicU32, Ordering};

    /// Counts the rounds in which it found work.
    #[derive(Default)]
    struct Worker {
        work: AtomicU32,
        done: AtomicU32,
    }

    impl ServiceThread for Worker {
        fn service_name(&self) -> String {
            "Worker".to_owned()
        }

        fn run(&self, context: &ServiceContext) {
            while !context.is_stopped() {
                context.wait_for_running(Duration::from_secs(20));
                self.done
                    .fetch_max(self.work.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
    }

    #[test]
    fn loom_a_shutdown_ends_a_service_wherever_it_is() {
        loom::model(|| {
            let service = ServiceHandle::new(Arc::new(Worker::default()));
            assert!(service.start().unwrap());
            assert_eq!(
                service.shutdown(Duration::from_secs(1)),
                JoinOutcome::Joined
            );
        });
    }

    #[test]
    fn loom_work_before_a_wakeup_is_done_before_the_end() {
        loom::model(|| {
            let service = Arc::new(ServiceHandle::new(Arc::new(Worker::default())));
            let starter = Arc::clone(&service);
            let starting = loom::thread::spawn(move || {
                assert!(starter.start().unwrap());
            });
            service.service().work.store(1, Ordering::Relaxed);
            service.wakeup();
            starting.join().unwrap();
            while service.service().done.load(Ordering::Relaxed) == 0 {
                loom::thread::yield_now();
            }
            assert_eq!(
                service.shutdown(Duration::from_secs(1)),
                JoinOutcome::Joined
            );
        });
    }

    #[test]
    fn loom_start_against_shutdown_leaves_no_thread() {
        loom::model(|| {
            let service = Arc::new(ServiceHandle::new(Arc::new(Worker::default())));
            let starter = Arc::clone(&service);
            let starting = loom::thread::spawn(move || starter.start().unwrap());
            let outcome = service.shutdown(Duration::from_secs(1));
            let started = starting.join().unwrap();
            assert_eq!(started, outcome == JoinOutcome::Joined);
            assert_eq!(outcome == JoinOutcome::NotStarted, !started);
        });
    }
}
