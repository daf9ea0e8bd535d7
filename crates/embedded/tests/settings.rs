//! Settings of brokers, groups and topics, and what they change.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod raw_client;

use std::collections::BTreeSet;
use std::time::Duration;

use raw_client::{
    LIMIT, RawClient, heartbeat_data, pull_answer, pull_header, pull_request, send_request,
};
use rocketmq_embedded::{Cluster, MessageQueue, SubscriptionGroupConfig, TopicConfig};
use rocketmq_protocol::header::{
    ConsumerSendMsgBackRequestHeader, QueryConsumerOffsetRequestHeader,
    UpdateConsumerOffsetRequestHeader,
};
use rocketmq_protocol::request_code::{
    CONSUMER_SEND_MSG_BACK, QUERY_CONSUMER_OFFSET, UPDATE_CONSUMER_OFFSET,
};
use rocketmq_protocol::{Message, RemotingCommand, sys_flag};

fn cluster() -> (Cluster, RawClient) {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 2).unwrap();
    let client = RawClient::to_broker(&cluster, "broker-a");
    (cluster, client)
}

fn give_back(client: &mut RawClient, offset: i64) -> i32 {
    let header = ConsumerSendMsgBackRequestHeader {
        offset,
        group: "g".to_owned(),
        delay_level: 1,
        ..ConsumerSendMsgBackRequestHeader::default()
    };
    client.call_with(CONSUMER_SEND_MSG_BACK, &header).code
}

fn waiting_pull(suspend_millis: i64) -> RemotingCommand {
    let mut header = pull_header("T", 0, 0);
    header.sys_flag |= sys_flag::PULL_SUSPEND;
    header.suspend_timeout_millis = suspend_millis;
    pull_request(&header)
}

#[test]
fn groups_that_may_not_create_themselves_are_refused() {
    let (cluster, mut client) = cluster();
    cluster
        .configure(|config| config.auto_create_subscription_group = false)
        .unwrap();
    client.produce(0, &Message::new("T", b"x".as_slice()));
    assert_eq!(client.call(pull_request(&pull_header("T", 0, 0))).code, 26);
    assert_eq!(give_back(&mut client, 0), 26);
    // A heartbeat is answered with 0 all the same.
    assert_eq!(client.heartbeat(&heartbeat_data("c1", "g", &["T"])).code, 0);
    assert!(client.consumer_list("g").is_empty());
    cluster
        .set_group(&SubscriptionGroupConfig::new("g"))
        .unwrap();
    client.heartbeat(&heartbeat_data("c1", "g", &["T"]));
    assert_eq!(client.note(), "g");
    assert_eq!(client.call(pull_request(&pull_header("T", 0, 0))).code, 0);
    assert!(
        cluster
            .set_group(&SubscriptionGroupConfig::new("a b"))
            .is_err()
    );
}

#[test]
fn a_groups_settings_say_how_often_and_where_its_messages_are_retried() {
    let cluster = Cluster::builder()
        .delay_levels([Duration::from_millis(1)])
        .start()
        .unwrap();
    cluster.create_topic("T", 1).unwrap();
    let mut config = SubscriptionGroupConfig::new("g");
    config.retry_queue_nums = 3;
    config.retry_max_times = 1;
    cluster.set_group(&config).unwrap();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    client.produce(0, &Message::new("T", b"x".as_slice()));
    for _ in 0..3 {
        assert_eq!(give_back(&mut client, 0), 0);
    }
    let retried = || cluster.stored_count("%RETRY%g") == 3;
    assert!(cluster.wait_until(LIMIT, retried));
    let messages = cluster.messages("%RETRY%g");
    let queues: BTreeSet<_> = messages.iter().map(|message| message.queue_id()).collect();
    assert_eq!(queues, BTreeSet::from([0, 1, 2]));
    assert_eq!(give_back(&mut client, messages[0].commit_log_offset()), 0);
    assert_eq!(cluster.dead_letter_count("g"), 1);
    // A group without retry queues gives up without a trace.
    config.retry_queue_nums = 0;
    cluster.set_group(&config).unwrap();
    assert_eq!(give_back(&mut client, 0), 0);
    assert_eq!(cluster.stored_count("SCHEDULE_TOPIC_XXXX"), 3);
}

#[test]
fn a_group_may_be_told_nothing_but_of_lost_connections() {
    let (cluster, mut first) = cluster();
    let mut config = SubscriptionGroupConfig::new("g");
    config.notify_consumer_ids_changed_enable = false;
    cluster.set_group(&config).unwrap();
    first.heartbeat(&heartbeat_data("c1", "g", &["T"]));
    let mut second = RawClient::to_broker(&cluster, "broker-a");
    second.heartbeat(&heartbeat_data("c2", "g", &["T"]));
    assert_eq!(cluster.notes_sent("g"), 0);
    drop(second);
    assert_eq!(first.note(), "g");
}

