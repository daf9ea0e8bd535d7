//! Traces: what is written of messages, where, and what is not.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and is outside of what loom models"
)]

mod support;

use std::collections::BTreeSet;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rocketmq_blocking::{
    AccessChannel, ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere,
    DefaultMQProducer, DefaultMQProducerBuilder, DefaultMQPushConsumer,
    DefaultMQPushConsumerBuilder, MQClientManager, Message, MessageExt, MessageQueue, request_code,
    response_code,
};
use rocketmq_embedded::{Cluster, ControlAction, ControlHandle, ControlScope, ControlTimes};
use support::{
    Commits, GENEROUS, Inbox, keep_logs, logged, producer_at, quick, started, wait_until,
};

const TRACE_TOPIC: &str = "RMQ_SYS_TRACE_TOPIC";
const TIMEOUT: Duration = Duration::from_secs(5);

fn cluster() -> Cluster {
    let traced = Cluster::builder().configure(|config| config.trace_topic_enable = true);
    let cluster = traced.start().unwrap();
    cluster.create_topic("T", 1).unwrap();
    cluster
}

fn producer(cluster: &Cluster) -> DefaultMQProducerBuilder {
    producer_at(&cluster.namesrv_addr()).enable_trace(true)
}

fn consumer(cluster: &Cluster, topic: &str) -> DefaultMQPushConsumerBuilder {
    quick(DefaultMQPushConsumer::builder("c"))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&cluster.namesrv_addr())
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .subscribe(topic, "*")
        .enable_trace(true)
}

/// The fields of every record of a topic, in the order in which they were stored.
fn records(cluster: &Cluster, topic: &str) -> Vec<Vec<String>> {
    let mut records = Vec::new();
    for message in cluster.messages(topic) {
        let body = String::from_utf8(message.body().to_vec()).unwrap();
        assert!(body.ends_with('\u{2}'), "{body:?}");
        let ended = body.split_terminator('\u{2}');
        records.extend(ended.map(|record| record.split('\u{1}').map(str::to_owned).collect()));
    }
    records
}

fn of_type(records: &[Vec<String>], name: &str) -> Vec<Vec<String>> {
    let mut found = records.to_vec();
    found.retain(|record| record[0] == name);
    found
}

/// Acts on sends to the trace topic only.
fn at_traces(cluster: &Cluster, action: ControlAction) -> ControlHandle {
    cluster.control_when(
        ControlScope::Cluster,
        request_code::SEND_MESSAGE_V2,
        ControlTimes::UntilLifted,
        move |request| {
            let topic = request.command.ext_fields.get("b");
            (topic == Some(TRACE_TOPIC)).then(|| action.clone())
        },
    )
}

#[test]
fn a_send_is_told_of_and_a_shutdown_brings_what_waits() {
    let cluster = cluster();
    let producer = started(producer(&cluster));
    let message = Message::new("T", "body")
        .with_tags("tag")
        .with_keys("k1 k2");
    let sent = producer.send(&message).unwrap();
    let (told, outcome) = channel();
    producer
        .send_async(Message::new("T", "other"), move |outcome| {
            told.send(outcome.unwrap().msg_id).unwrap();
        })
        .unwrap();
    let async_id = outcome.recv_timeout(GENEROUS).unwrap();
    let report = producer.shutdown(TIMEOUT);
    assert!(report.threads_joined);
    let records = records(&cluster, TRACE_TOPIC);
    assert_eq!(records.len(), 2, "{records:?}");
    let addr = cluster.broker_addr("broker-a").unwrap();
    let first = &records[0];
    let expected = [
        "Pub",
        &first[1],
        "DefaultRegion",
        "p",
        "T",
        &sent.msg_id,
        "tag",
        "k1 k2",
        &addr,
        "4",
        &first[10],
        "0",
        &sent.offset_msg_id,
        "true",
    ];
    assert_eq!(first, &expected.map(str::to_owned));
    assert!(first[1].parse::<i64>().unwrap() > 1_600_000_000_000);
    assert!(first[10].parse::<i64>().unwrap() >= 0);
    assert_eq!(records[1][5], async_id);
    assert_eq!((&*records[1][6], &*records[1][7]), ("null", "null"));
    let stored = cluster.messages(TRACE_TOPIC);
    assert_eq!(stored.len(), 1, "they were sent together");
    let keys: BTreeSet<&str> = stored[0].keys().unwrap().split(' ').collect();
    assert_eq!(
        keys,
        BTreeSet::from([&*sent.msg_id, &*async_id, "k1", "k2"])
    );
    assert_eq!(producer.trace_discard_count(), 0);
}

