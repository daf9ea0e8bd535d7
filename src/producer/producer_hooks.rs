//! The hooks that a user gave a producer, and how they are called.

use std::fmt;

use super::check_forbidden_hook::{CheckForbiddenContext, CheckForbiddenHook};
use super::end_transaction_hook::{EndTransactionContext, EndTransactionHook};
use super::send_message_hook::{SendMessageContext, SendMessageHook};
use crate::error::{Error, Result};
use crate::service::{call_hook, catch_panic};
use crate::sync::Arc;

/// In the order in which they are called.
#[derive(Clone, Default)]
pub(super) struct ProducerHooks {
    pub(super) send_message: Vec<Arc<dyn SendMessageHook>>,
    pub(super) check_forbidden: Vec<Arc<dyn CheckForbiddenHook>>,
    pub(super) end_transaction: Vec<Arc<dyn EndTransactionHook>>,
}

impl ProducerHooks {
    /// Whether any hook is called for a send.
    pub(super) fn are_of_sends(&self) -> bool {
        !self.send_message.is_empty() || !self.check_forbidden.is_empty()
    }

    /// Java `DefaultMQProducerImpl#executeCheckForbiddenHook`.
    pub(super) fn check_forbidden(&self, context: &CheckForbiddenContext<'_>) -> Result<()> {
        for hook in &self.check_forbidden {
            let reason = match catch_panic(|| hook.check_forbidden(context)) {
                Ok(Ok(())) => continue,
                Ok(Err(reason)) => format!("forbids it: {reason}"),
                Err(reason) => format!("panicked: {reason}"),
            };
            return Err(Error::MQClient {
                code: None,
                reason: format!(
                    "message for {} not sent, the hook {} {reason}",
                    context.mq(),
                    hook.hook_name()
                ),
                source: None,
            });
        }
        Ok(())
    }

    pub(super) fn before(&self, context: &mut SendMessageContext) {
        for hook in &self.send_message {
            call_hook(hook.hook_name(), "send_message_before", || {
                hook.send_message_before(context)
            });
        }
    }

    pub(super) fn after(&self, context: &mut SendMessageContext) {
        for hook in &self.send_message {
            call_hook(hook.hook_name(), "send_message_after", || {
                hook.send_message_after(context)
            });
        }
    }

    /// Java `DefaultMQProducerImpl#executeEndTransactionHook`.
    pub(super) fn end_transaction(&self, context: &EndTransactionContext<'_>) {
        for hook in &self.end_transaction {
            call_hook(hook.hook_name(), "end_transaction", || {
                hook.end_transaction(context)
            });
        }
    }
}

impl fmt::Debug for ProducerHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let send_message = self.send_message.iter().map(|hook| hook.hook_name());
        let check_forbidden = self.check_forbidden.iter().map(|hook| hook.hook_name());
        let end_transaction = self.end_transaction.iter().map(|hook| hook.hook_name());
        f.debug_list()
            .entries(send_message.chain(check_forbidden).chain(end_transaction))
            .finish()
    }
}
