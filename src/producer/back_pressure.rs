//! Bounds what asynchronous sends have under way.

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Condvar, Deadline, Mutex};

/// Java's two semaphores of `DefaultMQProducerImpl`, taken in one step.
#[derive(Debug)]
pub(super) struct BackPressure {
    enabled: AtomicBool,
    room: Mutex<Room>,
    /// There is more room, or it is not asked for any more.
    freed: Condvar,
}

/// What is used, and what may be: less than what is used, after a change.
#[derive(Debug)]
struct Room {
    max: Sends,
    used: Sends,
    /// How many threads wait for room.
    waiting: usize,
}

/// Sends under way, and the bytes of their bodies.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sends {
    pub(super) count: usize,
    pub(super) bytes: usize,
}

/// The right to have one message under way; dropping it gives it back, once.
#[derive(Debug)]
pub(super) struct Permit {
    from: Arc<BackPressure>,
    bytes: usize,
}

impl BackPressure {
    pub(super) fn new(enabled: bool, max: Sends) -> Arc<Self> {
        Arc::new(Self {
            enabled: AtomicBool::new(enabled),
            room: Mutex::new(Room {
                max,
                used: Sends::default(),
                waiting: 0,
            }),
            freed: Condvar::new(),
        })
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Acquire)
    }

    /// Switches it; whoever waits for room goes on when it is off.
    pub(super) fn set_enabled(&self, enabled: bool) {
        let room = self.room.lock();
        self.enabled.store(enabled, Ordering::Release);
        drop(room);
        self.freed.notify_all();
    }

    /// Changes how much there may be under way; what is under way keeps its room. (Java makes new
    /// semaphores, and permits that are given back meanwhile go to the old ones.)
    pub(super) fn set_max(&self, change: impl FnOnce(&mut Sends)) {
        change(&mut self.room.lock().max);
        self.freed.notify_all();
    }

    pub(super) fn max(&self) -> Sends {
        self.room.lock().max
    }

    pub(super) fn used(&self) -> Sends {
        self.room.lock().used
    }

    /// Waits for room for a message, at most until the deadline. One that is larger than all room
    /// there is gets in when it is alone (Java's never does).
    pub(super) fn acquire(self: &Arc<Self>, bytes: usize, deadline: Deadline) -> Option<Permit> {
        let mut room = self.room.lock();
        while self.is_enabled() && !room.takes(bytes) {
            room.waiting += 1;
            let timed_out = self.freed.wait_until(&mut room, deadline);
            room.waiting -= 1;
            if timed_out {
                if room.takes(bytes) {
                    break;
                }
                return None;
            }
        }
        room.used.count += 1;
        room.used.bytes += bytes;
        Some(Permit {
            from: Arc::clone(self),
            bytes,
        })
    }
}

impl Room {
    fn takes(&self, bytes: usize) -> bool {
        let (used, max) = (self.used, self.max);
        used.count == 0 || (used.count < max.count && used.bytes.saturating_add(bytes) <= max.bytes)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut room = self.from.room.lock();
        room.used.count -= 1;
        room.used.bytes -= self.bytes;
        drop(room);
        // Whoever waits for fewer bytes may not be the one that waits longest.
        self.from.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sync::{channel, now, thread};

    const GENEROUS: Duration = Duration::from_secs(30);

    fn pressure(count: usize, bytes: usize) -> Arc<BackPressure> {
        BackPressure::new(true, Sends { count, bytes })
    }

    fn at_once() -> Deadline {
        Deadline::at(now())
    }

    #[test]
    fn room_is_given_by_count_and_by_bytes_and_comes_back_once() {
        let pressure = pressure(2, 100);
        let first = pressure.acquire(60, at_once()).unwrap();
        assert!(pressure.acquire(41, at_once()).is_none(), "too many bytes");
        let second = pressure.acquire(40, at_once()).unwrap();
        assert!(
            pressure.acquire(0, at_once()).is_none(),
            "too many messages"
        );
        drop(first);
        assert!(pressure.acquire(61, at_once()).is_none());
        let third = pressure.acquire(60, at_once()).unwrap();
        drop((second, third));
        assert_eq!(pressure.used(), Sends::default());
    }

    #[test]
    fn a_message_larger_than_all_room_gets_in_alone() {
        let pressure = pressure(2, 100);
        let small = pressure.acquire(1, at_once()).unwrap();
        assert!(pressure.acquire(101, at_once()).is_none());
        drop(small);
        let large = pressure.acquire(101, at_once()).unwrap();
        assert!(pressure.acquire(1, at_once()).is_none());
        drop(large);
        assert!(pressure.acquire(1, at_once()).is_some());
    }

    #[test]
    fn whoever_waits_goes_on_when_there_is_room() {
        let pressure = pressure(1, 100);
        let permit = pressure.acquire(1, at_once()).unwrap();
        let (gets, thread) = waiting(&pressure);
        drop(permit);
        drop(gets.recv_timeout(GENEROUS).unwrap());
        assert!(thread.join_until(Deadline::after(GENEROUS)));
        assert_eq!(pressure.used(), Sends::default());
    }

    /// Waits for room on a thread of its own, and tells whether there was some.
    fn waiting(pressure: &Arc<BackPressure>) -> (channel::Receiver<Permit>, thread::JoinHandle) {
        let (got, gets) = channel::unbounded();
        let waits = Arc::clone(pressure);
        let thread = thread::spawn("waits", move || {
            let permit = waits.acquire(1, Deadline::after(2 * GENEROUS)).unwrap();
            let _ = got.send(permit);
        });
        while pressure.room.lock().waiting == 0 {
            std::hint::spin_loop();
        }
        (gets, thread.unwrap())
    }

    #[test]
    fn a_change_of_the_limits_counts_what_is_under_way() {
        let pressure = pressure(2, 100);
        let mut held = vec![
            pressure.acquire(10, at_once()).unwrap(),
            pressure.acquire(10, at_once()).unwrap(),
        ];
        let (gets, thread) = waiting(&pressure);
        pressure.set_max(|max| max.count = 3);
        held.push(gets.recv_timeout(GENEROUS).unwrap());
        assert!(thread.join_until(Deadline::after(GENEROUS)));
        assert!(pressure.acquire(0, at_once()).is_none());

        pressure.set_max(|max| max.count = 1);
        for left in [2, 1] {
            drop(held.pop());
            assert!(pressure.acquire(0, at_once()).is_none(), "{left} are left");
        }
        drop(held);
        assert_eq!(pressure.used(), Sends::default());
        let _one = pressure.acquire(0, at_once()).unwrap();
        assert!(pressure.acquire(0, at_once()).is_none());

        pressure.set_max(|max| *max = Sends { count: 9, bytes: 5 });
        assert!(pressure.acquire(6, at_once()).is_none());
        assert!(pressure.acquire(5, at_once()).is_some());
    }

    #[test]
    fn whoever_waits_goes_on_when_it_is_switched_off() {
        let pressure = pressure(1, 100);
        let held = pressure.acquire(1, at_once()).unwrap();
        let (gets, thread) = waiting(&pressure);
        pressure.set_enabled(false);
        let second = gets.recv_timeout(GENEROUS).unwrap();
        assert!(thread.join_until(Deadline::after(GENEROUS)));
        assert_eq!(pressure.used(), Sends { count: 2, bytes: 2 });
        pressure.set_enabled(true);
        drop(held);
        assert!(
            pressure.acquire(1, at_once()).is_none(),
            "the second is under way"
        );
        drop(second);
        assert_eq!(pressure.used(), Sends::default());
    }
}
