use bytes::BytesMut;
use rocketmq_protocol::header::{
    QueryMessageRequestHeader, QueryMessageResponseHeader, UNIQUE_KEY_QUERY,
    ViewMessageRequestHeader,
};
use rocketmq_protocol::{RemotingCommand, response_code};

use super::{Answer, failure};
use crate::answers::success;
use crate::broker::Broker;

/// QUERY_MESSAGE (12): the newest messages that have a key, the oldest of them first (Java
/// `QueryMessageProcessor#queryMessage`).
pub(super) fn query(broker: &Broker, request: &RemotingCommand) -> Answer {
    let header: QueryMessageRequestHeader = request.decode_header()?;
    let config = broker.config();
    let mut most = header.max_num;
    if request.ext_fields.get(UNIQUE_KEY_QUERY) == Some("true") {
        most = config.default_query_max_num;
    }
    let most = most.min(config.max_msgs_num_batch);
    let times = header.begin_timestamp..=header.end_timestamp;
    let found = broker
        .store
        .find_by_key(&header.topic, &header.key, times, most);
    let mut reached = QueryMessageResponseHeader::default();
    if found.messages.is_empty() {
        let remark = "can not find message, maybe time range not correct";
        let answer = failure(request, response_code::QUERY_NOT_FOUND, remark);
        return Ok(answer.with_header(&reached));
    }
    (
        reached.index_last_update_timestamp,
        reached.index_last_update_phyoffset,
    ) = found.reached;
    let mut body = BytesMut::new();
    for message in found.messages {
        body.extend_from_slice(&message);
    }
    Ok(success(request)
        .with_header(&reached)
        .with_body(body.freeze()))
}

/// VIEW_MESSAGE_BY_ID (33).
pub(super) fn view(broker: &Broker, request: &RemotingCommand) -> Answer {
    let header: ViewMessageRequestHeader = request.decode_header()?;
    Ok(match broker.store.message_at(header.offset) {
        Some(message) => success(request).with_body(message),
        None => {
            let remark = format!("can not find message by the offset, {}", header.offset);
            failure(request, response_code::SYSTEM_ERROR, remark)
        }
    })
}
