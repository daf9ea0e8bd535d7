use rocketmq_protocol::header::{SendMessageRequestHeader, SendMessageResponseHeader};
use rocketmq_protocol::mix_all::RETRY_GROUP_TOPIC_PREFIX;
use rocketmq_protocol::validators::TOPIC_MAX_LENGTH;
use rocketmq_protocol::{
    BatchElements, RemotingCommand, StoredMessage, decode_properties, encode_properties, property,
    response_code,
};

use super::send::Refused;
use crate::broker::Broker;
use crate::connection::Connection;
use crate::topic_config::TopicConfig;

/// A batch (Java `SendMessageProcessor#sendBatchMessage`): stored as single messages with
/// consecutive offsets, all or none.
///
/// Each keeps the properties that its sender gave it; those of the batch, and what brokers add to
/// single messages, are not stored.
pub(super) fn store(
    broker: &Broker,
    connection: &Connection,
    request: &RemotingCommand,
    header: &SendMessageRequestHeader,
    sys_flag: i32,
    config: &TopicConfig,
) -> Result<SendMessageResponseHeader, Refused> {
    let topic = header.topic.as_str();
    let illegal = |remark: String| Refused(response_code::MESSAGE_ILLEGAL, remark);
    if topic.len() > TOPIC_MAX_LENGTH {
        let remark = format!("message topic length too long {}", topic.len());
        return Err(illegal(remark));
    }
    if topic.starts_with(RETRY_GROUP_TOPIC_PREFIX) {
        let remark = format!("batch request does not support retry group {topic}");
        return Err(illegal(remark));
    }
    let system_error = |remark: String| Refused(response_code::SYSTEM_ERROR, remark);
    let body = request.body.clone();
    let body = body.ok_or_else(|| system_error("the batch has no body".to_owned()))?;
    let longest = broker.config().max_message_size;
    if body.len() > longest {
        let remark = format!("body of {} bytes, the most is {longest}", body.len());
        return Err(illegal(remark));
    }
    let queue_id = broker.queue_for(header.queue_id, config);
    let messages = BatchElements::new(body)
        .map(|element| {
            element.map(|element| StoredMessage {
                queue_id,
                flag: element.flag,
                queue_offset: 0,
                commit_log_offset: 0,
                sys_flag,
                born_timestamp: header.born_timestamp,
                born_host: connection.peer(),
                store_timestamp: 0,
                store_host: broker.addr,
                reconsume_times: header.reconsume_times.unwrap_or(0),
                prepared_transaction_offset: 0,
                body: element.body,
                topic: topic.to_owned(),
                properties: encode_properties(&element.properties),
            })
        })
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| system_error(error.to_string()))?;
    let placed = broker
        .put_all(messages)
        .map_err(|error| illegal(error.to_string()))?;
    let ids: Vec<&str> = placed.iter().map(|m| m.offset_msg_id.as_str()).collect();
    let properties = decode_properties(header.properties.as_deref().unwrap_or_default());
    Ok(SendMessageResponseHeader {
        msg_id: ids.join(","),
        queue_id,
        queue_offset: placed.first().map_or(0, |message| message.queue_offset),
        transaction_id: properties.get(property::UNIQ_KEY).cloned(),
        batch_uniq_id: None,
        recall_handle: None,
    })
}
