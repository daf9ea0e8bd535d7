use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use rocketmq_protocol::body::{MessageModel, Permission, SubscriptionGroupConfig};
use rocketmq_protocol::header::{PullMessageRequestHeader, PullMessageResponseHeader};
use rocketmq_protocol::{
    CodecError, ExpressionType, RemotingCommand, SubscriptionData, response_code, sys_flag,
};

use super::failure;
use crate::answers::{refused, see_faq};
use crate::broker::Broker;
use crate::consumer_manager::Subscription;
use crate::long_polling::ParkedPull;
use crate::queue::{GetResult, GetStatus};
use crate::reply::Reply;
use crate::topic_config::TopicConfig;

/// What is forbidden, beside code 16 (Java `ForbiddenType`).
const BROKER_FORBIDDEN: i32 = 1;
const GROUP_FORBIDDEN: i32 = 2;
const TOPIC_FORBIDDEN: i32 = 3;
const BROADCASTING_DISABLED: i32 = 4;

/// PULL_MESSAGE (11) and LITE_PULL_MESSAGE (361). A pull that finds nothing may be parked.
pub(super) fn pull(broker: &Broker, request: RemotingCommand, reply: Reply) {
    let looked = match look(broker, &request) {
        Ok(looked) => looked,
        Err(refusal) => return reply.send(refusal.into_response(&request)),
    };
    let header = &looked.header;
    let PullMessageRequestHeader {
        consumer_group,
        topic,
        queue_id,
        commit_offset,
        ..
    } = header;
    if header.sys_flag & sys_flag::PULL_COMMIT_OFFSET != 0 {
        broker
            .offsets
            .commit(consumer_group, topic, *queue_id, *commit_offset);
    }
    let code = response_code_of(&looked.result, header.queue_offset);
    let may_wait = header.sys_flag & sys_flag::PULL_SUSPEND != 0;
    if code != response_code::PULL_NOT_FOUND || !may_wait {
        return reply.send(answer(&request, code, &looked));
    }
    let wait = broker.config().hold(header.suspend_timeout_millis);
    let pull = ParkedPull {
        reply,
        request,
        subscription: looked.subscription,
        from_offset: header.queue_offset,
        until: Instant::now().checked_add(wait),
    };
    broker.park(topic, *queue_id, pull);
}

/// Answers a pull that was parked. It is looked at anew in all respects, but it commits nothing
/// and is not parked again, as at a real broker.
pub(crate) fn resume(broker: &Broker, request: &RemotingCommand) -> RemotingCommand {
    match look(broker, request) {
        Ok(looked) => {
            let code = response_code_of(&looked.result, looked.header.queue_offset);
            answer(request, code, &looked)
        }
        Err(refusal) => refusal.into_response(request),
    }
}

struct Looked {
    header: PullMessageRequestHeader,
    subscription: Arc<SubscriptionData>,
    result: GetResult,
    topic_sys_flag: i32,
    group_sys_flag: i32,
}

enum Refusal {
    Malformed(CodecError),
    Code {
        code: i32,
        remark: String,
        forbidden_type: Option<i32>,
    },
}

impl Refusal {
    fn new(code: i32, remark: impl Into<String>) -> Self {
        Self::Code {
            code,
            remark: remark.into(),
            forbidden_type: None,
        }
    }

    fn forbidden(kind: i32, remark: String) -> Self {
        Self::Code {
            code: response_code::NO_PERMISSION,
            remark,
            forbidden_type: Some(kind),
        }
    }

    fn into_response(self, request: &RemotingCommand) -> RemotingCommand {
        match self {
            Self::Malformed(error) => refused(request, &error),
            Self::Code {
                code,
                remark,
                forbidden_type,
            } => {
                let mut response = failure(request, code, remark);
                if let Some(kind) = forbidden_type {
                    response.ext_fields.set("forbiddenType", kind.to_string());
                }
                response
            }
        }
    }
}

/// All checks and the look into the queue (Java `PullMessageProcessor#processRequest`).
fn look(broker: &Broker, request: &RemotingCommand) -> Result<Looked, Refusal> {
    let header: PullMessageRequestHeader = request.decode_header().map_err(Refusal::Malformed)?;
    if !Permission(broker.config().broker_permission).is_readable() {
        let remark = format!(
            "the broker[{}] pulling message is forbidden",
            broker.addr.ip()
        );
        return Err(Refusal::forbidden(BROKER_FORBIDDEN, remark));
    }
    let group = header.consumer_group.as_str();
    let Some(settings) = broker.find_group(group) else {
        let remark = see_faq(format!("subscription group [{group}] does not exist, "));
        let code = response_code::SUBSCRIPTION_GROUP_NOT_EXIST;
        return Err(Refusal::new(code, remark));
    };
    if !settings.consume_enable {
        let remark = format!("subscription group no permission, {group}");
        return Err(Refusal::forbidden(GROUP_FORBIDDEN, remark));
    }
    let config = check_queue(broker, &header)?;
    let subscription = subscription(broker, &header, &settings)?;
    if subscription.expression_type != ExpressionType::Tag {
        let remark = format!(
            "The broker does not support consumer to filter message by {}",
            subscription.expression_type.name()
        );
        return Err(Refusal::new(response_code::SYSTEM_ERROR, remark));
    }
    let (topic, queue_id) = (header.topic.as_str(), header.queue_id);
    let result = match broker.offsets.take_reset(group, topic, queue_id) {
        Some(target) => {
            let (min_offset, max_offset) = broker.store.ends(topic, queue_id);
            GetResult {
                status: GetStatus::OffsetReset,
                messages: Vec::new(),
                next_begin_offset: target,
                min_offset,
                max_offset,
            }
        }
        None => broker.store.get(
            topic,
            queue_id,
            header.queue_offset,
            header.max_msg_nums,
            &subscription,
        ),
    };
    broker
        .offsets
        .pulled(group, topic, queue_id, result.next_begin_offset);
    Ok(Looked {
        header,
        subscription,
        result,
        topic_sys_flag: config.topic_sys_flag,
        group_sys_flag: settings.group_sys_flag,
    })
}