#[test]
fn a_full_batch_does_not_wait_and_a_group_of_its_own_sends_it() {
    let cluster = cluster();
    let producer = started(producer(&cluster).trace_msg_batch_num(2));
    for n in 0..4 {
        producer.send(&Message::new("T", format!("m{n}"))).unwrap();
    }
    wait_until("both batches are stored", || {
        records(&cluster, TRACE_TOPIC).len() == 4
    });
    // Brokers know ids from heartbeats.
    wait_until("one client of its own has sent them", || {
        let of_traces = "@PID_CLIENT_INNER_TRACE_PRODUCER_127.0.0.1:";
        let ids = cluster
            .connections()
            .into_iter()
            .filter_map(|c| c.client_id);
        ids.filter(|id| id.contains(of_traces)).count() == 1
    });
    producer.shutdown(TIMEOUT);
}

#[test]
fn what_brokers_do_not_want_told_what_failed_and_what_has_no_answer_is_not() {
    let cluster = cluster();
    let producer = started(producer(&cluster));
    cluster.configure(|config| config.trace_on = false).unwrap();
    producer.send(&Message::new("T", "unwanted")).unwrap();
    cluster.configure(|config| config.trace_on = true).unwrap();
    let refuse = ControlAction::Respond(response_code::MESSAGE_ILLEGAL, None);
    let code = request_code::SEND_MESSAGE_V2;
    cluster.control(code, refuse, ControlTimes::Once);
    producer.send(&Message::new("T", "refused")).unwrap_err();
    producer.send_oneway(&Message::new("T", "one-way")).unwrap();
    producer
        .send(&Message::new(TRACE_TOPIC, "of itself\u{2}"))
        .unwrap();
    let wanted = producer.send(&Message::new("T", "wanted")).unwrap();
    producer.shutdown(TIMEOUT);
    let mut records = records(&cluster, TRACE_TOPIC);
    records.retain(|record| record[0] != "of itself");
    assert_eq!(records.len(), 1, "{records:?}");
    assert_eq!(records[0][5], wanted.msg_id);
}

#[test]
fn the_end_of_a_transaction_is_told_of() {
    let cluster = Cluster::builder()
        .configure(|config| {
            config.trace_topic_enable = true;
            config.transaction_check_interval = Duration::from_millis(50);
            config.transaction_time_out = Duration::ZERO;
        })
        .start()
        .unwrap();
    cluster.create_topic("T", 1).unwrap();
    let producer = producer(&cluster)
        .trace_msg_batch_num(1)
        .transaction_listener(Commits)
        .build()
        .unwrap();
    producer.start().unwrap();
    let message = Message::new("T", "m").with_tags("later").with_keys("k");
    let sent = producer.send_message_in_transaction(&message, &()).unwrap();
    let id = sent.send_result.msg_id;
    wait_until("the end is told of, and that of the check", || {
        of_type(&records(&cluster, TRACE_TOPIC), "EndTransaction").len() >= 2
    });
    producer.shutdown(TIMEOUT);
    let records = records(&cluster, TRACE_TOPIC);
    let half = &of_type(&records, "Pub")[0];
    assert_eq!((&*half[5], &*half[11]), (&*id, "1"), "a half message");
    let addr = cluster.broker_addr("broker-a").unwrap();
    let ends = of_type(&records, "EndTransaction");
    let of = |end: &Vec<String>, state: &str, checked: &str| {
        let expected = [
            "EndTransaction",
            &end[1],
            "DefaultRegion",
            "p",
            "T",
            &id,
            "later",
            "k",
            &addr,
            "2",
            &id,
            state,
            checked,
        ];
        expected.map(str::to_owned).to_vec()
    };
    assert_eq!(ends[0], of(&ends[0], "UNKNOW", "false"));
    assert_eq!(ends[1], of(&ends[1], "ROLLBACK_MESSAGE", "true"));
}

