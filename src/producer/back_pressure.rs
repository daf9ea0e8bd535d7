//! Bounds what asynchronous sends have under way.

use crate::sync::{Arc, Condvar, Deadline, Mutex};

/// Java's two semaphores of `DefaultMQProducerImpl`, taken in one step.
#[derive(Debug)]
pub(super) struct BackPressure {
    max_count: usize,
    max_bytes: usize,
    used: Mutex<Used>,
    freed: Condvar,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Used {
    count: usize,
    bytes: usize,
}

/// The right to have one message under way; dropping it gives it back, once.
#[derive(Debug)]
pub(super) struct Permit {
    from: Arc<BackPressure>,
    bytes: usize,
}

impl BackPressure {
    pub(super) fn new(max_count: usize, max_bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            max_count,
            max_bytes,
            used: Mutex::new(Used::default()),
            freed: Condvar::new(),
        })
    }

    /// Waits for room for a message, at most until the deadline. One that is larger than all room
    /// there is gets in when it is alone (Java's never does).
    pub(super) fn acquire(self: &Arc<Self>, bytes: usize, deadline: Deadline) -> Option<Permit> {
        let mut used = self.used.lock();
        while !self.has_room(*used, bytes) {
            if self.freed.wait_until(&mut used, deadline) {
                if self.has_room(*used, bytes) {
                    break;
                }
                return None;
            }
        }
        used.count += 1;
        used.bytes += bytes;
        Some(Permit {
            from: Arc::clone(self),
            bytes,
        })
    }

    fn has_room(&self, used: Used, bytes: usize) -> bool {
        used.count == 0
            || (used.count < self.max_count && used.bytes.saturating_add(bytes) <= self.max_bytes)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut used = self.from.used.lock();
        used.count -= 1;
        used.bytes -= self.bytes;
        drop(used);
        // Whoever waits for fewer bytes may not be the one that waits longest.
        self.from.freed.notify_all();
    }
}

/// Counts sends under way, for a shutdown that waits for their ends.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    count: Mutex<usize>,
    empty: Condvar,
}

/// One send under way; dropping it tells that it has ended.
#[derive(Debug)]
pub(super) struct Flight(Arc<InFlight>);

impl InFlight {
    pub(super) fn begin(self: &Arc<Self>) -> Flight {
        *self.count.lock() += 1;
        Flight(Arc::clone(self))
    }

    /// Waits until none is under way, at most until the deadline, and returns how many are.
    pub(super) fn wait_for_none(&self, deadline: Deadline) -> usize {
        let mut count = self.count.lock();
        while *count > 0 && !self.empty.wait_until(&mut count, deadline) {}
        *count
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut count = self.0.count.lock();
        *count -= 1;
        if *count == 0 {
            drop(count);
            self.0.empty.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sync::{channel, now, thread};

    const GENEROUS: Duration = Duration::from_secs(30);

    fn at_once() -> Deadline {
        Deadline::at(now())
    }

    #[test]
    fn room_is_given_by_count_and_by_bytes_and_comes_back_once() {
        let pressure = BackPressure::new(2, 100);
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
        assert_eq!(*pressure.used.lock(), Used::default());
    }

    #[test]
    fn a_message_larger_than_all_room_gets_in_alone() {
        let pressure = BackPressure::new(2, 100);
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
        let pressure = BackPressure::new(1, 100);
        let permit = pressure.acquire(1, at_once()).unwrap();
        let (got, gets) = channel::unbounded();
        let waits = Arc::clone(&pressure);
        let thread = thread::spawn("waits", move || {
            got.send(waits.acquire(1, Deadline::after(GENEROUS)).is_some())
                .unwrap();
        })
        .unwrap();
        drop(permit);
        assert!(gets.recv_timeout(GENEROUS).unwrap());
        assert!(thread.join_until(Deadline::after(GENEROUS)));
        assert_eq!(*pressure.used.lock(), Used::default());
    }

    #[test]
    fn a_wait_for_none_under_way_ends_with_the_last_one() {
        let in_flight = Arc::new(InFlight::default());
        assert_eq!(in_flight.wait_for_none(at_once()), 0);
        let (first, second) = (in_flight.begin(), in_flight.begin());
        assert_eq!(in_flight.wait_for_none(at_once()), 2);
        drop(first);
        assert_eq!(in_flight.wait_for_none(at_once()), 1);
        let thread = thread::spawn("ends", move || drop(second)).unwrap();
        assert_eq!(in_flight.wait_for_none(Deadline::after(GENEROUS)), 0);
        assert!(thread.join_until(Deadline::after(GENEROUS)));
    }
}