fn check_queue(broker: &Broker, header: &PullMessageRequestHeader) -> Result<TopicConfig, Refusal> {
    let topic = header.topic.as_str();
    let Some(config) = broker.store.topic(topic) else {
        let remark = see_faq(format!("topic[{topic}] not exist, apply first please! "));
        return Err(Refusal::new(response_code::TOPIC_NOT_EXIST, remark));
    };
    if !config.perm.is_readable() {
        let remark = format!("the topic[{topic}] pulling message is forbidden");
        return Err(Refusal::forbidden(TOPIC_FORBIDDEN, remark));
    }
    let read_queue_nums = config.read_queue_nums;
    if !(0..read_queue_nums).contains(&header.queue_id) {
        let remark = format!(
            "queueId[{}] is illegal, topic:[{topic}] topicConfig.readQueueNums:[{read_queue_nums}]",
            header.queue_id
        );
        return Err(Refusal::new(response_code::INVALID_PARAMETER, remark));
    }
    Ok(config)
}

/// The request's own subscription, or the one of the group's heartbeats.
fn subscription(
    broker: &Broker,
    header: &PullMessageRequestHeader,
    settings: &SubscriptionGroupConfig,
) -> Result<Arc<SubscriptionData>, Refusal> {
    if header.sys_flag & sys_flag::PULL_SUBSCRIPTION != 0 {
        let expression = header.subscription.as_deref().unwrap_or_default();
        let mut data = SubscriptionData::build(&header.topic, expression, header.sub_version)
            .map_err(|_| {
                let remark = "parse the consumer's subscription failed";
                Refusal::new(response_code::SUBSCRIPTION_PARSE_FAILED, remark)
            })?;
        let tag = ExpressionType::Tag.name();
        if header
            .expression_type
            .as_deref()
            .is_some_and(|kind| kind != tag)
        {
            data.expression_type = ExpressionType::Sql92;
        }
        return Ok(Arc::new(data));
    }
    let missing =
        |remark: &str| Refusal::new(response_code::SUBSCRIPTION_NOT_EXIST, see_faq(remark));
    let group = header.consumer_group.as_str();
    let known = broker.consumers.subscription(group, &header.topic);
    let model = match &known {
        Subscription::Known(_, model) | Subscription::UnknownTopic(model) => *model,
        Subscription::UnknownGroup => return Err(missing("the consumer's group info not exist")),
    };
    if !settings.consume_broadcast_enable && model == MessageModel::Broadcasting {
        let remark = format!("the consumer group[{group}] can not consume by broadcast way");
        return Err(Refusal::forbidden(BROADCASTING_DISABLED, remark));
    }
    let Subscription::Known(known, _) = known else {
        return Err(missing("the consumer's subscription not exist"));
    };
    if known.sub_version < header.sub_version {
        let remark = "the consumer's subscription not latest";
        return Err(Refusal::new(response_code::SUBSCRIPTION_NOT_LATEST, remark));
    }
    Ok(known)
}

fn response_code_of(result: &GetResult, asked: i64) -> i32 {
    match result.status {
        GetStatus::Found => response_code::SUCCESS,
        GetStatus::NoMatchedMessage => response_code::PULL_RETRY_IMMEDIATELY,
        GetStatus::OffsetOverflowOne => response_code::PULL_NOT_FOUND,
        GetStatus::NoMessageInQueue if asked == 0 => response_code::PULL_NOT_FOUND,
        GetStatus::NoMessageInQueue
        | GetStatus::OffsetOverflowBadly
        | GetStatus::OffsetTooSmall
        | GetStatus::OffsetReset => response_code::PULL_OFFSET_MOVED,
    }
}

fn answer(request: &RemotingCommand, code: i32, looked: &Looked) -> RemotingCommand {
    let result = &looked.result;
    let header = PullMessageResponseHeader {
        suggest_which_broker_id: 0,
        next_begin_offset: result.next_begin_offset,
        min_offset: result.min_offset,
        max_offset: result.max_offset,
        offset_delta: None,
        topic_sys_flag: Some(looked.topic_sys_flag),
        group_sys_flag: Some(looked.group_sys_flag),
        forbidden_type: None,
    };
    let mut body = BytesMut::with_capacity(result.messages.iter().map(|m| m.len()).sum());
    for message in &result.messages {
        body.extend_from_slice(message);
    }
    failure(request, code, result.status.name())
        .with_header(&header)
        .with_body(body.freeze())
}
