//! From a pull reply to the messages a listener may see (Java `PullAPIWrapper`).

use rocketmq_protocol::{MessageExt, MessageQueue, StoredMessages, SubscriptionData};

use super::retained_bytes;
use crate::client::PullReply;
use crate::sync::Arc;

/// The wanted messages of a reply.
#[derive(Debug)]
pub(super) struct PulledMessages {
    pub(super) messages: Vec<MessageExt>,
    /// Where to pull on.
    pub(super) next_offset: i64,
}

/// Decodes a reply to a pull from `offset` and filters it by tag, since brokers compare only hash
/// codes.
///
/// A message that cannot be decoded is reported and passed over; the others are delivered. Behind
/// one whose end cannot be found nothing of the reply can be read, so the next pull begins there
/// instead of behind the reply. (Java ends the batch without a word, and loses the rest.)
pub(super) fn process_pull_result(
    mq: &MessageQueue,
    offset: i64,
    subscription: &SubscriptionData,
    reply: PullReply,
) -> PulledMessages {
    let broker_name: Arc<str> = mq.broker_name().into();
    let mut messages = Vec::with_capacity(at_most(offset, &reply));
    let mut read_to = offset;
    let mut ends_unreadable = false;
    let takes_any = subscription.matches_any_tag();
    for decoded in StoredMessages::new(reply.body.clone()) {
        ends_unreadable = decoded.is_err();
        match decoded {
            Ok(mut message) => {
                read_to = read_to.max(message.queue_offset().saturating_add(1));
                if !takes_any && !subscription.matches_tag(message.tags()) {
                    continue;
                }
                message.set_queue(Arc::clone(&broker_name), mq.queue_id());
                if let Some(delta) = reply.header.offset_delta {
                    // A queue of a static topic counts on where it came from another broker.
                    message.set_queue_offset(message.queue_offset().saturating_add(delta));
                }
                message.set_offset_bounds(reply.header.min_offset, reply.header.max_offset);
                retained_bytes::count(&mut message, &reply.body);
                messages.push(message);
            }
            Err(error) => log::error!(
                "{mq}: a message at offset {read_to} or later, before {}, cannot be decoded and \
                 is passed over: {error}",
                reply.header.next_begin_offset
            ),
        }
    }
    let next_offset = if ends_unreadable {
        // One step at least, or the same reply would come for ever.
        let behind = read_to.max(offset.saturating_add(1));
        behind.min(reply.header.next_begin_offset)
    } else {
        reply.header.next_begin_offset
    };
    PulledMessages {
        messages,
        next_offset,
    }
}

/// How many messages a reply has by its offsets, and at most by its length.
fn at_most(offset: i64, reply: &PullReply) -> usize {
    let by_offsets = reply.header.next_begin_offset.saturating_sub(offset);
    let by_length = reply.body.len() / StoredMessages::SMALLEST;
    usize::try_from(by_offsets).map_or(0, |count| count.min(by_length))
}
