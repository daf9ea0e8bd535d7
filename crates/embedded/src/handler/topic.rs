use std::collections::BTreeMap;

use rocketmq_protocol::body::{DataVersion, JsonBody, Permission, TopicConfigSerializeWrapper};
use rocketmq_protocol::header::{CreateTopicRequestHeader, GetTopicConfigRequestHeader};
use rocketmq_protocol::{RemotingCommand, mix_all, response_code, validators};

use super::{Answer, failure};
use crate::answers::success;
use crate::broker::Broker;
use crate::node::TRACE_TOPIC;
use crate::topic_config::{MULTI_TAG, TopicConfig, validate_topic};

/// Topics that exist beside those that nobody may send to, and that nobody may create.
const SYSTEM_TOPICS: [&str; 4] = [
    mix_all::AUTO_CREATE_TOPIC_KEY_TOPIC,
    "BenchmarkTest",
    TRACE_TOPIC,
    "CHECKPOINT_TOPIC",
];
const SYSTEM_TOPIC_PREFIX: &str = "rmq_sys_";

/// The attributes that a topic may have (Java `TopicAttributes`).
const ATTRIBUTES: [&str; 4] = [
    "queue.type",
    "cleanup.policy",
    "message.type",
    "delete.reserve.time",
];

/// The most queues that a topic is given; a count is only a number on the wire.
const MAX_QUEUES: i32 = 65_536;

/// UPDATE_AND_CREATE_TOPIC (17). An impossible permission is stored as it is, as by a real broker.
/// Fewer queues than before hide what is in the others; it comes back with them.
pub(super) fn create(broker: &Broker, request: &RemotingCommand) -> Answer {
    let header: CreateTopicRequestHeader = request.decode_header()?;
    let refuse = |remark: String| Ok(failure(request, response_code::INVALID_PARAMETER, remark));
    let topic = header.topic.as_str();
    if let Err(error) = validate_topic(topic) {
        return refuse(error.to_string());
    }
    if is_system_topic(topic) {
        return refuse(format!("The topic[{topic}] is conflict with system topic."));
    }
    for queues in [header.read_queue_nums, header.write_queue_nums] {
        if !(0..=MAX_QUEUES).contains(&queues) {
            return refuse(format!("topic {topic} cannot have {queues} queues"));
        }
    }
    let known = broker.store.topic(topic);
    let known = known.map(|config| config.attributes).unwrap_or_default();
    let change = header.attributes.as_deref().unwrap_or_default();
    let attributes = match changed_attributes(known, change) {
        Ok(attributes) => attributes,
        Err(remark) => return Ok(failure(request, response_code::SYSTEM_ERROR, remark)),
    };
    let config = TopicConfig {
        read_queue_nums: header.read_queue_nums,
        write_queue_nums: header.write_queue_nums,
        perm: Permission(header.perm),
        topic_sys_flag: header.topic_sys_flag.unwrap_or(0),
        order: header.order.unwrap_or(false),
        multi_tag: header.topic_filter_type.as_deref() == Some(MULTI_TAG),
        attributes,
    };
    broker.store.set_topic(topic, config);
    Ok(success(request))
}

/// Attributes after a change such as `+a=1,-b` (Java `AttributeUtil#alterCurrentAttributes`).
fn changed_attributes(
    mut attributes: BTreeMap<String, String>,
    change: &str,
) -> Result<BTreeMap<String, String>, String> {
    for word in change.split(',').filter(|word| !word.is_empty()) {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let known = |name: &str| {
            let known = ATTRIBUTES.contains(&name);
            known
                .then_some(())
                .ok_or_else(|| format!("unsupported key: {name}"))
        };
        if let Some((name, value)) = name.strip_prefix('+').zip(value) {
            known(name)?;
            attributes.insert(name.to_owned(), value.to_owned());
        } else if let Some(name) = name.strip_prefix('-') {
            known(name)?;
            attributes.remove(name);
        } else {
            return Err(format!("wrong format of attribute {word}"));
        }
    }
    Ok(attributes)
}

/// DELETE_TOPIC_IN_BROKER (215): its messages and all offsets on it, too. An unknown topic is
/// deleted as well as any other.
pub(super) fn delete(broker: &Broker, request: &RemotingCommand) -> Answer {
    let topic = request.ext_fields.get("topic").unwrap_or_default();
    let refuse = |remark: String| Ok(failure(request, response_code::INVALID_PARAMETER, remark));
    if topic.trim().is_empty() {
        return refuse("The specified topic is blank.".to_owned());
    }
    if is_system_topic(topic) {
        return refuse(format!("The topic[{topic}] is conflict with system topic."));
    }
    broker.delete_topic(topic);
    Ok(success(request))
}

/// GET_TOPIC_CONFIG (351).
pub(super) fn get(broker: &Broker, request: &RemotingCommand) -> Answer {
    let header: GetTopicConfigRequestHeader = request.decode_header()?;
    let topic = header.topic.as_str();
    let Some(config) = broker.store.topic(topic) else {
        let remark = format!("No topic in this broker. topic: {topic}");
        return Ok(failure(request, response_code::TOPIC_NOT_EXIST, remark));
    };
    Ok(success(request).with_body(config.to_body(topic).to_json()?))
}

/// GET_ALL_TOPIC_CONFIG (21).
pub(super) fn all(broker: &Broker, request: &RemotingCommand) -> Answer {
    let (topics, data_version) = broker.store.topics();
    let count = topics.len();
    let body = TopicConfigSerializeWrapper {
        data_version,
        topic_config_table: topics
            .into_iter()
            .map(|(topic, config)| (topic.to_string(), config.to_body(&topic)))
            .collect(),
        mapping_data_version: Some(DataVersion::default()),
        topic_queue_mapping_detail_map: Some(BTreeMap::new()),
        topic_queue_mapping_info_map: Some(BTreeMap::new()),
    };
    let mut response = success(request).with_body(body.to_json()?);
    response.ext_fields.set("totalTopicNum", count.to_string());
    Ok(response)
}

fn is_system_topic(topic: &str) -> bool {
    SYSTEM_TOPICS.contains(&topic)
        || topic.starts_with(SYSTEM_TOPIC_PREFIX)
        || validators::check_sendable(topic).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_added_and_taken_away() {
        let one = changed_attributes(BTreeMap::new(), "+message.type=FIFO").unwrap();
        assert_eq!(one["message.type"], "FIFO");
        let two = changed_attributes(one, "+cleanup.policy=DELETE,-message.type").unwrap();
        assert_eq!(two.keys().collect::<Vec<_>>(), ["cleanup.policy"]);
        for wrong in ["message.type=FIFO", "+other=1", "-other", "+message.type"] {
            assert!(
                changed_attributes(BTreeMap::new(), wrong).is_err(),
                "{wrong}"
            );
        }
    }
}
