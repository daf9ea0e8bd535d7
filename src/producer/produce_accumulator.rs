//! Gathers messages that are sent at about the same time into batches.

use std::collections::HashMap;
use std::time::Duration;

use rocketmq_protocol::mix_all::RETRY_GROUP_TOPIC_PREFIX;
use rocketmq_protocol::{Message, MessageQueue, property};

use super::async_send::End;
use super::default_mq_producer_impl::DefaultMQProducerImpl;
use super::message_batch::{encoded_size, is_delayed};
use super::send_result::SendResult;
use crate::client::MQClientInstance;
use crate::error::Result;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Deadline, Mutex};

/// The settings of a [`ProduceAccumulator`].
#[derive(Debug, Clone)]
pub(super) struct AutoBatchConfig {
    pub(super) auto_batch: bool,
    pub(super) batch_max_delay: Duration,
    pub(super) batch_max_bytes: usize,
    pub(super) total_batch_max_bytes: usize,
}

impl Default for AutoBatchConfig {
    fn default() -> Self {
        Self {
            auto_batch: false,
            batch_max_delay: Duration::from_millis(10),
            batch_max_bytes: 32 * 1024,
            total_batch_max_bytes: 32 * 1024 * 1024,
        }
    }
}

impl AutoBatchConfig {
    /// Java checks the ranges of the first two (`ProduceAccumulator#batchMaxDelayMs`,
    /// `#batchMaxBytes`).
    pub(super) fn problems(&self, max_message_size: usize) -> Vec<String> {
        const LONGEST: Duration = Duration::from_secs(30);
        const SHORTEST: Duration = Duration::from_millis(1);
        const LARGEST: usize = 2 * 1024 * 1024;
        let mut problems = Vec::new();
        let delay = self.batch_max_delay;
        if !(SHORTEST..=LONGEST).contains(&delay) {
            problems.push(format!(
                "batch_max_delay is {delay:?}, the range is {SHORTEST:?} to {LONGEST:?}"
            ));
        }
        let bytes = self.batch_max_bytes;
        if !(1..=LARGEST).contains(&bytes) {
            problems.push(format!(
                "batch_max_bytes is {bytes}, the range is 1 to {LARGEST}"
            ));
        }
        if self.auto_batch && bytes > max_message_size {
            problems.push(format!(
                "batch_max_bytes is {bytes}, more than max_message_size, {max_message_size}"
            ));
        }
        if self.total_batch_max_bytes == 0 {
            problems.push("total_batch_max_bytes is 0, the least is 1".to_owned());
        }
        problems
    }
}

/// Java `ProduceAccumulator`, one a producer.
///
/// A batch is sent when the next message would make it larger than `batch_max_bytes`, encoded, or
/// `batch_max_delay` after its first one. (Java counts bodies, sends the batch once it is larger,
/// and so may send one that every broker refuses.)
#[derive(Debug)]
pub(super) struct ProduceAccumulator {
    config: AutoBatchConfig,
    held: Arc<AtomicUsize>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next_number: u64,
    gathering: HashMap<AggregateKey, Gathering>,
}

/// What the messages of a batch have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct AggregateKey {
    pub(super) topic: String,
    /// The queue as the user names it, if one is given.
    pub(super) mq: Option<MessageQueue>,
    wait_store_msg_ok: bool,
    pub(super) tags: Option<String>,
    /// Whether the senders wait: they have their own number of attempts.
    pub(super) sync: bool,
}

impl AggregateKey {
    pub(super) fn new(message: &Message, mq: Option<&MessageQueue>, sync: bool) -> Self {
        Self {
            topic: message.topic().to_owned(),
            mq: mq.cloned(),
            wait_store_msg_ok: message.is_wait_store_msg_ok(),
            tags: message.tags().map(str::to_owned),
            sync,
        }
    }
}

/// A batch that is not sent yet. Its first message's deadline is that of all, the earliest one.
#[derive(Debug)]
pub(super) struct Gathering {
    number: u64,
    bytes: usize,
    pub(super) parts: Vec<Part>,
    pub(super) deadline: Deadline,
    pub(super) instance: Arc<MQClientInstance>,
}

