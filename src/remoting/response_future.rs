//! Pending calls of one connection, each completed exactly once.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

use crate::error::Result;
use crate::sync::{Arc, Condvar, Deadline, Mutex};

/// Runs when an asynchronous call ends. It is called on whatever thread completes the call, the
/// event loop's or that of a caller that waits for a reply of its own, so it must hand its work on,
/// and neither block nor take a lock that is held while somebody waits for a reply.
pub(crate) type Completion<T> = Box<dyn FnOnce(Result<T>) + Send>;

/// What waits for a reply.
pub(crate) enum Waiter<T> {
    Future(ResponseFuture<T>),
    Callback(Completion<T>),
}

impl<T> Waiter<T> {
    /// Hands over the outcome. Having the waiter in hand is the right to do so: it can be taken out
    /// of the table only once.
    pub(crate) fn complete(self, outcome: Result<T>) {
        match self {
            Self::Future(future) => future.set(outcome),
            Self::Callback(completion) => completion(outcome),
        }
    }

    fn is_callback(&self) -> bool {
        matches!(self, Self::Callback(_))
    }
}

impl<T> fmt::Debug for Waiter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Future(_) => "Future",
            Self::Callback(_) => "Callback",
        })
    }
}

/// The place where the reply of one call is put. Clones are the same place.
pub(crate) struct ResponseFuture<T>(Arc<Slot<T>>);

struct Slot<T> {
    place: Mutex<Place<T>>,
    ready: Condvar,
}

struct Place<T> {
    outcome: Option<Result<T>>,
    /// Whether the caller that waits here is to read the socket itself.
    leads: bool,
}

/// What ended the wait of a caller that may be asked to read the socket.
pub(super) enum Woken<T> {
    Outcome(Result<T>),
    /// It is to read.
    Leads,
    TimedOut,
}

impl<T> ResponseFuture<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Slot {
            place: Mutex::new(Place {
                outcome: None,
                leads: false,
            }),
            ready: Condvar::new(),
        }))
    }

    fn set(&self, outcome: Result<T>) {
        let mut place = self.0.place.lock();
        if place.outcome.is_none() {
            place.outcome = Some(outcome);
        }
        drop(place);
        self.0.ready.notify_all();
    }

    /// Waits for the outcome; `None` when the deadline passes first.
    pub(crate) fn wait(&self, deadline: Deadline) -> Option<Result<T>> {
        let mut place = self.0.place.lock();
        loop {
            if let Some(outcome) = place.outcome.take() {
                return Some(outcome);
            }
            if self.0.ready.wait_until(&mut place, deadline) {
                return place.outcome.take();
            }
        }
    }

    /// The outcome, if it is there and nobody has taken it.
    pub(super) fn take(&self) -> Option<Result<T>> {
        self.0.place.lock().outcome.take()
    }

    /// Waits for the outcome or for [`promote`](Self::promote), whichever is first.
    pub(super) fn wait_or_lead(&self, deadline: Deadline) -> Woken<T> {
        let mut place = self.0.place.lock();
        let mut timed_out = false;
        loop {
            if let Some(outcome) = place.outcome.take() {
                return Woken::Outcome(outcome);
            }
            if place.leads {
                return Woken::Leads;
            }
            if timed_out {
                return Woken::TimedOut;
            }
            timed_out = self.0.ready.wait_until(&mut place, deadline);
        }
    }

    /// Asks the caller to read the socket; `false` if its outcome is there already. To be followed by
    /// [`wake`](Self::wake).
    pub(super) fn promote(&self) -> bool {
        let mut place = self.0.place.lock();
        place.leads = place.outcome.is_none();
        place.leads
    }

    /// Wakes the caller to see what it is asked.
    pub(super) fn wake(&self) {
        self.0.ready.notify_all();
    }
}

impl<T> Clone for ResponseFuture<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for ResponseFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseFuture")
    }
}

/// opaque → who waits for it.
pub(crate) struct ResponseTable<T> {
    pending: Mutex<Pending<T>>,
}