#[test]
fn a_broker_may_be_closed_for_reading_or_writing() {
    let (cluster, mut client) = cluster();
    client.produce(0, &Message::new("T", b"x".as_slice()));
    cluster
        .configure(|config| config.broker_permission = 2)
        .unwrap();
    let refused = client.call(pull_request(&pull_header("T", 0, 0)));
    assert_eq!(
        (refused.code, refused.ext_fields.get("forbiddenType")),
        (16, Some("1"))
    );
    cluster
        .configure(|config| config.broker_permission = 4)
        .unwrap();
    assert_eq!(give_back(&mut client, 0), 16);
    let send = send_request(0, &Message::new("T", b"x".as_slice()));
    assert_eq!(client.call(send.clone()).code, 0, "as by a real broker");
    let ordered = TopicConfig {
        topic_name: "T".to_owned(),
        order: true,
        ..TopicConfig::default()
    };
    cluster.set_topic_on("broker-a", &ordered).unwrap();
    assert_eq!(client.call(send).code, 16);
}

#[test]
fn a_pull_waits_no_longer_than_the_broker_wants() {
    let cluster = Cluster::builder()
        .configure(|config| {
            config.long_poll_hold = Some(Duration::from_millis(50));
            config.long_poll_sweep = Duration::from_millis(20);
        })
        .start()
        .unwrap();
    cluster.create_topic("T", 1).unwrap();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    assert_eq!(client.call(waiting_pull(3_600_000)).code, 19);
    cluster
        .configure(|config| {
            config.long_polling = false;
            config.short_polling_time = Duration::from_millis(30);
        })
        .unwrap();
    assert_eq!(client.call(waiting_pull(3_600_000)).code, 19);
}

#[test]
fn changes_may_be_told_from_time_to_time() {
    let with = |period| {
        let cluster = Cluster::builder()
            .configure(|config| {
                config.real_time_notify = false;
                config.notify_period = period;
            })
            .start()
            .unwrap();
        let mut client = RawClient::to_broker(&cluster, "broker-a");
        client.heartbeat(&heartbeat_data("c1", "g", &["T"]));
        (cluster, client)
    };
    let (cluster, mut client) = with(Duration::from_secs(3600));
    let unknown = RemotingCommand::request_without_header(9999);
    let opaque = client.send(unknown);
    assert_eq!(client.next(LIMIT).unwrap().opaque, opaque, "not at once");
    assert_eq!(cluster.notes_sent("g"), 0);
    let (cluster, mut client) = with(Duration::from_millis(50));
    assert_eq!(client.note(), "g");
    assert_eq!(cluster.notes_sent("g"), 1);
}

#[test]
fn producers_are_members_until_they_leave_or_expire() {
    let cluster = Cluster::builder()
        .configure(|config| {
            config.producer_expiry = Duration::from_millis(1500);
            config.member_scan = Duration::from_millis(20);
        })
        .start()
        .unwrap();
    let mut data = heartbeat_data("p1", "g", &[]);
    data.consumer_data_set.clear();
    data.producer_data_set = vec![rocketmq_protocol::body::ProducerData {
        group_name: "pg".to_owned(),
    }];
    let mut silent = RawClient::to_broker(&cluster, "broker-a");
    silent.heartbeat(&data);
    let mut gone = RawClient::to_broker(&cluster, "broker-a");
    data.client_id = "p2".to_owned();
    gone.heartbeat(&data);
    let ids = || cluster.producer_ids_on("broker-a", "pg");
    assert_eq!(ids(), ["p1", "p2"]);
    drop(gone);
    assert!(cluster.wait_until(LIMIT, || ids() == ["p1"]));
    assert!(cluster.wait_until(LIMIT, || ids().is_empty()));
    assert!(silent.is_closed_by_server());
}

#[test]
fn a_queue_may_have_lost_its_first_messages() {
    let (cluster, mut client) = cluster();
    for _ in 0..5 {
        client.produce(0, &Message::new("T", b"x".as_slice()));
    }
    let query = QueryConsumerOffsetRequestHeader {
        consumer_group: "g".to_owned(),
        topic: "T".to_owned(),
        queue_id: 0,
        ..QueryConsumerOffsetRequestHeader::default()
    };
    assert_eq!(client.call_with(QUERY_CONSUMER_OFFSET, &query).code, 0);
    cluster
        .configure(|config| config.first_message_in_memory = false)
        .unwrap();
    assert_eq!(client.call_with(QUERY_CONSUMER_OFFSET, &query).code, 22);
    cluster
        .configure(|config| config.first_message_in_memory = true)
        .unwrap();
    let queue = MessageQueue::new("T", "broker-a", 0);
    cluster.delete_messages_before(&queue, 3);
    assert_eq!(client.call_with(QUERY_CONSUMER_OFFSET, &query).code, 22);
    let mut pulled = |offset| {
        let response = client.call(pull_request(&pull_header("T", 0, offset)));
        let (header, messages) = pull_answer(&response);
        let offsets = messages.iter().map(|message| message.queue_offset());
        (
            response.code,
            header.next_begin_offset,
            offsets.collect::<Vec<_>>(),
        )
    };
    assert_eq!(pulled(0), (21, 3, vec![]));
    assert_eq!(pulled(3), (0, 5, vec![3, 4]));
    assert_eq!(pulled(4), (0, 5, vec![4]));
    cluster.delete_messages_before(&queue, 99);
    assert_eq!(pulled(4), (21, 5, vec![]));
    assert_eq!(pulled(5), (19, 5, vec![]));
    assert_eq!(
        client
            .produce(0, &Message::new("T", b"x".as_slice()))
            .queue_offset,
        5
    );
    assert_eq!(cluster.max_offset(&queue), 6);
}