#[test]
fn calls_of_the_listener_are_told_of_before_and_after() {
    let cluster = cluster();
    let mq = MessageQueue::new("T", "broker-a", 0);
    let traced = consumer(&cluster, "T")
        .message_listener(
            |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| match &messages[0].body()
                [..]
            {
                b"fails" => ConsumeConcurrentlyStatus::ReconsumeLater,
                b"panics" => panic!("on purpose"),
                _ => ConsumeConcurrentlyStatus::ConsumeSuccess,
            },
        )
        .trace_msg_batch_num(1)
        .build()
        .unwrap();
    traced.start().unwrap();
    let plain = started(producer(&cluster).enable_trace(false));
    for (count, (body, success, code)) in [
        ("works", "true", "0"),
        ("fails", "false", "4"),
        ("panics", "false", "2"),
    ]
    .into_iter()
    .enumerate()
    {
        let message = Message::new("T", body).with_keys("k");
        let sent = plain.send_to_queue(&message, &mq).unwrap();
        // In two messages, of which either may be stored first.
        wait_until("its call is told of", || {
            let records = records(&cluster, TRACE_TOPIC);
            let told = |name: &str| of_type(&records, name).len() > count;
            told("SubBefore") && told("SubAfter")
        });
        let records = records(&cluster, TRACE_TOPIC);
        let before = of_type(&records, "SubBefore").pop().unwrap();
        let id = sent.msg_id.as_str();
        let request = before[4].clone();
        let expected = [
            "SubBefore",
            &before[1],
            "DefaultRegion",
            "c",
            &request,
            id,
            "0",
            "k",
        ];
        assert_eq!(before, expected.map(str::to_owned));
        let after = of_type(&records, "SubAfter").pop().unwrap();
        let expected = [
            "SubAfter", &request, id, &after[3], success, "k", code, &after[7], "c",
        ];
        assert_eq!(after, expected.map(str::to_owned));
        assert!(after[7] >= before[1], "time passes");
    }
    assert!(traced.shutdown(TIMEOUT).threads_joined);
}

#[test]
fn messages_without_a_region_and_those_of_the_trace_topic_are_not_told_of() {
    let cluster = cluster();
    let inbox = Inbox::new();
    let traced = consumer(&cluster, "T")
        .subscribe(TRACE_TOPIC, "*")
        .message_listener(inbox.listener())
        .trace_msg_batch_num(1)
        .build()
        .unwrap();
    traced.start().unwrap();
    let plain = started(producer(&cluster).enable_trace(false));
    let batch = [Message::new("T", "b1"), Message::new("T", "b2")];
    plain.send_batch(&batch).unwrap();
    inbox.wait_for_bodies(2);
    plain.send(&Message::new("T", "m")).unwrap();
    // The message, and what is told before and after: then nothing more.
    inbox.wait_for_bodies(5);
    traced.shutdown(TIMEOUT);
    let records = records(&cluster, TRACE_TOPIC);
    // Two sends under way at once may be stored in either order.
    let types: BTreeSet<&str> = records.iter().map(|record| &*record[0]).collect();
    assert_eq!(
        types,
        BTreeSet::from(["SubAfter", "SubBefore"]),
        "{records:?}"
    );
    assert_eq!(records.len(), 2, "{records:?}");
}

