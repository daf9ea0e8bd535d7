use crate::sync::atomic::{AtomicI64, Ordering};
use crate::sync::system_time_millis;

/// The last version that this process has given.
static LAST: AtomicI64 = AtomicI64::new(0);

/// A version for a subscription that is made or changed now: the time in milliseconds, or one more
/// than the last version of this process if the clock is not beyond it. Brokers take no notice of a
/// subscription with a smaller version than the one they have.
///
/// # Java
/// `SubscriptionData#subVersion` is the plain time, which may be set back.
pub(crate) fn next_sub_version() -> i64 {
    next_after(&LAST, system_time_millis())
}

fn next_after(last: &AtomicI64, now: i64) -> i64 {
    let next = |last: i64| now.max(last.saturating_add(1));
    let update = |last: i64| Some(next(last));
    match last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update) {
        Ok(before) | Err(before) => next(before),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// apache/rocketmq#6679 (PR#6680): with the clock set back, a changed subscription had a smaller
    /// version than before, and brokers ignored it.
    #[test]
    fn b30_versions_do_not_go_back_with_the_clock() {
        let last = AtomicI64::new(0);
        assert_eq!(next_after(&last, 1000), 1000);
        assert_eq!(next_after(&last, 400), 1001);
        assert_eq!(next_after(&last, 1001), 1002, "no version is given twice");
        assert_eq!(next_after(&last, 5000), 5000);
    }

    #[test]
    fn versions_of_the_process_increase() {
        let first = next_sub_version();
        assert!(first > 1_600_000_000_000, "it is a time: {first}");
        assert!(next_sub_version() > first);
    }
}