impl Gathering {
    /// Whose it is.
    pub(super) fn producer(&self) -> Option<Arc<DefaultMQProducerImpl>> {
        let first = self.parts.first()?;
        Some(Arc::clone(first.end.producer()))
    }
}

/// A message, and who is told of it.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) message: Message,
    pub(super) end: End,
    pub(super) room: Room,
}

/// What an accumulator holds of a message until somebody is told; dropping it gives it back.
#[derive(Debug)]
pub(super) struct Room {
    held: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// What adding a message has brought about.
#[derive(Debug, Default)]
pub(super) struct Added {
    /// Batches that are to be sent now.
    pub(super) ready: Vec<Gathering>,
    /// The number of the batch that is to be sent after `batch_max_delay`, if this is its first.
    pub(super) begun: Option<u64>,
}

impl ProduceAccumulator {
    pub(super) fn new(config: AutoBatchConfig) -> Self {
        Self {
            config,
            held: Arc::new(AtomicUsize::new(0)),
            state: Mutex::new(State::default()),
        }
    }

    pub(super) fn batch_max_delay(&self) -> Duration {
        self.config.batch_max_delay
    }

    /// Room for a message; `None` when it cannot be part of a batch, would be one by itself, or too
    /// much is held already: it is then sent by itself (Java `DefaultMQProducer#canBatch`).
    pub(super) fn room_for(&self, message: &Message) -> Option<Room> {
        let bytes = encoded_size(message);
        let alone = message.topic().starts_with(RETRY_GROUP_TOPIC_PREFIX)
            || message.property(property::PRODUCER_GROUP).is_some()
            || message.property(property::MESSAGE_TYPE).is_some()
            || is_delayed(message)
            || bytes > self.config.batch_max_bytes;
        if alone {
            return None;
        }
        let most = self.config.total_batch_max_bytes;
        let more = |held: usize| (held < most).then_some(held + bytes);
        self.held
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more)
            .ok()?;
        Some(Room {
            held: Arc::clone(&self.held),
            bytes,
        })
    }

    pub(super) fn add(
        &self,
        key: &AggregateKey,
        part: Part,
        deadline: Deadline,
        instance: &Arc<MQClientInstance>,
    ) -> Added {
        let bytes = part.room.bytes;
        let mut added = Added::default();
        let mut state = self.state.lock();
        let full = |batch: &Gathering| batch.bytes + bytes > self.config.batch_max_bytes;
        if state.gathering.get(key).is_some_and(full) {
            added.ready.extend(state.gathering.remove(key));
        }
        match state.gathering.get_mut(key) {
            Some(batch) => {
                batch.bytes += bytes;
                batch.parts.push(part);
            }
            None => {
                let number = state.next_number;
                state.next_number += 1;
                added.begun = Some(number);
                let batch = Gathering {
                    number,
                    bytes,
                    parts: vec![part],
                    deadline,
                    instance: Arc::clone(instance),
                };
                state.gathering.insert(key.clone(), batch);
            }
        }
        added
    }

    /// The batch of that number, if it was not sent yet.
    pub(super) fn take(&self, key: &AggregateKey, number: u64) -> Option<Gathering> {
        let mut state = self.state.lock();
        let batch = state.gathering.get(key)?;
        if batch.number != number {
            return None;
        }
        state.gathering.remove(key)
    }

    /// All that is gathered, for the end of the producer.
    pub(super) fn take_all(&self) -> Vec<(AggregateKey, Gathering)> {
        self.state.lock().gathering.drain().collect()
    }
}

