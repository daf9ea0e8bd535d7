use rocketmq_protocol::body::Permission;
use rocketmq_protocol::header::ConsumerSendMsgBackRequestHeader;
use rocketmq_protocol::mix_all::{DLQ_GROUP_TOPIC_PREFIX, retry_topic};
use rocketmq_protocol::{
    OffsetMessageId, RemotingCommand, StoredMessage, decode_properties, encode_properties,
    property, response_code,
};

use super::send::allowed_tries;
use super::{Answer, failure};
use crate::answers::{see_faq, success};
use crate::broker::Broker;

/// A message that is given back without a level waits this level and one more each time.
const FIRST_DELAY_LEVEL: i32 = 3;

/// CONSUMER_SEND_MSG_BACK (36): the message is stored once more, for a later try or for the
/// dead-letter topic (Java `AbstractSendMessageProcessor#consumerSendMsgBack`).
pub(super) fn send_back(broker: &Broker, request: &RemotingCommand) -> Answer {
    let header: ConsumerSendMsgBackRequestHeader = request.decode_header()?;
    let group = header.group.as_str();
    let Some(settings) = broker.find_group(group) else {
        let remark = see_faq(format!("subscription group not exist, {group} "));
        let code = response_code::SUBSCRIPTION_GROUP_NOT_EXIST;
        return Ok(failure(request, code, remark));
    };
    if !Permission(broker.config().broker_permission).is_writeable() {
        let remark = format!(
            "the broker[{}] sending message is forbidden",
            broker.addr.ip()
        );
        return Ok(failure(request, response_code::NO_PERMISSION, remark));
    }
    if settings.retry_queue_nums <= 0 {
        // The message is given up without a trace, as by a real broker.
        return Ok(success(request));
    }
    let mut topic = retry_topic(group);
    let mut queue_id = broker.any_queue(settings.retry_queue_nums);
    let config = broker.send_back_topic(&topic, settings.retry_queue_nums, false);
    if !config.perm.is_writeable() {
        let remark = format!("the topic[{topic}] sending message is forbidden");
        return Ok(failure(request, response_code::NO_PERMISSION, remark));
    }
    let Some(bytes) = broker.store.message_at(header.offset) else {
        let remark = format!("look message by offset failed, {}", header.offset);
        return Ok(failure(request, response_code::SYSTEM_ERROR, remark));
    };
    // A slice of the old message would keep all of it in memory, but that stays there anyhow.
    let mut message = StoredMessage::decode(bytes)?;
    let tried = message.reconsume_times;
    let allowed = allowed_tries(request, header.max_reconsume_times, &settings);
    let given_up = header.delay_level < 0 || tried >= allowed;
    let level = match header.delay_level {
        _ if given_up => 0,
        0 => FIRST_DELAY_LEVEL.saturating_add(tried),
        level => level,
    };
    if given_up {
        topic = format!("{DLQ_GROUP_TOPIC_PREFIX}{group}");
        queue_id = 0;
        broker.send_back_topic(&topic, 1, false);
    }
    message.properties = retried_properties(&message, level);
    message.topic = topic;
    message.queue_id = queue_id;
    message.reconsume_times = tried.saturating_add(1);
    if let Err(error) = broker.put(message) {
        let (code, remark) = error.refusal();
        return Ok(failure(request, code, remark));
    }
    Ok(success(request))
}

/// What a message carries on its way: the first topic and the first id stay over all tries.
fn retried_properties(message: &StoredMessage, level: i32) -> String {
    let mut properties = decode_properties(&message.properties);
    let id = OffsetMessageId {
        store_host: message.store_host,
        commit_log_offset: message.commit_log_offset,
    };
    properties
        .entry(property::RETRY_TOPIC.to_owned())
        .or_insert_with(|| message.topic.clone());
    properties
        .entry(property::ORIGIN_MESSAGE_ID.to_owned())
        .or_insert_with(|| id.to_string());
    for (name, value) in [
        (property::WAIT_STORE_MSG_OK, "false".to_owned()),
        (property::DELAY_TIME_LEVEL, level.to_string()),
    ] {
        properties.insert(name.to_owned(), value);
    }
    encode_properties(&properties)
}
