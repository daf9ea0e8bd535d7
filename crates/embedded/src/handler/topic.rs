use rocketmq_protocol::body::Permission;
use rocketmq_protocol::header::CreateTopicRequestHeader;
use rocketmq_protocol::{RemotingCommand, mix_all, response_code, validators};

use super::{Answer, failure};
use crate::broker::Broker;
use crate::name_server::success;
use crate::topic_config::{TopicConfig, validate_topic};

/// Topics that exist beside those that nobody may send to, and that nobody may create.
const SYSTEM_TOPICS: [&str; 4] = [
    mix_all::AUTO_CREATE_TOPIC_KEY_TOPIC,
    "BenchmarkTest",
    "RMQ_SYS_TRACE_TOPIC",
    "CHECKPOINT_TOPIC",
];
const SYSTEM_TOPIC_PREFIX: &str = "rmq_sys_";

/// The most queues that a topic is given; a count is only a number on the wire.
const MAX_QUEUES: i32 = 65_536;

/// UPDATE_AND_CREATE_TOPIC (17). An impossible permission is stored as it is, as by a real broker.
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
    let config = TopicConfig {
        read_queue_nums: header.read_queue_nums,
        write_queue_nums: header.write_queue_nums,
        perm: Permission(header.perm),
        topic_sys_flag: header.topic_sys_flag.unwrap_or(0),
        order: header.order.unwrap_or(false),
    };
    broker.store.set_topic(topic, config);
    Ok(success(request))
}

fn is_system_topic(topic: &str) -> bool {
    SYSTEM_TOPICS.contains(&topic)
        || topic.starts_with(SYSTEM_TOPIC_PREFIX)
        || validators::check_sendable(topic).is_err()
}
