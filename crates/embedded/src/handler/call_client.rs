use rocketmq_protocol::header::{
    ConsumeMessageDirectlyResultRequestHeader, GetConsumerRunningInfoRequestHeader,
};
use rocketmq_protocol::{OffsetMessageId, RemotingCommand, response_code};

use super::failure;
use crate::answers::refused;
use crate::broker::Broker;
use crate::connection::CallEnd;
use crate::reply::Reply;

/// Clients older than this do not know these requests (Java `V3_1_8_SNAPSHOT`).
const OLDEST_VERSION: i32 = 77;

/// GET_CONSUMER_RUNNING_INFO (307): the client answers.
pub(super) fn running_info(broker: &Broker, request: RemotingCommand, reply: Reply) {
    let header: GetConsumerRunningInfoRequestHeader = match request.decode_header() {
        Ok(header) => header,
        Err(error) => return reply.send(refused(&request, &error)),
    };
    let GetConsumerRunningInfoRequestHeader {
        consumer_group,
        client_id,
        ..
    } = header;
    call(broker, request, reply, consumer_group, client_id);
}

/// CONSUME_MESSAGE_DIRECTLY (309): the client consumes a stored message now, and answers.
pub(super) fn consume_directly(broker: &Broker, mut request: RemotingCommand, reply: Reply) {
    let header: ConsumeMessageDirectlyResultRequestHeader = match request.decode_header() {
        Ok(header) => header,
        Err(error) => return reply.send(refused(&request, &error)),
    };
    let group = header.consumer_group;
    let id = header.msg_id.as_deref().and_then(OffsetMessageId::parse);
    let message = id.and_then(|id| broker.store.message_at(id.commit_log_offset));
    let Some(message) = message else {
        let remark = format!("no message has the id {:?}", header.msg_id);
        return reply.send(failure(&request, response_code::SYSTEM_ERROR, remark));
    };
    let fields = &mut request.ext_fields;
    fields.set("brokerName", &broker.name);
    let topic = header.topic.unwrap_or_default();
    if let Some(config) = broker.store.topic(&topic) {
        fields.set("topicSysFlag", config.topic_sys_flag.to_string());
    }
    if let Some(config) = broker.find_group(&group) {
        fields.set("groupSysFlag", config.group_sys_flag.to_string());
    }
    let request = request.with_body(message);
    call(
        broker,
        request,
        reply,
        group,
        header.client_id.unwrap_or_default(),
    );
}

/// Hands a request on to a member of a group, and the member's answer back.
fn call(broker: &Broker, request: RemotingCommand, reply: Reply, group: String, client_id: String) {
    let Some((client, connection)) = broker.consumers.find(&group, &client_id) else {
        let remark = format!("The Consumer <{group}> <{client_id}> not online");
        return reply.send(failure(&request, response_code::SYSTEM_ERROR, remark));
    };
    if client.version < OLDEST_VERSION {
        let remark = format!(
            "The Consumer <{client_id}> Version <{}> too low to finish, please upgrade it to \
             V3_1_8_SNAPSHOT",
            client.version
        );
        return reply.send(failure(&request, response_code::SYSTEM_ERROR, remark));
    }
    let mut handed_on = RemotingCommand::request_without_header(request.code);
    handed_on.ext_fields = request.ext_fields.clone();
    handed_on.body = request.body.clone();
    let end = move |end| {
        let response = match end {
            CallEnd::Answer(mut answer) => {
                answer.opaque = request.opaque;
                answer
            }
            CallEnd::Timeout => {
                let remark = format!("consumer <{group}> <{client_id}> Timeout");
                failure(&request, response_code::CONSUME_MSG_TIMEOUT, remark)
            }
            CallEnd::Closed => {
                let remark = format!("invoke consumer <{group}> <{client_id}> Exception");
                failure(&request, response_code::SYSTEM_ERROR, remark)
            }
        };
        reply.send(response);
    };
    broker.call_client(&connection, handed_on, Box::new(end));
}
