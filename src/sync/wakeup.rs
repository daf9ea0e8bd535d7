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

#[cfg(all(test, not(loom)))]
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
