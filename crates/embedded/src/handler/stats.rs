use std::collections::BTreeSet;
use std::sync::Arc;

use rocketmq_protocol::body::{
    Connection, ConsumeStats, ConsumerConnection, JsonBody, OffsetWrapper, ProducerConnection,
    TopicOffset, TopicStatsTable,
};
use rocketmq_protocol::header::{
    GetConsumeStatsRequestHeader, GetConsumerConnectionListRequestHeader,
    GetProducerConnectionListRequestHeader, GetTopicStatsInfoRequestHeader,
};
use rocketmq_protocol::{MessageQueue, RemotingCommand, response_code};

use super::{Answer, failure};
use crate::answers::success;
use crate::broker::Broker;
use crate::connection;
use crate::consumer_manager::{ClientInfo, Subscription};

/// GET_TOPIC_STATS_INFO (202). Rates are not measured, and are told as 0.
pub(super) fn topic(broker: &Broker, request: &RemotingCommand) -> Answer {
    let header: GetTopicStatsInfoRequestHeader = request.decode_header()?;
    let topic = header.topic.as_str();
    let Some(config) = broker.store.topic(topic) else {
        let remark = format!("topic[{topic}] not exist");
        return Ok(failure(request, response_code::TOPIC_NOT_EXIST, remark));
    };
    let mut body = TopicStatsTable::default();
    for queue_id in 0..config.queue_count() {
        let (min_offset, max_offset) = broker.store.ends(topic, queue_id);
        let last = broker.store.store_time(topic, queue_id, max_offset - 1);
        let offset = TopicOffset {
            last_update_timestamp: last.unwrap_or(0),
            max_offset,
            min_offset,
        };
        let queue = MessageQueue::new(topic, Arc::clone(&broker.name), queue_id);
        body.offset_table.insert(queue, offset);
    }
    Ok(success(request).with_body(body.to_json()?))
}

/// GET_CONSUME_STATS (208). Rates are not measured, and are told as 0.
pub(super) fn consume(broker: &Broker, request: &RemotingCommand) -> Answer {
    let header: GetConsumeStatsRequestHeader = request.decode_header()?;
    let group = header.consumer_group.as_str();
    let mut body = ConsumeStats::default();
    for topic in topics_of(broker, &header) {
        let Some(config) = broker.store.topic(&topic) else {
            continue;
        };
        for queue_id in 0..config.read_queue_nums {
            let consumed = broker.offsets.query(group, &topic, queue_id).unwrap_or(0);
            let pulled = broker.offsets.query_pulled(group, &topic, queue_id);
            let last = broker.store.store_time(&topic, queue_id, consumed - 1);
            let offset = OffsetWrapper {
                broker_offset: broker.store.max_offset(&topic, queue_id),
                consumer_offset: consumed,
                last_timestamp: last.unwrap_or(0),
                pull_offset: pulled.unwrap_or(0).max(consumed),
            };
            let queue = MessageQueue::new(topic.as_str(), Arc::clone(&broker.name), queue_id);
            body.offset_table.insert(queue, offset);
        }
    }
    Ok(success(request).with_body(body.to_json()?))
}

/// The topics that are asked for, or those the group has offsets on; of these, while it has
/// members, only what they subscribe. A list of topics is taken as it is.
fn topics_of(broker: &Broker, header: &GetConsumeStatsRequestHeader) -> BTreeSet<String> {
    let group = header.consumer_group.as_str();
    let listed = header.topic_list.as_deref().unwrap_or_default();
    let listed: BTreeSet<String> = listed
        .split(';')
        .filter(|topic| !topic.trim().is_empty())
        .map(str::to_owned)
        .collect();
    if !listed.is_empty() {
        return listed;
    }
    let topic = header.topic.as_deref().unwrap_or_default();
    let mut topics = if topic.trim().is_empty() {
        broker.offsets.topics_of(group)
    } else {
        BTreeSet::from([topic.to_owned()])
    };
    topics.retain(|topic| {
        !matches!(
            broker.consumers.subscription(group, topic),
            Subscription::UnknownTopic(_)
        )
    });
    topics
}

/// GET_CONSUMER_CONNECTION_LIST (203).
pub(super) fn consumers(broker: &Broker, request: &RemotingCommand) -> Answer {
    let header: GetConsumerConnectionListRequestHeader = request.decode_header()?;
    let group = header.consumer_group.as_str();
    let Some(info) = broker.consumers.snapshot(group) else {
        let remark = format!("the consumer group[{group}] not online");
        return Ok(failure(request, response_code::CONSUMER_NOT_ONLINE, remark));
    };
    let body = ConsumerConnection {
        connection_set: info.members.iter().map(describe).collect(),
        consume_from_where: Some(info.consume_from_where),
        consume_type: Some(info.consume_type),
        message_model: Some(info.message_model),
        subscription_table: info.subscriptions,
    };
    Ok(success(request).with_body(body.to_json()?))
}

/// GET_PRODUCER_CONNECTION_LIST (204).
pub(super) fn producers(broker: &Broker, request: &RemotingCommand) -> Answer {
    let header: GetProducerConnectionListRequestHeader = request.decode_header()?;
    let group = header.producer_group.as_str();
    let Some(members) = broker.producers.members(group) else {
        let remark = format!("the producer group[{group}] not exist");
        return Ok(failure(request, response_code::SYSTEM_ERROR, remark));
    };
    let body = ProducerConnection {
        connection_set: members.iter().map(describe).collect(),
    };
    Ok(success(request).with_body(body.to_json()?))
}

fn describe((client, connection): &(ClientInfo, Arc<connection::Connection>)) -> Connection {
    Connection {
        client_addr: connection.peer().to_string(),
        client_id: client.client_id.clone(),
        language: client.language.name().to_owned(),
        version: client.version,
    }
}
