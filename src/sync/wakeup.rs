//! One word: what `ServiceThread` in Java does with a flag and a latch.

use super::Deadline;
use super::atomic::{AtomicU32, Ordering};
use super::parking::{Parking, Platform};

/// A wake-up that waits for its sleeper.
///
/// A wake-up sent while nobody waits is remembered, and ends the next wait at once; several of them
/// are one. The flag is taken, or the sleep on its absence begun, in one step, so none falls between
/// the two. In Java's `ServiceThread#waitForRunning` the flag and the latch are two objects: a
/// wake-up between the test of one and the reset of the other is lost, and later ones with it.
#[derive(Debug, Default)]
pub(crate) struct Wakeup<P = Platform> {
    state: AtomicU32,
    parking: P,
}

const NOTIFIED: u32 = 1;
const CLOSED: u32 = 1 << 1;
/// Somebody may sleep; without it a wake-up needs no call to the system. All sleepers are woken
/// with it, for it does not say how many there are.
const SLEEPING: u32 = 1 << 2;

impl Wakeup {
    pub(crate) fn new() -> Self {
        Self::default()
    }
}

impl<P: Parking> Wakeup<P> {
    /// Ends the current wait, or the next one if nobody waits.
    pub(crate) fn wakeup(&self) {
        self.set(NOTIFIED);
    }

    /// Ends every wait, now and from now on.
    pub(crate) fn close(&self) {
        self.set(CLOSED);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Waits for a wake-up and takes it: `true` if there was one, `false` if the deadline passed or
    /// the wake-up was closed first.
    pub(crate) fn wait(&self, deadline: Deadline) -> bool {
        let mut is_late = false;
        loop {
            let state = self.state.load(Ordering::Acquire);
            if state & NOTIFIED != 0 {
                if self.change(state, state & !NOTIFIED) {
                    return true;
                }
            } else if state & CLOSED != 0 || is_late {
                return false;
            } else if state & SLEEPING != 0 || self.change(state, state | SLEEPING) {
                is_late = self.parking.park(&self.state, state | SLEEPING, deadline);
            }
        }
    }

    fn set(&self, flag: u32) {
        let set = |state| Some((state | flag) & !SLEEPING);
        let before = (self.state).fetch_update(Ordering::AcqRel, Ordering::Acquire, set);
        if before.is_ok_and(|state| state & SLEEPING != 0) {
            self.parking.unpark_all(&self.state);
        }
    }

    fn change(&self, from: u32, to: u32) -> bool {
        (self.state)
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::time::Duration;

    use super::super::parking::ByCondvar;
    use super::*;
    use crate::sync::{Arc, thread};

    const GENEROUS: Duration = Duration::from_secs(30);

    /// Each check for what this system has and for what others have.
    fn check(check_futex: fn(Wakeup), check_condvar: fn(Wakeup<ByCondvar>)) {
        check_futex(Wakeup::default());
        check_condvar(Wakeup::default());
    }

    fn await_sleeper<P: Parking>(wakeup: &Wakeup<P>) {
        let deadline = Deadline::after(GENEROUS);
        while wakeup.state.load(Ordering::Acquire) & SLEEPING == 0 {
            assert!(!deadline.has_passed(), "nobody sleeps");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_wakeup_before_the_wait_ends_it_once() {
        fn ends_one<P: Parking>(wakeup: Wakeup<P>) {
            wakeup.wakeup();
            wakeup.wakeup();
            assert!(wakeup.wait(Deadline::after(GENEROUS)));
            assert!(!wakeup.wait(Deadline::after(Duration::ZERO)));
        }
        check(ends_one, ends_one);
    }

    #[test]
    fn a_wakeup_ends_a_wait_under_way() {
        fn ends_it<P: Parking + Send + Sync + 'static>(wakeup: Wakeup<P>) {
            let wakeup = Arc::new(wakeup);
            let waker = Arc::clone(&wakeup);
            let handle = thread::spawn("waker", move || {
                await_sleeper(&waker);
                waker.wakeup();
            });
            assert!(wakeup.wait(Deadline::after(GENEROUS)));
            assert!(handle.unwrap().join_until(Deadline::after(GENEROUS)));
        }
        check(ends_it, ends_it);
    }

    /// A wake-up does not say which of several sleepers it is for: all wake, and one takes it.
    #[test]
    fn each_of_two_wakeups_ends_one_of_two_waits() {
        fn end_both<P: Parking + Send + Sync + 'static>(wakeup: Wakeup<P>) {
            let (wakeup, woken) = (Arc::new(wakeup), Arc::new(AtomicU32::new(0)));
            let wait = || {
                let (wakeup, woken) = (Arc::clone(&wakeup), Arc::clone(&woken));
                thread::spawn("waiter", move || {
                    let is_woken = wakeup.wait(Deadline::after(GENEROUS));
                    woken.fetch_add(is_woken.into(), Ordering::AcqRel);
                })
            };
            let waiters = [wait().unwrap(), wait().unwrap()];
            await_sleeper(&wakeup);
            wakeup.wakeup();
            let deadline = Deadline::after(GENEROUS);
            while !waiters.iter().any(thread::JoinHandle::has_exited) {
                assert!(!deadline.has_passed());
                std::thread::yield_now();
            }
            wakeup.wakeup();
            assert!(waiters.iter().all(|waiter| waiter.join_until(deadline)));
            assert_eq!(woken.load(Ordering::Acquire), 2);
        }
        check(end_both, end_both);
    }

    #[test]
    fn a_wait_without_a_wakeup_ends_at_its_deadline() {
        fn ends<P: Parking>(wakeup: Wakeup<P>) {
            let (begun, time) = (crate::sync::now(), Duration::from_millis(5));
            assert!(!wakeup.wait(Deadline::after(time)));
            assert!(begun.elapsed() >= time);
        }
        check(ends, ends);
    }

    #[test]
    fn a_closed_wakeup_never_waits_and_loses_nothing() {
        fn never_waits<P: Parking>(wakeup: Wakeup<P>) {
            wakeup.wakeup();
            wakeup.close();
            assert!(wakeup.is_closed());
            assert!(wakeup.wait(Deadline::after(GENEROUS)));
            assert!(!wakeup.wait(Deadline::after(GENEROUS)));
        }
        check(never_waits, never_waits);
    }
}

#[cfg(test)]
#[cfg(loom)]
mod loom_tests {
    use std::time::Duration;

    use loom::thread;

    use super::*;
    use crate::sync::atomic::AtomicBool;
    use crate::sync::{Arc, Condvar, Mutex};

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

    /// Whoever is woken in vain sleeps again, and the next wake-up finds it.
    #[test]
    fn loom_each_of_two_sleepers_gets_one_of_two_wakeups() {
        loom::model(|| {
            let wakeup = Arc::new(Wakeup::new());
            let handles = [(), ()].map(|()| {
                let wakeup = Arc::clone(&wakeup);
                thread::spawn(move || {
                    assert!(wakeup.wait(some_deadline()));
                    wakeup.wakeup();
                })
            });
            wakeup.wakeup();
            handles
                .into_iter()
                .for_each(|handle| handle.join().unwrap());
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
