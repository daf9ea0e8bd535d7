use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::utf16_order::{self, WORTH_KEYS, compare_utf16};

/// One queue of a topic on one broker.
///
/// Ordered by topic, broker name and id as Java orders it, which every member of a group must do
/// alike: names compare by UTF-16 code units, as Java strings do. A clone is the same queue, at the
/// price of a counter.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Wire", into = "Wire")]
pub struct MessageQueue(Arc<Fields>);

/// Many queues share their names.
#[derive(PartialEq, Eq, Hash)]
struct Fields {
    topic: Arc<str>,
    broker_name: Arc<str>,
    queue_id: i32,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    broker_name: String,
    queue_id: i32,
    topic: String,
}

impl From<Wire> for MessageQueue {
    fn from(wire: Wire) -> Self {
        Self::new(wire.topic, wire.broker_name, wire.queue_id)
    }
}

impl From<MessageQueue> for Wire {
    fn from(mq: MessageQueue) -> Self {
        Self {
            broker_name: mq.broker_name().to_owned(),
            queue_id: mq.queue_id(),
            topic: mq.topic().to_owned(),
        }
    }
}

impl MessageQueue {
    /// The queue `queue_id` of `topic` on `broker_name`.
    pub fn new(
        topic: impl Into<Arc<str>>,
        broker_name: impl Into<Arc<str>>,
        queue_id: i32,
    ) -> Self {
        Self(Arc::new(Fields {
            topic: topic.into(),
            broker_name: broker_name.into(),
            queue_id,
        }))
    }

    /// The topic.
    pub fn topic(&self) -> &str {
        &self.0.topic
    }

    /// The broker's name.
    pub fn broker_name(&self) -> &str {
        &self.0.broker_name
    }

    /// The number of the queue on its broker, from 0.
    pub fn queue_id(&self) -> i32 {
        self.0.queue_id
    }

    /// Sorts queues into their order, faster than a sort by comparing when there are many of one
    /// topic.
    pub fn sort(queues: &mut [Self]) {
        match keys(queues) {
            Some(mut keys) => {
                keys.sort_unstable();
                utf16_order::arrange_by_places(queues, keys);
            }
            None => queues.sort_unstable(),
        }
    }
}

/// Numbers in the order of the queues, each with its queue's place: what differs in the broker's
/// name, the id, the place. `None` where so little does not say the order, or is not worth it.
fn keys(queues: &[MessageQueue]) -> Option<Vec<u128>> {
    let topic = queues.first().map(|mq| &mq.0.topic)?;
    let is_worth = WORTH_KEYS <= queues.len() && u32::try_from(queues.len()).is_ok();
    let is_same = |other: &Arc<str>| Arc::ptr_eq(topic, other) || topic == other;
    if !is_worth || !queues.iter().all(|mq| is_same(&mq.0.topic)) {
        return None;
    }
    let from = utf16_order::shared_prefix(queues, MessageQueue::broker_name);
    let mut keys = Vec::with_capacity(queues.len());
    for (mq, place) in queues.iter().zip(0_u32..) {
        let rest = mq.broker_name().as_bytes().get(from..)?;
        let name: [u8; 8] = utf16_order::key(mq.broker_name(), from);
        // A zero in the name would look like its end.
        if rest.len() > name.len() || rest.contains(&0) {
            return None;
        }
        let name = u128::from(u64::from_be_bytes(name));
        // The sign's bit turned over, so that negative ids come first.
        let id = u128::from(mq.queue_id() as u32 ^ (1 << 31));
        keys.push(name << 64 | id << 32 | u128::from(place));
    }
    Some(keys)
}

impl Ord for MessageQueue {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_names(&self.0.topic, &other.0.topic)
            .then_with(|| compare_names(&self.0.broker_name, &other.0.broker_name))
            .then_with(|| self.queue_id().cmp(&other.queue_id()))
    }
}

/// A name that is shared needs no look at its text.
fn compare_names(a: &Arc<str>, b: &Arc<str>) -> Ordering {
    if Arc::ptr_eq(a, b) {
        return Ordering::Equal;
    }
    compare_utf16(a, b)
}

impl PartialOrd for MessageQueue {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The text of Java's `MessageQueue#toString`, which consistent hashing takes as its key.
impl fmt::Display for MessageQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "MessageQueue [topic={}, brokerName={}, queueId={}]",
            self.topic(),
            self.broker_name(),
            self.queue_id()
        )
    }
}

impl fmt::Debug for MessageQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ordered_by_utf16_units_not_by_code_points() {
        let beyond = MessageQueue::new("t", "\u{1F600}", 0);
        let private = MessageQueue::new("t", "\u{E000}", 0);
        assert!(
            beyond < private,
            "a surrogate pair starts with D83D, which is below E000"
        );
        assert!("\u{1F600}" > "\u{E000}");
    }

    #[test]
    fn ids_are_ordered_as_numbers() {
        assert!(MessageQueue::new("t", "b", 9) < MessageQueue::new("t", "b", 10));
        assert!(MessageQueue::new("a", "z", 9) < MessageQueue::new("b", "a", 0));
    }

    #[test]
    fn many_are_sorted_as_they_compare() {
        let brokers = [
            vec!["b-1", "b-10", "b-2", "b-"],
            vec!["b", "b\0", "b\0\0", "a"],
            vec!["\u{1F600}", "\u{E000}", "\u{FFFF}x", "z"],
            vec!["broker-of-a-long-name-1", "broker-of-another-name", "b"],
        ];
        for brokers in brokers {
            for topics in [&["t"][..], &["u", "t"]] {
                let mut queues: Vec<MessageQueue> = (0..400)
                    .map(|n: usize| {
                        let id = i32::try_from(n * 7919 % 31).unwrap() - 3;
                        let topic = topics[n / 3 % topics.len()];
                        MessageQueue::new(topic, brokers[n % brokers.len()], id)
                    })
                    .collect();
                queues.push(MessageQueue::new("t", brokers[0], i32::MIN));
                queues.push(MessageQueue::new("t", brokers[0], i32::MAX));
                let mut expected = queues.clone();
                expected.sort_by(|a, b| {
                    let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
                    let key = |mq: &MessageQueue| {
                        (units(mq.topic()), units(mq.broker_name()), mq.queue_id())
                    };
                    key(a).cmp(&key(b))
                });
                let mut compared = queues.clone();
                compared.sort();
                assert_eq!(compared, expected, "{brokers:?} {topics:?}");
                MessageQueue::sort(&mut queues);
                assert_eq!(queues, expected, "{brokers:?} {topics:?}");
            }
        }
    }
}
