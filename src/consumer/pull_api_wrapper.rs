//! From a pull reply to the messages a listener may see (Java `PullAPIWrapper`).

use rocketmq_protocol::{MessageExt, MessageQueue, StoredMessages, SubscriptionData, property};

use crate::client::PullReply;
use crate::sync::Arc;

/// The wanted messages of a reply, and what they keep alive.
#[derive(Debug)]
pub(super) struct PulledMessages {
    pub(super) messages: Vec<MessageExt>,
    /// The reply's bytes, which the bodies are slices of.
    pub(super) retained_bytes: u64,
}

/// Decodes a reply and filters it by tag, since brokers compare only hash codes.
///
/// A message that cannot be decoded is reported and passed over; the others of the reply are
/// delivered. (Java ends the batch there without a word.)
pub(super) fn process_pull_result(
    mq: &MessageQueue,
    subscription: &SubscriptionData,
    reply: PullReply,
) -> PulledMessages {
    let retained_bytes = reply.body.len() as u64;
    let min_offset = reply.header.min_offset.to_string();
    let max_offset = reply.header.max_offset.to_string();
    let broker_name: Arc<str> = mq.broker_name().into();
    let mut messages = Vec::new();
    for decoded in StoredMessages::new(reply.body) {
        match decoded {
            Ok(mut message) => {
                if !subscription.matches_tag(message.tags()) {
                    continue;
                }
                message.set_queue(Arc::clone(&broker_name), mq.queue_id());
                if let Some(delta) = reply.header.offset_delta {
                    // A queue of a static topic counts on where it came from another broker.
                    message.set_queue_offset(message.queue_offset().saturating_add(delta));
                }
                let fields = message.message_mut();
                fields.put_property(property::MIN_OFFSET, min_offset.as_str());
                fields.put_property(property::MAX_OFFSET, max_offset.as_str());
                messages.push(message);
            }
            Err(error) => log::error!(
                "{mq}: a message before offset {} is passed over, it cannot be decoded: {error}",
                reply.header.next_begin_offset
            ),
        }
    }
    PulledMessages {
        messages,
        retained_bytes,
    }
}
