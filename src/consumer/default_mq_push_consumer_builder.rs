use std::fmt;
use std::time::Duration;

use rocketmq_protocol::body::ConsumeFromWhere;
use rocketmq_protocol::{SubscriptionData, validators};

use super::consume_message_hook::ConsumeMessageHook;
use super::consume_message_trace_hook::ConsumeMessageTraceHookImpl;
use super::default_mq_push_consumer::DefaultMQPushConsumer;
use super::default_mq_push_consumer_impl::DefaultMQPushConsumerImpl;
use super::filter_message_hook::FilterMessageHook;
use super::listener::{MessageListenerConcurrently, MessageQueueListener};
use super::push_consumer_config::PushConsumerConfig;
use super::run_time_subscription::warn_of_odd_tag;
use crate::client::{MQClientManager, next_sub_version};
use crate::client_config::{self, ClientConfig, client_config_setters};
use crate::error::{Error, Result};
use crate::producer::trace_producer::{TraceOf, trace_dispatcher};
use crate::rebalance::AllocateMessageQueueStrategy;
use crate::sync::Arc;
use crate::trace::trace_setters;

/// Sets up a [`DefaultMQPushConsumer`]. Every setting has Java's default.
#[must_use = "a builder does nothing until `build`"]
pub struct DefaultMQPushConsumerBuilder {
    client_config: ClientConfig,
    manager: MQClientManager,
    config: PushConsumerConfig,
    listener: Option<Arc<dyn MessageListenerConcurrently>>,
    message_queue_listener: Option<Arc<dyn MessageQueueListener>>,
    problems: Vec<String>,
}

impl DefaultMQPushConsumerBuilder {
    pub(super) fn new(consumer_group: String) -> Self {
        Self {
            client_config: ClientConfig::default(),
            manager: MQClientManager::global().clone(),
            config: PushConsumerConfig::of(consumer_group),
            listener: None,
            message_queue_listener: None,
            problems: Vec::new(),
        }
    }

    client_config_setters!();
    trace_setters!();

    /// The manager whose instances and threads the client uses. Default:
    /// [`MQClientManager::global`].
    pub fn client_manager(mut self, manager: &MQClientManager) -> Self {
        self.manager = manager.clone();
        self
    }

    /// Subscribes a topic. `sub_expression` is tags joined by `||`; `*` means all messages. A topic
    /// subscribed twice has the later expression. At least one topic must be subscribed. Java
    /// `subscribe`.
    ///
    /// Tags match exactly, capitals too; blanks around them do not count. Nothing but `||`
    /// separates them: `Books,Music` and `Books | Music` are one tag each, which is warned of, and
    /// match messages with that very tag only. A message without a tag matches `*` only.
    pub fn subscribe(mut self, topic: &str, sub_expression: &str) -> Self {
        if let Err(error) = validators::check_topic(topic) {
            self.problems.push(format!("topic {topic:?}: {error}"));
        }
        match SubscriptionData::build(topic, sub_expression, next_sub_version()) {
            Ok(subscription) => {
                warn_of_odd_tag(&subscription);
                self.config
                    .subscriptions
                    .insert(topic.to_owned(), subscription);
            }
            Err(error) => self.problems.push(format!("topic {topic:?}: {error}")),
        }
        self
    }

    /// What is called with messages; there is no default, and without one `build` fails. A closure
    /// needs the types of its parameters,
    /// `|messages: &[MessageExt], context: &mut ConsumeConcurrentlyContext|`: the compiler cannot
    /// infer them. Java `registerMessageListener`.
    pub fn message_listener(
        mut self,
        listener: impl MessageListenerConcurrently + 'static,
    ) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// What is called when the own queues of a topic change. Default: nothing; Java
    /// `setMessageQueueListener`.
    pub fn message_queue_listener(mut self, listener: impl MessageQueueListener + 'static) -> Self {
        self.message_queue_listener = Some(Arc::new(listener));
        self
    }

    /// How the queues are divided; all members of a group must say the same. Default
    /// [`AllocateMessageQueueAveragely`](crate::rebalance::AllocateMessageQueueAveragely); Java `allocateMessageQueueStrategy`.
    pub fn allocate_message_queue_strategy(
        mut self,
        strategy: impl AllocateMessageQueueStrategy + 'static,
    ) -> Self {
        self.config.strategy = Arc::new(strategy);
        self
    }

    /// Where the group starts on a queue for which the broker has no offset of it. Default: at the
    /// end; Java `consumeFromWhere`.
    pub fn consume_from_where(mut self, from: ConsumeFromWhere) -> Self {
        self.config.consume_from_where = from;
        self
    }

