//! What a consumer tells of the calls of its listener (Java `ConsumeMessageTraceHookImpl`).

use rocketmq_protocol::{MessageExt, property};

use super::consume_message_hook::{ConsumeMessageContext, ConsumeMessageHook};
use crate::producer::message_client_id_setter::create_uniq_id;
use crate::sync::{Arc, system_time_millis};
use crate::trace::{AsyncTraceDispatcher, TraceBean, TraceContext, TraceType};

#[derive(Debug)]
pub(super) struct ConsumeMessageTraceHookImpl(pub(super) Arc<AsyncTraceDispatcher>);

impl ConsumeMessageTraceHookImpl {
    /// Java's tells of the trace topic's messages too, and would go on for ever.
    fn is_told_of(&self, message: &MessageExt) -> bool {
        message.property(property::TRACE_SWITCH) != Some("false")
            && !self.0.is_trace_topic(message.topic())
    }
}

impl ConsumeMessageHook for ConsumeMessageTraceHookImpl {
    fn hook_name(&self) -> &str {
        "ConsumeMessageTraceHook"
    }

    fn consume_message_before(&self, context: &mut ConsumeMessageContext<'_>) {
        let group = context.consumer_group().to_owned();
        let mut trace = TraceContext::new(TraceType::SubBefore, system_time_millis(), group);
        for message in context.messages() {
            if self.is_told_of(message) {
                // They have one region, that of the queue's broker.
                let region = message.property(property::MSG_REGION);
                trace.region_id = region.map(str::to_owned);
                trace.beans.push(bean_of(message));
            }
        }
        if !trace.beans.is_empty() {
            trace.request_id = create_uniq_id();
            self.0.append(trace.clone());
            context.trace = Some(trace);
        }
    }

    fn consume_message_after(&self, context: &mut ConsumeMessageContext<'_>) {
        let Some(before) = context.trace.take() else {
            return;
        };
        let now = system_time_millis();
        let messages = i64::try_from(context.messages().len()).unwrap_or(i64::MAX);
        self.0.append(TraceContext {
            trace_type: TraceType::SubAfter,
            time_stamp: now,
            cost_time: (now - before.time_stamp) / messages.max(1),
            success: context.is_success(),
            context_code: context.return_type().map_or(0, |ended| ended.ordinal()),
            ..before
        });
    }
}

fn bean_of(message: &MessageExt) -> TraceBean {
    TraceBean {
        topic: message.topic().to_owned(),
        msg_id: message.msg_id().to_owned(),
        tags: message.tags().map(str::to_owned),
        keys: message.keys().map(str::to_owned),
        body_length: message.store_size(),
        retry_times: message.reconsume_times(),
        ..TraceBean::default()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use bytes::Bytes;
    use rocketmq_protocol::{MessageQueue, Properties, StoredMessage};
    use serde::Deserialize;

    use super::*;
    use crate::consumer::consume_message_hook::ConsumeReturnType;
    use crate::consumer::listener::ConsumeConcurrentlyStatus;
    use crate::trace::{not_started, vectors};

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct Line {
        group: String,
        messages: Vec<Consumed>,
        success: bool,
        return_type: String,
        records: Vec<String>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct Consumed {
        topic: String,
        msg_id: String,
        reconsume_times: i32,
        properties: Properties,
    }

    fn message(of: &Consumed) -> MessageExt {
        let mut properties = of.properties.clone();
        properties.insert(property::UNIQ_KEY.to_owned(), of.msg_id.clone());
        let host = SocketAddr::from(([127, 0, 0, 1], 1));
        let stored = StoredMessage {
            queue_id: 0,
            flag: 0,
            queue_offset: 0,
            commit_log_offset: 0,
            sys_flag: 0,
            born_timestamp: 0,
            born_host: host,
            store_timestamp: 0,
            store_host: host,
            reconsume_times: of.reconsume_times,
            prepared_transaction_offset: 0,
            body: Bytes::new(),
            topic: of.topic.clone(),
            properties: String::new(),
        };
        let mut message = stored.into_message_ext(0).unwrap();
        for (name, value) in properties {
            message.message_mut().put_property(&name, value);
        }
        message
    }

    /// The lines of `tests/vectors/trace_consume_hook.jsonl`.
    #[test]
    fn calls_are_told_of_as_by_java() {
        let dispatcher = not_started::dispatcher("TraceTopic");
        let hook = ConsumeMessageTraceHookImpl(Arc::clone(&dispatcher));
        let mq = MessageQueue::new("t", "b", 0);
        let lines = vectors::check("trace_consume_hook.jsonl", |line: Line| {
            let messages: Vec<MessageExt> = line.messages.iter().map(message).collect();
            let mut context = ConsumeMessageContext::new(line.group, None, &mq, &messages);
            hook.consume_message_before(&mut context);
            context.status = Some(if line.success {
                ConsumeConcurrentlyStatus::ConsumeSuccess
            } else {
                ConsumeConcurrentlyStatus::ReconsumeLater
            });
            let types = [
                ConsumeReturnType::Success,
                ConsumeReturnType::TimeOut,
                ConsumeReturnType::Exception,
                ConsumeReturnType::Failed,
            ];
            let mut types = types.into_iter();
            context.return_type = types.find(|ended| ended.name() == line.return_type);
            assert!(context.return_type.is_some());
            hook.consume_message_after(&mut context);
            assert_eq!(not_started::timeless(&dispatcher), line.records);
        });
        assert!(lines >= 50, "{lines} lines");
    }
}
