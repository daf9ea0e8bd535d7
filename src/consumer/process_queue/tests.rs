use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use rocketmq_protocol::StoredMessage;

use super::*;
use crate::random::SplitMix64;

fn message(queue_offset: i64, body_bytes: u64) -> CachedMessage {
    CachedMessage {
        queue_offset,
        body_bytes,
    }
}

fn in_hands(queue_offset: i64) -> MessageInHands {
    MessageInHands::at(queue_offset)
}

fn queue() -> (ProcessQueue, Clock) {
    let clock = Clock::manual();
    (ProcessQueue::new(clock.clone()), clock)
}

#[test]
fn the_commit_offset_is_the_smallest_unfinished_one() {
    let (pq, _) = queue();
    pq.put_messages((10..15).map(|offset| message(offset, 1)))
        .unwrap();
    assert_eq!(pq.remove_messages([12, 13]), Some(10));
    assert_eq!(pq.remove_messages([10]), Some(11));
    assert_eq!(pq.remove_messages([11]), Some(14));
    assert_eq!(pq.remove_messages([14]), Some(15));
    assert_eq!(pq.remove_messages([14]), None);
}

/// alibaba/rocketmq#282, apache/rocketmq#5441: what is finished behind something unfinished must not
/// carry the offset past it.
#[test]
fn b44_the_offset_stays_before_what_is_unfinished() {
    let (pq, _) = queue();
    pq.put_messages((10..15).map(|offset| message(offset, 100)))
        .unwrap();
    for (removed, next, left) in [
        (12, Some(10), 4),
        (10, Some(11), 3),
        (11, Some(13), 2),
        (13, Some(14), 1),
        (14, Some(15), 0),
        (14, None, 0),
    ] {
        assert_eq!(pq.remove_messages([removed]), next, "{removed}");
        let cached = pq.cached();
        assert_eq!((cached.count, cached.body_bytes), (left, left * 100));
    }
}

/// apache/rocketmq#1404: the span must be that of what is in work, so that one stuck message does not
/// let its queue run on.
#[test]
fn b45_a_stuck_message_keeps_the_span_open() {
    let (pq, _) = queue();
    pq.put_messages((10..15).map(|offset| message(offset, 1)))
        .unwrap();
    assert_eq!(pq.cached().span(), 4);
    pq.remove_messages([11, 12, 13]);
    assert_eq!(pq.cached().span(), 4);
    pq.remove_messages([10]);
    assert_eq!(pq.cached().span(), 0);
}

/// apache/rocketmq#3937 and #1190: a message that the listener had for longer than allowed held its
/// queue's offset for ever. Whoever was never given to a listener is left alone.
#[test]
fn b53_the_first_message_expires_once_the_listener_has_had_it_too_long() {
    let (pq, clock) = queue();
    let timeout = Duration::from_secs(15 * 60);
    pq.put_messages([message(7, 1), message(8, 1)]).unwrap();
    clock.advance(timeout * 2);
    assert_eq!(pq.first_expired(timeout), None, "no listener has it");
    pq.consume_started(&[in_hands(7)]).unwrap();
    clock.advance(timeout + Duration::from_secs(1));
    assert_eq!(pq.first_expired(timeout), Some(in_hands(7)));
    // A round in which giving it back fails changes nothing.
    assert_eq!(pq.first_expired(timeout), Some(in_hands(7)));
    assert_eq!(pq.remove_if_first(7), Some(8));
    assert_eq!(pq.first_expired(timeout), None);
}

#[test]
fn what_was_passed_over_is_done_with_the_last_message_before_it() {
    let (pq, _) = queue();
    assert_eq!(pq.passed_to(20), Some(20), "nothing is in work");
    pq.put_messages([message(20, 1), message(22, 1)]).unwrap();
    assert_eq!(pq.passed_to(50), None);
    assert_eq!(pq.remove_messages([22]), Some(20));
    assert_eq!(pq.remove_messages([20]), Some(50));
}

#[test]
fn offsets_that_are_not_there_change_nothing() {
    let (pq, _) = queue();
    assert_eq!(pq.remove_messages([1]), None);
    pq.put_messages([message(3, 7)]).unwrap();
    let before = pq.cached();
    assert_eq!(pq.remove_messages([1, 2, 4]), Some(3));
    assert_eq!(pq.cached(), before);
}

#[test]
fn a_dropped_queue_takes_nothing_more() {
    let (pq, _) = queue();
    pq.put_messages([message(0, 1)]).unwrap();
    pq.set_dropped();
    assert!(pq.is_dropped());
    assert_eq!(pq.put_messages([message(1, 1)]), Err(Dropped));
    assert_eq!(pq.cached().count, 1);
    assert_eq!(pq.remove_messages([0]), Some(1));
}

