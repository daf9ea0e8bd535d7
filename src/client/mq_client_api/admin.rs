use rocketmq_protocol::header::CreateTopicRequestHeader;
use rocketmq_protocol::{RemotingCommand, request_code};

use super::{MQClientApi, done};
use crate::error::Result;
use crate::sync::Deadline;

impl MQClientApi {
    /// Creates or changes a topic on one broker.
    pub(crate) fn create_topic(
        &self,
        addr: &str,
        header: &CreateTopicRequestHeader,
        deadline: Deadline,
    ) -> Result<()> {
        let request = RemotingCommand::request(request_code::UPDATE_AND_CREATE_TOPIC, header);
        let addr = self.vip(addr);
        done(&addr, self.remoting.invoke_sync(&addr, request, deadline)?)
    }
}
