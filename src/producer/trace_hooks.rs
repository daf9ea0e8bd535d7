//! What a producer tells of its messages (Java `SendMessageTraceHookImpl`,
//! `EndTransactionTraceHookImpl`, `DefaultRecallMessageTraceHook`).

use rocketmq_protocol::header::RecallMessageRequestHeader;
use rocketmq_protocol::property;

use super::end_transaction_hook::{EndTransactionContext, EndTransactionHook};
use super::send_message_hook::{MessageType, SendMessageContext, SendMessageHook};
use super::send_result::{DEFAULT_REGION, SendStatus};
use crate::client::RecallReply;
use crate::client_config::Namespace;
use crate::sync::{Arc, system_time_millis};
use crate::trace::{AsyncTraceDispatcher, TraceBean, TraceContext, TraceType};

#[derive(Debug)]
pub(super) struct SendMessageTraceHookImpl(pub(super) Arc<AsyncTraceDispatcher>);

impl SendMessageHook for SendMessageTraceHookImpl {
    fn hook_name(&self) -> &str {
        "SendMessageTraceHook"
    }

    fn send_message_before(&self, context: &mut SendMessageContext) {
        let message = context.message();
        if self.0.is_trace_topic(message.topic()) {
            return;
        }
        let group = context.producer_group().to_owned();
        let mut trace = TraceContext::new(TraceType::Pub, system_time_millis(), group);
        trace.beans.push(TraceBean {
            topic: message.topic().to_owned(),
            tags: message.tags().map(str::to_owned),
            keys: message.keys().map(str::to_owned),
            store_host: context.broker_addr().to_owned(),
            body_length: message.body().len(),
            msg_type: context.msg_type().ordinal(),
            ..TraceBean::default()
        });
        context.trace = Some(trace);
    }

    fn send_message_after(&self, context: &mut SendMessageContext) {
        let Some(mut trace) = context.trace.take() else {
            return;
        };
        let Some(result) = context.send_result().filter(|result| result.trace_on) else {
            return;
        };
        trace.cost_time = system_time_millis() - trace.time_stamp;
        trace.success = result.send_status == SendStatus::SendOk;
        trace.region_id = Some(result.region_id.clone());
        for bean in &mut trace.beans {
            bean.msg_id.clone_from(&result.msg_id);
            bean.offset_msg_id.clone_from(&result.offset_msg_id);
        }
        self.0.append(trace);
    }
}

#[derive(Debug)]
pub(super) struct EndTransactionTraceHookImpl(pub(super) Arc<AsyncTraceDispatcher>);

impl EndTransactionHook for EndTransactionTraceHookImpl {
    fn hook_name(&self) -> &str {
        "EndTransactionTraceHook"
    }

    fn end_transaction(&self, context: &EndTransactionContext<'_>) {
        let message = context.message();
        if self.0.is_trace_topic(message.topic()) {
            return;
        }
        let region = message.property(property::MSG_REGION);
        let region = region.filter(|region| !region.is_empty());
        let group = context.producer_group().to_owned();
        let mut trace = TraceContext::new(TraceType::EndTransaction, system_time_millis(), group);
        trace.region_id = Some(region.unwrap_or(DEFAULT_REGION).to_owned());
        trace.beans.push(TraceBean {
            topic: message.topic().to_owned(),
            msg_id: context.msg_id().to_owned(),
            tags: message.tags().map(str::to_owned),
            keys: message.keys().map(str::to_owned),
            store_host: context.broker_addr().to_owned(),
            msg_type: MessageType::TransMsgCommit.ordinal(),
            transaction_id: context.transaction_id().map(str::to_owned),
            transaction_state: context.transaction_state().name(),
            from_transaction_check: context.is_from_transaction_check(),
            ..TraceBean::default()
        });
        self.0.append(trace);
    }
}

/// Tells that a message was taken back, or could not be.
pub(super) fn tell_of_recall(
    dispatcher: &AsyncTraceDispatcher,
    header: &RecallMessageRequestHeader,
    namespace: &Namespace,
    msg_id: &str,
    reply: &RecallReply,
) {
    let group = header.producer_group.as_deref().unwrap_or_default();
    let group = namespace.unwrap(group).into_owned();
    let mut trace = TraceContext::new(TraceType::Recall, system_time_millis(), group);
    trace.region_id.clone_from(&reply.region_id);
    trace.success = reply.outcome.is_ok();
    trace.beans.push(TraceBean {
        topic: namespace.unwrap(&header.topic).into_owned(),
        msg_id: msg_id.to_owned(),
        ..TraceBean::default()
    });
    dispatcher.append(trace);
}

#[cfg(test)]
mod tests {
    use rocketmq_protocol::{Message, MessageQueue, Properties};
    use serde::Deserialize;

    use super::*;
    use crate::producer::send_message_hook::CommunicationMode;
    use crate::producer::send_result::SendResult;
    use crate::trace::{not_started, vectors};

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct Line {
        group: String,
        topic: String,
        body_length: usize,
        properties: Properties,
        broker_addr: String,
        msg_type: i32,
        send_status: Option<String>,
        msg_id: Option<String>,
        offset_msg_id: Option<String>,
        region_id: Option<String>,
        trace_on: Option<bool>,
        records: Vec<String>,
    }

    fn context(line: &Line) -> SendMessageContext {
        let kinds = [
            MessageType::NormalMsg,
            MessageType::TransMsgHalf,
            MessageType::TransMsgCommit,
            MessageType::DelayMsg,
            MessageType::OrderMsg,
        ];
        let body = vec![0_u8; line.body_length];
        let properties = line.properties.clone();
        SendMessageContext {
            producer_group: line.group.clone(),
            namespace: None,
            message: Message::from_parts(line.topic.as_str(), 0, properties, body),
            mq: MessageQueue::new(line.topic.as_str(), "b", 0),
            broker_addr: line.broker_addr.clone(),
            born_host: String::new(),
            communication_mode: CommunicationMode::Sync,
            msg_type: kinds[line.msg_type as usize],
            outcome: None,
            props: Properties::new(),
            mq_trace_context: None,
            trace: None,
            has_new_properties: false,
            most_bytes_of_properties: 0,
        }
    }

    fn result(line: &Line) -> Option<SendResult> {
        let statuses = [
            SendStatus::SendOk,
            SendStatus::FlushDiskTimeout,
            SendStatus::FlushSlaveTimeout,
            SendStatus::SlaveNotAvailable,
        ];
        let name = line.send_status.as_deref()?;
        let mut statuses = statuses.into_iter();
        Some(SendResult {
            send_status: statuses.find(|status| status.name() == name)?,
            msg_id: line.msg_id.clone()?,
            offset_msg_id: line.offset_msg_id.clone()?,
            message_queue: MessageQueue::new(line.topic.as_str(), "b", 0),
            queue_offset: 0,
            transaction_id: None,
            recall_handle: None,
            region_id: line.region_id.clone()?,
            trace_on: line.trace_on?,
        })
    }

    /// The lines of `tests/vectors/trace_send_hook.jsonl`.
    #[test]
    fn sends_are_told_of_as_by_java() {
        let dispatcher = not_started::dispatcher("TraceTopic");
        let hook = SendMessageTraceHookImpl(Arc::clone(&dispatcher));
        let lines = vectors::check("trace_send_hook.jsonl", |line: Line| {
            let mut context = context(&line);
            hook.send_message_before(&mut context);
            context.outcome = Some(Ok(result(&line)));
            hook.send_message_after(&mut context);
            assert_eq!(not_started::timeless(&dispatcher), line.records);
        });
        assert!(lines >= 50, "{lines} lines");
    }
}