#[test]
fn a_reset_is_told_by_the_next_pull_and_holds_commits_off_until_then() {
    let (cluster, mut client) = cluster();
    client.heartbeat(&heartbeat_data("c1", "g", &["T"]));
    for _ in 0..5 {
        client.produce(0, &Message::new("T", b"x".as_slice()));
    }
    let queue = MessageQueue::new("T", "broker-a", 0);
    cluster.commit_offset("g", &queue, 5);
    cluster.reset_offset("g", &queue, 2);
    let update = UpdateConsumerOffsetRequestHeader {
        consumer_group: "g".to_owned(),
        topic: "T".to_owned(),
        queue_id: 0,
        commit_offset: 5,
        broker_name: None,
    };
    assert_eq!(client.call_with(UPDATE_CONSUMER_OFFSET, &update).code, 0);
    assert_eq!(cluster.committed_offset("g", &queue), Some(2));
    let response = client.call(pull_request(&pull_header("T", 0, 5)));
    let (header, _) = pull_answer(&response);
    assert_eq!((response.code, header.next_begin_offset), (21, 2));
    assert_eq!(response.remark.as_deref(), Some("OFFSET_RESET"));
    assert_eq!(cluster.committed_offset("g", &queue), Some(2));
    assert_eq!(client.call_with(UPDATE_CONSUMER_OFFSET, &update).code, 0);
    assert_eq!(cluster.committed_offset("g", &queue), Some(5));
}

#[test]
fn a_deleted_topic_takes_its_messages_and_offsets_with_it() {
    let (cluster, mut client) = cluster();
    client.produce(0, &Message::new("T", b"x".as_slice()));
    let queue = MessageQueue::new("T", "broker-a", 0);
    cluster.commit_offset("g", &queue, 1);
    cluster.delete_topic("T");
    assert_eq!(cluster.stored_count("T"), 0);
    assert_eq!(cluster.committed_offset("g", &queue), None);
    assert_eq!(client.call(pull_request(&pull_header("T", 0, 0))).code, 17);
    // The log still has it, so it can be given back.
    assert_eq!(give_back(&mut client, 0), 0);
    cluster.create_topic("T", 1).unwrap();
    assert_eq!(
        client
            .produce(0, &Message::new("T", b"y".as_slice()))
            .queue_offset,
        0
    );
}

#[test]
fn there_is_a_topic_for_traces_if_that_is_wanted() {
    for wanted in [true, false] {
        let cluster = Cluster::builder()
            .configure(|config| {
                let value = wanted.to_string();
                config.set_property("traceTopicEnable", &value).unwrap();
                config.auto_create_topic = false;
            })
            .start()
            .unwrap();
        let mut client = RawClient::to_broker(&cluster, "broker-a");
        let trace = Message::new("RMQ_SYS_TRACE_TOPIC", b"x".as_slice());
        let answer = client.call(send_request(0, &trace));
        assert_eq!(answer.code, if wanted { 0 } else { 17 });
        let second = client.call(send_request(1, &trace));
        assert_ne!(second.code, 0, "it has one queue");
        assert_eq!(answer.ext_fields.get("TRACE_ON"), Some("true"));
        assert_eq!(answer.ext_fields.get("MSG_REGION"), Some("DefaultRegion"));
    }
}

#[test]
fn settings_that_cannot_be_change_nothing() {
    let (cluster, _client) = cluster();
    let zero = cluster.configure(|config| {
        config.broker_permission = 4;
        config.member_scan = Duration::ZERO;
    });
    assert_eq!(zero.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    let mut seen = 0;
    cluster
        .configure_on("broker-a", |config| seen = config.broker_permission)
        .unwrap();
    assert_eq!(seen, 6);
    assert!(cluster.configure_on("broker-x", |_| {}).is_err());
    assert!(
        Cluster::builder()
            .message_delay_level("1x")
            .start()
            .is_err()
    );
}