#[test]
fn the_span_reaches_from_the_smallest_offset_to_the_largest() {
    let (pq, _) = queue();
    assert_eq!(pq.cached().span(), 0);
    pq.put_messages([message(100, 1), message(2101, 1)])
        .unwrap();
    assert_eq!(pq.cached().span(), 2001);
    assert_eq!(pq.cached().offsets, Some((100, 2101)));
    pq.clear();
    assert_eq!(pq.cached(), CachedAmount::default());
}

#[test]
fn a_pull_expires_after_two_minutes_without_another() {
    let (pq, clock) = queue();
    clock.advance(PULL_MAX_IDLE_TIME);
    assert!(!pq.is_pull_expired());
    clock.advance(Duration::from_millis(1));
    assert!(pq.is_pull_expired());
    pq.pulled();
    assert!(!pq.is_pull_expired());
}

#[test]
fn only_the_first_message_can_hold_the_offset_back_and_expire() {
    let (pq, clock) = queue();
    let timeout = Duration::from_secs(900);
    pq.put_messages([message(0, 1), message(1, 1)]).unwrap();
    pq.consume_started(&[in_hands(1)]).unwrap();
    clock.advance(timeout * 2);
    assert_eq!(pq.first_expired(timeout), None, "0 has not begun");
    pq.consume_started(&[in_hands(0), in_hands(77)]).unwrap();
    clock.advance(timeout);
    assert_eq!(pq.first_expired(timeout), None, "not longer than allowed");
    clock.advance(Duration::from_millis(1));
    assert_eq!(pq.first_expired(timeout), Some(in_hands(0)));
    assert_eq!(pq.remove_if_first(1), None, "it is not the first");
    assert_eq!(pq.remove_if_first(0), Some(1));
    assert_eq!(pq.remove_if_first(0), None, "it is gone");
    assert_eq!(pq.first_expired(timeout), Some(in_hands(1)));
    assert_eq!(pq.remove_if_first(1), Some(2));
    assert_eq!(pq.first_expired(timeout), None);
}

#[test]
fn a_pulled_message_counts_with_its_offset_and_body() {
    let host = SocketAddr::from((Ipv4Addr::LOCALHOST, 10911));
    let stored = StoredMessage {
        queue_id: 0,
        flag: 0,
        queue_offset: 42,
        commit_log_offset: 7,
        sys_flag: 0,
        born_timestamp: 0,
        born_host: host,
        store_timestamp: 0,
        store_host: host,
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body: Bytes::from_static(b"hello"),
        topic: "t".to_owned(),
        properties: String::new(),
    };
    let messages = [stored.into_message_ext(100).unwrap()];
    let (pq, _) = queue();
    pq.put_messages(&messages).unwrap();
    assert_eq!(pq.cached().body_bytes, 5);
    assert!(pq.contains_message(42));
    assert!(!pq.contains_message(41));
}

/// The same by the simplest means: everything is counted anew each time.
#[derive(Default)]
struct Model {
    entries: BTreeMap<i64, u64>,
    last_put: i64,
}

impl Model {
    fn put(&mut self, messages: &[CachedMessage]) {
        for message in messages {
            self.entries.entry(message.queue_offset).or_insert_with(|| {
                self.last_put = message.queue_offset;
                message.body_bytes
            });
        }
    }

    fn remove(&mut self, offsets: &[i64]) -> Option<i64> {
        if self.entries.is_empty() {
            return None;
        }
        self.entries.retain(|offset, _| !offsets.contains(offset));
        Some(*self.entries.keys().next().unwrap_or(&(self.last_put + 1)))
    }

    fn cached(&self) -> CachedAmount {
        let (min, max) = (self.entries.keys().min(), self.entries.keys().max());
        CachedAmount {
            count: self.entries.len() as u64,
            body_bytes: self.entries.values().sum(),
            offsets: min.copied().zip(max.copied()),
        }
    }
}

#[test]
fn random_operations_agree_with_a_plain_map() {
    for seed in 0..200 {
        let mut random = SplitMix64::new(seed);
        let (pq, _) = queue();
        let mut model = Model::default();
        for step in 0..60 {
            let offsets: Vec<i64> = (0..random.below(6))
                .map(|_| i64::try_from(random.below(24)).unwrap())
                .collect();
            match random.below(10) {
                0..5 => {
                    let messages: Vec<_> = offsets
                        .iter()
                        .map(|offset| message(*offset, random.below(100)))
                        .collect();
                    model.put(&messages);
                    pq.put_messages(messages).unwrap();
                }
                5..9 => {
                    let expected = model.remove(&offsets);
                    let actual = pq.remove_messages(offsets);
                    assert_eq!(actual, expected, "seed {seed}, step {step}");
                }
                _ => {
                    pq.clear();
                    model = Model::default();
                }
            }
            assert_eq!(pq.cached(), model.cached(), "seed {seed}, step {step}");
        }
    }
}

