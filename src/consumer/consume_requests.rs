//! Calls of the listener, and what becomes of their messages (Java
//! `ConsumeMessageConcurrentlyService.ConsumeRequest`).

use std::borrow::Cow;
use std::cell::Cell;

use rocketmq_protocol::{MessageExt, MessageQueue, property};

use super::consume_message_concurrently_service::LOCAL_RETRY;
use super::consume_message_hook::ConsumeReturnType;
use super::default_mq_push_consumer_impl::DefaultMQPushConsumerImpl;
use super::listener::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, MessageListenerConcurrently,
};
use super::process_queue::ProcessQueue;
use crate::client_config::Namespace;
use crate::service::{Parts, catch_panic};
use crate::sync::{Arc, Mutex, Weak, now, system_time_millis};

/// The messages of one pull, for as many calls of the listener as it takes. The calls run side by side;
/// each takes the next messages when its turn has come.
pub(super) struct ConsumeRequests {
    consumer: Weak<DefaultMQPushConsumerImpl>,
    listener: Arc<dyn MessageListenerConcurrently>,
    mq: MessageQueue,
    process_queue: Arc<ProcessQueue>,
    left: Mutex<std::vec::IntoIter<MessageExt>>,
}

thread_local! {
    /// The messages of the call under way, so that not each call needs memory for its list.
    static MESSAGES: Cell<Vec<MessageExt>> = const { Cell::new(Vec::new()) };
}

impl ConsumeRequests {
    pub(super) fn new(
        consumer: &Arc<DefaultMQPushConsumerImpl>,
        listener: Arc<dyn MessageListenerConcurrently>,
        mq: &MessageQueue,
        process_queue: &Arc<ProcessQueue>,
        messages: Vec<MessageExt>,
    ) -> Self {
        Self {
            consumer: Arc::downgrade(consumer),
            listener,
            mq: mq.clone(),
            process_queue: Arc::clone(process_queue),
            left: Mutex::new(messages.into_iter()),
        }
    }

    pub(super) fn is_given_up(&self) -> bool {
        self.process_queue.is_given_up()
    }

    /// One call of the listener.
    fn run(&self, messages: &mut Vec<MessageExt>) {
        let Some(consumer) = self.consumer.upgrade() else {
            return;
        };
        let service = consumer.consume_service();
        messages.extend(self.left.lock().by_ref().take(service.batch_max_size()));
        if messages.is_empty() {
            return;
        }
        let namespace = &consumer.config.namespace;
        show_original_topic(messages, service.retry_topic(), namespace);
        if self.process_queue.consume_started(messages).is_err() {
            service.note_let_go();
            return;
        }
        let mut context = ConsumeConcurrentlyContext::new(namespace.unwrap_queue(&self.mq));
        let hooks = &consumer.config.hooks;
        let hooked = hooks.before(&consumer, context.message_queue(), messages);
        let hooked = hooked.map(|hooked| (hooked, now()));
        let called = catch_panic(|| self.listener.consume_message(messages, &mut context));
        let hooked = hooked.map(|(hooked, begun)| {
            let took = now().saturating_duration_since(begun);
            let limit = consumer.config.consume_timeout;
            (hooked, ConsumeReturnType::of(&called, took, limit))
        });
        let status = called.unwrap_or_else(|reason| {
            let ids: Vec<&str> = messages.iter().map(|message| message.msg_id()).collect();
            log::error!(
                "group {}, {}: the listener panicked, messages {ids:?} are delivered again: {reason}",
                consumer.group(),
                self.mq
            );
            ConsumeConcurrentlyStatus::ReconsumeLater
        });
        if let Some((hooked, return_type)) = hooked {
            hooked.end(hooks, status, return_type);
        }
        if self.process_queue.is_dropped() {
            // Another member has the queue and receives them; giving them back as well would
            // deliver them twice.
            log::info!(
                "{}: given up meanwhile, the listener's result is ignored",
                self.mq
            );
            return;
        }
        self.process_consume_result(&consumer, messages, status, &context);
    }

    /// Gives failed messages back, takes finished ones out, and moves the offset on to the smallest
    /// one that is not finished (Java `processConsumeResult`).
    fn process_consume_result(
        &self,
        consumer: &Arc<DefaultMQPushConsumerImpl>,
        messages: &mut Vec<MessageExt>,
        status: ConsumeConcurrentlyStatus,
        context: &ConsumeConcurrentlyContext,
    ) {
        let Self {
            mq, process_queue, ..
        } = self;
        let succeeded = match status {
            ConsumeConcurrentlyStatus::ConsumeSuccess => {
                usize::try_from(context.ack_index().saturating_add(1)).unwrap_or(0)
            }
            ConsumeConcurrentlyStatus::ReconsumeLater => 0,
        };
        let mut to_retry_here = Vec::new();
        let mut position = 0;
        messages.retain_mut(|message| {
            let offset = message.queue_offset();
            let succeeds = position < succeeded;
            position += 1;
            if succeeds || !process_queue.contains_message(offset) {
                return true;
            }
            let level = context.delay_level_when_next_consume();
            let Err(error) = consumer.send_message_back(message, level, mq) else {
                return true;
            };
            log::warn!(
                "{mq}: message {} at offset {offset} stays here and is tried again in {} s: {error}",
                message.msg_id(),
                LOCAL_RETRY.as_secs()
            );
            message.set_reconsume_times(message.reconsume_times().saturating_add(1));
            to_retry_here.push(message.clone());
            false
        });
        if !to_retry_here.is_empty() {
            let weak = Arc::downgrade(consumer);
            let queue = Arc::clone(process_queue);
            let of = mq.clone();
            consumer.later(LOCAL_RETRY, move || {
                if let Some(consumer) = weak.upgrade() {
                    consumer
                        .consume_service()
                        .submit(&consumer, &of, &queue, to_retry_here);
                }
            });
        }
        let finished = messages.iter().map(MessageExt::queue_offset);
        if let Some(offset) = process_queue.remove_messages(finished) {
            consumer.commit(mq, offset, process_queue);
        }
        if process_queue.consume_ended() {
            consumer.finish_hand_over(mq, process_queue);
        }
    }
}

impl Parts for ConsumeRequests {
    fn run_part(&self) {
        // A thread that is about to end has none, and an empty one serves.
        let mut messages = MESSAGES.try_with(Cell::take).unwrap_or_default();
        self.run(&mut messages);
        messages.clear();
        let _ = MESSAGES.try_with(|place| place.set(messages));
    }
}

/// A listener sees a message of the retry topic under the topic it was sent to, and every topic
/// by its plain name (Java `DefaultMQPushConsumerImpl#resetRetryAndNamespace`).
pub(super) fn show_original_topic(
    messages: &mut [MessageExt],
    retry_topic: &str,
    namespace: &Namespace,
) {
    let now = system_time_millis();
    for message in messages {
        let is_retry = message.topic() == retry_topic;
        let original = is_retry
            .then(|| message.property(property::RETRY_TOPIC))
            .flatten()
            .map(str::to_owned);
        if let Some(original) = original {
            message.message_mut().set_topic(original);
        }
        if let Cow::Owned(plain) = namespace.unwrap(message.topic()) {
            message.message_mut().set_topic(plain);
        }
        message.set_consume_start_timestamp(now);
    }
}
