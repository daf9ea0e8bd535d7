use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// One queue of a topic on one broker.
///
/// Ordered by topic, broker name and id as Java orders it, which every member of a group must do
/// alike: names compare by UTF-16 code units, as Java strings do. Cloning shares the names.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Wire", into = "Wire")]
pub struct MessageQueue {
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
            broker_name: mq.broker_name.to_string(),
            queue_id: mq.queue_id,
            topic: mq.topic.to_string(),
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
        Self {
            topic: topic.into(),
            broker_name: broker_name.into(),
            queue_id,
        }
    }

    /// The topic.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The broker's name.
    pub fn broker_name(&self) -> &str {
        &self.broker_name
    }

    /// The number of the queue on its broker, from 0.
    pub fn queue_id(&self) -> i32 {
        self.queue_id
    }
}

/// Compares text as Java does, by UTF-16 code units.
///
/// Differs from the order of UTF-8 bytes only where a character beyond the basic plane meets one
/// from U+E000 on.
pub fn compare_utf16(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() {
        return a.as_bytes().cmp(b.as_bytes());
    }
    a.encode_utf16().cmp(b.encode_utf16())
}

impl Ord for MessageQueue {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_utf16(&self.topic, &other.topic)
            .then_with(|| compare_utf16(&self.broker_name, &other.broker_name))
            .then_with(|| self.queue_id.cmp(&other.queue_id))
    }
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
            self.topic, self.broker_name, self.queue_id
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
}
