/// Where traces go when no other topic is named (Java `TopicValidator.RMQ_SYS_TRACE_TOPIC`).
const RMQ_SYS_TRACE_TOPIC: &str = "RMQ_SYS_TRACE_TOPIC";

/// What kind of servers traces are for (Java `AccessChannel`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum AccessChannel {
    /// Brokers of your own.
    #[default]
    Local,
    /// A cloud's: each region has a trace topic of its own, `rmq_sys_TRACE_DATA_<region>`, and what
    /// is written after a call of the listener has neither time nor group.
    Cloud,
}

/// The settings of traces, of a producer or of a consumer.
#[derive(Debug, Clone)]
pub(crate) struct TraceConfig {
    pub(crate) enable_trace: bool,
    pub(crate) trace_topic: String,
    pub(crate) trace_msg_batch_num: usize,
    pub(crate) access_channel: AccessChannel,
    /// Of producers.
    pub(crate) enable_recall_trace: bool,
}

impl Default for TraceConfig {
    fn default() -> Self {
        Self {
            enable_trace: false,
            trace_topic: RMQ_SYS_TRACE_TOPIC.to_owned(),
            trace_msg_batch_num: 10,
            access_channel: AccessChannel::Local,
            enable_recall_trace: false,
        }
    }
}

impl TraceConfig {
    /// Adds what is wrong to `problems`.
    pub(crate) fn validate(&self, problems: &mut Vec<String>) {
        if let Err(error) = rocketmq_protocol::validators::check_topic(&self.trace_topic) {
            problems.push(format!("trace_topic {:?}: {error}", self.trace_topic));
        }
        let count = self.trace_msg_batch_num;
        if !(1..=20).contains(&count) {
            problems.push(format!(
                "trace_msg_batch_num is {count}, the range is 1..=20"
            ));
        }
    }
}

/// Setters of [`TraceConfig`] for a builder with a field `config.trace`.
macro_rules! trace_setters {
    () => {
        /// Whether it is written to [`trace_topic`](Self::trace_topic) what happens to messages: that
        /// they were sent, that transactions ended, when listeners were called and how that went.
        /// Default no; Java `enableTrace`.
        ///
        /// A client of its own, with a group and an instance of its own, sends it from a thread named
        /// `AsyncTraceDispatcher_<group>`, some records a message, at the latest after 5 s or at the
        /// end of the client, whose shutdown waits for that until its deadline. Nobody waits for it
        /// otherwise: what does not fit is thrown away, and counted by `trace_discard_count`. Up to
        /// 2048 records wait.
        ///
        /// Nothing is written of sends that failed, of messages of the trace topic, of what brokers
        /// do not want written (`traceOn`), and of what they do not say the region of: messages that
        /// were sent in batches have none.
        ///
        /// The topic must exist (`traceTopicEnable` of brokers) or be allowed to be created. If the
        /// client for it cannot be started that is logged, and the others go on.
        pub fn enable_trace(mut self, enable: bool) -> Self {
            self.config.trace.enable_trace = enable;
            self
        }

        /// Where it is written to. Default `RMQ_SYS_TRACE_TOPIC`; Java `traceTopic`.
        pub fn trace_topic(mut self, topic: impl Into<String>) -> Self {
            self.config.trace.trace_topic = topic.into();
            self
        }

        /// How many records are sent together at once, without waiting for more. Default 10, range
        /// 1..=20; Java `traceMsgBatchNum`.
        pub fn trace_msg_batch_num(mut self, records: usize) -> Self {
            self.config.trace.trace_msg_batch_num = records;
            self
        }

        /// What kind of servers traces are for. Default
        /// [`Local`](crate::AccessChannel::Local); Java `accessChannel`.
        pub fn access_channel(mut self, channel: crate::trace::AccessChannel) -> Self {
            self.config.trace.access_channel = channel;
            self
        }
    };
}
pub(crate) use trace_setters;