/// The result of each message of a batch. A broker that stored the batch as one message gave one id
/// (a topic whose queues are of batches): that is the result of all.
///
/// # Java
/// `ProduceAccumulator.MessageAccumulation#splitSendResults`
pub(super) fn split_send_result(
    result: Result<SendResult>,
    count: usize,
) -> Vec<Result<SendResult>> {
    let Ok(stored) = &result else {
        return vec![result; count];
    };
    let keys: Vec<&str> = stored.msg_id.split(',').collect();
    let ids: Vec<&str> = stored.offset_msg_id.split(',').collect();
    if keys.len() != count || ids.len() != count {
        return vec![result.clone(); count];
    }
    let each = keys.iter().zip(&ids).zip(0..);
    each.map(|((key, id), n)| {
        Ok(SendResult {
            msg_id: (*key).to_owned(),
            offset_msg_id: (*id).to_owned(),
            queue_offset: stored.queue_offset + n,
            ..stored.clone()
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::producer::SendStatus;

    fn accumulator(batch: usize, total: usize) -> ProduceAccumulator {
        ProduceAccumulator::new(AutoBatchConfig {
            auto_batch: true,
            batch_max_bytes: batch,
            total_batch_max_bytes: total,
            ..AutoBatchConfig::default()
        })
    }

    #[test]
    fn what_cannot_be_part_of_a_batch_gets_no_room() {
        let accumulator = accumulator(1000, 10_000);
        let with = |name: &str| {
            let mut message = Message::new("t", "m");
            message.put_property(name, "1");
            message
        };
        for alone in [
            Message::new("%RETRY%g", "m"),
            Message::new("t", vec![b'x'; 1000]),
            with(property::PRODUCER_GROUP),
            with(property::DELAY_TIME_LEVEL),
            with(property::TIMER_DELAY_MS),
        ] {
            assert!(accumulator.room_for(&alone).is_none(), "{alone:?}");
        }
        assert_eq!(accumulator.held.load(Ordering::Relaxed), 0);
        assert!(accumulator.room_for(&Message::new("t", "m")).is_some());
    }

    #[test]
    fn all_room_together_is_bounded_and_comes_back() {
        let message = Message::new("t", "m");
        let accumulator = accumulator(1000, 2 * encoded_size(&message));
        let first = accumulator.room_for(&message);
        let second = accumulator.room_for(&message);
        assert!(first.is_some() && second.is_some());
        assert!(accumulator.room_for(&message).is_none());
        drop(first);
        assert!(accumulator.room_for(&message).is_some());
        drop(second);
        assert_eq!(accumulator.held.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn each_message_of_a_batch_has_its_ids_and_its_offset() {
        let stored = SendResult {
            send_status: SendStatus::FlushDiskTimeout,
            msg_id: "k0,k1".to_owned(),
            offset_msg_id: "i0,i1".to_owned(),
            message_queue: MessageQueue::new("t", "a", 0),
            queue_offset: 7,
            region_id: "r".to_owned(),
            trace_on: true,
            transaction_id: None,
            recall_handle: None,
        };
        let each: Vec<SendResult> = split_send_result(Ok(stored.clone()), 2)
            .into_iter()
            .map(Result::unwrap)
            .collect();
        let shown: Vec<_> = each
            .iter()
            .map(|r| (r.msg_id.as_str(), r.offset_msg_id.as_str(), r.queue_offset))
            .collect();
        assert_eq!(shown, [("k0", "i0", 7), ("k1", "i1", 8)]);
        assert!(
            each.iter()
                .all(|r| r.send_status == SendStatus::FlushDiskTimeout)
        );
        let as_one = SendResult {
            offset_msg_id: "i0".to_owned(),
            ..stored
        };
        let same = split_send_result(Ok(as_one.clone()), 2);
        assert_eq!(same, [Ok(as_one.clone()), Ok(as_one)]);
        let error = Error::client(1, "no");
        assert_eq!(
            split_send_result(Err(error.clone()), 2),
            [Err(error.clone()), Err(error)]
        );
    }

    #[test]
    fn values_out_of_range_are_refused_with_the_range() {
        let wrong = AutoBatchConfig {
            auto_batch: true,
            batch_max_delay: Duration::from_secs(31),
            batch_max_bytes: 2 * 1024 * 1024 + 1,
            total_batch_max_bytes: 0,
        };
        let text = wrong.problems(1024).join("; ");
        for part in [
            "batch_max_delay is 31s, the range is 1ms to 30s",
            "batch_max_bytes is 2097153, the range is 1 to 2097152",
            "more than max_message_size, 1024",
            "total_batch_max_bytes is 0",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(AutoBatchConfig::default().problems(1024).is_empty());
    }
}
