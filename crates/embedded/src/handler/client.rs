use std::sync::Arc;

use rocketmq_protocol::body::{
    CheckClientRequestBody, GetConsumerListByGroupResponseBody, HeartbeatData, JsonBody,
};
use rocketmq_protocol::header::{
    GetConsumerListByGroupRequestHeader, UnregisterClientRequestHeader,
};
use rocketmq_protocol::{ExpressionType, RemotingCommand, mix_all, response_code};

use super::{Answer, failure};
use crate::answers::success;
use crate::broker::Broker;
use crate::connection::Connection;
use crate::consumer_manager::ClientInfo;
use crate::member_views::MemberListQuery;

/// HEART_BEAT (34). The members of a group that changes are told before this is answered, the
/// sender among them.
pub(super) fn heartbeat(
    broker: &Broker,
    connection: &Arc<Connection>,
    request: &RemotingCommand,
) -> Answer {
    let data = HeartbeatData::from_command(request)?;
    let client = ClientInfo::new(&data.client_id, request);
    connection.set_client_id(&data.client_id);
    let first_form = data.heartbeat_fingerprint == 0;
    let mut subscriptions_changed = first_form;
    for group in &data.consumer_data_set {
        let name = group.group_name.as_str();
        subscriptions_changed |= broker
            .heartbeat_fingerprints
            .replace(name, data.heartbeat_fingerprint);
        let Some(settings) = broker.find_group(name) else {
            continue;
        };
        let mut topics = group.subscription_data_set.iter();
        let ordered = topics.any(|data| {
            let config = broker.store.topic(&data.topic);
            config.is_some_and(|config| config.order)
        });
        let retry_topic = mix_all::retry_topic(name);
        broker.send_back_topic(&retry_topic, settings.retry_queue_nums, ordered);
        let without_sub = data.without_sub && !first_form;
        let is_told = settings.notify_consumer_ids_changed_enable;
        let change = broker
            .consumers
            .register(connection, &client, group, without_sub, is_told);
        broker.notify(change);
    }
    for group in &data.producer_data_set {
        broker
            .producers
            .register(connection, &client, &group.group_name);
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
    if let Some(group) = &header.producer_group {
        let producers = &broker.producers;
        producers.unregister(connection, &header.client_id, group);
    }
    if let Some(group) = &header.consumer_group {
        let settings = broker.find_group(group);
        let is_told = settings.is_none_or(|group| group.notify_consumer_ids_changed_enable);
        broker.notify(broker.consumers.unregister(connection, group, is_told));
    }
    Ok(success(request))
}

/// GET_CONSUMER_LIST_BY_GROUP (38).
pub(super) fn consumer_list(
    broker: &Broker,
    connection: &Connection,
    request: &RemotingCommand,
) -> Answer {
    let header: GetConsumerListByGroupRequestHeader = request.decode_header()?;
    let group = header.consumer_group.as_str();
    let mut ids = broker.consumers.client_ids(group);
    let query = || {
        let mut members = ids.clone();
        members.sort_unstable();
        MemberListQuery {
            broker: Arc::clone(&broker.name),
            group: group.to_owned(),
            asker: connection.client_id(),
            members,
        }
    };
    if let Some(view) = broker.views().apply(query, group) {
        ids = view;
    }
    if ids.is_empty() {
        let remark = format!("no consumer for this group, {group}");
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
