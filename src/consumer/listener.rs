//! What a user gives a consumer to call.

use rocketmq_protocol::{MessageExt, MessageQueue};

/// What a listener says of the messages it was given (Java `ConsumeConcurrentlyStatus`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConsumeConcurrentlyStatus {
    /// They are done.
    ConsumeSuccess,
    /// All messages of the call are to be delivered again later: to any member of the group, with
    /// the same id and a larger [`reconsume_times`](MessageExt::reconsume_times), after
    /// [a while](ConsumeConcurrentlyContext::set_delay_level_when_next_consume). What was tried
    /// again [`max_reconsume_times`](crate::DefaultMQPushConsumerBuilder::max_reconsume_times) (16)
    /// times goes to the group's dead-letter queue instead, the topic `%DLQ%<group>`.
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
    ///
    /// The levels are a setting of the brokers. Unless changed, 1 to 18 are 1 s, 5 s, 10 s, 30 s,
    /// 1 to 10 min in steps of one minute, 20 min, 30 min, 1 h and 2 h. The broker's own choice is
    /// level 3 the first time, 10 s, and one more each time.
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
/// of this form are listeners, if the types of their parameters are written out.
///
/// It may call whatever the library has, the consumer's own handle too: a `shutdown` then goes on in
/// the background. A call that does not return keeps its thread for good; a shutdown waits for it
/// until its deadline and then reports `threads_joined: false`, and the messages are delivered again.
///
/// # Java
/// `MessageListenerConcurrently`
///
/// # Examples
/// A message that fails is tried again after a second.
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
///
/// use rocketmq_blocking::{
///     ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere,
///     DefaultMQPushConsumer, Message, MessageExt, MessageQueue,
/// };
/// use rocketmq_embedded::Cluster;
///
/// let cluster = Cluster::builder().start()?;
/// cluster.create_topic("Orders", 4)?;
/// let queue = MessageQueue::new("Orders", "broker-a", 0);
/// cluster.put_message(&queue, &Message::new("Orders", "a book"))?;
///
/// let (sender, received) = mpsc::channel();
/// let consumer = DefaultMQPushConsumer::builder("billing")
///     .namesrv_addr(&cluster.namesrv_addr())
///     .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
///     .subscribe("Orders", "*")
///     .message_listener(move |messages: &[MessageExt], context: &mut ConsumeConcurrentlyContext| {
///         for message in messages {
///             if message.reconsume_times() == 0 {
///                 context.set_delay_level_when_next_consume(1); // else 10 s
///                 return ConsumeConcurrentlyStatus::ReconsumeLater;
///             }
///             let _ = sender.send((message.body().clone(), message.reconsume_times()));
///         }
///         ConsumeConcurrentlyStatus::ConsumeSuccess
///     })
///     .build()?;
/// consumer.start()?;
///
/// let (body, tried) = received.recv_timeout(Duration::from_secs(30))?;
/// assert_eq!((&body[..], tried), (&b"a book"[..], 1));
/// consumer.shutdown(Duration::from_secs(5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
