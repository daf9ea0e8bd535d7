use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};

use rocketmq_protocol::body::{Permission, SubscriptionGroupConfig};
use rocketmq_protocol::header::{
    SendMessageRequestHeader, SendMessageRequestHeaderV2, SendMessageResponseHeader,
};
use rocketmq_protocol::mix_all::{
    AUTO_CREATE_TOPIC_KEY_TOPIC, DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX,
};
use rocketmq_protocol::validators::check_sendable;
use rocketmq_protocol::{
    Properties, RecallHandle, RemotingCommand, StoredMessage, UniqKeyParts, decode_properties,
    encode_properties, property, response_code, sys_flag,
};

use super::{Answer, failure, send_batch};
use crate::answers::{see_faq, success};
use crate::broker::{Broker, CLUSTER_NAME};
use crate::connection::Connection;
use crate::store::now_millis;
use crate::topic_config::{TopicConfig, validate_topic};
use crate::transactions::HALF_TOPIC;

pub(super) const REGION: &str = "DefaultRegion";
const MAX_PROPERTIES: usize = i16::MAX as usize;
/// Senders older than this do not know `maxReconsumeTimes` (Java `V3_4_9`).
const MAX_RECONSUME_TIMES_VERSION: i32 = 121;

const POP_CHECK_POINT: &str = "POP_CK";

/// SEND_MESSAGE (10).
pub(super) fn send(broker: &Broker, connection: &Connection, request: &RemotingCommand) -> Answer {
    let header = request.decode_header()?;
    Ok(process(broker, connection, request, header))
}

/// SEND_MESSAGE_V2 (310) and SEND_BATCH_MESSAGE (320), which have the same header.
pub(super) fn send_v2(
    broker: &Broker,
    connection: &Connection,
    request: &RemotingCommand,
) -> Answer {
    let SendMessageRequestHeaderV2(header) = request.decode_header()?;
    Ok(process(broker, connection, request, header))
}

/// Region and trace switch stand in every answer, errors included.
fn process(
    broker: &Broker,
    connection: &Connection,
    request: &RemotingCommand,
    header: SendMessageRequestHeader,
) -> RemotingCommand {
    let batch = header.batch == Some(true);
    let result = check_topic(broker, connection, &header).and_then(|config| {
        let mut flags = header.sys_flag;
        if config.multi_tag {
            flags |= sys_flag::MULTI_TAGS;
        }
        if batch {
            return send_batch::store(broker, connection, request, &header, flags, &config);
        }
        store(broker, connection, request, header, flags, &config)
    });
    let mut response = match result {
        Ok(header) => success(request).with_header(&header),
        Err(Refused(code, remark)) => failure(request, code, remark),
    };
    response.ext_fields.set(property::MSG_REGION, REGION);
    let trace = broker.config().trace_on.to_string();
    response.ext_fields.set(property::TRACE_SWITCH, trace);
    response
}

/// A code and a remark.
pub(super) struct Refused(pub(super) i32, pub(super) String);

/// Java `AbstractSendMessageProcessor#msgCheck`. The topic's write permission is not looked at, and
/// the broker's for ordered topics only.
pub(super) fn check_topic(
    broker: &Broker,
    connection: &Connection,
    header: &SendMessageRequestHeader,
) -> Result<TopicConfig, Refused> {
    let topic = header.topic.as_str();
    let permission = Permission(broker.config().broker_permission);
    if !permission.is_writeable() && broker.store.topic(topic).is_some_and(|known| known.order) {
        let remark = format!(
            "the broker[{}] sending message is forbidden",
            broker.addr.ip()
        );
        return Err(Refused(response_code::NO_PERMISSION, remark));
    }
    validate_topic(topic)
        .map_err(|error| Refused(response_code::INVALID_PARAMETER, error.to_string()))?;
    check_sendable(topic).map_err(|_| {
        let remark = format!("Sending message to topic[{topic}] is forbidden.");
        Refused(response_code::NO_PERMISSION, remark)
    })?;
    let config = find_or_create(broker, header).ok_or_else(|| {
        let remark = see_faq(format!("topic[{topic}] not exist, apply first please!"));
        Refused(response_code::TOPIC_NOT_EXIST, remark)
    })?;
    if header.queue_id >= config.queue_count() {
        let remark = format!(
            "request queueId[{}] is illegal, topic[{topic}] has {} queues for writing and {} for \
             reading, Producer: {}",
            header.queue_id,
            config.write_queue_nums,
            config.read_queue_nums,
            connection.peer()
        );
        return Err(Refused(response_code::INVALID_PARAMETER, remark));
    }
    Ok(config)
}

