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
    MessageInHands {
        queue_offset,
        commit_log_offset: queue_offset * 100,
        msg_id: format!("id{queue_offset}"),
        topic: "t".to_owned(),
        store_host: ([127, 0, 0, 1], 10911).into(),
    }
}

fn queue() -> (ProcessQueue, Clock) {
    let clock = Clock::manual();
    (ProcessQueue::new(clock.clone()), clock)
}

#[test]
fn the_commit_offset_is_the_smallest_unfinished_one() {
    let (pq, _) = queue();
    pq.put_messages((10..15).map(|offset| message(offset, 1)), 5)
        .unwrap();
    assert_eq!(pq.remove_messages([12, 13]), Some(10));
    assert_eq!(pq.remove_messages([10]), Some(11));
    assert_eq!(pq.remove_messages([11]), Some(14));
    assert_eq!(pq.remove_messages([14]), Some(15));
    assert_eq!(pq.remove_messages([14]), None);
}

#[test]
fn offsets_that_are_not_there_change_nothing() {
    let (pq, _) = queue();
    assert_eq!(pq.remove_messages([1]), None);
    pq.put_messages([message(3, 7)], 7).unwrap();
    let before = pq.cached();
    assert_eq!(pq.remove_messages([1, 2, 4]), Some(3));
    assert_eq!(pq.cached(), before);
}

#[test]
fn a_dropped_queue_takes_nothing_more() {
    let (pq, _) = queue();
    pq.put_messages([message(0, 1)], 1).unwrap();
    pq.set_dropped();
    assert!(pq.is_dropped());
    assert_eq!(pq.put_messages([message(1, 1)], 1), Err(Dropped));
    assert_eq!(pq.cached().count, 1);
    assert_eq!(pq.remove_messages([0]), Some(1));
}

#[test]
fn what_a_reply_holds_is_freed_with_its_last_message() {
    let (pq, _) = queue();
    pq.put_messages([message(0, 10), message(1, 20)], 4096)
        .unwrap();
    pq.put_messages([message(2, 30)], 100).unwrap();
    assert_eq!(pq.cached().retained_bytes, 4196);
    pq.remove_messages([0]);
    assert_eq!(pq.cached().retained_bytes, 4196);
    pq.remove_messages([1]);
    assert_eq!(pq.cached().retained_bytes, 100);
    assert_eq!(pq.cached().body_bytes, 30);
    // Only known offsets, so this put keeps nothing of its own alive.
    pq.put_messages([message(2, 99)], 5000).unwrap();
    assert_eq!(pq.cached().retained_bytes, 100);
    assert_eq!(pq.cached().body_bytes, 30);
}

#[test]
fn the_span_reaches_from_the_smallest_offset_to_the_largest() {
    let (pq, _) = queue();
    assert_eq!(pq.cached().span(), 0);
    pq.put_messages([message(100, 1), message(2101, 1)], 2)
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
    pq.put_messages([message(0, 1), message(1, 1)], 2).unwrap();
    pq.consume_started([in_hands(1)]);
    clock.advance(timeout * 2);
    assert_eq!(pq.first_expired(timeout), None, "0 has not begun");
    pq.consume_started([in_hands(0), in_hands(77)]);
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
    pq.put_messages(&messages, 256).unwrap();
    assert_eq!(pq.cached().body_bytes, 5);
    assert!(pq.contains_message(42));
    assert!(!pq.contains_message(41));
}

/// The same by the simplest means: everything is counted anew each time.
#[derive(Default)]
struct Model {
    entries: BTreeMap<i64, (u64, usize)>,
    puts: Vec<u64>,
    last_put: i64,
}

impl Model {
    fn put(&mut self, messages: &[CachedMessage], retained_bytes: u64) {
        let put = self.puts.len();
        self.puts.push(retained_bytes);
        for message in messages {
            self.entries.entry(message.queue_offset).or_insert_with(|| {
                self.last_put = message.queue_offset;
                (message.body_bytes, put)
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
        let alive = |put: &usize| self.entries.values().any(|(_, of)| of == put);
        let (min, max) = (self.entries.keys().min(), self.entries.keys().max());
        CachedAmount {
            count: self.entries.len() as u64,
            body_bytes: self.entries.values().map(|(bytes, _)| bytes).sum(),
            retained_bytes: (0..self.puts.len())
                .filter(alive)
                .map(|put| self.puts[put])
                .sum(),
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
                    let retained_bytes = random.below(1000);
                    let messages: Vec<_> = offsets
                        .iter()
                        .map(|offset| message(*offset, random.below(100)))
                        .collect();
                    model.put(&messages, retained_bytes);
                    pq.put_messages(messages, retained_bytes).unwrap();
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
