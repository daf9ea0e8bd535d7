//! Counts asynchronous sends, for a shutdown that waits for their ends.

use crate::sync::{Arc, Condvar, Deadline, Mutex};

/// The sends of one producer.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    counts: Mutex<Counts>,
    empty: Condvar,
}

#[derive(Debug, Default)]
struct Counts {
    under_way: usize,
    /// Those whose callbacks have returned, since ever.
    told: usize,
}

/// One send under way; dropping it tells that it has ended.
#[derive(Debug)]
pub(super) struct Flight {
    of: Arc<InFlight>,
    told: bool,
}

impl InFlight {
    pub(super) fn begin(self: &Arc<Self>) -> Flight {
        self.counts.lock().under_way += 1;
        Flight {
            of: Arc::clone(self),
            told: false,
        }
    }

    /// How many callbacks have returned so far.
    pub(super) fn told(&self) -> usize {
        self.counts.lock().told
    }

    /// Waits until none is under way, at most until the deadline, and returns how many are.
    pub(super) fn wait_for_none(&self, deadline: Deadline) -> usize {
        let mut counts = self.counts.lock();
        while counts.under_way > 0 && !self.empty.wait_until(&mut counts, deadline) {}
        counts.under_way
    }
}

impl Flight {
    /// Its callback has returned. (A send that is refused has none.)
    pub(super) const fn was_told(&mut self) {
        self.told = true;
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut counts = self.of.counts.lock();
        counts.under_way -= 1;
        counts.told += usize::from(self.told);
        if counts.under_way == 0 {
            drop(counts);
            self.of.empty.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sync::{now, thread};

    const GENEROUS: Duration = Duration::from_secs(30);

    #[test]
    fn a_wait_for_none_under_way_ends_with_the_last_one() {
        let at_once = || Deadline::at(now());
        let in_flight = Arc::new(InFlight::default());
        assert_eq!(in_flight.wait_for_none(at_once()), 0);
        let (first, mut second) = (in_flight.begin(), in_flight.begin());
        assert_eq!(in_flight.wait_for_none(at_once()), 2);
        drop(first);
        assert_eq!(in_flight.wait_for_none(at_once()), 1);
        let thread = thread::spawn("ends", move || {
            second.was_told();
            drop(second);
        })
        .unwrap();
        assert_eq!(in_flight.wait_for_none(Deadline::after(GENEROUS)), 0);
        assert_eq!(in_flight.told(), 1, "the first one was refused");
        assert!(thread.join_until(Deadline::after(GENEROUS)));
    }
}
