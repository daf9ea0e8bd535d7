//! What brokers ask a consumer for administrators: how it does, to consume a message, other offsets.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test is outside of what loom models, and fails by panicking"
)]

mod support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, DefaultMQPushConsumer, MQClientManager,
    MessageExt, MessageQueue, Properties, RemotingCommand, request_code, response_code,
};
use rocketmq_protocol::body::{
    CMResult, ConsumeMessageDirectlyResult, ConsumerRunningInfo, GetConsumerStatusBody, JsonBody,
    ResetOffsetBody,
};
use rocketmq_protocol::header::{
    ConsumeMessageDirectlyResultRequestHeader, GetConsumerRunningInfoRequestHeader,
    GetConsumerStatusRequestHeader, NotifyConsumerIdsChangedRequestHeader,
    ResetOffsetRequestHeader,
};
use support::{Answer, Inbox, ScriptedBroker, quick, wait_until};

const TIMEOUT: Duration = Duration::from_secs(10);

type Listener = dyn Fn(&[MessageExt], &mut ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus
    + Send
    + Sync;

fn start(
    broker: &ScriptedBroker,
    listener: impl Fn(&[MessageExt], &mut ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus
    + Send
    + Sync
    + 'static,
) -> DefaultMQPushConsumer {
    let listener: Box<Listener> = Box::new(listener);
    let consumer = quick(DefaultMQPushConsumer::builder("g"))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&broker.namesrv())
        .consume_threads(7)
        .subscribe("T", "A || B")
        .message_listener(listener)
        .build()
        .unwrap();
    consumer.start().unwrap();
    consumer
}

fn tagged(tag: &str) -> Properties {
    Properties::from([("TAGS".to_owned(), tag.to_owned())])
}

fn queue() -> MessageQueue {
    MessageQueue::new("T", "scripted", 0)
}

fn running_info(group: &str) -> RemotingCommand {
    let header = GetConsumerRunningInfoRequestHeader {
        consumer_group: group.to_owned(),
        client_id: "c".to_owned(),
        jstack_enable: Some(true),
    };
    RemotingCommand::request(request_code::GET_CONSUMER_RUNNING_INFO, &header)
}

#[test]
fn a_consumer_tells_how_it_does() {
    let broker = ScriptedBroker::start(|_| Answer::Usual);
    for n in 0..3 {
        broker.put(&format!("m{n}"), &tagged("A"));
    }
    let held = Arc::new(Mutex::new(()));
    let gate = held.lock().unwrap();
    let (waiting, inside) = (Arc::clone(&held), Arc::new(AtomicUsize::new(0)));
    let entered = Arc::clone(&inside);
    let consumer = start(&broker, move |messages, _| {
        entered.fetch_add(1, Ordering::SeqCst);
        if messages[0].queue_offset() > 0 {
            drop(waiting.lock().unwrap());
        }
        ConsumeConcurrentlyStatus::ConsumeSuccess
    });
    let info = || {
        let answer = broker.ask(running_info("g"));
        assert_eq!(answer.code, response_code::SUCCESS, "{:?}", answer.remark);
        ConsumerRunningInfo::from_command(&answer).unwrap()
    };
    wait_until("one message is done and two are in work", || {
        inside.load(Ordering::SeqCst) == 3
            && info()
                .mq_table
                .get(&queue())
                .is_some_and(|queue| queue.commit_offset == 1)
    });
    let told = info();
    let of_queue = told.mq_table[&queue()];
    assert_eq!(
        (
            of_queue.cached_msg_count,
            of_queue.cached_msg_min_offset,
            of_queue.cached_msg_max_offset
        ),
        (2, 1, 2)
    );
    assert!(!of_queue.dropped && !of_queue.locked);
    assert!(of_queue.last_pull_timestamp > 1_600_000_000_000);
    assert!(of_queue.last_consume_timestamp > 1_600_000_000_000);
    let namesrv = format!("{};", broker.namesrv());
    for (name, value) in [
        (ConsumerRunningInfo::PROP_CONSUME_TYPE, "CONSUME_PASSIVELY"),
        (ConsumerRunningInfo::PROP_CONSUME_ORDERLY, "false"),
        (ConsumerRunningInfo::PROP_THREADPOOL_CORE_SIZE, "7"),
        (ConsumerRunningInfo::PROP_NAMESERVER_ADDR, namesrv.as_str()),
        ("consumerGroup", "g"),
        ("pullBatchSize", "32"),
        ("maxReconsumeTimes", "-1"),
    ] {
        assert_eq!(told.properties.get(name).map(String::as_str), Some(value));
    }
    let started = &told.properties[ConsumerRunningInfo::PROP_CONSUMER_START_TIMESTAMP];
    assert!(started.parse::<i64>().unwrap() > 1_600_000_000_000);
    let expressions: BTreeMap<_, _> = told
        .subscription_set
        .iter()
        .map(|data| (data.topic.as_str(), data.sub_string.as_str()))
        .collect();
    assert_eq!(
        expressions,
        BTreeMap::from([("%RETRY%g", "*"), ("T", "A || B")])
    );

    let header = GetConsumerStatusRequestHeader {
        topic: "T".to_owned(),
        group: "g".to_owned(),
        client_addr: None,
        broker_name: None,
    };
    let code = request_code::GET_CONSUMER_STATUS_FROM_CLIENT;
    let answer = broker.ask(RemotingCommand::request(code, &header));
    let status = GetConsumerStatusBody::from_command(&answer).unwrap();
    let offsets: Vec<_> = status.message_queue_table.into_iter().collect();
    assert_eq!(offsets, [(queue(), 1)]);

    let unknown = broker.ask(running_info("unknown"));
    assert_eq!(unknown.code, response_code::SYSTEM_ERROR);
    assert!(unknown.remark.unwrap().contains("<unknown> not exist"));
    let malformed = RemotingCommand::request_without_header(code);
    assert_eq!(broker.ask(malformed).code, response_code::SYSTEM_ERROR);
    drop(gate);
    assert!(consumer.shutdown(TIMEOUT).threads_joined);
}

#[test]
fn a_message_is_consumed_out_of_turn() {
    let broker = ScriptedBroker::start(|_| Answer::Usual);
    for (n, tag) in ["C", "C", "C"].into_iter().enumerate() {
        broker.put(&format!("m{n}"), &tagged(tag));
    }
    let consumer = start(&broker, |messages, context| {
        assert_eq!(context.message_queue(), &queue());
        match &messages[0].body()[..] {
            b"m0" => ConsumeConcurrentlyStatus::ConsumeSuccess,
            b"m1" => ConsumeConcurrentlyStatus::ReconsumeLater,
            _ => panic!("on purpose"),
        }
    });
    let directly = |body: bytes::Bytes| {
        let header = ConsumeMessageDirectlyResultRequestHeader {
            consumer_group: "g".to_owned(),
            client_id: None,
            msg_id: None,
            broker_name: Some("scripted".to_owned()),
            topic: None,
            topic_sys_flag: None,
            group_sys_flag: None,
        };
        let request = RemotingCommand::request(request_code::CONSUME_MESSAGE_DIRECTLY, &header);
        broker.ask(request.with_body(body))
    };
    for (offset, expected) in [CMResult::Success, CMResult::Later, CMResult::ThrowException]
        .into_iter()
        .enumerate()
    {
        let answer = directly(broker.stored(offset));
        assert_eq!(answer.code, response_code::SUCCESS, "{:?}", answer.remark);
        let result = ConsumeMessageDirectlyResult::from_command(&answer).unwrap();
        assert_eq!(result.consume_result, expected);
        assert!(result.auto_commit && !result.order);
        assert_eq!(
            result.remark.is_some(),
            expected == CMResult::ThrowException
        );
    }
    let answer = directly(bytes::Bytes::from_static(b"no message"));
    assert_eq!(answer.code, response_code::SYSTEM_ERROR);
    assert_eq!(
        broker.requests(request_code::CONSUMER_SEND_MSG_BACK).len(),
        0
    );
    assert!(consumer.shutdown(TIMEOUT).threads_joined);
}

/// The request that moves the topic's queue to an offset.
fn reset_to(offset: i64) -> RemotingCommand {
    let header = ResetOffsetRequestHeader {
        topic: "T".to_owned(),
        group: "g".to_owned(),
        timestamp: 0,
        is_force: true,
        queue_id: None,
        offset: None,
        broker_name: None,
    };
    let retry = MessageQueue::new("%RETRY%g", "scripted", 0);
    let body = ResetOffsetBody {
        offset_table: [(queue(), offset), (retry, 7)].into_iter().collect(),
    };
    let code = request_code::RESET_CONSUMER_CLIENT_OFFSET;
    let mut request = RemotingCommand::request(code, &header).with_body(body.to_json().unwrap());
    request.mark_oneway();
    request
}

/// A broker works on several requests of a connection at once, so it may be asked for the group's
/// offset only after it has answered that it has the new one.
#[test]
fn a_queue_is_not_taken_again_before_its_new_offset_is_saved() {
    let broker = ScriptedBroker::start(|request| match request.code {
        request_code::UPDATE_CONSUMER_OFFSET if !request.is_oneway() => Answer::Silence,
        _ => Answer::Usual,
    });
    for n in 0..3 {
        broker.put(&format!("m{n}"), &tagged("A"));
    }
    let inbox = Inbox::new();
    let received = inbox.clone();
    let consumer = start(&broker, move |messages, _| {
        received.put(messages);
        ConsumeConcurrentlyStatus::ConsumeSuccess
    });
    inbox.wait_for(3);
    broker.tell(&reset_to(0));
    let saves = || broker.requests(request_code::UPDATE_CONSUMER_OFFSET);
    let of_topic = |request: &RemotingCommand| request.ext_fields.get("topic") == Some("T");
    wait_until("the new offset is being saved", || {
        let saves = saves();
        saves
            .iter()
            .any(|(_, save)| !save.is_oneway() && of_topic(save))
    });
    let questions = || {
        let questions = broker.requests(request_code::QUERY_CONSUMER_OFFSET);
        questions
            .iter()
            .filter(|(_, question)| of_topic(question))
            .count()
    };
    assert_eq!(questions(), 1);
    let looks = broker
        .requests(request_code::GET_CONSUMER_LIST_BY_GROUP)
        .len();
    let header = NotifyConsumerIdsChangedRequestHeader {
        consumer_group: "g".to_owned(),
    };
    let code = request_code::NOTIFY_CONSUMER_IDS_CHANGED;
    let mut note = RemotingCommand::request(code, &header);
    note.mark_oneway();
    broker.tell(&note);
    // Two rebalances, so that the first one has ended.
    broker.wait_for(request_code::GET_CONSUMER_LIST_BY_GROUP, looks + 2);
    assert_eq!(questions(), 1, "the answer is still missing");
    // Which it is not for longer than a request may take.
    inbox.wait_for(6);
    assert_eq!(questions(), 2);
    assert!(consumer.shutdown(Duration::from_millis(100)).offsets_saved == 0);
}

#[test]
fn offsets_that_are_reset_are_where_it_goes_on() {
    // The offset is where the last save put it.
    let saved = Arc::new(Mutex::new("0".to_owned()));
    let saving = Arc::clone(&saved);
    let broker = ScriptedBroker::start(move |request| {
        let is_topic = request.ext_fields.get("topic") == Some("T");
        match request.code {
            request_code::UPDATE_CONSUMER_OFFSET if is_topic => {
                let offset = request.ext_fields.get("commitOffset").unwrap();
                *saving.lock().unwrap() = offset.to_owned();
                Answer::Usual
            }
            request_code::QUERY_CONSUMER_OFFSET if is_topic => {
                let offset = saving.lock().unwrap().clone();
                Answer::Fields(vec![("offset", offset.leak())])
            }
            _ => Answer::Usual,
        }
    });
    for n in 0..5 {
        broker.put(&format!("m{n}"), &tagged("A"));
    }
    let inbox = Inbox::new();
    let received = inbox.clone();
    let consumer = start(&broker, move |messages, _| {
        received.put(messages);
        ConsumeConcurrentlyStatus::ConsumeSuccess
    });
    inbox.wait_for(5);
    wait_until("it is saved", || *saved.lock().unwrap() == "5");
    broker.tell(&reset_to(2));
    inbox.wait_for(8);
    let bodies = inbox.bodies();
    let times = |n: usize| bodies[&format!("m{n}")];
    assert_eq!((0..5).map(times).collect::<Vec<_>>(), [1, 1, 2, 2, 2]);
    wait_until("it goes on from there", || *saved.lock().unwrap() == "5");
    let saves = broker.requests(request_code::UPDATE_CONSUMER_OFFSET);
    let of_retry = |save: &RemotingCommand| save.ext_fields.get("commitOffset") == Some("7");
    assert!(
        !saves.iter().any(|(_, save)| of_retry(save)),
        "another topic"
    );
    assert!(consumer.shutdown(TIMEOUT).threads_joined);
}
