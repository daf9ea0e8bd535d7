use rocketmq_protocol::body::Permission;
use rocketmq_protocol::mix_all::{DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX};
use rocketmq_protocol::validators::{NameError, check_topic};

/// A topic's settings on one broker (Java `TopicConfig`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopicConfig {
    pub(crate) read_queue_nums: i32,
    pub(crate) write_queue_nums: i32,
    pub(crate) perm: Permission,
    pub(crate) topic_sys_flag: i32,
    pub(crate) order: bool,
}

impl TopicConfig {
    /// As many queues for reading as for writing.
    pub(crate) const fn new(queues: i32, perm: Permission) -> Self {
        Self {
            read_queue_nums: queues,
            write_queue_nums: queues,
            perm,
            topic_sys_flag: 0,
            order: false,
        }
    }

    /// What a topic gets that is created by a send (Java
    /// `TopicConfigManager#createTopicInSendMessageMethod`), `None` when this topic's settings are
    /// not for others.
    pub(crate) fn inherit(&self, wanted_queues: i32) -> Option<Self> {
        self.perm.is_inherited().then(|| {
            let queues = wanted_queues.min(self.write_queue_nums).max(0);
            Self::new(queues, Permission(self.perm.0 & !1))
        })
    }

    pub(crate) fn queue_count(&self) -> i32 {
        self.read_queue_nums.max(self.write_queue_nums)
    }
}

/// Brokers let the names of retry and dead-letter topics be longer than clients do.
const RETRY_OR_DLQ_TOPIC_MAX_LENGTH: usize = 255;

/// Checks a topic's name as a broker does (Java `TopicValidator#validateTopic`).
pub(crate) fn validate_topic(topic: &str) -> Result<(), NameError> {
    match check_topic(topic) {
        Err(NameError::TooLong { .. })
            if topic.starts_with(RETRY_GROUP_TOPIC_PREFIX)
                || topic.starts_with(DLQ_GROUP_TOPIC_PREFIX) =>
        {
            let max = RETRY_OR_DLQ_TOPIC_MAX_LENGTH;
            if topic.len() > max {
                Err(NameError::TooLong { max })
            } else {
                Ok(())
            }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_topic_gets_at_most_the_default_topics_queues_without_its_inherit_bit() {
        let default = TopicConfig::new(8, Permission(7));
        let queues = |wanted| default.inherit(wanted).unwrap().write_queue_nums;
        assert_eq!((queues(4), queues(16), queues(-1)), (4, 8, 0));
        assert_eq!(default.inherit(4).unwrap().perm, Permission(6));
        assert_eq!(TopicConfig::new(8, Permission(6)).inherit(4), None);
    }

    #[test]
    fn only_retry_and_dead_letter_topics_may_be_long() {
        let name = "x".repeat(200);
        assert!(validate_topic(&name).is_err());
        assert!(validate_topic(&format!("%RETRY%{name}")).is_ok());
        assert!(validate_topic(&format!("%DLQ%{name}{name}")).is_err());
    }
}
