//! Calls the listener (Java `ConsumeMessageConcurrentlyService`).

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use rocketmq_protocol::body::CMResult;
use rocketmq_protocol::{MessageExt, MessageQueue, mix_all, property};

use super::consume_message_hook::ConsumeReturnType;
use super::default_mq_push_consumer_impl::DefaultMQPushConsumerImpl;
use super::listener::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, MessageListenerConcurrently,
};
use super::process_queue::ProcessQueue;
use crate::client_config::Namespace;
use crate::service::{PoolReport, RejectedReason, Task, ThreadPool, catch_panic};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Deadline, Mutex, Weak, channel, now, system_time_millis};

/// How long a message waits that could not be given back to its broker.
const LOCAL_RETRY: Duration = Duration::from_secs(5);

pub(super) struct ConsumeMessageConcurrentlyService {
    pool: ThreadPool,
    batch_max_size: usize,
    retry_topic: String,
    /// Taken out at the end, so that what the listener holds, the consumer's own handle perhaps, is
    /// let go of.
    listener: Mutex<Option<Arc<dyn MessageListenerConcurrently>>>,
    /// Held while a message is consumed out of turn.
    directly: Mutex<()>,
    /// Calls of the listener that were not made because the queue was given up.
    let_go: AtomicUsize,
}

/// Messages of one queue for one call of the listener.
struct ConsumeRequest {
    consumer: Weak<DefaultMQPushConsumerImpl>,
    mq: MessageQueue,
    process_queue: Arc<ProcessQueue>,
    messages: Vec<MessageExt>,
}

impl ConsumeMessageConcurrentlyService {
    pub(super) fn new(
        group: &str,
        threads: usize,
        batch_max_size: usize,
        listener: Arc<dyn MessageListenerConcurrently>,
    ) -> Self {
        Self {
            pool: ThreadPool::new(format!("ConsumeMessageThread_{group}"), threads),
            batch_max_size,
            retry_topic: mix_all::retry_topic(group),
            listener: Mutex::new(Some(listener)),
            directly: Mutex::new(()),
            let_go: AtomicUsize::new(0),
        }
    }

    /// Queues messages for the listener. The pool takes all that flow control lets through; after
    /// its end they are dropped, and delivered again to whoever gets the queue.
    pub(super) fn submit(
        &self,
        consumer: &Arc<DefaultMQPushConsumerImpl>,
        mq: &MessageQueue,
        process_queue: &Arc<ProcessQueue>,
        mut messages: Vec<MessageExt>,
    ) {
        while !messages.is_empty() {
            let rest = messages.split_off(self.batch_max_size.min(messages.len()));
            let request = ConsumeRequest {
                consumer: Arc::downgrade(consumer),
                mq: mq.clone(),
                process_queue: Arc::clone(process_queue),
                messages: std::mem::replace(&mut messages, rest),
            };
            self.execute(consumer, process_queue, Box::new(move || request.run()));
        }
    }

    /// How many calls of the listener were not made because their queue was given up.
    pub(super) fn let_go(&self) -> usize {
        self.let_go.load(Ordering::Relaxed)
    }

    /// Takes no more messages.
    pub(super) fn refuse_messages(&self) {
        self.pool.refuse_tasks();
    }

    /// Without a thread to be had, a task is tried again later, until it is taken or its queue is
    /// dropped.
    fn execute(
        &self,
        consumer: &Arc<DefaultMQPushConsumerImpl>,
        queue: &Arc<ProcessQueue>,
        task: Task,
    ) {
        let Err(rejected) = self.pool.execute(task) else {
            return;
        };
        if let RejectedReason::ShutDown = rejected.reason {
            return log::debug!("messages came after the end of the consumer");
        }
        log::warn!(
            "messages wait for {} s: {}",
            LOCAL_RETRY.as_secs(),
            rejected.reason
        );
        let weak = Arc::downgrade(consumer);
        let queue = Arc::clone(queue);
        consumer.later(LOCAL_RETRY, move || {
            let consumer = weak.upgrade().filter(|_| !queue.is_given_up());
            if let Some(consumer) = consumer {
                let service = consumer.consume_service();
                service.execute(&consumer, &queue, rejected.task);
            }
        });
    }

    /// Has the listener consume one message out of turn, on a thread of the pool, and waits for the
    /// result. Returns it, or why there is none, and the time that the listener took. One caller may
    /// wait at a time: they are threads that the whole instance shares.
    pub(super) fn consume_directly(
        &self,
        consumer: &DefaultMQPushConsumerImpl,
        message: MessageExt,
        timeout: Duration,
    ) -> (Result<CMResult, String>, Duration) {
        let refused = |reason: &str| (Err(reason.to_owned()), Duration::ZERO);
        let Some(listener) = self.listener.lock().clone() else {
            return refused("the consumer has ended");
        };
        let Some(_one_at_a_time) = self.directly.try_lock() else {
            return refused("another message is being consumed like this");
        };
        let namespace = &consumer.config.namespace;
        let mq = MessageQueue::new(message.topic(), message.broker_name(), message.queue_id());
        let mut context = ConsumeConcurrentlyContext::new(namespace.unwrap_queue(&mq));
        let mut messages = [message];
        show_original_topic(&mut messages, &self.retry_topic, namespace);
        let (sender, receiver) = channel::bounded(1);
        let deadline = Deadline::after(timeout);
        let begun = now();
        let queued = self.pool.execute(move || {
            if deadline.has_passed() {
                // Nobody waits for it any more.
                return;
            }
            let called = catch_panic(|| listener.consume_message(&messages, &mut context));
            let _ = sender.send(match called {
                Ok(ConsumeConcurrentlyStatus::ConsumeSuccess) => Ok(CMResult::Success),
                Ok(ConsumeConcurrentlyStatus::ReconsumeLater) => Ok(CMResult::Later),
                Err(reason) => Err(format!("the listener panicked: {reason}")),
            });
        });
        let result = match queued {
            Ok(()) => receiver
                .recv_deadline(deadline.instant())
                .unwrap_or_else(|_| Err(format!("no result within {timeout:?}"))),
            Err(rejected) => Err(rejected.reason.to_string()),
        };
        (result, now().saturating_duration_since(begun))
    }

