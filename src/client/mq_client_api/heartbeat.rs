use bytes::Bytes;
use rocketmq_protocol::body::{GetConsumerListByGroupResponseBody, JsonBody};
use rocketmq_protocol::header::{
    GetConsumerListByGroupRequestHeader, UnregisterClientRequestHeader,
};
use rocketmq_protocol::{RemotingCommand, request_code};

use super::{MQClientApi, done, expect_success};
use crate::error::{Error, Result};
use crate::sync::Deadline;

impl MQClientApi {
    /// Sends a heartbeat with a body that was encoded before. `landed` runs once, on the thread that
    /// finds the outcome: it must not block.
    pub(crate) fn heartbeat_async(
        &self,
        addr: &str,
        body: Bytes,
        deadline: Deadline,
        landed: impl FnOnce(Result<()>) + Send + 'static,
    ) {
        let request =
            RemotingCommand::request_without_header(request_code::HEART_BEAT).with_body(body);
        self.without_content(addr, request, deadline, landed);
    }

    /// Leaves one group at one broker. `landed` runs once, on the thread that finds the outcome: it
    /// must not block.
    pub(crate) fn unregister_async(
        &self,
        addr: &str,
        header: &UnregisterClientRequestHeader,
        deadline: Deadline,
        landed: impl FnOnce(Result<()>) + Send + 'static,
    ) {
        let request = RemotingCommand::request(request_code::UNREGISTER_CLIENT, header);
        self.without_content(addr, request, deadline, landed);
    }

    fn without_content(
        &self,
        addr: &str,
        request: RemotingCommand,
        deadline: Deadline,
        landed: impl FnOnce(Result<()>) + Send + 'static,
    ) {
        let from = addr.to_owned();
        self.remoting
            .invoke_directly(addr, request, deadline, move |outcome| {
                landed(outcome.and_then(|reply| done(&from, reply)));
            });
    }

    /// Asks a broker for the members of a group, one entry a connection, in no order. `landed` runs
    /// once, on the thread that finds the outcome: it must not block.
    pub(crate) fn consumer_id_list_async(
        &self,
        addr: &str,
        group: &str,
        deadline: Deadline,
        landed: impl FnOnce(Result<Vec<String>>) + Send + 'static,
    ) {
        let header = GetConsumerListByGroupRequestHeader {
            consumer_group: group.to_owned(),
        };
        let request = RemotingCommand::request(request_code::GET_CONSUMER_LIST_BY_GROUP, &header);
        let addr = self.vip(addr).into_owned();
        let from = addr.clone();
        self.remoting
            .invoke_directly(&addr, request, deadline, move |outcome| {
                landed(outcome.and_then(|reply| {
                    let reply = expect_success(&from, reply)?;
                    GetConsumerListByGroupResponseBody::from_command(&reply)
                        .map(|body| body.consumer_id_list)
                        .map_err(|error| Error::command(&from, error))
                }));
            });
    }
}
