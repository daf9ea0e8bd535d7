//! JSON bodies as the published Java classes write and read them.
#![allow(clippy::panic, clippy::unwrap_used)]

use std::fmt::Debug;

use rocketmq_protocol::body::*;
use rocketmq_protocol::pop::{ExtraInfo, RetryMarker};
use rocketmq_protocol::{CodecError, MessageQueue, SubscriptionData};

fn mq(topic: &str, queue_id: i32) -> MessageQueue {
    MessageQueue::new(topic, "b", queue_id)
}

/// The value is written as Java writes it and read back from that.
fn both_ways<B: JsonBody + PartialEq + Debug>(value: &B, java: &str) {
    let ours = String::from_utf8(value.to_json().unwrap()).unwrap();
    assert_eq!(ours, java);
    assert_eq!(B::from_json(java.as_bytes()).as_ref(), Ok(value));
}

#[test]
fn a_table_of_queues_has_objects_as_keys() {
    let body = ResetOffsetBody {
        offset_table: [(mq("t\"\\é漢\n", 0), 5), (mq("t", 1), -1)]
            .into_iter()
            .collect(),
    };
    both_ways(
        &body,
        r#"{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"t"}:-1,{"brokerName":"b","queueId":0,"topic":"t\"\\é漢\n"}:5}}"#,
    );
    both_ways(&ResetOffsetBody::default(), r#"{"offsetTable":{}}"#);
}

#[test]
fn a_table_of_queues_is_read_with_text_as_keys_too() {
    let text = r#"{"offsetTable":{"{\"queueId\":1,\"topic\":\"t\",\"brokerName\":\"b\"}":7}}"#;
    let read = OffsetSerializeWrapper::from_json(text.as_bytes()).unwrap();
    assert_eq!(read.offset_table[&mq("t", 1)], 7);
}

#[test]
fn a_key_that_is_no_queue_is_an_error() {
    for key in [r#""x""#, "1", "{}", r#"{"topic":"t"}"#] {
        let text = format!(r#"{{"offsetTable":{{{key}:7}}}}"#);
        assert!(
            matches!(
                ResetOffsetBody::from_json(text.as_bytes()),
                Err(CodecError::BadJson { .. })
            ),
            "{text}"
        );
    }
}

#[test]
fn the_status_of_clients_nests_tables_of_queues() {
    let body = GetConsumerStatusBody {
        consumer_table: [("c{1".to_owned(), [(mq("t", 1), 9)].into_iter().collect())].into(),
        message_queue_table: QueueMap::new(),
    };
    both_ways(
        &body,
        r#"{"consumerTable":{"c{1":{{"brokerName":"b","queueId":1,"topic":"t"}:9}},"messageQueueTable":{}}"#,
    );
}

#[test]
fn a_running_consumer_is_described_in_java_s_words() {
    let mut info = ConsumerRunningInfo {
        subscription_set: vec![SubscriptionData::build("t", "*", 5).unwrap()],
        status_table: [("t".to_owned(), ConsumeStatus::default())].into(),
        ..ConsumerRunningInfo::default()
    };
    info.properties.insert(
        ConsumerRunningInfo::PROP_CONSUME_ORDERLY.to_owned(),
        "false".to_owned(),
    );
    info.mq_table
        .insert(mq("t", 1), ProcessQueueInfo::default());
    info.mq_pop_table
        .insert(mq("t", 1), PopProcessQueueInfo::default());
    both_ways(
        &info,
        r#"{"mqPopTable":{{"brokerName":"b","queueId":1,"topic":"t"}:{"droped":false,"lastPopTimestamp":0,"waitAckCount":0}},"mqTable":{{"brokerName":"b","queueId":1,"topic":"t"}:{"cachedMsgCount":0,"cachedMsgMaxOffset":0,"cachedMsgMinOffset":0,"cachedMsgSizeInMiB":0,"commitOffset":0,"droped":false,"lastConsumeTimestamp":0,"lastLockTimestamp":0,"lastPullTimestamp":0,"locked":false,"transactionMsgCount":0,"transactionMsgMaxOffset":0,"transactionMsgMinOffset":0,"tryUnlockTimes":0}},"properties":{"PROP_CONSUMEORDERLY":"false"},"statusTable":{"t":{"consumeFailedMsgs":0,"consumeFailedTPS":0.0,"consumeOKTPS":0.0,"consumeRT":0.0,"pullRT":0.0,"pullTPS":0.0}},"subscriptionSet":[{"classFilterMode":false,"codeSet":[],"expressionType":"TAG","subString":"*","subVersion":5,"tagsSet":[],"topic":"t"}],"userConsumerInfo":{}}"#,
    );
    both_ways(
        &ConsumeMessageDirectlyResult::default(),
        r#"{"autoCommit":true,"consumeResult":"CR_SUCCESS","order":false,"spentTimeMills":0}"#,
    );
    let text = br#"{"consumeResult":"CR_THROW_EXCEPTION","remark":"r","order":true}"#;
    let result = ConsumeMessageDirectlyResult::from_json(text).unwrap();
    assert_eq!(result.consume_result, CMResult::ThrowException);
    assert_eq!((result.remark.as_deref(), result.order), (Some("r"), true));
}

#[test]
fn locks_are_java_s() {
    let lock = LockBatchRequestBody {
        client_id: "c".into(),
        consumer_group: "g".into(),
        mq_set: [mq("t", 1)].into(),
        only_this_broker: false,
    };
    let java = r#"{"clientId":"c","consumerGroup":"g","mqSet":[{"brokerName":"b","queueId":1,"topic":"t"}],"onlyThisBroker":false}"#;
    both_ways(&lock, java);
    let unlock = UnlockBatchRequestBody::from_json(java.as_bytes()).unwrap();
    both_ways(&unlock, java);
    both_ways(&LockBatchResponseBody::default(), r#"{"lockOKMQSet":[]}"#);
}

#[test]
fn assignments_tell_nothing_from_none() {
    both_ways(
        &QueryAssignmentRequestBody {
            client_id: "c".into(),
            consumer_group: "g".into(),
            message_model: MessageModel::Clustering,
            strategy_name: "AVG".into(),
            topic: "t".into(),
        },
        r#"{"clientId":"c","consumerGroup":"g","messageModel":"CLUSTERING","strategyName":"AVG","topic":"t"}"#,
    );
    let answer = |assignments| QueryAssignmentResponseBody {
        message_queue_assignments: assignments,
    };
    both_ways(&answer(None), "{}");
    both_ways(&answer(Some(vec![])), r#"{"messageQueueAssignments":[]}"#);
    let pull = MessageQueueAssignment {
        attachments: None,
        message_queue: mq("t", -1),
        mode: MessageRequestMode::Pull,
    };
    both_ways(
        &answer(Some(vec![pull])),
        r#"{"messageQueueAssignments":[{"messageQueue":{"brokerName":"b","queueId":-1,"topic":"t"},"mode":"PULL"}]}"#,
    );
    let mode = SetMessageRequestModeRequestBody {
        consumer_group: "g".into(),
        mode: MessageRequestMode::Pop,
        pop_share_queue_num: 3,
        topic: "t".into(),
    };
    let one = r#"{"consumerGroup":"g","mode":"POP","popShareQueueNum":3,"topic":"t"}"#;
    both_ways(&mode, one);
    both_ways(
        &MessageRequestModeSerializeWrapper {
            message_request_mode_map: [("t".to_owned(), [("g".to_owned(), mode)].into())].into(),
        },
        &format!(r#"{{"messageRequestModeMap":{{"t":{{"g":{one}}}}}}}"#),
    );
}

fn receipt(ck_queue_offset: i64, queue_offset: i64) -> ExtraInfo {
    ExtraInfo {
        ck_queue_offset,
        pop_time: 3,
        invisible_time: 4,
        revive_qid: 2,
        retry: RetryMarker::Normal,
        broker_name: "br".into(),
        queue_id: 1,
        queue_offset: Some(queue_offset),
    }
}

#[test]
fn receipts_of_one_range_become_one_batch_ack() {
    let receipts = [receipt(7, 7), receipt(7, 16), receipt(7, 9)];
    let (body, alone) = BatchAckMessageRequestBody::gather("br", "g", "T", &receipts);
    assert_eq!(alone, [&receipts[0]; 0]);
    both_ways(
        &body,
        r#"{"acks":[{"b":"BQI=","c":"g","it":4,"pt":3,"q":1,"r":"0","rq":2,"so":7,"t":"T"}],"brokerName":"br"}"#,
    );
    let set = &body.acks[0].bit_set;
    assert_eq!(set.iter().collect::<Vec<_>>(), [0, 2, 9]);
    assert!(set.contains(9) && !set.contains(1) && !set.contains(1000));
}

#[test]
fn receipts_of_other_ranges_stay_apart() {
    let retry = ExtraInfo {
        retry: RetryMarker::RetryV1,
        ..receipt(7, 7)
    };
    let receipts = [
        receipt(7, 7),
        receipt(8, 8),
        retry,
        ExtraInfo {
            pop_time: 9,
            ..receipt(7, 7)
        },
        ExtraInfo {
            queue_id: 0,
            ..receipt(7, 7)
        },
    ];
    let (body, alone) = BatchAckMessageRequestBody::gather("br", "g", "T", &receipts);
    assert_eq!((body.acks.len(), alone.len()), (5, 0));

    let receipts = [
        receipt(7, 6),
        receipt(0, 65_536),
        receipt(i64::MIN, 1),
        ExtraInfo {
            queue_offset: None,
            ..receipt(7, 7)
        },
        ExtraInfo {
            broker_name: "other".into(),
            ..receipt(7, 7)
        },
    ];
    let (body, alone) = BatchAckMessageRequestBody::gather("br", "g", "T", &receipts);
    assert_eq!((body.acks.len(), alone.len()), (0, 5));
}

#[test]
fn a_bit_set_is_equal_however_long_its_text() {
    let read = |text: &str| {
        let json = format!(r#"{{"acks":[{{"b":"{text}"}}]}}"#);
        BatchAckMessageRequestBody::from_json(json.as_bytes()).map(|mut body| body.acks.remove(0))
    };
    let set: AckBitSet = [0_u16, 2, 9].into_iter().collect();
    assert_eq!(read("BQI=").unwrap().bit_set, set);
    assert_eq!(read("BQIAAAA=").unwrap().bit_set, set);
    assert_eq!(read("").unwrap().bit_set, AckBitSet::default());
    assert!(read("!").is_err());
    let last: AckBitSet = [u16::MAX].into_iter().collect();
    assert_eq!(last.iter().collect::<Vec<_>>(), [u16::MAX]);
}

#[test]
fn settings_are_java_s() {
    let group = SubscriptionGroupConfig::new("g");
    both_ways(
        &group,
        r#"{"attributes":{},"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,"consumeFromMinEnable":true,"consumeMessageOrderly":false,"consumeTimeoutMinute":15,"groupName":"g","groupSysFlag":0,"notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,"whichBrokerWhenConsumeSlowly":1}"#,
    );
    let java = r#"{"attributes":{},"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,"consumeFromMinEnable":true,"consumeMessageOrderly":false,"consumeTimeoutMinute":15,"groupName":"g","groupRetryPolicy":{"type":"CUSTOMIZED"},"groupSysFlag":0,"notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,"subscriptionDataSet":[{"expression":"*","expressionType":"TAG","topic":"t","version":5}],"whichBrokerWhenConsumeSlowly":1}"#;
    both_ways(
        &SubscriptionGroupConfig::from_json(java.as_bytes()).unwrap(),
        java,
    );
    let topic = TopicConfig {
        topic_name: "t".into(),
        ..TopicConfig::default()
    };
    let topic_text = r#"{"attributes":{},"order":false,"perm":6,"readQueueNums":16,"topicFilterType":"SINGLE_TAG","topicName":"t","topicSysFlag":0,"writeQueueNums":16}"#;
    both_ways(&topic, topic_text);
    let version = r#"{"counter":0,"stateVersion":0,"timestamp":5}"#;
    let registration = format!(
        r#"{{"filterServerList":[],"topicConfigSerializeWrapper":{{"dataVersion":{version},"mappingDataVersion":{version},"topicConfigTable":{{"t":{topic_text}}},"topicQueueMappingDetailMap":{{}},"topicQueueMappingInfoMap":{{}}}}}}"#
    );
    let read = RegisterBrokerBody::from_json(registration.as_bytes()).unwrap();
    let wrapper = &read.topic_config_serialize_wrapper;
    assert_eq!(wrapper.topic_config_table["t"], topic);
    assert_eq!(wrapper.data_version.timestamp, 5);
    assert_eq!(
        String::from_utf8(read.to_json().unwrap()).unwrap(),
        registration
    );
    both_ways(
        &SubscriptionGroupWrapper::default(),
        r#"{"dataVersion":{"counter":0,"stateVersion":0,"timestamp":0},"forbiddenTable":{},"subscriptionGroupTable":{}}"#,
    );
}

#[test]
fn lite_subscriptions_are_java_s() {
    let change = LiteSubscriptionDTO {
        action: LiteSubscriptionAction::PartialAdd,
        client_id: "c".into(),
        group: "g".into(),
        lite_topic_set: ["l".to_owned()].into(),
        offset_option: Some(OffsetOption {
            kind: OffsetOptionType::TailN,
            value: 5,
        }),
        topic: "t".into(),
        version: 0,
    };
    both_ways(
        &LiteSubscriptionCtlRequestBody {
            subscription_set: vec![change],
        },
        r#"{"subscriptionSet":[{"action":"PARTIAL_ADD","clientId":"c","group":"g","liteTopicSet":["l"],"offsetOption":{"type":"TAIL_N","value":5},"topic":"t","version":0}]}"#,
    );
}

#[test]
fn the_answers_to_administrators_are_read() {
    let java = r#"{"consumeTimeSpanSet":[{"consumeTimeStamp":1,"consumeTimeStampStr":"1970-01-01#00:00:00:001","delayTime":2,"maxTimeStamp":3,"maxTimeStampStr":"1970-01-01#00:00:00:003","messageQueue":{"brokerName":"b","queueId":1,"topic":"t"},"minTimeStamp":4,"minTimeStampStr":"1970-01-01#00:00:00:004"}]}"#;
    let spans = QueryConsumeTimeSpanBody::from_json(java.as_bytes()).unwrap();
    let span = QueueTimeSpan {
        consume_time_stamp: 1,
        delay_time: 2,
        max_time_stamp: 3,
        message_queue: mq("t", 1),
        min_time_stamp: 4,
    };
    assert_eq!(spans.consume_time_span_set, [span]);

    let mut topic = TopicStatsTable::default();
    topic
        .offset_table
        .insert(mq("t", 1), TopicOffset::default());
    both_ways(
        &topic,
        r#"{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"t"}:{"lastUpdateTimestamp":0,"maxOffset":0,"minOffset":0}},"topicPutTps":0.0}"#,
    );
    let mut group = ConsumeStats::default();
    group
        .offset_table
        .insert(mq("t", 1), OffsetWrapper::default());
    both_ways(
        &group,
        r#"{"consumeTps":0.0,"offsetTable":{{"brokerName":"b","queueId":1,"topic":"t"}:{"brokerOffset":0,"consumerOffset":0,"lastTimestamp":0,"pullOffset":0}}}"#,
    );
    let connection = Connection {
        client_addr: "a".into(),
        client_id: "c".into(),
        language: "RUST".into(),
        version: 513,
    };
    let text = r#"{"clientAddr":"a","clientId":"c","language":"RUST","version":513}"#;
    both_ways(
        &ProducerConnection {
            connection_set: vec![connection.clone()],
        },
        &format!(r#"{{"connectionSet":[{text}]}}"#),
    );
    both_ways(
        &ConsumerConnection {
            connection_set: vec![connection],
            consume_type: Some(ConsumeType::ConsumePop),
            ..ConsumerConnection::default()
        },
        &format!(
            r#"{{"connectionSet":[{text}],"consumeType":"CONSUME_POP","subscriptionTable":{{}}}}"#
        ),
    );
    both_ways(
        &TopicList {
            broker_addr: None,
            topic_list: vec!["t".into()],
        },
        r#"{"topicList":["t"]}"#,
    );
    both_ways(
        &KVTable {
            table: [("k".to_owned(), "v".to_owned())].into(),
        },
        r#"{"table":{"k":"v"}}"#,
    );
}

#[test]
fn a_static_topic_s_route_has_bare_numbers_as_keys() {
    let java = r#"{"brokerDatas":[],"filterServerTable":{},"queueDatas":[],"topicQueueMappingByBroker":{"b":{"bname":"b","currIdMap":{0:1},"dirty":false,"epoch":9,"scope":"__global__","topic":"t","totalQueues":4}}}"#;
    let route = TopicRouteData::from_json(java.as_bytes()).unwrap();
    let mapping = &route.topic_queue_mapping_by_broker.as_ref().unwrap()["b"];
    assert_eq!(mapping.curr_id_map, [(0, 1)].into());
    assert_eq!((mapping.epoch, mapping.total_queues), (9, 4));
    let strict = route.to_json().unwrap();
    assert_eq!(TopicRouteData::from_json(&strict), Ok(route));
}
