//! Messages that the listener does not return.

use rocketmq_protocol::MessageQueue;

use super::default_mq_push_consumer_impl::DefaultMQPushConsumerImpl;
use super::offset_store::broker_of;
use super::process_queue::ProcessQueue;
use super::send_back::{SEND_BACK_TIMEOUT, is_logical};
use crate::error::Result;
use crate::sync::{Arc, Deadline};

/// The most messages of a queue that are given back at a time because the listener does not return
/// them (as in Java).
const EXPIRED_AT_A_TIME: usize = 16;
/// The delay level of such a message: 10 s (as in Java).
const EXPIRED_DELAY_LEVEL: i32 = 3;

impl DefaultMQPushConsumerImpl {
    /// Gives messages back that the listener has had for longer than `consume_timeout`, so that
    /// they do not hold their queue's offset back for ever (Java
    /// `ProcessQueue#cleanExpiredMsg`). Runs on the timer: it waits for nothing.
    pub(super) fn give_expired_back(self: &Arc<Self>) {
        for (mq, queue) in self.rebalance.process_queues() {
            self.give_first_expired_back(mq, queue, EXPIRED_AT_A_TIME);
        }
    }

    /// One message after the other, each once the broker has the one before.
    fn give_first_expired_back(
        self: &Arc<Self>,
        mq: MessageQueue,
        queue: Arc<ProcessQueue>,
        left: usize,
    ) {
        let (false, false, Some(instance)) = (left == 0, queue.is_given_up(), self.instance())
        else {
            return;
        };
        let Some(message) = queue.first_expired(self.config.consume_timeout) else {
            return;
        };
        let offset = message.queue_offset;
        let addr = if is_logical(&mq) {
            // Its place in the log is one in that broker's log (as in Java), which need not be the
            // one that holds the queue now.
            Ok(message.store_host.to_string().into())
        } else {
            broker_of(&instance, &mq)
        };
        let addr = match addr {
            Ok(addr) => addr,
            Err(error) => return log::warn!("{mq}: the message at {offset} stays: {error}"),
        };
        let header = self.send_back_header(&message, EXPIRED_DELAY_LEVEL, &mq);
        let weak = Arc::downgrade(self);
        let given_back = move |outcome: Result<()>| {
            let Some(consumer) = weak.upgrade() else {
                return;
            };
            if let Err(error) = outcome {
                return log::warn!("{mq}: the message at {offset} stays: {error}");
            }
            log::warn!(
                "{mq}: the listener has had message {} at offset {offset} for more than {:?}; it \
                 was given back",
                message.msg_id(),
                consumer.config.consume_timeout
            );
            if let Some(next) = queue.remove_if_first(offset) {
                consumer.commit(&mq, next, &queue);
            }
            if let Some(instance) = consumer.instance() {
                consumer.find_retries(&instance);
            }
            consumer.give_first_expired_back(mq, queue, left - 1);
        };
        let deadline = Deadline::after(SEND_BACK_TIMEOUT);
        instance
            .api()
            .consumer_send_message_back_async(&addr, &header, deadline, given_back);
    }
}
