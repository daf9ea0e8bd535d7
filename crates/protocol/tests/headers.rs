//! The field names of headers, against the names that Java's header classes have.
#![allow(clippy::panic, clippy::unwrap_used)]

use std::fmt::Debug;

use rocketmq_protocol::header::*;
use rocketmq_protocol::{
    CodecError, ExtFields, RemotingCommand, SerializeType, request_code, response_code,
};

/// The header's fields by Java, each with a value of its type: an `i` or `l` number, a `b` boolean
/// or `s` text; those after the bar may be absent. All of them must be read and written again, the
/// required ones must be missed.
fn check<H: CommandCustomHeader + Debug + PartialEq>(fields: &str) {
    let (required, optional) = fields.split_once('|').unwrap_or((fields, ""));
    let (required, optional) = (parse(required), parse(optional));
    let mut all = ExtFields::new();
    for (number, (name, kind)) in required.iter().chain(&optional).enumerate() {
        let value = match *kind {
            "i" => format!("{}", -1 - number as i32),
            "l" => format!("{}", 10_000_000_000 + number as i64),
            "b" => "true".to_owned(),
            "s" => format!("text {number}"),
            other => panic!("unknown kind {other}"),
        };
        all.set(name, value);
    }
    let header = H::decode(&all).unwrap();
    let mut written = ExtFields::new();
    header.encode(&mut written);
    let sorted = |fields: &ExtFields| {
        let mut all: Vec<_> = fields
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        all.sort();
        all
    };
    assert_eq!(sorted(&written), sorted(&all), "{}", H::NAME);

    let without = |left_out: &str| -> ExtFields {
        let rest = all.iter().filter(|(name, _)| *name != left_out);
        rest.map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    };
    for (name, _) in &required {
        assert!(
            matches!(
                H::decode(&without(name)),
                Err(CodecError::MissingField { header, field }) if header == H::NAME && field == *name
            ),
            "{} without {name}",
            H::NAME
        );
    }
    for (name, kind) in &optional {
        let mut written = ExtFields::new();
        H::decode(&without(name)).unwrap().encode(&mut written);
        assert_eq!(written.get(name), None, "{} without {name}", H::NAME);
        if *kind != "s" {
            let mut odd = without(name);
            odd.set(name, "x");
            assert!(H::decode(&odd).is_err(), "{} with a bad {name}", H::NAME);
        }
    }
}

fn parse(fields: &str) -> Vec<(&str, &str)> {
    fields
        .split_whitespace()
        .map(|field| field.split_once(':').unwrap())
        .collect()
}

#[test]
fn any_request() {
    check::<RpcRequestHeader>("| ns:s nsd:b bname:s oway:b lo:b");
}

#[test]
fn pulling_and_offsets() {
    check::<PullMessageRequestHeader>(
        "consumerGroup:s topic:s queueId:i queueOffset:l maxMsgNums:i sysFlag:i commitOffset:l \
         suspendTimeoutMillis:l subVersion:l | liteTopic:s subscription:s expressionType:s \
         maxMsgBytes:i requestSource:i proxyFrowardClientId:s bname:s",
    );
    check::<SearchOffsetRequestHeader>(
        "topic:s queueId:i timestamp:l | boundaryType:s liteTopic:s bname:s",
    );
    check::<GetEarliestMsgStoretimeRequestHeader>("topic:s queueId:i | bname:s");
    check::<GetEarliestMsgStoretimeResponseHeader>("timestamp:l");
}

#[test]
fn popping() {
    check::<PopMessageRequestHeader>(
        "consumerGroup:s topic:s queueId:i maxMsgNums:i invisibleTime:l pollTime:l bornTime:l \
         initMode:i | expType:s exp:s order:b attemptId:s bname:s",
    );
    check::<PopMessageResponseHeader>(
        "popTime:l invisibleTime:l reviveQid:i restNum:l | startOffsetInfo:s msgOffsetInfo:s \
         orderCountInfo:s",
    );
    check::<AckMessageRequestHeader>(
        "consumerGroup:s topic:s queueId:i extraInfo:s offset:l | liteTopic:s bname:s",
    );
    check::<ChangeInvisibleTimeRequestHeader>(
        "consumerGroup:s topic:s queueId:i extraInfo:s offset:l invisibleTime:l | liteTopic:s \
         suspend:b bname:s",
    );
    check::<ChangeInvisibleTimeResponseHeader>("popTime:l invisibleTime:l reviveQid:i");
    check::<PeekMessageRequestHeader>("topic:s queueId:i maxMsgNums:i consumerGroup:s | bname:s");
    check::<NotificationRequestHeader>(
        "consumerGroup:s topic:s queueId:i pollTime:l bornTime:l | order:b attemptId:s expType:s \
         exp:s bname:s",
    );
    check::<NotificationResponseHeader>("hasMsg:b | pollingFull:b");
    check::<PollingInfoRequestHeader>("consumerGroup:s topic:s queueId:i | bname:s");
    check::<PollingInfoResponseHeader>("pollingNum:i");
    check::<PopLiteMessageRequestHeader>(
        "clientId:s consumerGroup:s topic:s maxMsgNum:i invisibleTime:l pollTime:l bornTime:l | \
         attemptId:s bname:s",
    );
    check::<PopLiteMessageResponseHeader>(
        "popTime:l invisibleTime:l reviveQid:i | startOffsetInfo:s msgOffsetInfo:s \
         orderCountInfo:s",
    );
    check::<NotifyUnsubscribeLiteRequestHeader>("liteTopic:s consumerGroup:s clientId:s");
}