    /// The time from which on messages count for
    /// [`ConsumeFromTimestamp`](ConsumeFromWhere::ConsumeFromTimestamp), in milliseconds since 1970,
    /// 0 or later. Default: half an hour before the builder was made; Java `consumeTimestamp`, a text in local
    /// time to the second.
    pub fn consume_timestamp(mut self, millis: i64) -> Self {
        self.config.consume_timestamp = millis;
        self
    }

    /// How many threads call the listener; they start when there is work. Default 20, range
    /// 1..=1000; Java `consumeThreadMin` and `consumeThreadMax`.
    pub fn consume_threads(mut self, threads: usize) -> Self {
        self.config.consume_threads = threads;
        self
    }

    /// The most messages in one call of the listener. Default 1, range 1..=1024; Java
    /// `consumeMessageBatchMaxSize`.
    pub fn consume_message_batch_max_size(mut self, messages: usize) -> Self {
        self.config.consume_message_batch_max_size = messages;
        self
    }

    /// The largest distance between the first unfinished message of a queue and the last that was
    /// pulled; beyond it the queue is not pulled. Default 2000, range 1..=65535; Java
    /// `consumeConcurrentlyMaxSpan`.
    pub fn consume_concurrently_max_span(mut self, span: u64) -> Self {
        self.config.consume_concurrently_max_span = span;
        self
    }

    /// How many unfinished messages of a queue are kept before it is not pulled. Default 1000, range
    /// 1..=65535; Java `pullThresholdForQueue`.
    pub fn pull_threshold_for_queue(mut self, messages: u64) -> Self {
        self.config.pull_threshold_for_queue = messages;
        self
    }

    /// How many MiB of unfinished messages of a queue are kept before it is not pulled. Default 100,
    /// range 1..=1024; Java `pullThresholdSizeForQueue`.
    pub fn pull_threshold_size_for_queue(mut self, mebibytes: u64) -> Self {
        self.config.pull_threshold_size_for_queue = mebibytes;
        self
    }

    /// How many unfinished messages of a topic are kept; its own queues have equal parts of that, at
    /// least 1 each, in place of [`pull_threshold_for_queue`](Self::pull_threshold_for_queue).
    /// Default: no such limit, range 1..=6,553,500; Java `pullThresholdForTopic`, -1 for none.
    pub fn pull_threshold_for_topic(mut self, messages: u64) -> Self {
        self.config.pull_threshold_for_topic = Some(messages);
        self
    }

    /// How many MiB of unfinished messages of a topic are kept; its own queues have equal parts of
    /// that, at least 1 MiB each, in place of
    /// [`pull_threshold_size_for_queue`](Self::pull_threshold_size_for_queue). Default: no such
    /// limit, range 1..=102,400; Java `pullThresholdSizeForTopic`, -1 for none.
    pub fn pull_threshold_size_for_topic(mut self, mebibytes: u64) -> Self {
        self.config.pull_threshold_size_for_topic = Some(mebibytes);
        self
    }

    /// How many bytes all messages together may keep that any consumer of this process has received
    /// and anybody still holds: one that waits for the listener, one that the listener has put aside,
    /// a clone of its body. From there on this consumer pulls nothing until some are let go of; a
    /// listener that never does stops it, which is logged. Each message counts with its body, its
    /// properties and 1 KiB; a body that is a small part of its reply has memory of its own, and
    /// does not keep the rest of the reply. Pulls that are under way when the limit is reached exceed it by
    /// one reply a queue at most (`pull_batch_size_in_bytes`, or one message if that is larger).
    ///
    /// Default: no limit, range 1 MiB and more; Java has no such setting.
    pub fn max_retained_bytes(mut self, bytes: u64) -> Self {
        self.config.max_retained_bytes = Some(bytes);
        self
    }

    /// A pause after each pull that brought messages. Default 0, range up to 65,535 ms; Java
    /// `pullInterval`.
    pub fn pull_interval(mut self, interval: Duration) -> Self {
        self.config.pull_interval = interval;
        self
    }

    /// The most messages in one pull. Default 32, range 1..=1024; brokers have limits of their own.
    /// Java `pullBatchSize`.
    pub fn pull_batch_size(mut self, messages: i32) -> Self {
        self.config.pull_batch_size = messages;
        self
    }

    /// The most bytes in one pull, of which brokers make at least one message. Default 262,144, range
    /// 1..=8,388,608; brokers have limits of their own. Java `pullBatchSizeInBytes`.
    pub fn pull_batch_size_in_bytes(mut self, bytes: i32) -> Self {
        self.config.pull_batch_size_in_bytes = bytes;
        self
    }

