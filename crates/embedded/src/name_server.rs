use std::sync::Arc;
use std::time::Duration;

use rocketmq_protocol::body::{JsonBody, KVTable, TopicList};
use rocketmq_protocol::header::{
    GetKVConfigResponseHeader, GetTopicsByClusterRequestHeader, PutKVConfigRequestHeader,
};
use rocketmq_protocol::{CodecError, RemotingCommand, request_code, response_code};

use crate::answers::{not_supported, refused, see_faq, success};
use crate::broker::CLUSTER_NAME;
use crate::connection::Connection;
use crate::control_action::ServerName;
use crate::registry::Registry;
use crate::reply::Reply;
use crate::server::Service;
use crate::timer::Timer;

/// The name server (Java `ClientRequestProcessor` and the part of `DefaultRequestProcessor` that
/// clients and the admin tool need).
#[derive(Debug)]
pub(crate) struct NameServer {
    registry: Arc<Registry>,
}

/// Requests of this version or newer get strict JSON (Java `V4_9_4`).
const STRICT_JSON_VERSION: i32 = 401;

/// Fixed in Java's `NettyServerConfig` of a name server.
const IDLE_LIMIT: Duration = Duration::from_secs(120);

type Answer = Result<RemotingCommand, CodecError>;

impl NameServer {
    pub(crate) fn new(registry: Arc<Registry>, timer: &Arc<Timer>) -> Arc<Self> {
        registry.start();
        let server = Arc::new(Self { registry });
        timer.repeat(
            Arc::downgrade(&server),
            |server| server.registry.scan_period(),
            |server| server.registry.expire(),
        );
        server
    }

    fn answer(&self, request: &RemotingCommand) -> Answer {
        match request.code {
            request_code::GET_ROUTEINFO_BY_TOPIC => self.route(request),
            request_code::GET_BROKER_CLUSTER_INFO => {
                let body = self.registry.cluster_info().to_json()?;
                Ok(success(request).with_body(with_bare_broker_ids(body)))
            }
            request_code::GET_ALL_TOPIC_LIST_FROM_NAMESERVER => self.topics(request),
            request_code::GET_TOPICS_BY_CLUSTER => {
                let header: GetTopicsByClusterRequestHeader = request.decode_header()?;
                if header.cluster == CLUSTER_NAME {
                    return self.topics(request);
                }
                let body = TopicList::default().to_json()?;
                Ok(success(request).with_body(body))
            }
            request_code::DELETE_TOPIC_IN_NAMESRV => {
                let cluster = field(request, "clusterName");
                if cluster.is_empty() || cluster == CLUSTER_NAME {
                    self.registry.delete_topic(field(request, "topic"));
                }
                Ok(success(request))
            }
            request_code::WIPE_WRITE_PERM_OF_BROKER => {
                self.set_write_permission(request, false, "wipeTopicCount")
            }
            request_code::ADD_WRITE_PERM_OF_BROKER => {
                self.set_write_permission(request, true, "addTopicCount")
            }
            request_code::PUT_KV_CONFIG => {
                let header: PutKVConfigRequestHeader = request.decode_header()?;
                let PutKVConfigRequestHeader {
                    namespace,
                    key,
                    value,
                } = header;
                self.registry.put_value(namespace, key, value);
                Ok(success(request))
            }
            request_code::GET_KV_CONFIG => self.value(request),
            request_code::DELETE_KV_CONFIG => {
                let (namespace, key) = (field(request, "namespace"), field(request, "key"));
                self.registry.delete_value(namespace, key);
                Ok(success(request))
            }
            request_code::GET_KVLIST_BY_NAMESPACE => self.values(request),
            _ => Ok(not_supported(request)),
        }
    }

    fn route(&self, request: &RemotingCommand) -> Answer {
        let topic = field(request, "topic");
        let Some(route) = self.registry.route(topic) else {
            let remark = see_faq(format!(
                "No topic route info in name server for the topic: {topic}"
            ));
            let code = response_code::TOPIC_NOT_EXIST;
            return Ok(RemotingCommand::response(request, code, Some(remark)));
        };
        let mut body = route.to_json()?;
        let strict = request.version >= STRICT_JSON_VERSION
            || field(request, "acceptStandardJsonOnly") == "true";
        if !strict {
            body = with_bare_broker_ids(body);
        }
        Ok(success(request).with_body(body))
    }

    fn topics(&self, request: &RemotingCommand) -> Answer {
        let list = TopicList {
            broker_addr: None,
            topic_list: self.registry.topics(),
        };
        Ok(success(request).with_body(list.to_json()?))
    }

    fn set_write_permission(
        &self,
        request: &RemotingCommand,
        writeable: bool,
        count_field: &'static str,
    ) -> Answer {
        let broker = field(request, "brokerName");
        let count = self.registry.set_write_permission(broker, writeable);
        let mut response = success(request);
        response.ext_fields.set(count_field, count.to_string());
        Ok(response)
    }

    fn value(&self, request: &RemotingCommand) -> Answer {
        let (namespace, key) = (field(request, "namespace"), field(request, "key"));
        if let Some(value) = self.registry.value(namespace, key) {
            let header = GetKVConfigResponseHeader { value: Some(value) };
            return Ok(success(request).with_header(&header));
        }
        let remark = format!("No config item, Namespace: {namespace} Key: {key}");
        let code = response_code::QUERY_NOT_FOUND;
        Ok(RemotingCommand::response(request, code, Some(remark)))
    }

    fn values(&self, request: &RemotingCommand) -> Answer {
        let namespace = field(request, "namespace");
        if let Some(table) = self.registry.values(namespace) {
            return Ok(success(request).with_body(KVTable { table }.to_json()?));
        }
        let remark = format!("No config item, Namespace: {namespace}");
        let code = response_code::QUERY_NOT_FOUND;
        Ok(RemotingCommand::response(request, code, Some(remark)))
    }
}

impl Service for NameServer {
    fn name(&self) -> ServerName<'_> {
        ServerName::NameServer
    }

    fn process(&self, request: RemotingCommand, reply: Reply) {
        let answer = self.answer(&request);
        reply.send(answer.unwrap_or_else(|error| refused(&request, &error)));
    }

    fn idle_limit(&self) -> Duration {
        IDLE_LIMIT
    }

    fn connection_closed(&self, _: &Connection) {}

    fn stopping(&self) {}
}

/// A field, empty when it is missing: real name servers mostly let that pass.
fn field<'a>(request: &'a RemotingCommand, name: &str) -> &'a str {
    request.ext_fields.get(name).unwrap_or_default()
}

/// The dialect in which Java writes maps with integer keys. Only masters exist here, so there is
/// one key to change, and no name or address can contain this text: quotes in them are escaped.
fn with_bare_broker_ids(body: Vec<u8>) -> Vec<u8> {
    match String::from_utf8(body) {
        Ok(text) => text
            .replace(r#""brokerAddrs":{"0":"#, r#""brokerAddrs":{0:"#)
            .into_bytes(),
        Err(error) => error.into_bytes(),
    }
}