#[test]
fn names_are_plain_and_topics_and_channels_of_your_own_are_used() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("space%T", 1).unwrap();
    cluster.create_topic("MyTraces", 1).unwrap();
    let traced = started(
        producer(&cluster)
            .namespace("space")
            .trace_topic("MyTraces"),
    );
    traced.send(&Message::new("T", "m")).unwrap();
    traced.shutdown(TIMEOUT);
    let record = records(&cluster, "MyTraces").remove(0);
    assert_eq!((&*record[3], &*record[4]), ("p", "T"));

    // It is made by the first trace, from the template topic.
    let cloud = started(
        producer(&cluster)
            .namespace("space")
            .access_channel(AccessChannel::Cloud),
    );
    cloud.send(&Message::new("T", "m")).unwrap();
    cloud.shutdown(TIMEOUT);
    assert_eq!(
        records(&cluster, "rmq_sys_TRACE_DATA_DefaultRegion").len(),
        1
    );
}

#[test]
fn a_message_that_is_taken_back_is_told_of_if_that_is_wanted() {
    let cluster = Cluster::builder()
        .configure(|config| {
            config.trace_topic_enable = true;
            config.recall_message_enable = true;
        })
        .start()
        .unwrap();
    cluster.create_topic("T", 1).unwrap();
    for wanted in [false, true] {
        let producer = started(producer(&cluster).enable_recall_trace(wanted));
        let mut message = Message::new("T", "m");
        message.set_delay_time_sec(60);
        let sent = producer.send(&message).unwrap();
        let handle = sent.recall_handle.unwrap();
        producer.recall_message("T", &handle).unwrap();
        producer.recall_message("U", &handle).unwrap_err();
        producer.shutdown(TIMEOUT);
        let records = records(&cluster, TRACE_TOPIC);
        let mut recalls = of_type(&records, "Recall");
        // Those of two topics are told in two messages, of which either may be stored first.
        recalls.sort_by(|a, b| a[4].cmp(&b[4]));
        if wanted {
            let id = sent.msg_id.as_str();
            for (recall, (topic, success)) in recalls.iter().zip([("T", "true"), ("U", "false")]) {
                let expected = [
                    "Recall",
                    &recall[1],
                    "DefaultRegion",
                    "p",
                    topic,
                    id,
                    success,
                ];
                assert_eq!(recall, &expected.map(str::to_owned));
            }
            assert_eq!(recalls.len(), 2);
        } else {
            assert_eq!(recalls.len(), 0);
            assert_eq!(of_type(&records, "Pub")[0][11], "3", "a delayed one");
        }
    }
}

#[test]
fn what_has_no_room_is_thrown_away_and_counted_while_sends_go_on() {
    keep_logs();
    let cluster = cluster();
    let held = at_traces(&cluster, ControlAction::Hold);
    let group = "p_without_room";
    let producer = started(
        DefaultMQProducer::builder(group)
            .client_manager(&MQClientManager::new())
            .namesrv_addr(&cluster.namesrv_addr())
            .enable_trace(true)
            .trace_msg_batch_num(1),
    );
    // 32 messages under way, 2048 contexts that wait, and some more.
    let sent = 2048 + 32 + 40;
    for n in 0..sent {
        producer.send(&Message::new("T", format!("m{n}"))).unwrap();
    }
    assert_eq!(cluster.stored_count("T"), sent);
    let discarded = producer.trace_discard_count();
    // 40, and as many as were not on their way when the places were full.
    assert!((40..=72).contains(&discarded), "{discarded}");
    assert!(held.held() <= 32, "{}", held.held());
    assert!(!logged(&[group, "thrown away"]).is_empty());
    held.lift();
    assert!(producer.shutdown(GENEROUS).threads_joined);
    assert_eq!(producer.trace_discard_count(), discarded);
    let told = records(&cluster, TRACE_TOPIC).len();
    assert_eq!(told + discarded as usize, sent, "each is one or the other");
}

#[test]
fn a_shutdown_does_not_wait_longer_than_it_may_for_a_broker_that_is_silent() {
    let cluster = cluster();
    let silent = at_traces(&cluster, ControlAction::Drop);
    let producer = started(producer(&cluster));
    producer.send(&Message::new("T", "m")).unwrap();
    let begun = Instant::now();
    producer.shutdown(Duration::from_secs(1));
    assert!(begun.elapsed() < GENEROUS);
    assert!(silent.hits() > 0, "it was tried");
    wait_until("it is counted as lost", || {
        producer.trace_discard_count() == 1
    });
}

