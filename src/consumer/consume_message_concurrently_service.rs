//! Calls the listener (Java `ConsumeMessageConcurrentlyService`).

use std::fmt;
use std::time::Duration;

use rocketmq_protocol::body::CMResult;
use rocketmq_protocol::{MessageExt, MessageQueue, mix_all};

use super::consume_requests::{ConsumeRequests, show_original_topic};
use super::default_mq_push_consumer_impl::DefaultMQPushConsumerImpl;
use super::listener::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, MessageListenerConcurrently,
};
use super::process_queue::ProcessQueue;
use crate::service::{Parts, PoolReport, RejectedReason, ThreadPool, catch_panic};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Deadline, Mutex, channel, now};

/// How long a message waits that could not be given back to its broker.
pub(super) const LOCAL_RETRY: Duration = Duration::from_secs(5);

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
        messages: Vec<MessageExt>,
    ) {
        let Some(listener) = self.listener.lock().clone() else {
            return;
        };
        let calls = messages.len().div_ceil(self.batch_max_size);
        let requests = ConsumeRequests::new(consumer, listener, mq, process_queue, messages);
        self.execute(consumer, Arc::new(requests), calls);
    }

    pub(super) fn batch_max_size(&self) -> usize {
        self.batch_max_size
    }

    pub(super) fn retry_topic(&self) -> &str {
        &self.retry_topic
    }

    /// Notes that the listener was not called because the queue was given up.
    pub(super) fn note_let_go(&self) {
        self.let_go.fetch_add(1, Ordering::Relaxed);
    }

    /// How many calls of the listener were not made because their queue was given up.
    pub(super) fn let_go(&self) -> usize {
        self.let_go.load(Ordering::Relaxed)
    }

    /// Takes no more messages.
    pub(super) fn refuse_messages(&self) {
        self.pool.refuse_tasks();
    }

    /// Without a thread to be had, they are tried again later, until they are taken or their queue is
    /// dropped.
    fn execute(
        &self,
        consumer: &Arc<DefaultMQPushConsumerImpl>,
        requests: Arc<ConsumeRequests>,
        calls: usize,
    ) {
        let parts: Arc<dyn Parts> = Arc::<ConsumeRequests>::clone(&requests);
        let Err(reason) = self.pool.execute_parts(parts, calls) else {
            return;
        };
        if let RejectedReason::ShutDown = reason {
            return log::debug!("messages came after the end of the consumer");
        }
        log::warn!("messages wait for {} s: {reason}", LOCAL_RETRY.as_secs());
        let weak = Arc::downgrade(consumer);
        consumer.later(LOCAL_RETRY, move || {
            let consumer = weak.upgrade().filter(|_| !requests.is_given_up());
            if let Some(consumer) = consumer {
                let service = consumer.consume_service();
                service.execute(&consumer, requests, calls);
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
