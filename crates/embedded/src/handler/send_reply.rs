use rocketmq_protocol::header::{
    ReplyMessageRequestHeader, SendMessageRequestHeader, SendMessageRequestHeaderV2,
    SendMessageResponseHeader,
};
use rocketmq_protocol::{
    RemotingCommand, StoredMessage, decode_properties, encode_properties, property, request_code,
    response_code,
};

use super::failure;
use super::send::{REGION, Refused, check_topic};
use crate::answers::{refused, success};
use crate::broker::Broker;
use crate::connection::CallEnd;
use crate::reply::Reply;
use crate::store::now_millis;

/// SEND_REPLY_MESSAGE (324) and SEND_REPLY_MESSAGE_V2 (325): the reply is pushed to the client that
/// waits for it, then stored; the sender hears what came of the push (Java
/// `ReplyMessageProcessor`).
pub(super) fn send_reply(broker: &Broker, request: RemotingCommand, reply: Reply) {
    let header = if request.code == request_code::SEND_REPLY_MESSAGE_V2 {
        let header = request.decode_header::<SendMessageRequestHeaderV2>();
        header.map(|SendMessageRequestHeaderV2(header)| header)
    } else {
        request.decode_header::<SendMessageRequestHeader>()
    };
    let header = match header {
        Ok(header) => header,
        Err(error) => return reply.send(refused(&request, &error)),
    };
    let trace_on = broker.config().trace_on;
    let config = match check_topic(broker, reply.connection(), &header) {
        Ok(config) => config,
        Err(Refused(code, remark)) => {
            let answer = failure(&request, code, remark);
            return reply.send(with_region(answer, trace_on));
        }
    };
    let queue_id = broker.queue_for(header.queue_id, &config);
    let mut properties = decode_properties(header.properties.as_deref().unwrap_or_default());
    for (name, value) in [
        (property::MSG_REGION, REGION.to_owned()),
        (property::TRACE_SWITCH, trace_on.to_string()),
    ] {
        properties.insert(name.to_owned(), value);
    }
    let message = StoredMessage {
        queue_id,
        flag: header.flag,
        queue_offset: 0,
        commit_log_offset: 0,
        // As a real broker: a reply that was compressed is stored without the word of it.
        sys_flag: 0,
        born_timestamp: header.born_timestamp,
        born_host: reply.connection().peer(),
        store_timestamp: 0,
        store_host: broker.addr,
        reconsume_times: header.reconsume_times.unwrap_or(0),
        prepared_transaction_offset: 0,
        body: request.body.clone().unwrap_or_default(),
        topic: header.topic.clone(),
        properties: encode_properties(&properties),
    };
    let Some(client_id) = properties.get(property::MESSAGE_REPLY_TO_CLIENT).cloned() else {
        let name = property::MESSAGE_REPLY_TO_CLIENT;
        let remark = format!("reply message properties[{name}] is null");
        let answer = finish(broker, &request, message, Err(remark));
        return reply.send(with_region(answer, trace_on));
    };
    let Some(client) = broker.producers.find_client(&client_id) else {
        let remark = format!("push reply message fail, channel of <{client_id}> not found.");
        let answer = finish(broker, &request, message, Err(remark));
        return reply.send(with_region(answer, trace_on));
    };
    let push = push_request(&header, &message);
    let this = broker.weak();
    let end = move |end| {
        let pushed = match end {
            CallEnd::Answer(answer) if answer.code == response_code::SUCCESS => Ok(()),
            _ => Err(format!("push reply message to {client_id}fail.")),
        };
        if let Some(broker) = this.upgrade() {
            let answer = finish(&broker, &request, message, pushed);
            reply.send(with_region(answer, trace_on));
        }
    };
    broker.call_client(&client, push, Box::new(end));
}

fn push_request(header: &SendMessageRequestHeader, message: &StoredMessage) -> RemotingCommand {
    let mut properties = decode_properties(&message.properties);
    let now = now_millis();
    properties.insert(property::PUSH_REPLY_TIME.to_owned(), now.to_string());
    let header = header.clone();
    let header = ReplyMessageRequestHeader {
        producer_group: header.producer_group,
        topic: header.topic,
        default_topic: header.default_topic,
        default_topic_queue_nums: header.default_topic_queue_nums,
        queue_id: header.queue_id,
        sys_flag: header.sys_flag,
        born_timestamp: header.born_timestamp,
        flag: header.flag,
        properties: Some(encode_properties(&properties)),
        reconsume_times: header.reconsume_times,
        unit_mode: header.unit_mode,
        born_host: message.born_host.to_string(),
        store_host: message.store_host.to_string(),
        store_timestamp: now,
    };
    RemotingCommand::request(request_code::PUSH_REPLY_MESSAGE_TO_CLIENT, &header)
        .with_body(message.body.clone())
}

/// Stores the reply, if that is wanted, and words the answer.
fn finish(
    broker: &Broker,
    request: &RemotingCommand,
    message: StoredMessage,
    pushed: Result<(), String>,
) -> RemotingCommand {
    let mut header = pushed.is_ok().then(|| SendMessageResponseHeader {
        msg_id: "0".to_owned(),
        queue_id: message.queue_id,
        ..SendMessageResponseHeader::default()
    });
    if broker.config().store_reply_message_enable {
        let queue_id = message.queue_id;
        match broker.put(message) {
            Ok(placed) => {
                header = Some(SendMessageResponseHeader {
                    msg_id: placed.offset_msg_id,
                    queue_id,
                    queue_offset: placed.queue_offset,
                    ..SendMessageResponseHeader::default()
                });
            }
            Err(error) => log::warn!("{}: reply is not stored: {error}", broker.name),
        }
    }
    let answer = match pushed {
        Ok(()) => success(request),
        Err(remark) => failure(request, response_code::SYSTEM_ERROR, remark),
    };
    match header {
        Some(header) => answer.with_header(&header),
        None => answer,
    }
}

fn with_region(mut answer: RemotingCommand, trace_on: bool) -> RemotingCommand {
    answer.ext_fields.set(property::MSG_REGION, REGION);
    answer
        .ext_fields
        .set(property::TRACE_SWITCH, trace_on.to_string());
    answer
}