fn find_or_create(broker: &Broker, header: &SendMessageRequestHeader) -> Option<TopicConfig> {
    let topic = header.topic.as_str();
    if let Some(config) = broker.store.topic(topic) {
        return Some(config);
    }
    let template = broker.store.topic(&header.default_topic);
    let is_template = header.default_topic == AUTO_CREATE_TOPIC_KEY_TOPIC;
    let config = template
        .filter(|_| broker.config().auto_create_topic || !is_template)
        .and_then(|template| template.inherit(header.default_topic_queue_nums))
        .or_else(|| {
            let retry = topic.starts_with(RETRY_GROUP_TOPIC_PREFIX);
            retry.then(|| TopicConfig::new(1, Permission::READ_WRITE))
        })?;
    log::debug!("{}: a send creates topic {topic}", broker.name);
    Some(broker.store.topic_or_create(topic, config))
}

/// Java `SendMessageProcessor#sendMessage`.
fn store(
    broker: &Broker,
    connection: &Connection,
    request: &RemotingCommand,
    header: SendMessageRequestHeader,
    sys_flag: i32,
    config: &TopicConfig,
) -> Result<SendMessageResponseHeader, Refused> {
    let mut properties = decode_properties(header.properties.as_deref().unwrap_or_default());
    properties.remove(POP_CHECK_POINT);
    let queue_id = broker.queue_for(header.queue_id, config);
    let (topic, place) = if goes_to_dead_letters(broker, request, &header)? {
        properties.insert(property::DELAY_TIME_LEVEL.to_owned(), "-1".to_owned());
        (dead_letter_topic(broker, &header.topic), 0)
    } else {
        (header.topic.clone(), queue_id)
    };
    let uniq_key = match properties.get(property::UNIQ_KEY) {
        Some(key) => key.clone(),
        None => new_uniq_key(broker.addr.ip()),
    };
    let settings = broker.config();
    let half = is_half(&properties, header.reconsume_times);
    if half && settings.reject_transaction_message {
        let remark = format!(
            "the broker[{}] sending transaction message is forbidden",
            broker.addr.ip()
        );
        return Err(Refused(response_code::NO_PERMISSION, remark));
    }
    let trace = if settings.trace_on { "true" } else { "false" };
    for (name, value) in [
        (property::UNIQ_KEY, uniq_key.as_str()),
        (property::MSG_REGION, REGION),
        (property::TRACE_SWITCH, trace),
        (property::CLUSTER, CLUSTER_NAME),
    ] {
        properties.insert(name.to_owned(), value.to_owned());
    }
    let properties = encode_properties(&properties);
    let Some(body) = request.body.clone() else {
        let remark = "the message has no body".to_owned();
        return Err(Refused(response_code::SYSTEM_ERROR, remark));
    };
    if body.len() > settings.max_message_size || properties.len() > MAX_PROPERTIES {
        let remark = format!(
            "the message is illegal: body of {} bytes, the most is {}; properties of {} bytes, the \
             most is {MAX_PROPERTIES}",
            body.len(),
            settings.max_message_size,
            properties.len()
        );
        return Err(Refused(response_code::MESSAGE_ILLEGAL, remark));
    }
    let message = StoredMessage {
        queue_id: place,
        flag: header.flag,
        queue_offset: 0,
        commit_log_offset: 0,
        sys_flag,
        born_timestamp: header.born_timestamp,
        born_host: connection.peer(),
        store_timestamp: 0,
        store_host: broker.addr,
        reconsume_times: header.reconsume_times.unwrap_or(0),
        prepared_transaction_offset: 0,
        body,
        topic,
        properties,
    };
    let topic = if half { HALF_TOPIC } else { &message.topic }.to_owned();
    let placed = if half {
        broker.put_half(message)
    } else {
        broker.put(message)
    };
    let placed = placed.map_err(|error| {
        let (code, remark) = error.refusal();
        Refused(code, remark)
    })?;
    let recall_handle = placed
        .timer_out_millis
        .filter(|_| !topic.starts_with(RETRY_GROUP_TOPIC_PREFIX))
        .map(|out_millis| RecallHandle {
            topic,
            broker_name: broker.name.to_string(),
            // The slot is rounded down, and what falls on it exactly goes one further.
            deliver_millis: out_millis + 1,
            uniq_key: uniq_key.clone(),
        });
    Ok(SendMessageResponseHeader {
        msg_id: placed.offset_msg_id,
        queue_id,
        queue_offset: placed.queue_offset,
        transaction_id: Some(uniq_key),
        batch_uniq_id: None,
        recall_handle: recall_handle.map(|handle| handle.to_string()),
    })
}

