//! The thread that keeps each group balanced.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::group_registry::ConsumerTable;
use crate::service::{ServiceContext, ServiceThread};
use crate::sync::{Arc, Deadline, Mutex, add, now};

/// A group may be rebalanced so often in a row before it is paced.
const TOKENS: u32 = 3;

/// Java `RebalanceService`, with a pace per group instead of one for the process.
#[derive(Debug)]
pub(crate) struct RebalanceService {
    consumers: Arc<ConsumerTable>,
    wait_interval: Duration,
    min_interval: Duration,
    /// Groups that somebody asked to look at; taken by the thread, so that a request made while the
    /// group is being looked at leads to one more look.
    requested: Mutex<BTreeSet<String>>,
}

impl RebalanceService {
    pub(crate) fn new(
        consumers: Arc<ConsumerTable>,
        wait_interval: Duration,
        min_interval: Duration,
    ) -> Self {
        Self {
            consumers,
            wait_interval,
            min_interval,
            requested: Mutex::new(BTreeSet::new()),
        }
    }

    /// Asks for a look at one group, or at all when it is not one of this client. The thread must be
    /// woken afterwards.
    pub(crate) fn request(&self, group: &str) {
        if self.consumers.get(group).is_none() {
            return self.request_all();
        }
        self.requested.lock().insert(group.to_owned());
    }

    pub(crate) fn request_all(&self) {
        let groups = self.consumers.groups();
        self.requested.lock().extend(groups);
    }
}

impl ServiceThread for RebalanceService {
    fn service_name(&self) -> String {
        "RebalanceService".to_owned()
    }

    fn run(&self, context: &ServiceContext) {
        let mut paces: BTreeMap<String, Pace> = BTreeMap::new();
        let mut next = add(now(), self.wait_interval);
        while !context.is_stopped() {
            context.wait_until(Deadline::at(next));
            if context.is_stopped() {
                return;
            }
            let requested = std::mem::take(&mut *self.requested.lock());
            let consumers = self.consumers.snapshot();
            paces.retain(|group, _| consumers.iter().any(|(name, _)| name == group));
            next = add(now(), self.wait_interval);
            for (group, consumer) in consumers {
                // A member that was stopped and started anew begins with a full bucket.
                let member = Arc::as_ptr(&consumer).cast::<()>() as usize;
                let pace = paces
                    .entry(group.clone())
                    .or_insert_with(|| Pace::new(member, now(), self.wait_interval));
                if pace.member != member {
                    *pace = Pace::new(member, now(), self.wait_interval);
                }
                if requested.contains(&group) {
                    pace.requested = true;
                }
                if !consumer.is_ready() {
                    continue;
                }
                if pace.begin(now(), self.min_interval) {
                    let balanced = catch_unwind(AssertUnwindSafe(|| consumer.try_rebalance()))
                        .unwrap_or_else(|_| {
                            log::error!("rebalancing group {group} panicked");
                            false
                        });
                    let pause = if balanced {
                        self.wait_interval
                    } else {
                        self.min_interval
                    };
                    pace.due = add(now(), pause);
                }
                next = next.min(pace.next(self.min_interval));
            }
        }
    }
}

/// When a group is looked at: at its due time, and when asked for as long as it has tokens.
#[derive(Debug)]
struct Pace {
    /// Which member of the group it is of.
    member: usize,
    requested: bool,
    due: Instant,
    tokens: u32,
    /// When the next token comes back counts from here.
    refilled: Instant,
}

impl Pace {
    fn new(member: usize, now: Instant, wait_interval: Duration) -> Self {
        Self {
            member,
            requested: false,
            due: add(now, wait_interval),
            tokens: TOKENS,
            refilled: now,
        }
    }

    fn refill(&mut self, now: Instant, period: Duration) {
        while self.tokens < TOKENS && now >= add(self.refilled, period) {
            self.tokens += 1;
            self.refilled = add(self.refilled, period);
        }
        if self.tokens == TOKENS {
            self.refilled = now;
        }
    }

    /// Whether to look now. A request that finds no token stays until one is back.
    fn begin(&mut self, now: Instant, period: Duration) -> bool {
        self.refill(now, period);
        if self.tokens == 0 || !(self.requested || now >= self.due) {
            return false;
        }
        self.requested = false;
        self.tokens -= 1;
        true
    }

    /// When to look again.
    fn next(&self, period: Duration) -> Instant {
        let wanted = if self.requested {
            self.refilled
        } else {
            self.due
        };
        if self.tokens == 0 {
            wanted.max(add(self.refilled, period))
        } else {
            wanted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const WAIT: Duration = Duration::from_secs(20);

    #[test]
    fn three_requests_are_served_at_once_and_the_last_one_when_a_token_is_back() {
        let start = now();
        let mut pace = Pace::new(1, start, WAIT);
        for _ in 0..3 {
            pace.requested = true;
            assert!(pace.begin(start, SECOND));
        }
        pace.requested = true;
        assert!(!pace.begin(start, SECOND), "the bucket is empty");
        assert_eq!(pace.next(SECOND), start + SECOND, "it is not forgotten");
        assert!(pace.begin(start + SECOND, SECOND));
        assert!(!pace.begin(start + SECOND, SECOND), "it was one request");
    }

    #[test]
    fn without_requests_a_group_is_looked_at_when_it_is_due() {
        let start = now();
        let mut pace = Pace::new(1, start, WAIT);
        assert!(!pace.begin(start + WAIT - SECOND, SECOND));
        assert_eq!(pace.next(SECOND), start + WAIT);
        assert!(pace.begin(start + WAIT, SECOND));
    }

    #[test]
    fn tokens_come_back_one_a_period_up_to_three() {
        let start = now();
        let mut pace = Pace::new(1, start, WAIT);
        for _ in 0..3 {
            pace.requested = true;
            assert!(pace.begin(start, SECOND));
        }
        let later = start + SECOND * 100;
        for _ in 0..3 {
            pace.requested = true;
            assert!(pace.begin(later, SECOND));
        }
        pace.requested = true;
        assert!(!pace.begin(later, SECOND));
    }
}
