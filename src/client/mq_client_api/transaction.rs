use rocketmq_protocol::header::{
    EndTransactionRequestHeader, RecallMessageRequestHeader, RecallMessageResponseHeader,
};
use rocketmq_protocol::{RemotingCommand, property, request_code};

use super::{MQClientApi, expect_success, header_of};
use crate::error::Result;
use crate::sync::Deadline;

/// What a broker answers when a message is to be taken back.
#[derive(Debug)]
pub(crate) struct RecallReply {
    pub(crate) region_id: Option<String>,
    /// The message's unique key.
    pub(crate) outcome: Result<String>,
}

impl MQClientApi {
    /// Tells a broker what becomes of a half message, without an answer.
    pub(crate) fn end_transaction_oneway(
        &self,
        addr: &str,
        header: &EndTransactionRequestHeader,
        remark: Option<String>,
    ) -> Result<()> {
        let mut request = RemotingCommand::request(request_code::END_TRANSACTION, header);
        request.remark = remark;
        self.remoting.invoke_oneway(addr, request)
    }

    /// Takes a message back before its time.
    pub(crate) fn recall_message(
        &self,
        addr: &str,
        header: &RecallMessageRequestHeader,
        deadline: Deadline,
    ) -> Result<RecallReply> {
        let request = RemotingCommand::request(request_code::RECALL_MESSAGE, header);
        let reply = self.remoting.invoke_sync(addr, request, deadline)?;
        let region_id = reply.ext_fields.get(property::MSG_REGION);
        Ok(RecallReply {
            region_id: region_id.map(str::to_owned),
            outcome: expect_success(addr, reply).and_then(|reply| {
                let header = header_of::<RecallMessageResponseHeader>(addr, &reply)?;
                Ok(header.msg_id)
            }),
        })
    }
}