/// Whether a message waits for the end of its transaction. A delayed one that was consumed in vain
/// was committed once; old clients send such messages back as they are.
fn is_half(properties: &Properties, reconsume_times: Option<i32>) -> bool {
    let prepared = properties.get(property::TRANSACTION_PREPARED);
    let level = properties.get(property::DELAY_TIME_LEVEL);
    let level = level.and_then(|level| level.parse::<i32>().ok());
    prepared.is_some_and(|value| value.eq_ignore_ascii_case("true"))
        && !(reconsume_times.unwrap_or(0) > 0 && level.unwrap_or(0) > 0)
}

/// Whether a message that is sent to a retry topic goes to the dead letters (Java
/// `SendMessageProcessor#handleRetryAndDLQ`): it was tried too often, or the group has locked
/// queues, which is taken for an orderly consumer that gave up. Unlike with a message that is given
/// back, as many times as allowed still is allowed.
fn goes_to_dead_letters(
    broker: &Broker,
    request: &RemotingCommand,
    header: &SendMessageRequestHeader,
) -> Result<bool, Refused> {
    let Some(group) = header.topic.strip_prefix(RETRY_GROUP_TOPIC_PREFIX) else {
        return Ok(false);
    };
    let Some(config) = broker.find_group(group) else {
        let remark = see_faq(format!("subscription group not exist, {group} "));
        let code = response_code::SUBSCRIPTION_GROUP_NOT_EXIST;
        return Err(Refused(code, remark));
    };
    let allowed = allowed_tries(request, header.max_reconsume_times, &config);
    let live_time = broker.config().lock_max_live_time;
    Ok(header.reconsume_times.unwrap_or(0) > allowed
        || !broker.locks.is_lock_all_expired(group, live_time))
}

/// How often a message may be tried: what the request asks for, if its sender knows of it, or what
/// the group's settings say.
pub(super) fn allowed_tries(
    request: &RemotingCommand,
    asked: Option<i32>,
    group: &SubscriptionGroupConfig,
) -> i32 {
    asked
        .filter(|_| request.version >= MAX_RECONSUME_TIMES_VERSION)
        .unwrap_or(group.retry_max_times)
}

/// The dead-letter topic of a retry topic's group, created if it is new.
fn dead_letter_topic(broker: &Broker, retry_topic: &str) -> String {
    let group = retry_topic
        .strip_prefix(RETRY_GROUP_TOPIC_PREFIX)
        .unwrap_or(retry_topic);
    let topic = format!("{DLQ_GROUP_TOPIC_PREFIX}{group}");
    broker.send_back_topic(&topic, 1, false);
    topic
}

fn new_uniq_key(ip: IpAddr) -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let counter = COUNTER.fetch_add(1, Ordering::Relaxed);
    UniqKeyParts {
        ip,
        process_id: std::process::id() as u16,
        // The counter's upper half keeps keys apart that would have the same time.
        process_hash: counter >> 16,
        elapsed_millis: now_millis() as u32,
        counter: counter as u16,
    }
    .to_string()
}
