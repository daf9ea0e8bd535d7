//! The hooks that a user gave a consumer, and how they are called.

use std::fmt;

use rocketmq_protocol::{MessageExt, MessageQueue};

use super::consume_message_hook::{ConsumeMessageContext, ConsumeMessageHook};
use super::default_mq_push_consumer_impl::DefaultMQPushConsumerImpl;
use super::filter_message_hook::{FilterMessageContext, FilterMessageHook};
use crate::service::call_hook;
use crate::sync::Arc;

/// In the order in which they are called.
#[derive(Default)]
pub(super) struct ConsumerHooks {
    pub(super) consume_message: Vec<Arc<dyn ConsumeMessageHook>>,
    pub(super) filter_message: Vec<Arc<dyn FilterMessageHook>>,
}

impl ConsumerHooks {
    /// Tells the hooks of a call of the listener; `None` when there are none.
    pub(super) fn before<'a>(
        &self,
        consumer: &'a DefaultMQPushConsumerImpl,
        mq: &MessageQueue,
        messages: &'a [MessageExt],
    ) -> Option<ConsumeMessageContext<'a>> {
        if self.consume_message.is_empty() {
            return None;
        }
        let namespace = &consumer.config.namespace;
        let group = namespace.unwrap(consumer.group()).into_owned();
        let mut context = ConsumeMessageContext::new(group, namespace.name(), mq, messages);
        for hook in &self.consume_message {
            call_hook(hook.hook_name(), "consume_message_before", || {
                hook.consume_message_before(&mut context)
            });
        }
        Some(context)
    }

    pub(super) fn after(&self, context: &mut ConsumeMessageContext<'_>) {
        for hook in &self.consume_message {
            call_hook(hook.hook_name(), "consume_message_after", || {
                hook.consume_message_after(context)
            });
        }
    }

    /// Has messages of a pull taken out (Java `PullAPIWrapper#executeHook`).
    pub(super) fn filter(
        &self,
        consumer: &DefaultMQPushConsumerImpl,
        mq: &MessageQueue,
        messages: &mut Vec<MessageExt>,
    ) {
        if self.filter_message.is_empty() {
            return;
        }
        let namespace = &consumer.config.namespace;
        let mut context = FilterMessageContext {
            consumer_group: &namespace.unwrap(consumer.group()),
            mq: &namespace.unwrap_queue(mq),
            messages,
            unit_mode: consumer.config.unit_mode,
        };
        for hook in &self.filter_message {
            call_hook(hook.hook_name(), "filter_message", || {
                hook.filter_message(&mut context)
            });
        }
    }
}

impl fmt::Debug for ConsumerHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let consume_message = self.consume_message.iter().map(|hook| hook.hook_name());
        let filter_message = self.filter_message.iter().map(|hook| hook.hook_name());
        f.debug_list()
            .entries(consume_message.chain(filter_message))
            .finish()
    }
}
