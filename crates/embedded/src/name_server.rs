use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rocketmq_protocol::body::{
    BrokerData, ClusterInfo, JsonBody, MASTER_ID, QueueData, TopicRouteData,
};
use rocketmq_protocol::header::GetRouteInfoRequestHeader;
use rocketmq_protocol::{CodecError, RemotingCommand, request_code, response_code};

use crate::broker::CLUSTER_NAME;
use crate::connection::Connection;
use crate::control::ServerName;
use crate::server::Service;
use crate::store::Store;

/// Which brokers are up. A real name server hears of a new topic some moments after its broker
/// created it; here the brokers' own tables are read, so it is known at once.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    brokers: Mutex<BTreeMap<String, Registered>>,
}

#[derive(Debug)]
struct Registered {
    addr: String,
    store: Arc<Store>,
}

impl Registry {
    pub(crate) fn register(&self, name: &str, addr: String, store: Arc<Store>) {
        let broker = Registered { addr, store };
        self.brokers.lock().insert(name.to_owned(), broker);
    }

    pub(crate) fn unregister(&self, name: &str) {
        self.brokers.lock().remove(name);
    }

    fn route(&self, topic: &str) -> Option<TopicRouteData> {
        let mut route = TopicRouteData::default();
        for (name, broker) in self.brokers.lock().iter() {
            let Some(config) = broker.store.topic(topic) else {
                continue;
            };
            route.queue_datas.push(QueueData {
                broker_name: name.clone(),
                perm: config.perm.0,
                read_queue_nums: config.read_queue_nums,
                topic_sys_flag: config.topic_sys_flag,
                write_queue_nums: config.write_queue_nums,
            });
            route.broker_datas.push(broker.data(name));
        }
        (!route.queue_datas.is_empty()).then_some(route)
    }

    fn cluster_info(&self) -> ClusterInfo {
        let brokers = self.brokers.lock();
        let names = brokers.keys().cloned().collect();
        ClusterInfo {
            broker_addr_table: brokers
                .iter()
                .map(|(name, broker)| (name.clone(), broker.data(name)))
                .collect(),
            cluster_addr_table: BTreeMap::from([(CLUSTER_NAME.to_owned(), names)]),
        }
    }
}

impl Registered {
    fn data(&self, name: &str) -> BrokerData {
        BrokerData {
            broker_addrs: BTreeMap::from([(MASTER_ID, self.addr.clone())]),
            broker_name: name.to_owned(),
            cluster: CLUSTER_NAME.to_owned(),
            ..BrokerData::default()
        }
    }
}

/// The name server (Java `ClientRequestProcessor` and the part of `DefaultRequestProcessor` that
/// clients need).
#[derive(Debug)]
pub(crate) struct NameServer {
    pub(crate) registry: Arc<Registry>,
}

/// Requests of this version or newer get strict JSON (Java `V4_9_4`).
const STRICT_JSON_VERSION: i32 = 401;

impl NameServer {
    fn route(&self, request: &RemotingCommand) -> Result<RemotingCommand, CodecError> {
        let header: GetRouteInfoRequestHeader = request.decode_header()?;
        let Some(route) = self.registry.route(&header.topic) else {
            let remark = format!(
                "No topic route info in name server for the topic: {}",
                header.topic
            );
            let code = response_code::TOPIC_NOT_EXIST;
            return Ok(RemotingCommand::response(request, code, Some(remark)));
        };
        let mut body = route.to_json()?;
        let strict = request.version >= STRICT_JSON_VERSION
            || header.accept_standard_json_only == Some(true);
        if !strict {
            body = with_bare_broker_ids(body);
        }
        Ok(success(request).with_body(body))
    }

    fn cluster_info(&self, request: &RemotingCommand) -> Result<RemotingCommand, CodecError> {
        let body = self.registry.cluster_info().to_json()?;
        Ok(success(request).with_body(with_bare_broker_ids(body)))
    }
}

impl Service for NameServer {
    fn name(&self) -> ServerName<'_> {
        ServerName::NameServer
    }

    fn process(&self, _: &Arc<Connection>, request: RemotingCommand) -> Option<RemotingCommand> {
        let response = match request.code {
            request_code::GET_ROUTEINFO_BY_TOPIC => self.route(&request),
            request_code::GET_BROKER_CLUSTER_INFO => self.cluster_info(&request),
            _ => Ok(not_supported(&request)),
        };
        Some(response.unwrap_or_else(|error| refused(&request, &error)))
    }

    fn connection_closed(&self, _: &Connection) {}

    fn stopping(&self) {}
}

pub(crate) fn success(request: &RemotingCommand) -> RemotingCommand {
    RemotingCommand::response(request, response_code::SUCCESS, None)
}

pub(crate) fn not_supported(request: &RemotingCommand) -> RemotingCommand {
    log::debug!("request code {} is not supported", request.code);
    let remark = format!(" request type {} not supported", request.code);
    let code = response_code::REQUEST_CODE_NOT_SUPPORTED;
    RemotingCommand::response(request, code, Some(remark))
}

pub(crate) fn refused(request: &RemotingCommand, error: &CodecError) -> RemotingCommand {
    log::debug!("request code {}: {error}", request.code);
    let code = response_code::SYSTEM_ERROR;
    RemotingCommand::response(request, code, Some(error.to_string()))
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
