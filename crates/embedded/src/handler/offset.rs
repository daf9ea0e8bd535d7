use rocketmq_protocol::header::{
    GetMaxOffsetRequestHeader, GetMinOffsetRequestHeader, OffsetResponseHeader,
    QueryConsumerOffsetRequestHeader, SearchOffsetRequestHeader, UpdateConsumerOffsetRequestHeader,
};
use rocketmq_protocol::{RemotingCommand, response_code};

use super::{Answer, failure};
use crate::answers::success;
use crate::broker::Broker;
use crate::queue::Boundary;

/// QUERY_CONSUMER_OFFSET (14).
///
/// A queue that begins at 0 and whose first message is still in memory is answered with 0 instead
/// of "not found", so that a new group misses nothing.
pub(super) fn query(broker: &Broker, request: &RemotingCommand) -> Answer {
    let header: QueryConsumerOffsetRequestHeader = request.decode_header()?;
    let QueryConsumerOffsetRequestHeader {
        consumer_group,
        topic,
        queue_id,
        set_zero_if_not_found,
        ..
    } = &header;
    if let Some(offset) = broker.offsets.query(consumer_group, topic, *queue_id) {
        return Ok(found(request, offset));
    }
    let not_found = |remark: &str| Ok(failure(request, response_code::QUERY_NOT_FOUND, remark));
    if *set_zero_if_not_found == Some(false) {
        return not_found("Not found, do not set to zero, maybe this group boot first");
    }
    let (min, max) = broker.store.ends(topic, *queue_id);
    if min == 0 && max > 0 && broker.config().first_message_in_memory {
        return Ok(found(request, 0));
    }
    not_found("Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first")
}

/// UPDATE_CONSUMER_OFFSET (15). Whether the sender still owns the queue is not looked at: the last
/// commit of a member that left is taken. Between a reset and the pull that hears of it, commits are
/// answered with 0 and not stored.
pub(super) fn update(broker: &Broker, request: &RemotingCommand) -> Answer {
    let header: UpdateConsumerOffsetRequestHeader = request.decode_header()?;
    let UpdateConsumerOffsetRequestHeader {
        consumer_group,
        topic,
        queue_id,
        commit_offset,
        ..
    } = &header;
    if !broker.groups.contains(consumer_group) {
        let remark = format!("Group {consumer_group} not exist!");
        let code = response_code::SUBSCRIPTION_GROUP_NOT_EXIST;
        return Ok(failure(request, code, remark));
    }
    if broker.store.topic(topic).is_none() {
        let remark = format!("Topic {topic} not exist!");
        return Ok(failure(request, response_code::TOPIC_NOT_EXIST, remark));
    }
    if !broker
        .offsets
        .commit_unless_reset(consumer_group, topic, *queue_id, *commit_offset)
    {
        let remark = "Offset has been previously reset";
        return Ok(failure(request, response_code::SUCCESS, remark));
    }
    Ok(success(request))
}

/// GET_MAX_OFFSET (30). This and the next three answer 0 or -1 for what does not exist.
pub(super) fn max(broker: &Broker, request: &RemotingCommand) -> Answer {
    let header: GetMaxOffsetRequestHeader = request.decode_header()?;
    let offset = broker.store.max_offset(&header.topic, header.queue_id);
    Ok(found(request, offset))
}

/// GET_MIN_OFFSET (31).
pub(super) fn min(broker: &Broker, request: &RemotingCommand) -> Answer {
    let header: GetMinOffsetRequestHeader = request.decode_header()?;
    let (offset, _) = broker.store.ends(&header.topic, header.queue_id);
    Ok(found(request, offset))
}

/// GET_EARLIEST_MSG_STORETIME (32).
pub(super) fn earliest(broker: &Broker, request: &RemotingCommand) -> Answer {
    let header: GetMinOffsetRequestHeader = request.decode_header()?;
    let time = broker
        .store
        .earliest_store_time(&header.topic, header.queue_id);
    let mut response = success(request);
    response
        .ext_fields
        .set("timestamp", time.unwrap_or(-1).to_string());
    Ok(response)
}

/// SEARCH_OFFSET_BY_TIMESTAMP (29).
pub(super) fn search(broker: &Broker, request: &RemotingCommand) -> Answer {
    let header: SearchOffsetRequestHeader = request.decode_header()?;
    let upper = |kind: &str| kind.eq_ignore_ascii_case("upper");
    let boundary = if header.boundary_type.as_deref().is_some_and(upper) {
        Boundary::Upper
    } else {
        Boundary::Lower
    };
    let offset =
        broker
            .store
            .search_offset(&header.topic, header.queue_id, header.timestamp, boundary);
    Ok(found(request, offset))
}

fn found(request: &RemotingCommand, offset: i64) -> RemotingCommand {
    success(request).with_header(&OffsetResponseHeader { offset })
}