#[test]
fn without_a_trace_topic_sends_go_on_and_one_line_says_why() {
    keep_logs();
    let builder = Cluster::builder().configure(|config| config.auto_create_topic = false);
    let cluster = builder.start().unwrap();
    cluster.create_topic("T", 1).unwrap();
    let producer = started(
        DefaultMQProducer::builder("p_untraced")
            .client_manager(&MQClientManager::new())
            .namesrv_addr(&cluster.namesrv_addr())
            .enable_trace(true)
            .trace_msg_batch_num(1),
    );
    for n in 0..3 {
        producer.send(&Message::new("T", format!("m{n}"))).unwrap();
    }
    wait_until("all three are lost", || producer.trace_discard_count() == 3);
    assert_eq!(logged(&["p_untraced", "cannot be sent"]).len(), 1);
    assert!(producer.shutdown(TIMEOUT).threads_joined);
}

#[test]
fn trace_producers_share_one_instance_and_nothing_is_left_of_them() {
    let cluster = cluster();
    let manager = MQClientManager::new();
    let inbox = Inbox::new();
    let producers: Vec<DefaultMQProducer> = ["p", "q"]
        .into_iter()
        .map(|group| {
            let builder = DefaultMQProducer::builder(group)
                .client_manager(&manager)
                .namesrv_addr(&cluster.namesrv_addr());
            started(builder.enable_trace(true))
        })
        .collect();
    let consumer = consumer(&cluster, "T")
        .client_manager(&manager)
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    // That of the producers, that of the consumer, whose times are others, and that of the traces.
    assert_eq!(manager.instance_count(), 3);
    for producer in &producers {
        producer.send(&Message::new("T", "m")).unwrap();
    }
    inbox.wait_for(2);
    // Another hook, so another instance, and that is no failure.
    let other = DefaultMQProducer::builder("r")
        .client_manager(&manager)
        .namesrv_addr(&cluster.namesrv_addr())
        .language(rocketmq_blocking::LanguageCode::Cpp);
    let other = started(other.enable_trace(true));
    other.send(&Message::new("T", "m")).unwrap();
    assert_eq!(manager.instance_count(), 5);
    for producer in producers.iter().chain([&other]) {
        assert!(producer.shutdown(TIMEOUT).threads_joined);
        assert_eq!(producer.trace_discard_count(), 0);
    }
    assert!(consumer.shutdown(TIMEOUT).threads_joined);
    assert_eq!(manager.instance_count(), 0);
    assert_eq!(of_type(&records(&cluster, TRACE_TOPIC), "Pub").len(), 3);
}

#[test]
fn wrong_settings_are_told() {
    let cluster = cluster();
    let error = producer(&cluster)
        .trace_topic("no topic")
        .trace_msg_batch_num(21)
        .build()
        .unwrap_err()
        .to_string();
    for what in [
        "trace_topic \"no topic\"",
        "trace_msg_batch_num is 21, the range is 1..=20",
    ] {
        assert!(error.contains(what), "{error}");
    }
    let long = "g".repeat(100);
    let error = DefaultMQProducer::builder(long)
        .namesrv_addr("127.0.0.1:1")
        .enable_trace(true)
        .build()
        .unwrap_err();
    assert!(
        error.to_string().contains("_INNER_TRACE_PRODUCER-"),
        "{error}"
    );
}

#[test]
fn a_producer_without_traces_has_one_instance_and_tells_nothing() {
    let cluster = cluster();
    let manager = MQClientManager::new();
    let producer = started(
        producer(&cluster)
            .enable_trace(false)
            .client_manager(&manager),
    );
    producer.send(&Message::new("T", "m")).unwrap();
    assert_eq!(manager.instance_count(), 1);
    producer.shutdown(TIMEOUT);
    assert_eq!(cluster.stored_count(TRACE_TOPIC), 0);
}
