use std::collections::BTreeMap;

use rocketmq_protocol::body::{self, Permission, QueueData};
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
    /// Java `TopicFilterType`: whether a message may have several tags.
    pub(crate) multi_tag: bool,
    pub(crate) attributes: BTreeMap<String, String>,
}

/// The name on the wire for topics whose messages have several tags.
pub(crate) const MULTI_TAG: &str = "MULTI_TAG";

impl TopicConfig {
    /// As many queues for reading as for writing.
    pub(crate) const fn new(queues: i32, perm: Permission) -> Self {
        Self {
            read_queue_nums: queues,
            write_queue_nums: queues,
            perm,
            topic_sys_flag: 0,
            order: false,
            multi_tag: false,
            attributes: BTreeMap::new(),
        }
    }

    /// The settings that a user gives.
    pub(crate) fn from_body(config: &body::TopicConfig) -> Self {
        Self {
            read_queue_nums: config.read_queue_nums,
            write_queue_nums: config.write_queue_nums,
            perm: Permission(config.perm),
            topic_sys_flag: config.topic_sys_flag,
            order: config.order,
            multi_tag: config.topic_filter_type == MULTI_TAG,
            attributes: config.attributes.clone(),
        }
    }

    /// The form that admin requests and their answers have.
    pub(crate) fn to_body(&self, topic: &str) -> body::TopicConfig {
        let filter = if self.multi_tag {
            MULTI_TAG
        } else {
            "SINGLE_TAG"
        };
        body::TopicConfig {
            attributes: self.attributes.clone(),
            order: self.order,
            perm: self.perm.0,
            read_queue_nums: self.read_queue_nums,
            topic_filter_type: filter.to_owned(),
            topic_name: topic.to_owned(),
            topic_sys_flag: self.topic_sys_flag,
            write_queue_nums: self.write_queue_nums,
        }
    }

    /// What a broker that allows so much registers of it.
    pub(crate) fn queue_data(&self, broker_name: &str, broker_permission: i32) -> QueueData {
        QueueData {
            broker_name: broker_name.to_owned(),
            perm: if Permission(broker_permission).is_readable()
                && Permission(broker_permission).is_writeable()
            {
                self.perm.0
            } else {
                self.perm.0 & broker_permission
            },
            read_queue_nums: self.read_queue_nums,
            topic_sys_flag: self.topic_sys_flag,
            write_queue_nums: self.write_queue_nums,
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
