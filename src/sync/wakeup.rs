//! One flag behind a condvar: what `ServiceThread` in Java does with a flag and a latch.

use super::{Condvar, Deadline, Mutex};

/// A wake-up that waits for its sleeper.
///
/// A wake-up sent while nobody waits is remembered, and ends the next wait at once; several of them
/// are one. The flag is tested and cleared under one lock, so none falls between the two. In Java's
/// `ServiceThread#waitForRunning` the flag and the latch are two objects: a wake-up between the test
/// of one and the reset of the other is lost, and later ones with it.
#[derive(Debug, Default)]
pub(crate) struct Wakeup {
    flags: Mutex<Flags>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Flags {
    notified: bool,
    closed: bool,
}

impl Wakeup {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Ends the current wait, or the next one if nobody waits.
    pub(crate) fn wakeup(&self) {
        self.flags.lock().notified = true;
        self.changed.notify_one();
    }

    /// Ends every wait, now and from now on.
    pub(crate) fn close(&self) {
        self.flags.lock().closed = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.flags.lock().closed
    }

    /// Waits for a wake-up and takes it: `true` if there was one, `false` if the deadline passed or
    /// the wake-up was closed first.
    pub(crate) fn wait(&self, deadline: Deadline) -> bool {
        let mut flags = self.flags.lock();
        while !flags.notified && !flags.closed {
            if self.changed.wait_until(&mut flags, deadline) {
                break;
            }
        }
        std::mem::take(&mut flags.notified)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sync::{Arc, thread};

    const GENEROUS: Duration = Duration::from_secs(30);

    #[test]
    fn a_wakeup_before_the_wait_ends_it_once() {
        let wakeup = Wakeup::new();
        wakeup.wakeup();
        wakeup.wakeup();
        assert!(wakeup.wait(Deadline::after(GENEROUS)));
        assert!(!wakeup.wait(Deadline::after(Duration::ZERO)));
    }

    #[test]
    fn a_wakeup_ends_a_wait_under_way() {
        let wakeup = Arc::new(Wakeup::new());
        let waker = Arc::clone(&wakeup);
        let handle = thread::spawn("waker", move || waker.wakeup()).unwrap();
        assert!(wakeup.wait(Deadline::after(GENEROUS)));
        assert!(handle.join_until(Deadline::after(GENEROUS)));
    }

    #[test]
    fn a_wait_without_a_wakeup_ends_at_its_deadline() {
        assert!(!Wakeup::new().wait(Deadline::after(Duration::from_millis(1))));
    }

    #[test]
    fn a_closed_wakeup_never_waits_and_loses_nothing() {
        let wakeup = Wakeup::new();
        wakeup.wakeup();
        wakeup.close();
        assert!(wakeup.is_closed());
        assert!(wakeup.wait(Deadline::after(GENEROUS)));
        assert!(!wakeup.wait(Deadline::after(GENEROUS)));
    }
}

#[cfg(test)]
#[cfg(loom)]
mod loom_tests {
    use std::time::Duration;

    use loom::thread;

    use super::*;
    use crate::sync::Arc;
    use crate::sync::atomic::{AtomicBool, Ordering};

    fn some_deadline() -> Deadline {
        Deadline::after(Duration::from_secs(1))
    }

    #[test]
    fn loom_a_wakeup_is_never_lost() {
        loom::model(|| {
            let wakeup = Arc::new(Wakeup::new());
            let waker = Arc::clone(&wakeup);
            let handle = thread::spawn(move || waker.wakeup());
            assert!(wakeup.wait(some_deadline()));
            handle.join().unwrap();
        });
    }

    #[test]
    fn loom_each_wakeup_after_a_wait_ends_another_one() {
        loom::model(|| {
            let wakeup = Arc::new(Wakeup::new());
            let awake = Arc::new(AtomicBool::new(false));
            let (waker, seen) = (Arc::clone(&wakeup), Arc::clone(&awake));
            let handle = thread::spawn(move || {
                waker.wakeup();
                while !seen.load(Ordering::Acquire) {
                    thread::yield_now();
                }
                waker.wakeup();
            });
            assert!(wakeup.wait(some_deadline()));
            awake.store(true, Ordering::Release);
            assert!(wakeup.wait(some_deadline()));
            handle.join().unwrap();
        });
    }

    /// What was done before the wake-up is seen after the wait, by whoever got the one flag.
    #[test]
    fn loom_the_last_of_two_wakers_is_seen() {
        loom::model(|| {
            let wakeup = Arc::new(Wakeup::new());
            let work = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
            let wakers = [0, 1].map(|index| {
                let (wakeup, work) = (Arc::clone(&wakeup), Arc::clone(&work));
                thread::spawn(move || {
                    work[index].store(true, Ordering::Relaxed);
                    wakeup.wakeup();
                })
            });
            while !work.iter().all(|done| done.load(Ordering::Relaxed)) {
                wakeup.wait(some_deadline());
            }
            wakers.into_iter().for_each(|waker| waker.join().unwrap());
        });
    }

    #[test]
    fn loom_a_close_is_never_lost_and_loses_no_wakeup() {
        loom::model(|| {
            let wakeup = Arc::new(Wakeup::new());
            let (waker, closer) = (Arc::clone(&wakeup), Arc::clone(&wakeup));
            let waking = thread::spawn(move || waker.wakeup());
            let closing = thread::spawn(move || closer.close());
            let mut woken = 0;
            while !wakeup.is_closed() {
                woken += u32::from(wakeup.wait(some_deadline()));
            }
            waking.join().unwrap();
            closing.join().unwrap();
            woken += u32::from(wakeup.wait(some_deadline()));
            assert_eq!(woken, 1);
        });
    }

    /// The seeded mistake: Java's `ServiceThread#waitForRunning` and `#wakeup`, step by step.
    struct JavaOrder {
        has_notified: AtomicBool,
        wait_point: Mutex<u32>,
        changed: Condvar,
    }

    impl JavaOrder {
        fn wakeup(&self) {
            if self.swap_notified(false, true) {
                *self.wait_point.lock() = 0;
                self.changed.notify_all();
            }
        }

        fn wait_for_running(&self) {
            if self.swap_notified(true, false) {
                return;
            }
            // A wake-up here has set the flag and opened the latch that is closed again now.
            *self.wait_point.lock() = 1;
            let mut count = self.wait_point.lock();
            while *count > 0 {
                self.changed.wait(&mut count);
            }
            drop(count);
            self.has_notified.store(false, Ordering::SeqCst);
        }

        fn swap_notified(&self, from: bool, to: bool) -> bool {
            let order = Ordering::SeqCst;
            self.has_notified
                .compare_exchange(from, to, order, order)
                .is_ok()
        }
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn loom_the_order_of_java_loses_a_wakeup() {
        loom::model(|| {
            let service = Arc::new(JavaOrder {
                has_notified: AtomicBool::new(false),
                wait_point: Mutex::new(1),
                changed: Condvar::new(),
            });
            let waker = Arc::clone(&service);
            let handle = thread::spawn(move || waker.wakeup());
            service.wait_for_running();
            handle.join().unwrap();
        });
    }
}