#[test]
fn transactions_recalls_and_replies() {
    check::<EndTransactionRequestHeader>(
        "producerGroup:s tranStateTableOffset:l commitLogOffset:l commitOrRollback:i msgId:s | \
         topic:s fromTransactionCheck:b transactionId:s bname:s",
    );
    check::<CheckTransactionStateRequestHeader>(
        "tranStateTableOffset:l commitLogOffset:l | topic:s msgId:s transactionId:s offsetMsgId:s \
         bname:s",
    );
    check::<RecallMessageRequestHeader>("topic:s recallHandle:s | producerGroup:s bname:s");
    check::<RecallMessageResponseHeader>("msgId:s");
    check::<ReplyMessageRequestHeader>(
        "producerGroup:s topic:s defaultTopic:s defaultTopicQueueNums:i queueId:i sysFlag:i \
         bornTimestamp:l flag:i bornHost:s storeHost:s storeTimestamp:l | properties:s \
         reconsumeTimes:i unitMode:b",
    );
}

#[test]
fn queries() {
    check::<QueryMessageRequestHeader>(
        "topic:s key:s maxNum:i beginTimestamp:l endTimestamp:l | indexType:s lastKey:s bname:s",
    );
    check::<QueryMessageResponseHeader>("indexLastUpdateTimestamp:l indexLastUpdatePhyoffset:l");
    check::<ViewMessageRequestHeader>("offset:l | topic:s");
    assert_eq!(UNIQUE_KEY_QUERY, "_UNIQUE_KEY_QUERY");
}

#[test]
fn consumers() {
    check::<ResetOffsetRequestHeader>(
        "topic:s group:s timestamp:l isForce:b | queueId:i offset:l bname:s",
    );
    check::<GetConsumerStatusRequestHeader>("topic:s group:s | clientAddr:s bname:s");
    check::<GetConsumerRunningInfoRequestHeader>("consumerGroup:s clientId:s | jstackEnable:b");
    check::<ConsumeMessageDirectlyResultRequestHeader>(
        "consumerGroup:s | clientId:s msgId:s brokerName:s topic:s topicSysFlag:i groupSysFlag:i",
    );
    check::<GetConsumerConnectionListRequestHeader>("consumerGroup:s");
    check::<GetProducerConnectionListRequestHeader>("producerGroup:s");
    check::<GetConsumeStatsRequestHeader>("consumerGroup:s | topic:s topicList:s");
    check::<QueryConsumeTimeSpanRequestHeader>("topic:s group:s");
}

#[test]
fn administration() {
    check::<DeleteTopicRequestHeader>("topic:s");
    check::<DeleteTopicFromNamesrvRequestHeader>("topic:s | clusterName:s");
    check::<DeleteSubscriptionGroupRequestHeader>("groupName:s | cleanOffset:b");
    check::<GetTopicStatsInfoRequestHeader>("topic:s");
    check::<GetTopicConfigRequestHeader>("topic:s");
    check::<GetSubscriptionGroupConfigRequestHeader>("group:s");
    check::<PutKVConfigRequestHeader>("namespace:s key:s value:s");
    check::<GetKVConfigRequestHeader>("namespace:s key:s");
    check::<GetKVConfigResponseHeader>("| value:s");
    check::<DeleteKVConfigRequestHeader>("namespace:s key:s");
    check::<GetKVListByNamespaceRequestHeader>("namespace:s");
    check::<GetTopicsByClusterRequestHeader>("cluster:s");
    check::<WritePermOfBrokerRequestHeader>("brokerName:s");
    check::<RegisterBrokerRequestHeader>(
        "brokerName:s brokerAddr:s clusterName:s haServerAddr:s brokerId:l compressed:b | \
         heartbeatTimeoutMillis:l enableActingMaster:b bodyCrc32:i",
    );
    check::<RegisterBrokerResponseHeader>("| haServerAddr:s masterAddr:s");
    check::<UnRegisterBrokerRequestHeader>("brokerName:s brokerAddr:s clusterName:s brokerId:l");
}

#[test]
fn common_fields_join_those_of_the_header() {
    let namespace = RpcRequestHeader {
        namespace: Some("n".into()),
        namespaced: Some(true),
        ..RpcRequestHeader::default()
    };
    let topic = GetTopicConfigRequestHeader { topic: "t".into() };
    let mut request =
        RemotingCommand::request(request_code::GET_TOPIC_CONFIG, &topic).with_header(&namespace);
    request.serialize_type = SerializeType::RocketMq;
    assert_eq!(request.decode_header(), Ok(topic));
    assert_eq!(request.decode_header(), Ok(namespace));
    let names: Vec<_> = request.ext_fields.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["topic", "ns", "nsd"]);
}

#[test]
fn codes_have_their_java_names() {
    assert_eq!(request_code::name(200_151), "BATCH_ACK_MESSAGE");
    assert_eq!(request_code::name(10), "SEND_MESSAGE");
    assert_eq!(request_code::name(-7), "UNKNOWN");
    assert_eq!(response_code::name(-1006), "RPC_TIME_OUT");
    assert_eq!(response_code::name(0), "SUCCESS");
    assert_eq!(response_code::name(7), "UNKNOWN");
}