/// Opaques are numbers of our own, one after the other: nobody can choose them so that they collide.
#[derive(Default)]
struct OpaqueHasher(u64);

impl Hasher for OpaqueHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_i32(&mut self, opaque: i32) {
        self.write_u64(opaque as u32 as u64);
    }

    fn write_u64(&mut self, number: u64) {
        // Spreads over the upper bits, which tables use too (the golden ratio's).
        self.0 = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

struct Pending<T> {
    waiters: HashMap<i32, Waiter<T>, BuildHasherDefault<OpaqueHasher>>,
    /// How many of the waiters are callbacks.
    callbacks: usize,
}

impl<T> ResponseTable<T> {
    pub(crate) fn new() -> Self {
        Self {
            pending: Mutex::new(Pending {
                waiters: HashMap::default(),
                callbacks: 0,
            }),
        }
    }

    /// No opaque is used twice at a time.
    pub(crate) fn insert(&self, opaque: i32, waiter: Waiter<T>) {
        let mut pending = self.pending.lock();
        pending.callbacks += usize::from(waiter.is_callback());
        pending.waiters.insert(opaque, waiter);
    }

    /// Takes the right to complete a call; `None` when somebody else has it.
    pub(crate) fn take(&self, opaque: i32) -> Option<Waiter<T>> {
        let mut pending = self.pending.lock();
        let waiter = pending.waiters.remove(&opaque)?;
        pending.callbacks -= usize::from(waiter.is_callback());
        Some(waiter)
    }

    /// Takes all, with their opaques.
    pub(crate) fn drain(&self) -> Vec<(i32, Waiter<T>)> {
        let mut pending = self.pending.lock();
        pending.callbacks = 0;
        pending.waiters.drain().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.pending.lock().waiters.len()
    }

    /// How many calls there are for whose replies no thread waits.
    pub(super) fn callbacks(&self) -> usize {
        self.pending.lock().callbacks
    }

    /// Whether there is such a call.
    pub(super) fn has_callbacks(&self) -> bool {
        self.callbacks() > 0
    }
}

impl<T> fmt::Debug for ResponseTable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseTable")
            .field("pending", &self.len())
            .finish()
    }
}

