use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ExtraInfo, OrderCountInfo, QueueKey, parse_msg_offset_info, parse_start_offset_info};
use crate::header::PopMessageResponseHeader;
use crate::mix_all::LMQ_PREFIX;
use crate::{CodecError, MessageExt, property};

/// Gives each message of a pop's answer its receipt, the time it was first popped at and the
/// broker's name (Java `MQClientAPIImpl#processPopResponse`).
///
/// `topic` is the topic that was asked for. A receipt that the broker wrote is kept: a message that
/// comes back bears its usual topic, from which no right receipt could be made. With `order` the
/// counts of the answer become the messages' `reconsume_times`.
///
/// # Errors
/// [`CodecError::BadReceipt`] when the answer's texts cannot be read, or tell nothing of a message
/// that has no receipt; the messages are then not to be consumed, as nothing could acknowledge
/// them.
pub fn attach_receipts(
    topic: &str,
    broker_name: &str,
    order: bool,
    answer: &PopMessageResponseHeader,
    messages: &mut [MessageExt],
) -> Result<(), CodecError> {
    let broker: Arc<str> = broker_name.into();
    let ranges = Ranges::read(topic, answer, messages)?;
    for message in messages {
        if message.property(property::POP_CK).is_none() {
            let (key, offset) = place(topic, message);
            let receipt = ranges.receipt(&broker, answer, key, offset)?;
            if order {
                let count = ranges.counts.count(key, offset);
                if let Some(count) = count.filter(|count| *count > 0) {
                    message.set_reconsume_times(count);
                }
            }
            message
                .message_mut()
                .put_property(property::POP_CK, receipt.to_string());
        }
        if message.property(property::FIRST_POP_TIME).is_none() {
            message
                .message_mut()
                .put_property(property::FIRST_POP_TIME, answer.pop_time.to_string());
        }
        let queue_id = message.queue_id();
        message.set_queue(Arc::clone(&broker), queue_id);
    }
    Ok(())
}

/// What an answer says of the queues it took messages from.
struct Ranges {
    starts: Option<BTreeMap<QueueKey, i64>>,
    offsets: BTreeMap<QueueKey, Vec<i64>>,
    counts: OrderCountInfo,
    /// The offsets that the messages themselves bear, ascending: the n-th of them is the n-th of
    /// `offsets`, which differs where the messages lie in another queue than the one popped.
    borne: BTreeMap<QueueKey, Vec<i64>>,
}

impl Ranges {
    fn read(
        topic: &str,
        answer: &PopMessageResponseHeader,
        messages: &[MessageExt],
    ) -> Result<Self, CodecError> {
        let present = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let mut borne: BTreeMap<QueueKey, Vec<i64>> = BTreeMap::new();
        for message in messages {
            if message.property(property::POP_CK).is_some() {
                continue;
            }
            let (key, offset) = place(topic, message);
            borne.entry(key).or_default().push(offset);
        }
        for offsets in borne.values_mut() {
            offsets.sort_unstable();
        }
        Ok(Self {
            starts: present(&answer.start_offset_info)
                .map(|text| parse_start_offset_info(&text))
                .transpose()?,
            offsets: parse_msg_offset_info(answer.msg_offset_info.as_deref().unwrap_or_default())?,
            counts: OrderCountInfo::parse(answer.order_count_info.as_deref().unwrap_or_default())?,
            borne,
        })
    }

    fn receipt(
        &self,
        broker: &Arc<str>,
        answer: &PopMessageResponseHeader,
        key: QueueKey,
        borne: i64,
    ) -> Result<ExtraInfo, CodecError> {
        let all_borne = self.borne.get(&key).map_or(&[][..], Vec::as_slice);
        let (start, offset) = match &self.starts {
            // An answer without ranges: each queue's receipt starts at its first message.
            None => (all_borne.first().copied().unwrap_or(borne), borne),
            Some(starts) => {
                let at = all_borne.partition_point(|other| *other < borne);
                let offset = self.offsets.get(&key).and_then(|all| all.get(at));
                match (starts.get(&key), offset) {
                    (Some(start), Some(offset)) => (*start, *offset),
                    _ => {
                        return Err(CodecError::BadReceipt {
                            what: "pop answer without the queue of a message",
                            text: format!(
                                "{} {} {borne}: {:?}, {:?}",
                                key.retry.digit(),
                                key.queue_id,
                                answer.start_offset_info,
                                answer.msg_offset_info
                            ),
                        });
                    }
                }
            }
        };
        Ok(ExtraInfo {
            ck_queue_offset: start,
            pop_time: answer.pop_time,
            invisible_time: answer.invisible_time,
            revive_qid: answer.revive_qid,
            retry: key.retry,
            broker_name: broker.to_string(),
            queue_id: key.queue_id,
            queue_offset: Some(offset),
        })
    }
}

/// The queue that a message was popped from, and its offset there.
fn place(topic: &str, message: &MessageExt) -> (QueueKey, i64) {
    match light_queue(topic, message) {
        Some(offset) => (QueueKey::new(topic, 0), offset),
        None => {
            let key = QueueKey::new(message.topic(), message.queue_id());
            (key, message.queue_offset())
        }
    }
}

/// A light queue has no messages of its own: the offset of a message in it is one of the message's
/// properties.
fn light_queue(topic: &str, message: &MessageExt) -> Option<i64> {
    if !topic.starts_with(LMQ_PREFIX) || message.reconsume_times() != 0 {
        return None;
    }
    let queues = message.property(property::INNER_MULTI_DISPATCH)?;
    let offsets = message.property(property::INNER_MULTI_QUEUE_OFFSET)?;
    let at = queues.split(',').position(|queue| queue == topic)?;
    offsets.split(',').nth(at)?.parse().ok()
}
