//! Topics that are subscribed and unsubscribed by the user's program.

use std::fmt;

use rocketmq_protocol::{SubscriptionData, mix_all, validators};

use super::default_mq_push_consumer_impl::DefaultMQPushConsumerImpl;
use crate::error::{Error, Result};
use crate::service::ServiceState;
use crate::sync::Deadline;

impl DefaultMQPushConsumerImpl {
    /// Subscribes a topic, or changes its expression, at any time of the consumer's life but after
    /// its end (Java `DefaultMQPushConsumerImpl#subscribe`).
    pub(super) fn subscribe(&self, topic: &str, sub_expression: &str) -> Result<()> {
        let topic = self.checked_topic(topic)?;
        let data = SubscriptionData::build(&topic, sub_expression, 0)
            .map_err(|error| refused(&topic, &error))?;
        warn_of_odd_tag(&data);
        if self.member.state() == ServiceState::ShutdownAlready {
            return Err(self.wrong_state("subscribing with"));
        }
        let told = self.subscriptions.tell(data);
        if let (true, Some(instance)) = (self.is_running(), self.instance()) {
            if told.is_new_topic {
                self.learn_route(&instance, &topic);
            }
            instance.send_heartbeat_to_all_broker(Deadline::after(instance.api_timeout()));
            instance.rebalance_soon(self.group());
        }
        self.subscriptions.use_told(&topic, told.version);
        self.pull_anew(&topic);
        Ok(())
    }

    /// Java `DefaultMQPushConsumerImpl#unsubscribe`.
    pub(super) fn unsubscribe(&self, topic: &str) -> Result<()> {
        let topic = self.checked_topic(topic)?;
        if self.member.state() == ServiceState::ShutdownAlready {
            return Err(self.wrong_state("unsubscribing with"));
        }
        if let (true, true, Some(instance)) = (
            self.subscriptions.remove(&topic),
            self.is_running(),
            self.instance(),
        ) {
            instance.heartbeat_soon();
            instance.rebalance_soon(self.group());
        }
        Ok(())
    }

    /// The topic's name on the servers. The retry topic is not the user's.
    fn checked_topic(&self, topic: &str) -> Result<String> {
        let wrapped = self.config.namespace.wrap(topic).into_owned();
        validators::check_topic(&wrapped).map_err(|error| refused(topic, &error))?;
        if wrapped == mix_all::retry_topic(self.group()) {
            return Err(refused(topic, &"it is the group's own retry topic"));
        }
        Ok(wrapped)
    }

    fn wrong_state(&self, operation: &str) -> Error {
        self.member.wrong_state(operation, self.member.state())
    }
}

fn refused(topic: &str, why: &impl fmt::Display) -> Error {
    Error::InvalidConfig {
        problems: vec![format!("topic {topic:?}: {why}")],
    }
}

/// An expression that Java takes as well, and that matches nothing most likely.
pub(super) fn warn_of_odd_tag(data: &SubscriptionData) {
    if let Some(tag) = data.odd_tag() {
        log::warn!(
            "topic {}: {tag:?} in the expression {:?} is one tag, and only messages with this very tag \
             match it; tags are separated by ||",
            data.topic,
            data.sub_string
        );
    }
}
