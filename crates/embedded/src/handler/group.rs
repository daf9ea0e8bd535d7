use rocketmq_protocol::body::{
    JsonBody, SubscriptionGroupConfig, SubscriptionGroupList, SubscriptionGroupWrapper,
};
use rocketmq_protocol::header::{
    DeleteSubscriptionGroupRequestHeader, GetSubscriptionGroupConfigRequestHeader,
};
use rocketmq_protocol::validators::check_group;
use rocketmq_protocol::{RemotingCommand, response_code};

use super::{Answer, failure};
use crate::answers::success;
use crate::broker::Broker;

/// UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200). Without a body it does nothing, with success.
pub(super) fn update(broker: &Broker, request: &RemotingCommand) -> Answer {
    if request.body.is_none() {
        return Ok(success(request));
    }
    let config = SubscriptionGroupConfig::from_command(request)?;
    if let Err(error) = check_group(&config.group_name) {
        let code = response_code::INVALID_PARAMETER;
        return Ok(failure(request, code, error.to_string()));
    }
    broker.groups.update(config);
    Ok(success(request))
}

/// UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST (225): all of them or, for one bad name, none.
pub(super) fn update_list(broker: &Broker, request: &RemotingCommand) -> Answer {
    let configs = SubscriptionGroupList::from_command(request)?.group_config_list;
    for config in &configs {
        if let Err(error) = check_group(&config.group_name) {
            let code = response_code::INVALID_PARAMETER;
            return Ok(failure(request, code, error.to_string()));
        }
    }
    for config in configs {
        broker.groups.update(config);
    }
    Ok(success(request))
}

/// GET_SUBSCRIPTIONGROUP_CONFIG (352); asking for a group creates it, where that is allowed.
pub(super) fn get(broker: &Broker, request: &RemotingCommand) -> Answer {
    let header: GetSubscriptionGroupConfigRequestHeader = request.decode_header()?;
    let Some(config) = broker.find_group(&header.group) else {
        let code = response_code::SUBSCRIPTION_GROUP_NOT_EXIST;
        return Ok(failure(request, code, "No group in this broker"));
    };
    Ok(success(request).with_body(config.to_json()?))
}

/// GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201).
pub(super) fn all(broker: &Broker, request: &RemotingCommand) -> Answer {
    let (subscription_group_table, data_version) = broker.groups.all();
    let count = subscription_group_table.len();
    let body = SubscriptionGroupWrapper {
        data_version,
        subscription_group_table,
        ..SubscriptionGroupWrapper::default()
    };
    let mut response = success(request).with_body(body.to_json()?);
    response.ext_fields.set("totalGroupNum", count.to_string());
    Ok(response)
}

/// DELETE_SUBSCRIPTIONGROUP (207). Members stay members, and their next heartbeat creates the
/// group anew.
pub(super) fn delete(broker: &Broker, request: &RemotingCommand) -> Answer {
    let header: DeleteSubscriptionGroupRequestHeader = request.decode_header()?;
    broker.groups.delete(&header.group_name);
    if header.clean_offset == Some(true) {
        broker.offsets.forget_group(&header.group_name);
    }
    Ok(success(request))
}