#[test]
fn a_queue_that_is_given_up_begins_nothing_new_but_leaves_no_gap() {
    let (pq, _) = queue();
    pq.put_messages((0..5).map(|offset| message(offset, 1)))
        .unwrap();
    pq.consume_started(&[in_hands(0)]).unwrap();
    pq.consume_started(&[in_hands(2)]).unwrap();
    assert!(!pq.give_up(), "two are in work");
    assert!(pq.is_given_up() && !pq.is_dropped());
    assert_eq!(pq.put_messages([message(9, 1)]), Err(Dropped));
    assert_eq!(pq.consume_started(&[in_hands(3)]), Err(Dropped));
    pq.remove_messages([0]);
    assert!(!pq.consume_ended());
    pq.remove_messages([2]);
    assert!(!pq.consume_ended(), "1 lies before one that was begun");
    pq.consume_started(&[in_hands(1)]).unwrap();
    assert_eq!(pq.remove_messages([1]), Some(3));
    assert!(pq.consume_ended());
}

#[test]
fn nothing_in_work_means_that_a_queue_can_go_at_once() {
    let (pq, _) = queue();
    assert!(pq.give_up(), "there was nothing");
    let (pq, _) = queue();
    pq.put_messages([message(0, 1), message(1, 1)]).unwrap();
    pq.consume_started(&[in_hands(0)]).unwrap();
    pq.remove_messages([0]);
    assert!(!pq.consume_ended(), "it is not given up");
    assert!(pq.give_up(), "what waits for the listener does not count");
    // One whose result was that it is tried again later here: it is tried elsewhere.
    let (pq, _) = queue();
    pq.put_messages([message(0, 1)]).unwrap();
    pq.consume_started(&[in_hands(0)]).unwrap();
    assert!(!pq.consume_ended());
    assert!(pq.give_up());
}

#[test]
fn a_dropped_queue_calls_the_listener_no_more() {
    let (pq, _) = queue();
    pq.put_messages([message(0, 1), message(1, 1)]).unwrap();
    pq.consume_started(&[in_hands(1)]).unwrap();
    assert!(!pq.give_up());
    assert!(pq.set_dropped());
    assert!(!pq.set_dropped(), "once");
    assert_eq!(pq.consume_started(&[in_hands(0)]), Err(Dropped));
    assert!(!pq.consume_ended(), "there is nothing left to do");
}

#[test]
fn administrators_are_told_what_is_in_work() {
    let (pq, clock) = queue();
    let mebibytes = 3 << 20;
    pq.put_messages([message(7, mebibytes), message(9, 5)])
        .unwrap();
    clock.advance(Duration::from_secs(10));
    pq.pulled();
    clock.advance(Duration::from_secs(60));
    pq.consume_started(&[in_hands(7)]).unwrap();
    let info = pq.info();
    assert_eq!(info.cached_msg_count, 2);
    assert_eq!(
        (info.cached_msg_min_offset, info.cached_msg_max_offset),
        (7, 9)
    );
    assert_eq!(info.cached_msg_size_in_mib, 3);
    assert!(!info.dropped);
    assert!(info.last_pull_timestamp > 0);
    assert_eq!(
        info.last_consume_timestamp - info.last_pull_timestamp,
        60_000
    );
    pq.set_dropped();
    assert!(pq.info().dropped);
}

/// A message that is tried again here, after its queue was given up, is the last one begun itself.
#[test]
fn the_last_message_begun_may_be_begun_again_after_the_queue_is_given_up() {
    let (pq, _) = queue();
    pq.put_messages([message(1, 1), message(2, 1)]).unwrap();
    pq.consume_started(&[in_hands(1)]).unwrap();
    pq.consume_ended();
    assert!(pq.give_up());
    assert_eq!(pq.consume_started(&[in_hands(1)]), Ok(()));
    assert_eq!(pq.consume_started(&[in_hands(2)]), Err(Dropped));
}

#[test]
fn a_call_is_work_until_its_commit_is_made() {
    let (pq, _) = queue();
    pq.put_messages([message(1, 1)]).unwrap();
    pq.consume_started(&[in_hands(1)]).unwrap();
    assert_eq!(pq.remove_messages([1]), Some(2));
    assert!(!pq.give_up(), "its commit is still to come");
    assert!(pq.consume_ended());
}
