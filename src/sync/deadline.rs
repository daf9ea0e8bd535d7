//! Deadlines and clocks; the only file that reads the time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{Arc, Mutex};

/// The point in time at which a wait ends.
///
/// A call takes a `Duration` from its user once and carries a `Deadline` from there on, so that
/// several waits in a row share one budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// `timeout` from now; one beyond a century is cut to a century, which no process outlives.
    pub(crate) fn after(timeout: Duration) -> Self {
        Self(add(now(), timeout))
    }

    pub(crate) fn at(instant: Instant) -> Self {
        Self(instant)
    }

    /// What is left of the time; zero once the deadline has passed.
    pub(crate) fn remaining(self) -> Duration {
        self.0.saturating_duration_since(now())
    }

    pub(crate) fn has_passed(self) -> bool {
        now() >= self.0
    }

    pub(crate) fn instant(self) -> Instant {
        self.0
    }

    /// The earlier of the two.
    pub(crate) fn min(self, other: Self) -> Self {
        Ord::min(self, other)
    }
}

/// The monotonic clock.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Milliseconds since 1970, as RocketMQ stamps its messages; negative if the clock is set earlier.
pub(crate) fn system_time_millis() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
    }
}

/// A source of the time that a test can hold still. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) enum Clock {
    #[default]
    Real,
    Manual(Arc<Mutex<Instant>>),
}

impl Clock {
    /// A clock that stands still until [`advance`](Self::advance) moves it.
    pub(crate) fn manual() -> Self {
        Self::Manual(Arc::new(Mutex::new(now())))
    }

    pub(crate) fn now(&self) -> Instant {
        match self {
            Self::Real => now(),
            Self::Manual(instant) => *instant.lock(),
        }
    }

    /// Moves a manual clock and all its clones; the real clock goes its own way.
    pub(crate) fn advance(&self, by: Duration) {
        if let Self::Manual(instant) = self {
            let mut instant = instant.lock();
            *instant = add(*instant, by);
        }
    }
}

/// `instant + duration` without the panic; far more than a century is a century.
pub(crate) fn add(instant: Instant, duration: Duration) -> Instant {
    instant
        .checked_add(duration.min(CENTURY))
        .unwrap_or(instant)
}

const CENTURY: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn a_huge_timeout_saturates() {
        let deadline = Deadline::after(Duration::MAX);
        assert!(!deadline.has_passed());
        assert!(deadline.remaining() > Duration::from_secs(99 * 365 * 24 * 60 * 60));
    }

    #[test]
    fn a_passed_deadline_has_nothing_left() {
        let deadline = Deadline::at(now());
        assert!(deadline.has_passed());
        assert_eq!(deadline.remaining(), Duration::ZERO);
    }

    #[test]
    fn min_is_the_earlier_one() {
        let start = now();
        let early = Deadline::at(start);
        let late = Deadline::at(start + Duration::from_secs(1));
        assert_eq!(early.min(late), early);
        assert_eq!(late.min(early), early);
    }

    #[test]
    fn clones_of_a_manual_clock_move_together() {
        let clock = Clock::manual();
        let clone = clock.clone();
        let before = clone.now();
        clock.advance(Duration::from_secs(7));
        assert_eq!(clone.now() - before, Duration::from_secs(7));
    }

    #[test]
    fn the_wall_clock_counts_milliseconds() {
        const YEAR_2020: i64 = 1_577_836_800_000;
        const YEAR_2200: i64 = 7_258_118_400_000;
        let millis = system_time_millis();
        assert!(millis > YEAR_2020 && millis < YEAR_2200, "{millis}");
    }
}
