//! What a user gives a consumer to call.

use rocketmq_protocol::{MessageExt, MessageQueue};

/// What a listener says of the messages it was given (Java `ConsumeConcurrentlyStatus`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConsumeConcurrentlyStatus {
    /// They are done.
    ConsumeSuccess,
    /// They are to be delivered again later.
    ReconsumeLater,
}

/// Goes with each call of a listener (Java `ConsumeConcurrentlyContext`).
#[derive(Debug)]
pub struct ConsumeConcurrentlyContext {
    message_queue: MessageQueue,
    ack_index: i32,
    delay_level_when_next_consume: i32,
}

impl ConsumeConcurrentlyContext {
    pub(super) fn new(message_queue: MessageQueue) -> Self {
        Self {
            message_queue,
            ack_index: i32::MAX,
            delay_level_when_next_consume: 0,
        }
    }

    /// The queue that the messages are from.
    pub fn message_queue(&self) -> &MessageQueue {
        &self.message_queue
    }

    /// With [`ConsumeSuccess`](ConsumeConcurrentlyStatus::ConsumeSuccess), says that only the
    /// messages up to this position are done; those behind it are delivered again. -1: none is done.
    /// Default: all, as for every position beyond the last. Java `ackIndex`.
    pub fn set_ack_index(&mut self, index: i32) {
        self.ack_index = index;
    }

    /// The last position that counts as done.
    pub fn ack_index(&self) -> i32 {
        self.ack_index
    }

    /// How long a failed message waits: 0, the default, lets the broker choose, longer each time; a
    /// positive value is a delay level; a negative one sends it to the dead-letter queue. Java
    /// `delayLevelWhenNextConsume`.
    pub fn set_delay_level_when_next_consume(&mut self, level: i32) {
        self.delay_level_when_next_consume = level;
    }

    /// The level that was set; 0 unless set.
    pub fn delay_level_when_next_consume(&self) -> i32 {
        self.delay_level_when_next_consume
    }
}

/// Consumes messages of all owned queues side by side.
///
/// Runs on the consumer's threads, several at once; the messages of one call are of one queue, in
/// order. A panic counts as [`ReconsumeLater`](ConsumeConcurrentlyStatus::ReconsumeLater). Closures
/// of this form are listeners.
///
/// # Java
/// `MessageListenerConcurrently`
pub trait MessageListenerConcurrently: Send + Sync {
    /// Consumes messages. It may block; others go on in the consumer's other threads.
    fn consume_message(
        &self,
        messages: &[MessageExt],
        context: &mut ConsumeConcurrentlyContext,
    ) -> ConsumeConcurrentlyStatus;
}

impl<F> MessageListenerConcurrently for F
where
    F: Fn(&[MessageExt], &mut ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus
        + Send
        + Sync,
{
    fn consume_message(
        &self,
        messages: &[MessageExt],
        context: &mut ConsumeConcurrentlyContext,
    ) -> ConsumeConcurrentlyStatus {
        self(messages, context)
    }
}

/// Hears of changes of the own queues. Closures of this form are listeners.
///
/// # Java
/// `MessageQueueListener`
pub trait MessageQueueListener: Send + Sync {
    /// The own queues of `topic` are now `mq_divided`, of `mq_all`, each sorted. It runs on a thread
    /// of the consumer, one call after the other, and may block: nothing waits for it but later
    /// calls, of which those for one topic become one, with its last state. A panic is logged.
    fn message_queue_changed(
        &self,
        topic: &str,
        mq_all: &[MessageQueue],
        mq_divided: &[MessageQueue],
    );
}

impl<F> MessageQueueListener for F
where
    F: Fn(&str, &[MessageQueue], &[MessageQueue]) + Send + Sync,
{
    fn message_queue_changed(
        &self,
        topic: &str,
        mq_all: &[MessageQueue],
        mq_divided: &[MessageQueue],
    ) {
        self(topic, mq_all, mq_divided);
    }
}