    /// How many threads may call the listener.
    pub(super) fn threads(&self) -> usize {
        self.pool.size()
    }

    /// Changes the number of threads that call the listener.
    pub(super) fn set_threads(&self, threads: usize) {
        self.pool.set_size(threads);
    }

    /// Lets the listener finish what it has, until the deadline.
    pub(super) fn shutdown(&self, deadline: Deadline) -> PoolReport {
        self.pool.shutdown(deadline)
    }

    pub(super) fn release_listener(&self) {
        let listener = self.listener.lock().take();
        drop(listener);
    }
}

impl fmt::Debug for ConsumeMessageConcurrentlyService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsumeMessageConcurrentlyService")
            .field("queued", &self.pool.queued())
            .field("active", &self.pool.active_count())
            .finish_non_exhaustive()
    }
}

impl ConsumeRequest {
    fn run(mut self) {
        let Some(consumer) = self.consumer.upgrade() else {
            return;
        };
        let service = consumer.consume_service();
        let Some(listener) = service.listener.lock().clone() else {
            return;
        };
        let namespace = &consumer.config.namespace;
        show_original_topic(&mut self.messages, &service.retry_topic, namespace);
        if self.process_queue.consume_started(&self.messages).is_err() {
            service.let_go.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut context = ConsumeConcurrentlyContext::new(namespace.unwrap_queue(&self.mq));
        let hooks = &consumer.config.hooks;
        let hooked = hooks.before(&consumer, context.message_queue(), &self.messages);
        let begun = now();
        let called = catch_panic(|| listener.consume_message(&self.messages, &mut context));
        let took = now().saturating_duration_since(begun);
        let return_type = ConsumeReturnType::of(&called, took, consumer.config.consume_timeout);
        let status = called.unwrap_or_else(|reason| {
            let ids: Vec<&str> = self.messages.iter().map(|message| message.msg_id()).collect();
            log::error!(
                "group {}, {}: the listener panicked, messages {ids:?} are delivered again: {reason}",
                consumer.group(),
                self.mq
            );
            ConsumeConcurrentlyStatus::ReconsumeLater
        });
        if let Some(hooked) = hooked {
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
        self.process_consume_result(&consumer, status, &context);
    }

    /// Gives failed messages back, takes finished ones out, and moves the offset on to the smallest
    /// one that is not finished (Java `processConsumeResult`).
    fn process_consume_result(
        self,
        consumer: &Arc<DefaultMQPushConsumerImpl>,
        status: ConsumeConcurrentlyStatus,
        context: &ConsumeConcurrentlyContext,
    ) {
        let Self {
            mq,
            process_queue,
            messages,
            ..
        } = self;
        let succeeded = match status {
            ConsumeConcurrentlyStatus::ConsumeSuccess => {
                usize::try_from(context.ack_index().saturating_add(1)).unwrap_or(0)
            }
            ConsumeConcurrentlyStatus::ReconsumeLater => 0,
        };
        let mut finished = Vec::with_capacity(messages.len());
        let mut to_retry_here = Vec::new();
        for (position, mut message) in messages.into_iter().enumerate() {
            let offset = message.queue_offset();
            if position >= succeeded && process_queue.contains_message(offset) {
                let level = context.delay_level_when_next_consume();
                if let Err(error) = consumer.send_message_back(&message, level, &mq) {
                    log::warn!(
                        "{mq}: message {} at offset {offset} stays here and is tried again in {} \
                         s: {error}",
                        message.msg_id(),
                        LOCAL_RETRY.as_secs()
                    );
                    message.set_reconsume_times(message.reconsume_times().saturating_add(1));
                    to_retry_here.push(message);
                    continue;
                }
            }
            finished.push(offset);
        }
        if !to_retry_here.is_empty() {
            let weak = Arc::downgrade(consumer);
            let queue = Arc::clone(&process_queue);
            let of = mq.clone();
            consumer.later(LOCAL_RETRY, move || {
                if let Some(consumer) = weak.upgrade() {
                    consumer
                        .consume_service()
                        .submit(&consumer, &of, &queue, to_retry_here);
                }
            });
        }
        if let Some(offset) = process_queue.remove_messages(finished) {
            consumer.commit(&mq, offset, &process_queue);
        }
        if process_queue.consume_ended() {
            consumer.finish_hand_over(&mq, &process_queue);
        }
    }
}

/// A listener sees a message of the retry topic under the topic it was sent to, and every topic
/// by its plain name (Java `DefaultMQPushConsumerImpl#resetRetryAndNamespace`).
fn show_original_topic(messages: &mut [MessageExt], retry_topic: &str, namespace: &Namespace) {
    let now = system_time_millis().to_string();
    for message in messages {
        let original = message
            .property(property::RETRY_TOPIC)
            .filter(|_| message.topic() == retry_topic)
            .map(str::to_owned);
        let fields = message.message_mut();
        if let Some(original) = original {
            fields.set_topic(original);
        }
        if let Cow::Owned(plain) = namespace.unwrap(fields.topic()) {
            fields.set_topic(plain);
        }
        fields.put_property(property::CONSUME_START_TIMESTAMP, now.as_str());
    }
}
