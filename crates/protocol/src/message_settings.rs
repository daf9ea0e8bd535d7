//! What a message asks of brokers and of other clients, by properties with names of their own.

use crate::{Message, property};

impl Message {
    /// Has the message delivered later, after the time of a level; brokers have 18 levels, from 1 s
    /// to 2 h, unless set otherwise. 0 is no delay. A level counts more than any of the times below.
    pub fn set_delay_time_level(&mut self, level: i32) {
        self.put_property(property::DELAY_TIME_LEVEL, level.to_string());
    }

    /// Has the message delivered after so many seconds, at most 3 days unless brokers are set
    /// otherwise. Of several times the one in seconds counts, then the one in milliseconds.
    pub fn set_delay_time_sec(&mut self, seconds: u64) {
        self.put_property(property::TIMER_DELAY_SEC, seconds.to_string());
    }

    /// Has the message delivered after so many milliseconds; brokers round up to whole seconds
    /// unless set otherwise.
    pub fn set_delay_time_ms(&mut self, millis: u64) {
        self.put_property(property::TIMER_DELAY_MS, millis.to_string());
    }

    /// Has the message delivered at a time, in milliseconds since 1970 by the broker's clock; at
    /// once if that is past.
    pub fn set_deliver_time_ms(&mut self, millis: i64) {
        self.put_property(property::TIMER_DELIVER_MS, millis.to_string());
    }

    /// Says whether the broker answers only once the message is stored as safely as it is set to:
    /// flushed, and copied to replicas, if those are its settings. Default yes.
    pub fn set_wait_store_msg_ok(&mut self, wait: bool) {
        self.put_property(property::WAIT_STORE_MSG_OK, wait.to_string());
    }

    /// Whether the broker answers only once the message is stored safely.
    ///
    /// # Java
    /// `Message#isWaitStoreMsgOK`
    pub fn is_wait_store_msg_ok(&self) -> bool {
        match self.property(property::WAIT_STORE_MSG_OK) {
            None | Some("") => true,
            Some(value) => value.eq_ignore_ascii_case("true"),
        }
    }

    /// Gives the message what ordered messages are spread by: those of one key are meant for one
    /// queue. The queue is chosen by whoever sends, with a selector; brokers only carry the key.
    ///
    /// # Java
    /// `MessageConst#PROPERTY_SHARDING_KEY`, which has no setter there.
    pub fn set_sharding_key(&mut self, key: impl Into<String>) {
        self.put_property(property::SHARDING_KEY, key);
    }

    /// What ordered messages are spread by.
    pub fn sharding_key(&self) -> Option<&str> {
        self.property(property::SHARDING_KEY)
    }

    /// Gives the message the id of a buyer, which brokers and consumers only carry.
    ///
    /// # Java
    /// `Message#setBuyerId`
    pub fn set_buyer_id(&mut self, id: impl Into<String>) {
        self.put_property(property::BUYER_ID, id);
    }

    /// The id of a buyer.
    pub fn buyer_id(&self) -> Option<&str> {
        self.property(property::BUYER_ID)
    }

    /// Names the instance of a cloud service. A producer with a namespace sets it itself.
    ///
    /// # Java
    /// `Message#setInstanceId`
    pub fn set_instance_id(&mut self, id: impl Into<String>) {
        self.put_property(property::INSTANCE_ID, id);
    }

    /// Sets the priority, for topics of the type `PRIORITY` on brokers from 5.5.0 on: there the
    /// message goes to the queue of this number, or to the last one.
    ///
    /// # Java
    /// `Message#setPriority`
    pub fn set_priority(&mut self, priority: u16) {
        self.put_property(property::PRIORITY, priority.to_string());
    }

    /// The priority, unless there is none or it is no number.
    ///
    /// # Java
    /// `Message#getPriority`, which says -1 then.
    pub fn priority(&self) -> Option<u16> {
        self.property(property::PRIORITY)?.parse().ok()
    }

    /// Names the lite topic, for topics of the type `LITE` on brokers from 5.5.0 on.
    ///
    /// # Java
    /// `MessageAccessor#setLiteTopic`
    pub fn set_lite_topic(&mut self, lite_topic: impl Into<String>) {
        self.put_property(property::LITE_TOPIC, lite_topic);
    }

    /// The lite topic.
    pub fn lite_topic(&self) -> Option<&str> {
        self.property(property::LITE_TOPIC)
    }

    /// The id of the transaction that the message is of: once it is committed the one that the
    /// broker gave it, before that its unique key.
    ///
    /// # Java
    /// `Message#getTransactionId`
    pub fn transaction_id(&self) -> Option<&str> {
        self.property(property::TRANSACTION_ID).or_else(|| {
            self.property(property::TRANSACTION_PREPARED)?;
            self.property(property::UNIQ_KEY)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_is_the_property_that_java_gives_it() {
        let mut message = Message::new("T", "b");
        assert!(message.is_wait_store_msg_ok());
        message.set_delay_time_level(3);
        message.set_delay_time_sec(4);
        message.set_delay_time_ms(5);
        message.set_deliver_time_ms(6);
        message.set_wait_store_msg_ok(false);
        message.set_sharding_key("order-7");
        message.set_buyer_id("b1");
        message.set_instance_id("MQ_INST_1");
        message.set_priority(2);
        message.set_lite_topic("l");
        let properties: Vec<(&str, &str)> = message
            .properties()
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let mut expected = [
            ("DELAY", "3"),
            ("TIMER_DELAY_SEC", "4"),
            ("TIMER_DELAY_MS", "5"),
            ("TIMER_DELIVER_MS", "6"),
            ("WAIT", "false"),
            ("__SHARDINGKEY", "order-7"),
            ("BUYER_ID", "b1"),
            ("INSTANCE_ID", "MQ_INST_1"),
            ("_SYS_MSG_PRIORITY_", "2"),
            ("__LITE_TOPIC", "l"),
        ];
        expected.sort_unstable();
        let mut properties = properties;
        properties.sort_unstable();
        assert_eq!(properties, expected);
        assert!(!message.is_wait_store_msg_ok());
        assert_eq!(message.sharding_key(), Some("order-7"));
        assert_eq!(message.buyer_id(), Some("b1"));
        assert_eq!(message.priority(), Some(2));
        assert_eq!(message.lite_topic(), Some("l"));
    }

    #[test]
    fn what_is_not_set_or_no_number_is_none() {
        let mut message = Message::new("T", "b");
        assert_eq!(message.sharding_key(), None);
        assert_eq!(message.priority(), None);
        message.put_property(property::PRIORITY, "-1");
        assert_eq!(message.priority(), None);
        assert_eq!(message.transaction_id(), None);
    }

    #[test]
    fn a_half_message_has_its_unique_key_for_an_id_until_it_is_committed() {
        let mut message = Message::new("T", "b");
        message.put_property(property::UNIQ_KEY, "u");
        assert_eq!(message.transaction_id(), None);
        message.put_property(property::TRANSACTION_PREPARED, "true");
        assert_eq!(message.transaction_id(), Some("u"));
        message.put_property(property::TRANSACTION_ID, "t");
        assert_eq!(message.transaction_id(), Some("t"));
    }
}
