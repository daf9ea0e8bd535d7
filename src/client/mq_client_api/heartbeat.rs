use bytes::Bytes;
use rocketmq_protocol::body::{GetConsumerListByGroupResponseBody, JsonBody};
use rocketmq_protocol::header::{
    GetConsumerListByGroupRequestHeader, UnregisterClientRequestHeader,
};
use rocketmq_protocol::{RemotingCommand, request_code};

use super::{MQClientApi, expect_success};
use crate::error::{Error, Result};
use crate::remoting::PendingCall;
use crate::sync::Deadline;

impl MQClientApi {
    /// Begins a heartbeat with a body that was encoded before.
    pub(crate) fn start_heartbeat(&self, addr: &str, body: Bytes) -> Result<PendingCall> {
        let request =
            RemotingCommand::request_without_header(request_code::HEART_BEAT).with_body(body);
        self.remoting.start_call(addr, request)
    }

    /// Begins to leave one group at one broker.
    pub(crate) fn start_unregister(
        &self,
        addr: &str,
        header: &UnregisterClientRequestHeader,
    ) -> Result<PendingCall> {
        let request = RemotingCommand::request(request_code::UNREGISTER_CLIENT, header);
        self.remoting.start_call(addr, request)
    }

    /// Waits for the answer of a call that needs no content.
    pub(crate) fn finish(call: PendingCall, deadline: Deadline) -> Result<()> {
        let addr = call.addr().to_owned();
        expect_success(&addr, call.wait(deadline)?).map(|_| ())
    }

    /// Begins to ask a broker for the members of a group.
    pub(crate) fn start_consumer_id_list(&self, addr: &str, group: &str) -> Result<PendingCall> {
        let header = GetConsumerListByGroupRequestHeader {
            consumer_group: group.to_owned(),
        };
        let request = RemotingCommand::request(request_code::GET_CONSUMER_LIST_BY_GROUP, &header);
        self.remoting.start_call(&self.vip(addr), request)
    }

    /// The members of a group, one entry a connection, in no order.
    pub(crate) fn finish_consumer_id_list(
        call: PendingCall,
        deadline: Deadline,
    ) -> Result<Vec<String>> {
        let addr = call.addr().to_owned();
        let reply = expect_success(&addr, call.wait(deadline)?)?;
        GetConsumerListByGroupResponseBody::from_command(&reply)
            .map(|body| body.consumer_id_list)
            .map_err(|error| Error::command(&addr, error))
    }
}