    /// How long a queue rests after a failed pull. Default 1 s, range 1 ms to 60
    /// s; Java `pullTimeDelayMillsWhenException`.
    pub fn pull_time_delay_when_exception(mut self, delay: Duration) -> Self {
        self.config.pull_time_delay_when_exception = delay;
        self
    }

    /// How often a message is tried again before it goes to the group's dead-letter queue, the
    /// topic `%DLQ%<group>`. Default 16, at least 0; Java `maxReconsumeTimes`, -1 for 16.
    pub fn max_reconsume_times(mut self, times: i32) -> Self {
        self.config.max_reconsume_times = Some(times);
        self
    }

    /// How long the listener may have a message before it is given back to its broker, and delivered
    /// again, as if it had failed; this is looked at as often. The listener is not interrupted, and
    /// its result does not count for that message any more. Default 15 min, at least 1 ms; Java
    /// `consumeTimeout`, in minutes.
    pub fn consume_timeout(mut self, timeout: Duration) -> Self {
        self.config.consume_timeout = timeout;
        self
    }

    /// How long a queue that another member may have had is left alone before its offset is asked
    /// for. Default 80 ms, range 0 to 60 s. In Java a queue's first pull is delayed by 500 ms instead.
    ///
    /// It buys that messages are not delivered twice when a queue changes hands. The member that
    /// gives the queue up lets its listener finish what it has in hands, for half of this time at
    /// most, and then saves the offset; a listener that takes longer than that for a message needs a
    /// longer grace. All members of a group should have the same. A member that is alone takes all
    /// queues at once.
    pub fn hand_over_grace(mut self, grace: Duration) -> Self {
        self.config.hand_over_grace = grace;
        self
    }

    /// Whether queues are given up only once a second broker of the topic names the same members as
    /// the first. Default false: one broker is asked, as in Java.
    ///
    /// It protects from a broker that has just been started and does not know all members yet. If
    /// the second one names others, nothing changes and both are asked again after
    /// `rebalance_min_interval`. A broker that does not answer contradicts nobody, so with one broker,
    /// or one that is left, this changes nothing. It has no counterpart in Java.
    pub fn confirm_shrink(mut self, confirm: bool) -> Self {
        self.config.confirm_shrink = confirm;
        self
    }

    /// Adds what is called around each call of the listener, after those that were given before.
    /// Default: nothing; Java `registerConsumeMessageHook`.
    pub fn consume_message_hook(mut self, hook: impl ConsumeMessageHook) -> Self {
        self.config.hooks.consume_message.push(Arc::new(hook));
        self
    }

    /// Adds what takes messages out of what was pulled, after those that were given before. Default:
    /// nothing; Java `DefaultMQPushConsumerImpl#registerFilterMessageHook`.
    pub fn filter_message_hook(mut self, hook: impl FilterMessageHook) -> Self {
        self.config.hooks.filter_message.push(Arc::new(hook));
        self
    }

    /// Checks all settings and makes the consumer, which is then to be started.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::Error::InvalidConfig) with every setting that is wrong.
    pub fn build(mut self) -> Result<DefaultMQPushConsumer> {
        let mut problems = std::mem::take(&mut self.problems);
        self.client_config.validate(&mut problems);
        self.config.unit_mode = self.client_config.unit_mode;
        self.config.move_into(self.client_config.namespace.clone());
        self.config.validate(&mut problems);
        let Some(listener) = self.listener else {
            problems.push("no message_listener is set".to_owned());
            return Err(Error::InvalidConfig { problems });
        };
        client_config::reject(problems)?;
        let mut trace = None;
        if self.config.trace.enable_trace {
            let dispatcher = trace_dispatcher(
                TraceOf::Consume,
                &self.config.consumer_group,
                &self.config.trace,
                &self.client_config,
                &self.manager,
            )?;
            // Behind those of the user.
            let hook = ConsumeMessageTraceHookImpl(Arc::clone(&dispatcher));
            self.config.hooks.consume_message.push(Arc::new(hook));
            trace = Some(dispatcher);
        }
        let inner = DefaultMQPushConsumerImpl::new(
            self.config,
            self.client_config,
            self.manager,
            listener,
            self.message_queue_listener,
            trace,
        );
        Ok(DefaultMQPushConsumer::new(inner))
    }
}

impl fmt::Debug for DefaultMQPushConsumerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DefaultMQPushConsumerBuilder")
            .field("consumer_group", &self.config.consumer_group)
            .field("subscriptions", &self.config.subscriptions)
            .finish_non_exhaustive()
    }
}
