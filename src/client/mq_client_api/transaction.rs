use rocketmq_protocol::header::{
    EndTransactionRequestHeader, RecallMessageRequestHeader, RecallMessageResponseHeader,
};
use rocketmq_protocol::{RemotingCommand, request_code};

use super::{MQClientApi, expect_success, header_of};
use crate::error::Result;
use crate::sync::Deadline;

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

    /// Takes a message back before its time, and tells its unique key.
    pub(crate) fn recall_message(
        &self,
        addr: &str,
        header: &RecallMessageRequestHeader,
        deadline: Deadline,
    ) -> Result<String> {
        let request = RemotingCommand::request(request_code::RECALL_MESSAGE, header);
        let reply = self.remoting.invoke_sync(addr, request, deadline)?;
        let reply = expect_success(addr, reply)?;
        header_of::<RecallMessageResponseHeader>(addr, &reply).map(|header| header.msg_id)
    }
}
