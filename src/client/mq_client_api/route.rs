use rocketmq_protocol::body::{JsonBody, TopicRouteData};
use rocketmq_protocol::header::GetRouteInfoRequestHeader;
use rocketmq_protocol::{RemotingCommand, request_code, response_code};

use super::{MQClientApi, refusal};
use crate::error::{Error, Result};
use crate::sync::Deadline;

impl MQClientApi {
    /// The route of a topic, or `None` when the name server does not know the topic (Java
    /// `MQClientAPIImpl#getTopicRouteInfoFromNameServer`).
    pub(crate) fn topic_route_info(
        &self,
        topic: &str,
        deadline: Deadline,
    ) -> Result<Option<TopicRouteData>> {
        const NAME_SERVER: &str = "the name server";
        let header = GetRouteInfoRequestHeader {
            topic: topic.to_owned(),
            accept_standard_json_only: None,
        };
        let request = RemotingCommand::request(request_code::GET_ROUTEINFO_BY_TOPIC, &header);
        let reply = self
            .remoting
            .invoke_name_server(&request, self.timeout, deadline)?;
        match reply.code {
            response_code::SUCCESS => TopicRouteData::from_command(&reply)
                .map(Some)
                .map_err(|error| Error::command(NAME_SERVER, error)),
            response_code::TOPIC_NOT_EXIST => Ok(None),
            _ => Err(refusal(NAME_SERVER, reply)),
        }
    }
}
