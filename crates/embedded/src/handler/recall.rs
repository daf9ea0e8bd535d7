use rocketmq_protocol::body::Permission;
use rocketmq_protocol::header::{RecallMessageRequestHeader, RecallMessageResponseHeader};
use rocketmq_protocol::{RecallHandle, RemotingCommand, property, response_code};

use super::{Answer, failure};
use crate::answers::success;
use crate::broker::Broker;
use crate::store::now_millis;
use crate::timer_message_store::slot;

/// RECALL_MESSAGE (370) (Java `RecallMessageProcessor`). Whether the message waits is not looked at:
/// a handle of one that was taken back already is good as well.
pub(super) fn recall(broker: &Broker, request: &RemotingCommand) -> Answer {
    let header: RecallMessageRequestHeader = request.decode_header()?;
    let mut answer = match take_back(broker, &header) {
        Ok(uniq_key) => {
            success(request).with_header(&RecallMessageResponseHeader { msg_id: uniq_key })
        }
        Err((code, remark)) => failure(request, code, format!("recall failed, {remark}")),
    };
    answer
        .ext_fields
        .set(property::MSG_REGION, super::send::REGION);
    Ok(answer)
}

fn take_back(
    broker: &Broker,
    header: &RecallMessageRequestHeader,
) -> Result<String, (i32, String)> {
    let config = broker.config();
    let refuse = |code, remark: &str| Err((code, remark.to_owned()));
    let illegal = |remark| refuse(response_code::ILLEGAL_OPERATION, remark);
    if !config.recall_message_enable {
        return refuse(response_code::NO_PERMISSION, "operation is forbidden");
    }
    if !Permission(config.broker_permission).is_writeable() {
        let code = response_code::SERVICE_NOT_AVAILABLE;
        return refuse(code, "broker service not available");
    }
    let topic = header.topic.as_str();
    if broker.store.topic(topic).is_none() {
        let remark = format!("the topic[{topic}] not exist");
        return Err((response_code::TOPIC_NOT_EXIST, remark));
    }
    let Ok(handle) = RecallHandle::parse(&header.recall_handle) else {
        return illegal("the handle is none");
    };
    if handle.topic != topic {
        return illegal("topic not match");
    }
    if handle.broker_name != *broker.name {
        return illegal("broker service not available");
    }
    let left = handle.deliver_millis.saturating_sub(now_millis());
    if left <= 0 || left as u128 >= config.timer_max_delay.as_millis() {
        return illegal("timestamp invalid");
    }
    let out = slot(handle.deliver_millis, &config);
    broker.timers.remove(out, topic, &handle.uniq_key);
    Ok(handle.uniq_key)
}
