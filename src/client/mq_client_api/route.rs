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
        let header = GetRouteInfoRequestHeader {
            topic: topic.to_owned(),
            accept_standard_json_only: None,
        };
        let request = RemotingCommand::request(request_code::GET_ROUTEINFO_BY_TOPIC, &header);
        let (addr, reply) = self
            .remoting
            .invoke_name_server(&request, self.timeout, deadline)?;
        match reply.code {
            response_code::SUCCESS => TopicRouteData::from_command(&reply)
                .map(Some)
                .map_err(|error| Error::command(&addr, error)),
            response_code::TOPIC_NOT_EXIST => Ok(None),
            response_code::REQUEST_CODE_NOT_SUPPORTED => Err(Error::MQClient {
                code: None,
                reason: format!("{addr} does not know routes, is it a name server?"),
                source: Some(refusal(&addr, reply).into()),
            }),
            _ => Err(refusal(&addr, reply)),
        }
    }
}
