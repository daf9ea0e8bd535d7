use rocketmq_protocol::body::{JsonBody, ResetOffsetBody};
use rocketmq_protocol::header::ResetOffsetRequestHeader;
use rocketmq_protocol::{MessageQueue, RemotingCommand, response_code};

use super::{Answer, failure};
use crate::answers::success;
use crate::broker::Broker;
use crate::queue::Boundary;

/// INVOKE_BROKER_TO_RESET_OFFSET (222), as a broker does it that keeps the reset until the group's
/// next pull (Java `useServerSideResetOffset`, its default).
pub(super) fn reset(broker: &Broker, request: &RemotingCommand) -> Answer {
    let header: ResetOffsetRequestHeader = request.decode_header()?;
    let (topic, group) = (header.topic.as_str(), header.group.as_str());
    let Some(config) = broker.store.topic(topic) else {
        let remark = format!("Topic {topic} does not exist");
        return Ok(failure(request, response_code::TOPIC_NOT_EXIST, remark));
    };
    if !broker.groups.contains(group) {
        let remark = format!("Group {group} does not exist");
        let code = response_code::SUBSCRIPTION_GROUP_NOT_EXIST;
        return Ok(failure(request, code, remark));
    }
    let by_time = |queue_id| {
        if header.timestamp < 0 {
            return broker.store.max_offset(topic, queue_id);
        }
        broker
            .store
            .search_offset(topic, queue_id, header.timestamp, Boundary::Lower)
    };
    let queue_id = header.queue_id.unwrap_or(-1);
    let targets: Vec<(i32, i64)> = match header.offset.filter(|offset| *offset != -1) {
        Some(offset) if queue_id >= 0 => {
            let (min, max) = broker.store.ends(topic, queue_id);
            if offset < min || offset > max.saturating_add(1) {
                let remark =
                    format!("Target offset {offset} not in consume queue range [{min}-{max}]");
                return Ok(failure(request, response_code::SYSTEM_ERROR, remark));
            }
            vec![(queue_id, offset)]
        }
        _ if queue_id >= 0 => vec![(queue_id, by_time(queue_id))],
        _ => (0..config.read_queue_nums)
            .map(|queue_id| (queue_id, by_time(queue_id)))
            .collect(),
    };
    if targets.is_empty() {
        let remark = "No queues to reset.";
        return Ok(failure(request, response_code::SYSTEM_ERROR, remark));
    }
    let mut body = ResetOffsetBody::default();
    for (queue_id, offset) in targets {
        broker.offsets.assign_reset(group, topic, queue_id, offset);
        let queue = MessageQueue::new(topic, broker.name.as_ref(), queue_id);
        body.offset_table.insert(queue, offset);
    }
    Ok(success(request).with_body(body.to_json()?))
}
