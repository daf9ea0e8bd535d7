use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rocketmq_protocol::body::{
    CheckClientRequestBody, GetConsumerListByGroupResponseBody, HeartbeatData, JsonBody, Permission,
};
use rocketmq_protocol::header::{
    GetConsumerListByGroupRequestHeader, UnregisterClientRequestHeader,
};
use rocketmq_protocol::{ExpressionType, RemotingCommand, mix_all, response_code};

use super::{Answer, failure};
use crate::broker::Broker;
use crate::connection::Connection;
use crate::name_server::success;
use crate::topic_config::TopicConfig;

/// What the last heartbeat of each group said of its subscriptions (Java
/// `consumerGroupHeartbeatTable`): one number a group, whoever of its members sent it.
#[derive(Debug, Default)]
pub(crate) struct Fingerprints {
    by_group: Mutex<HashMap<String, i32>>,
}

impl Fingerprints {
    /// Remembers a number and says whether another one was there.
    fn replace(&self, group: &str, fingerprint: i32) -> bool {
        let mut groups = self.by_group.lock();
        let before = groups.insert(group.to_owned(), fingerprint);
        before.is_some_and(|before| before != fingerprint)
    }
}

/// HEART_BEAT (34). The members of a group that changes are told before this is answered, the
/// sender among them.
pub(super) fn heartbeat(
    broker: &Broker,
    connection: &Arc<Connection>,
    request: &RemotingCommand,
) -> Answer {
    let data = HeartbeatData::from_command(request)?;
    let first_form = data.heartbeat_fingerprint == 0;
    let mut subscriptions_changed = first_form;
    for group in &data.consumer_data_set {
        let name = group.group_name.as_str();
        subscriptions_changed |= broker
            .heartbeat_fingerprints
            .replace(name, data.heartbeat_fingerprint);
        if !broker.offsets.find_group(name) {
            continue;
        }
        let retry_topic = TopicConfig::new(1, Permission::READ_WRITE);
        broker
            .store
            .topic_or_create(&mix_all::retry_topic(name), retry_topic);
        let without_sub = data.without_sub && !first_form;
        let change = broker
            .consumers
            .register(connection, &data.client_id, group, without_sub);
        broker.notify(change);
    }
    let mut response = success(request);
    let fields = &mut response.ext_fields;
    fields.set("IS_SUPPORT_HEART_BEAT_V2", "true");
    fields.set("IS_SUB_CHANGE", subscriptions_changed.to_string());
    Ok(response)
}

/// UNREGISTER_CLIENT (35), always answered 0.
pub(super) fn unregister(
    broker: &Broker,
    connection: &Arc<Connection>,
    request: &RemotingCommand,
) -> Answer {
    let header: UnregisterClientRequestHeader = request.decode_header()?;
    if let Some(group) = &header.consumer_group {
        broker.offsets.find_group(group);
        broker.notify(broker.consumers.unregister(connection, group));
    }
    Ok(success(request))
}

/// GET_CONSUMER_LIST_BY_GROUP (38).
pub(super) fn consumer_list(broker: &Broker, request: &RemotingCommand) -> Answer {
    let header: GetConsumerListByGroupRequestHeader = request.decode_header()?;
    let ids = broker.consumers.client_ids(&header.consumer_group);
    if ids.is_empty() {
        let remark = format!("no consumer for this group, {}", header.consumer_group);
        return Ok(failure(request, response_code::SYSTEM_ERROR, remark));
    }
    let body = GetConsumerListByGroupResponseBody {
        consumer_id_list: ids,
    };
    Ok(success(request).with_body(body.to_json()?))
}

/// CHECK_CLIENT_CONFIG (46). Filters other than tags are refused, as by a real broker with default
/// settings.
pub(super) fn check_config(request: &RemotingCommand) -> Answer {
    let body = CheckClientRequestBody::from_command(request)?;
    let kind = body.subscription_data.expression_type;
    if kind == ExpressionType::Tag {
        return Ok(success(request));
    }
    let remark = format!(
        "The broker does not support consumer to filter message by {}",
        kind.name()
    );
    Ok(failure(request, response_code::SYSTEM_ERROR, remark))
}
