//! What a broker does with requests, one file a family. Checks come in the order in which a real
//! broker makes them, since clients see which one failed first.

mod call_client;
mod client;
mod end_transaction;
mod group;
mod lock;
mod offset;
mod pull;
mod query_message;
mod recall;
mod reset_offset;
mod send;
mod send_back;
mod send_batch;
mod send_reply;
mod stats;
mod topic;

pub(crate) use pull::resume as resume_pull;
use rocketmq_protocol::{CodecError, RemotingCommand, request_code};

use crate::answers::{not_supported, refused};
use crate::broker::Broker;
use crate::reply::Reply;

type Answer = Result<RemotingCommand, CodecError>;

/// Processes one request and sees to its answer, now or later.
pub(crate) fn process(broker: &Broker, request: RemotingCommand, reply: Reply) {
    let connection = reply.connection();
    let answer = match request.code {
        request_code::PULL_MESSAGE | request_code::LITE_PULL_MESSAGE => {
            return pull::pull(broker, request, reply);
        }
        request_code::GET_CONSUMER_RUNNING_INFO => {
            return call_client::running_info(broker, request, reply);
        }
        request_code::CONSUME_MESSAGE_DIRECTLY => {
            return call_client::consume_directly(broker, request, reply);
        }
        request_code::SEND_REPLY_MESSAGE | request_code::SEND_REPLY_MESSAGE_V2 => {
            return send_reply::send_reply(broker, request, reply);
        }
        request_code::END_TRANSACTION => {
            return end_transaction::end(broker, &request, reply);
        }
        request_code::SEND_MESSAGE => send::send(broker, connection, &request),
        request_code::SEND_MESSAGE_V2 | request_code::SEND_BATCH_MESSAGE => {
            send::send_v2(broker, connection, &request)
        }
        request_code::CONSUMER_SEND_MSG_BACK => send_back::send_back(broker, &request),
        request_code::RECALL_MESSAGE => recall::recall(broker, &request),
        request_code::QUERY_MESSAGE => query_message::query(broker, &request),
        request_code::VIEW_MESSAGE_BY_ID => query_message::view(broker, &request),
        request_code::QUERY_CONSUMER_OFFSET => offset::query(broker, &request),
        request_code::UPDATE_CONSUMER_OFFSET => offset::update(broker, &request),
        request_code::GET_MAX_OFFSET => offset::max(broker, &request),
        request_code::GET_MIN_OFFSET => offset::min(broker, &request),
        request_code::GET_EARLIEST_MSG_STORETIME => offset::earliest(broker, &request),
        request_code::SEARCH_OFFSET_BY_TIMESTAMP => offset::search(broker, &request),
        request_code::INVOKE_BROKER_TO_RESET_OFFSET => reset_offset::reset(broker, &request),
        request_code::HEART_BEAT => client::heartbeat(broker, connection, &request),
        request_code::UNREGISTER_CLIENT => client::unregister(broker, connection, &request),
        request_code::GET_CONSUMER_LIST_BY_GROUP => {
            client::consumer_list(broker, connection, &request)
        }
        request_code::CHECK_CLIENT_CONFIG => client::check_config(&request),
        request_code::LOCK_BATCH_MQ => lock::lock_batch(broker, &request),
        request_code::UNLOCK_BATCH_MQ => lock::unlock_batch(broker, &request),
        request_code::UPDATE_AND_CREATE_TOPIC => topic::create(broker, &request),
        request_code::DELETE_TOPIC_IN_BROKER => topic::delete(broker, &request),
        request_code::GET_TOPIC_CONFIG => topic::get(broker, &request),
        request_code::GET_ALL_TOPIC_CONFIG => topic::all(broker, &request),
        request_code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP => group::update(broker, &request),
        request_code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST => {
            group::update_list(broker, &request)
        }
        request_code::GET_SUBSCRIPTIONGROUP_CONFIG => group::get(broker, &request),
        request_code::GET_ALL_SUBSCRIPTIONGROUP_CONFIG => group::all(broker, &request),
        request_code::DELETE_SUBSCRIPTIONGROUP => group::delete(broker, &request),
        request_code::GET_TOPIC_STATS_INFO => stats::topic(broker, &request),
        request_code::GET_CONSUME_STATS => stats::consume(broker, &request),
        request_code::GET_CONSUMER_CONNECTION_LIST => stats::consumers(broker, &request),
        request_code::GET_PRODUCER_CONNECTION_LIST => stats::producers(broker, &request),
        _ => Ok(not_supported(&request)),
    };
    reply.send(answer.unwrap_or_else(|error| refused(&request, &error)));
}

fn failure(request: &RemotingCommand, code: i32, remark: impl Into<String>) -> RemotingCommand {
    RemotingCommand::response(request, code, Some(remark.into()))
}
