//! A send between the hooks that a user has around it.

use rocketmq_protocol::{MessageQueue, Properties};

use super::check_forbidden_hook::CheckForbiddenContext;
use super::default_mq_producer_impl::DefaultMQProducerImpl;
use super::producer_hooks::ProducerHooks;
use super::send_kernel::{
    MAX_PROPERTIES_LENGTH, Master, Prepared, send_kernel_oneway, send_kernel_to,
};
use super::send_message_hook::{CommunicationMode, MessageType, SendMessageContext};
use super::send_result::SendResult;
use crate::client::{Client, MQClientInstance};
use crate::error::{Error, Result};
use crate::sync::{Arc, Deadline};

/// An attempt that is about to be made, for hooks to look at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) instance: &'a MQClientInstance,
    pub(super) master: &'a Master,
    pub(super) mq: &'a MessageQueue,
    pub(super) mode: CommunicationMode,
    pub(super) deadline: Deadline,
}

/// A send that hooks were told of; they are told of its end.
#[derive(Debug)]
pub(super) struct HookedSend {
    hooks: Arc<ProducerHooks>,
    context: SendMessageContext,
}

impl HookedSend {
    /// The message with the properties that hooks have put into it, if any.
    pub(super) fn changed(&self, prepared: &Prepared) -> Option<Prepared> {
        self.context
            .has_new_properties
            .then(|| prepared.with_properties(self.context.message.properties()))
    }

    pub(super) fn end(mut self, outcome: Result<Option<SendResult>>) {
        self.context.outcome = Some(outcome);
        self.hooks.after(&mut self.context);
    }
}

impl DefaultMQProducerImpl {
    /// The hooks of sends, if there are any.
    pub(super) fn send_hooks(&self) -> Option<&Arc<ProducerHooks>> {
        Some(&self.config.hooks).filter(|hooks| hooks.are_of_sends())
    }

    /// One attempt and its answer, with the hooks around it.
    pub(super) fn send_kernel(
        &self,
        instance: &MQClientInstance,
        prepared: &Prepared,
        mq: &MessageQueue,
        deadline: Deadline,
    ) -> Result<SendResult> {
        let place = Place {
            instance,
            master: &Master::find(instance, prepared.topic(), mq, deadline)?,
            mq,
            mode: CommunicationMode::Sync,
            deadline,
        };
        let send =
            |prepared: &Prepared| send_kernel_to(instance, prepared, place.master, mq, deadline);
        self.between_hooks(prepared, &place, send, |result| Some(result.clone()))
    }

    /// One attempt without an answer, with the hooks around it.
    pub(super) fn send_kernel_oneway(
        &self,
        instance: &MQClientInstance,
        prepared: &Prepared,
        mq: &MessageQueue,
        deadline: Deadline,
    ) -> Result<()> {
        let place = Place {
            instance,
            master: &Master::find(instance, prepared.topic(), mq, deadline)?,
            mq,
            mode: CommunicationMode::Oneway,
            deadline,
        };
        let send = |prepared: &Prepared| send_kernel_oneway(instance, prepared, place.master, mq);
        self.between_hooks(prepared, &place, send, |()| None)
    }

    /// Sends between the hooks, if there are any; they are shown `result_of` what came of it.
    fn between_hooks<T>(
        &self,
        prepared: &Prepared,
        place: &Place<'_>,
        send: impl FnOnce(&Prepared) -> Result<T>,
        result_of: impl FnOnce(&T) -> Option<SendResult>,
    ) -> Result<T> {
        let Some(hooks) = self.send_hooks() else {
            return send(prepared);
        };
        self.check_forbidden(hooks, prepared, place)?;
        let (hooked, in_time) = self.before_send(hooks, prepared, place);
        let changed = hooked.changed(prepared);
        let outcome = in_time.and_then(|()| send(changed.as_ref().unwrap_or(prepared)));
        hooked.end(match &outcome {
            Ok(sent) => Ok(result_of(sent)),
            Err(error) => Err(error.clone()),
        });
        outcome
    }

    /// Has the hooks asked whether the message may go there.
    pub(super) fn check_forbidden(
        &self,
        hooks: &ProducerHooks,
        prepared: &Prepared,
        place: &Place<'_>,
    ) -> Result<()> {
        if hooks.check_forbidden.is_empty() {
            return Ok(());
        }
        let send = &self.config.send;
        hooks.check_forbidden(&CheckForbiddenContext {
            name_srv_addr: self.member().name_servers(),
            group: &send.namespace.unwrap(&send.producer_group),
            message: &prepared.shown(),
            mq: &send.namespace.unwrap_queue(place.mq),
            broker_addr: &place.instance.api().vip(place.master.addr()),
            communication_mode: place.mode,
            unit_mode: send.unit_mode,
        })
    }

    /// Tells the hooks of a send, and whether they have left time for it.
    pub(super) fn before_send(
        &self,
        hooks: &Arc<ProducerHooks>,
        prepared: &Prepared,
        place: &Place<'_>,
    ) -> (HookedSend, Result<()>) {
        let send = &self.config.send;
        let client_id = place.instance.client_id();
        let mut context = SendMessageContext {
            producer_group: send.namespace.unwrap(&send.producer_group).into_owned(),
            namespace: send.namespace.name().map(str::to_owned),
            message: prepared.shown(),
            mq: send.namespace.unwrap_queue(place.mq),
            broker_addr: place.instance.api().vip(place.master.addr()).into_owned(),
            born_host: client_id.split('@').next().unwrap_or(client_id).to_owned(),
            communication_mode: place.mode,
            msg_type: MessageType::NormalMsg,
            outcome: None,
            props: Properties::new(),
            mq_trace_context: None,
            trace: None,
            has_new_properties: false,
            most_bytes_of_properties: MAX_PROPERTIES_LENGTH,
        }
        .settle_msg_type();
        hooks.before(&mut context);
        let in_time = if place.deadline.has_passed() {
            Err(Error::RemotingTooMuchRequest {
                reason: format!(
                    "sending to topic {}: the hooks before the send have used up its time",
                    prepared.topic()
                ),
            })
        } else {
            Ok(())
        };
        let hooks = Arc::clone(hooks);
        (HookedSend { hooks, context }, in_time)
    }
}