/// Waits for a call's outcome by `wait`, and when that has none takes the call out of the table, so
/// that a late reply finds nobody. Whoever took it first completes it: a reply that wins the race
/// counts.
pub(crate) fn wait_or_withdraw<T>(
    table: &ResponseTable<T>,
    opaque: i32,
    future: &ResponseFuture<T>,
    wait: impl FnOnce() -> Option<Result<T>>,
    grace: Deadline,
) -> Option<Result<T>> {
    if let Some(outcome) = wait() {
        return Some(outcome);
    }
    if table.take(opaque).is_some() {
        return None;
    }
    // Somebody holds the waiter and is about to complete it.
    future.wait(grace)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sync::thread;

    #[test]
    fn a_reply_reaches_the_waiting_thread() {
        let table = Arc::new(ResponseTable::new());
        let future = ResponseFuture::new();
        table.insert(7, Waiter::Future(future.clone()));
        let other = Arc::clone(&table);
        let handle = thread::spawn("replier", move || {
            if let Some(waiter) = other.take(7) {
                waiter.complete(Ok("reply"));
            }
        })
        .unwrap();
        let deadline = Deadline::after(Duration::from_secs(30));
        assert_eq!(
            wait_or_withdraw(&table, 7, &future, || future.wait(deadline), deadline),
            Some(Ok("reply"))
        );
        assert!(handle.join_until(deadline));
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn a_call_that_times_out_is_taken_out() {
        let table: ResponseTable<()> = ResponseTable::new();
        let future = ResponseFuture::new();
        table.insert(7, Waiter::Future(future.clone()));
        let now = Deadline::after(Duration::ZERO);
        let outcome = wait_or_withdraw(&table, 7, &future, || future.wait(now), now);
        assert_eq!(outcome, None);
        assert_eq!(table.len(), 0);
        assert!(table.take(7).is_none(), "a late reply finds nobody");
    }

    #[test]
    fn a_table_knows_for_which_calls_nobody_waits() {
        let table: ResponseTable<()> = ResponseTable::new();
        assert!(!table.has_callbacks());
        table.insert(1, Waiter::Future(ResponseFuture::new()));
        assert!(!table.has_callbacks());
        table.insert(2, Waiter::Callback(Box::new(|_| {})));
        table.insert(3, Waiter::Callback(Box::new(|_| {})));
        assert!(table.has_callbacks());
        assert!(table.take(1).is_some() && table.take(2).is_some());
        assert!(table.has_callbacks());
        assert_eq!(table.len(), 1);
        let drained: Vec<i32> = table
            .drain()
            .into_iter()
            .map(|(opaque, _)| opaque)
            .collect();
        assert_eq!((drained, table.len()), (vec![3], 0));
        assert!(!table.has_callbacks());
        table.insert(4, Waiter::Callback(Box::new(|_| {})));
        assert!(table.take(4).is_some() && !table.has_callbacks());
    }

    #[test]
    fn a_caller_is_asked_to_read_unless_its_outcome_is_there() {
        let deadline = Deadline::after(Duration::from_secs(30));
        let future = ResponseFuture::new();
        let waiting = future.clone();
        let (told, woken) = crate::sync::channel::bounded(1);
        let waiter = thread::spawn("waiter", move || {
            let leads = matches!(waiting.wait_or_lead(deadline), Woken::Leads);
            told.send(leads).unwrap();
        })
        .unwrap();
        assert!(future.promote());
        future.wake();
        assert_eq!(woken.recv_timeout(Duration::from_secs(30)), Ok(true));
        assert!(waiter.join_until(deadline));
        assert_eq!(future.take(), None);
        future.set(Ok(5));
        assert!(!future.promote(), "its outcome is there");
        assert_eq!(future.take(), Some(Ok(5)));
        assert_eq!(future.take(), None);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use std::time::Duration;

    use super::*;
    use crate::sync::atomic::{AtomicUsize, Ordering};

    /// Reply, close and withdrawal race for one call: it ends exactly once, and the table is empty.
    #[test]
    fn loom_a_call_is_completed_exactly_once() {
        loom::model(|| {
            let table = Arc::new(ResponseTable::new());
            let completed = Arc::new(AtomicUsize::new(0));
            let counter = Arc::clone(&completed);
            let completion = move |_: Result<u8>| {
                counter.fetch_add(1, Ordering::SeqCst);
            };
            table.insert(1, Waiter::Callback(Box::new(completion)));
            let replier = {
                let table = Arc::clone(&table);
                loom::thread::spawn(move || {
                    if let Some(waiter) = table.take(1) {
                        waiter.complete(Ok(1));
                    }
                })
            };
            let closer = {
                let table = Arc::clone(&table);
                loom::thread::spawn(move || {
                    for (_, waiter) in table.drain() {
                        waiter.complete(Ok(2));
                    }
                })
            };
            replier.join().unwrap();
            closer.join().unwrap();
            assert_eq!(completed.load(Ordering::SeqCst), 1);
            assert_eq!(table.len(), 0);
        });
    }

    /// A reply sets the outcome while the caller waits: the caller always sees it.
    #[test]
    fn loom_a_reply_is_never_missed() {
        loom::model(|| {
            let table = Arc::new(ResponseTable::new());
            let future = ResponseFuture::new();
            table.insert(1, Waiter::Future(future.clone()));
            let replier = {
                let table = Arc::clone(&table);
                loom::thread::spawn(move || {
                    if let Some(waiter) = table.take(1) {
                        waiter.complete(Ok(1_u8));
                    }
                })
            };
            let deadline = Deadline::after(Duration::from_secs(1));
            assert_eq!(future.wait(deadline), Some(Ok(1)));
            replier.join().unwrap();
            assert_eq!(table.len(), 0);
        });
    }
}
