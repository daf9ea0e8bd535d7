//! What a broker does with requests, one file a family. Checks come in the order in which a real
//! broker makes them, since clients see which one failed first.

mod client;
mod offset;
mod pull;
mod send;
mod send_back;
mod topic;

use std::sync::Arc;

pub(crate) use client::Fingerprints;
pub(crate) use pull::resume as resume_pull;
use rocketmq_protocol::{CodecError, RemotingCommand, request_code};
pub(crate) use send_back::due_message;

use crate::broker::Broker;
use crate::connection::Connection;
use crate::name_server::{not_supported, refused};

type Answer = Result<RemotingCommand, CodecError>;

/// Processes one request. `None` means that the answer comes later.
pub(crate) fn process(
    broker: &Broker,
    connection: &Arc<Connection>,
    request: RemotingCommand,
) -> Option<RemotingCommand> {
    let answer = match request.code {
        request_code::SEND_MESSAGE => send::send(broker, connection, &request),
        request_code::SEND_MESSAGE_V2 => send::send_v2(broker, connection, &request),
        request_code::PULL_MESSAGE | request_code::LITE_PULL_MESSAGE => {
            return pull::pull(broker, connection, request);
        }
        request_code::QUERY_CONSUMER_OFFSET => offset::query(broker, &request),
        request_code::UPDATE_CONSUMER_OFFSET => offset::update(broker, &request),
        request_code::GET_MAX_OFFSET => offset::max(broker, &request),
        request_code::GET_MIN_OFFSET => offset::min(broker, &request),
        request_code::GET_EARLIEST_MSG_STORETIME => offset::earliest(broker, &request),
        request_code::SEARCH_OFFSET_BY_TIMESTAMP => offset::search(broker, &request),
        request_code::HEART_BEAT => client::heartbeat(broker, connection, &request),
        request_code::UNREGISTER_CLIENT => client::unregister(broker, connection, &request),
        request_code::CONSUMER_SEND_MSG_BACK => send_back::send_back(broker, &request),
        request_code::GET_CONSUMER_LIST_BY_GROUP => client::consumer_list(broker, &request),
        request_code::CHECK_CLIENT_CONFIG => client::check_config(&request),
        request_code::UPDATE_AND_CREATE_TOPIC => topic::create(broker, &request),
        _ => Ok(not_supported(&request)),
    };
    Some(answer.unwrap_or_else(|error| refused(&request, &error)))
}

fn failure(request: &RemotingCommand, code: i32, remark: impl Into<String>) -> RemotingCommand {
    RemotingCommand::response(request, code, Some(remark.into()))
}
