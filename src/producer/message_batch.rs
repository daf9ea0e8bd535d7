use rocketmq_protocol::mix_all::RETRY_GROUP_TOPIC_PREFIX;
use rocketmq_protocol::{Message, property};

use crate::error::{Error, Result};

/// What an element adds to its body and its properties.
const SURROUNDINGS: usize = 22;
/// The longest unique key with its name and its separators, which a send adds to an element.
const UNIQ_KEY_ROOM: usize = property::UNIQ_KEY.len() + 2 + 56;
/// The properties that delay a message, in whichever way; neither batches nor transactions have them.
pub(super) const DELAYS: [&str; 4] = [
    property::DELAY_TIME_LEVEL,
    property::TIMER_DELAY_SEC,
    property::TIMER_DELAY_MS,
    property::TIMER_DELIVER_MS,
];

/// Divides messages into batches of at most `max_bytes` each once they are encoded, in their order.
/// One that is larger by itself makes a batch of its own, which a send then refuses.
///
/// Brokers take 4 MiB by default, and so does
/// [`max_message_size`](crate::DefaultMQProducerBuilder::max_message_size).
///
/// # Java
/// Java leaves this to a `ListSplitter` in its examples, which estimates; this counts what is sent.
///
/// # Examples
/// ```
/// use rocketmq_blocking::{Message, split_batch};
///
/// let messages: Vec<_> = (0..10).map(|_| Message::new("Orders", vec![b'x'; 300])).collect();
/// let batches = split_batch(&messages, 1200);
/// assert_eq!(batches.iter().map(|batch| batch.len()).collect::<Vec<_>>(), [3, 3, 3, 1]);
/// ```
pub fn split_batch(messages: &[Message], max_bytes: usize) -> Vec<&[Message]> {
    let mut batches = Vec::new();
    let (mut start, mut size) = (0, 0_usize);
    for (index, message) in messages.iter().enumerate() {
        let more = encoded_size(message);
        if index > start && size.saturating_add(more) > max_bytes {
            batches.push(&messages[start..index]);
            (start, size) = (index, 0);
        }
        size = size.saturating_add(more);
    }
    if start < messages.len() {
        batches.push(&messages[start..]);
    }
    batches
}

/// The most bytes that a message takes in a batch.
pub(super) fn encoded_size(message: &Message) -> usize {
    let key = match message.property(property::UNIQ_KEY) {
        Some(_) => 0,
        None => UNIQ_KEY_ROOM,
    };
    let properties = message.encoded_properties_length();
    SURROUNDINGS + message.body().len() + properties + key
}

/// Whether a message is to be delivered later.
pub(super) fn is_delayed(message: &Message) -> bool {
    DELAYS.iter().any(|name| {
        message
            .property(name)
            .is_some_and(|value| *name != property::DELAY_TIME_LEVEL || value.trim() != "0")
    })
}

/// Checks that messages can be one batch, and returns the first of them.
///
/// # Java
/// `MessageBatch#generateFromList`, which checks the delay level only and ends in a null pointer
/// exception for an empty list.
pub(super) fn check_batch(messages: &[Message]) -> Result<&Message> {
    let refused = |topic: &str, reason: &str| Error::InvalidMessage {
        topic: topic.to_owned(),
        reason: reason.to_owned(),
    };
    let Some(first) = messages.first() else {
        return Err(refused("", "the batch is empty"));
    };
    let waits = first.is_wait_store_msg_ok();
    for message in messages {
        let topic = message.topic();
        if topic != first.topic() {
            let reason = format!("the batch has messages of topic {:?} too", first.topic());
            return Err(refused(topic, &reason));
        }
        if topic.starts_with(RETRY_GROUP_TOPIC_PREFIX) {
            return Err(refused(topic, "a batch cannot go to a retry topic"));
        }
        if is_delayed(message) {
            return Err(refused(topic, "a message of a batch cannot be delayed"));
        }
        if message.is_wait_store_msg_ok() != waits {
            return Err(refused(topic, "the messages of a batch differ in WAIT"));
        }
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(body: &str) -> Message {
        Message::new("t", body.to_owned())
    }

    fn with(name: &str, value: &str) -> Message {
        let mut message = message("m");
        message.put_property(name, value);
        message
    }

    #[test]
    fn what_cannot_be_one_batch_is_refused() {
        assert!(check_batch(&[message("a"), message("b")]).is_ok());
        assert!(check_batch(&[message("a"), with(property::DELAY_TIME_LEVEL, "0")]).is_ok());
        let elsewhere = Message::new("u", "m");
        let retry = Message::new("%RETRY%g", "m");
        for (messages, reason) in [
            (vec![], "the batch is empty"),
            (vec![message("a"), elsewhere], "messages of topic \"t\" too"),
            (vec![retry], "cannot go to a retry topic"),
            (
                vec![with(property::DELAY_TIME_LEVEL, "3")],
                "cannot be delayed",
            ),
            (
                vec![with(property::TIMER_DELAY_SEC, "3")],
                "cannot be delayed",
            ),
            (
                vec![with(property::TIMER_DELAY_MS, "3")],
                "cannot be delayed",
            ),
            (
                vec![with(property::TIMER_DELIVER_MS, "3")],
                "cannot be delayed",
            ),
            (
                vec![message("a"), with(property::WAIT_STORE_MSG_OK, "false")],
                "differ in WAIT",
            ),
        ] {
            let error = check_batch(&messages).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn batches_are_as_large_as_they_may_be_and_keep_their_order() {
        let messages: Vec<Message> = [10, 20, 500, 10, 10, 10]
            .into_iter()
            .map(|length| message(&"x".repeat(length)))
            .collect();
        let limit = encoded_size(&messages[0]) + encoded_size(&messages[1]);
        let batches = split_batch(&messages, limit);
        let lengths: Vec<usize> = batches.iter().map(|batch| batch.len()).collect();
        assert_eq!(lengths, [2, 1, 2, 1]);
        assert_eq!(batches.concat(), messages);
        assert_eq!(split_batch(&messages, usize::MAX).len(), 1);
        assert_eq!(split_batch(&messages, 0).len(), 6);
        assert!(split_batch(&[], 100).is_empty());
    }
}
