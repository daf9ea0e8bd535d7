//! How often one group is looked at.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::member_lists::AskFirst;
use crate::sync::add;

/// A group may be rebalanced so often in a row before it is paced.
const TOKENS: u32 = 3;

/// When a group is looked at: at its due time, and when asked for as long as it has tokens.
///
/// One change is told of by each broker that has heard of it. So when a look has changed something,
/// the next one that is asked for within the time in which a token comes back costs none; unless
/// that is true of the look itself, so a token is good for two looks at most.
#[derive(Debug)]
pub(super) struct Pace {
    /// Which member of the group it is of.
    pub(super) member: usize,
    requested: bool,
    /// The broker that told of a change.
    told_by: AskFirst,
    due: Instant,
    tokens: u32,
    /// When the next token comes back counts from here.
    refilled: Instant,
    /// Until when the next look costs no token.
    free_until: Option<Instant>,
    /// Whether the last look has cost none.
    was_free: bool,
    /// Topics whose last question for the members has failed.
    unanswered: BTreeSet<String>,
}

impl Pace {
    pub(super) fn new(member: usize, now: Instant, wait_interval: Duration) -> Self {
        Self {
            member,
            requested: false,
            told_by: None,
            due: add(now, wait_interval),
            tokens: TOKENS,
            refilled: now,
            free_until: None,
            was_free: false,
            unanswered: BTreeSet::new(),
        }
    }

    /// Notes whether a topic's members are known. Returns whether this is its first failure in a row.
    pub(super) fn is_first_failure(&mut self, topic: &str, has_failed: bool) -> bool {
        if has_failed {
            return !self.unanswered.contains(topic) && self.unanswered.insert(topic.to_owned());
        }
        self.unanswered.remove(topic);
        false
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

    /// Notes that somebody asks for a look.
    pub(super) fn request(&mut self, told_by: AskFirst) {
        self.requested = true;
        self.told_by = told_by.or_else(|| self.told_by.take());
    }

    /// Whether to look now, and if so, whom to ask first. A request that finds no token stays until
    /// one is back.
    pub(super) fn begin(&mut self, now: Instant, period: Duration) -> Option<AskFirst> {
        self.refill(now, period);
        let is_wanted = self.requested || now >= self.due;
        let is_free = self.requested && self.free_until.is_some_and(|until| now < until);
        if !is_wanted || (self.tokens == 0 && !is_free) {
            return None;
        }
        self.requested = false;
        self.was_free = is_free;
        self.free_until = None;
        if !is_free {
            self.tokens -= 1;
        }
        Some(self.told_by.take())
    }

    /// Has the next look at this time at the latest.
    pub(super) fn due_by(&mut self, at: Instant) {
        self.due = self.due.min(at);
    }

    /// Notes that the last look has changed something.
    pub(super) fn has_changed(&mut self, now: Instant, period: Duration) {
        if !self.was_free {
            self.free_until = Some(add(now, period));
        }
    }

    /// Sets when the next look is due.
    pub(super) fn due_at(&mut self, at: Instant) {
        self.due = at;
    }

    /// When to look again.
    pub(super) fn next(&self, period: Duration) -> Instant {
        let wanted = if self.requested {
            self.refilled
        } else {
            self.due
        };
        let is_free = self.requested && self.free_until.is_some_and(|until| wanted < until);
        if self.tokens == 0 && !is_free {
            wanted.max(add(self.refilled, period))
        } else {
            wanted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::now;

    const SECOND: Duration = Duration::from_secs(1);
    const WAIT: Duration = Duration::from_secs(20);

    #[test]
    fn three_requests_are_served_at_once_and_the_last_one_when_a_token_is_back() {
        let start = now();
        let mut pace = Pace::new(1, start, WAIT);
        for _ in 0..3 {
            pace.request(None);
            assert!(pace.begin(start, SECOND).is_some());
        }
        pace.request(None);
        assert_eq!(pace.begin(start, SECOND), None, "the bucket is empty");
        assert_eq!(pace.next(SECOND), start + SECOND, "it is not forgotten");
        assert!(pace.begin(start + SECOND, SECOND).is_some());
        assert!(
            pace.begin(start + SECOND, SECOND).is_none(),
            "it was one request"
        );
    }

    #[test]
    fn without_requests_a_group_is_looked_at_when_it_is_due() {
        let start = now();
        let mut pace = Pace::new(1, start, WAIT);
        assert!(pace.begin(start + WAIT - SECOND, SECOND).is_none());
        assert_eq!(pace.next(SECOND), start + WAIT);
        assert!(pace.begin(start + WAIT, SECOND).is_some());
    }

    #[test]
    fn tokens_come_back_one_a_period_up_to_three() {
        let start = now();
        let mut pace = Pace::new(1, start, WAIT);
        for _ in 0..3 {
            pace.request(None);
            assert!(pace.begin(start, SECOND).is_some());
        }
        let later = start + SECOND * 100;
        for _ in 0..3 {
            pace.request(None);
            assert!(pace.begin(later, SECOND).is_some());
        }
        pace.request(None);
        assert!(pace.begin(later, SECOND).is_none());
    }

    #[test]
    fn the_last_broker_that_told_of_a_change_is_remembered_until_the_look() {
        let start = now();
        let mut pace = Pace::new(1, start, WAIT);
        pace.request(Some("a".into()));
        pace.request(Some("b".into()));
        pace.request(None);
        assert_eq!(pace.begin(start, SECOND), Some(Some("b".into())));
        pace.request(None);
        assert_eq!(pace.begin(start, SECOND), Some(None));
    }

    #[test]
    fn a_look_that_failed_is_due_after_the_short_pause() {
        let start = now();
        let mut pace = Pace::new(1, start, WAIT);
        pace.due_at(start + WAIT);
        pace.due_by(start + SECOND);
        pace.due_by(start + SECOND * 2);
        assert_eq!(pace.next(SECOND), start + SECOND);
        assert!(pace.begin(start + SECOND, SECOND).is_some());
    }

    #[test]
    fn the_second_note_of_one_change_costs_nothing() {
        let start = now();
        let mut pace = Pace::new(1, start, WAIT);
        let looks = |pace: &mut Pace, at| {
            pace.request(None);
            pace.begin(at, SECOND).is_some()
        };
        // Each of three changes is told of twice.
        for _ in 0..3 {
            assert!(looks(&mut pace, start));
            pace.has_changed(start, SECOND);
            assert!(looks(&mut pace, start));
            pace.has_changed(start, SECOND);
        }
        assert!(!looks(&mut pace, start), "six looks for three tokens");
        assert_eq!(pace.next(SECOND), start + SECOND);
        assert!(looks(&mut pace, start + SECOND), "a token is back");
        pace.has_changed(start + SECOND, SECOND);
        // It is free for the time in which a token comes back.
        pace.request(None);
        assert!(pace.next(SECOND) <= start + SECOND);
        assert!(looks(&mut pace, start + SECOND));
        assert!(looks(&mut pace, start + SECOND * 2));
        pace.has_changed(start + SECOND * 2, SECOND);
        assert!(looks(&mut pace, start + SECOND * 3), "with a token");
        assert!(!looks(&mut pace, start + SECOND * 3));
    }

    #[test]
    fn failures_in_a_row_count_topic_by_topic() {
        let mut pace = Pace::new(1, now(), WAIT);
        let mut first = |topic, failed| pace.is_first_failure(topic, failed);
        assert!(first("t", true) && first("u", true));
        assert!(!first("t", true) && !first("u", true));
        assert!(!first("t", false));
        assert!(first("t", true) && !first("u", true));
    }
}
