//! Transactions, messages with a time of their own, replies and their switches.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod raw_client;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use raw_client::{LIMIT, RawClient, send_header, send_request};
use rocketmq_embedded::{Cluster, Message, MessageQueue, RemotingCommand};
use rocketmq_protocol::body::{HeartbeatData, ProducerData};
use rocketmq_protocol::header::*;
use rocketmq_protocol::request_code::*;
use rocketmq_protocol::{OffsetMessageId, StoredMessages, sys_flag};

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_millis() as i64
}

fn cluster() -> Cluster {
    let cluster = Cluster::builder()
        .configure(|config| {
            config.transaction_check_interval = Duration::from_millis(20);
            config.transaction_time_out = Duration::ZERO;
            config.timer_precision = Duration::from_millis(100);
        })
        .start()
        .unwrap();
    cluster.create_topic("T", 1).unwrap();
    cluster
}

fn producer(cluster: &Cluster, client_id: &str, group: &str) -> RawClient {
    let mut client = RawClient::to_broker(cluster, "broker-a");
    client.heartbeat(&producers_of(client_id, &[group]));
    client
}

fn producers_of(client_id: &str, groups: &[&str]) -> HeartbeatData {
    let data = groups.iter().map(|group| ProducerData {
        group_name: (*group).to_owned(),
    });
    HeartbeatData {
        client_id: client_id.to_owned(),
        producer_data_set: data.collect(),
        ..HeartbeatData::default()
    }
}

fn send_half(client: &mut RawClient, group: &str, key: &str) -> EndTransactionRequestHeader {
    let mut message = Message::new("T", b"half".as_slice());
    for (name, value) in [("UNIQ_KEY", key), ("TRAN_MSG", "true"), ("PGROUP", group)] {
        message.put_property(name, value);
    }
    let mut header = send_header(0, &message);
    header.born_timestamp = now() - 1000;
    header.flag = 7;
    header.sys_flag = sys_flag::TRANSACTION_PREPARED;
    let request = RemotingCommand::request(SEND_MESSAGE_V2, &SendMessageRequestHeaderV2(header));
    let answer = client.call(request.with_body(message.body().clone()));
    assert_eq!(answer.code, 0, "{answer:?}");
    let sent: SendMessageResponseHeader = answer.decode_header().unwrap();
    EndTransactionRequestHeader {
        producer_group: group.to_owned(),
        tran_state_table_offset: sent.queue_offset,
        commit_log_offset: OffsetMessageId::parse(&sent.msg_id)
            .unwrap()
            .commit_log_offset,
        commit_or_rollback: sys_flag::TRANSACTION_COMMIT,
        msg_id: key.to_owned(),
        ..EndTransactionRequestHeader::default()
    }
}

fn check(client: &mut RawClient) -> CheckTransactionStateRequestHeader {
    let command = client.next(LIMIT).expect("a check in time");
    assert_eq!(command.code, CHECK_TRANSACTION_STATE);
    assert!(command.is_oneway());
    let messages = StoredMessages::new(command.body.clone().unwrap());
    let messages: Vec<_> = messages.collect::<Result<_, _>>().unwrap();
    assert_eq!((messages.len(), messages[0].topic()), (1, "T"));
    command.decode_header().unwrap()
}

#[test]
fn each_member_of_the_group_is_asked_in_turn_and_nobody_else() {
    let cluster = cluster();
    let mut first = producer(&cluster, "c1", "tg");
    let mut second = producer(&cluster, "c2", "tg");
    let mut other = producer(&cluster, "c3", "og");
    let sent = send_half(&mut other, "tg", "K");
    check(&mut first);
    let asked = check(&mut second);
    assert_eq!(asked.msg_id.as_deref(), Some("K"));
    assert!(asked.tran_state_table_offset > sent.tran_state_table_offset);
    drop(second);
    check(&mut first);
    let asked = check(&mut first);
    let end = EndTransactionRequestHeader {
        tran_state_table_offset: asked.tran_state_table_offset,
        commit_log_offset: asked.commit_log_offset,
        from_transaction_check: Some(true),
        ..sent
    };
    assert_eq!(cluster.stored_count("T"), 0);
    first.send(RemotingCommand::request(END_TRANSACTION, &end));
    assert!(cluster.wait_until(LIMIT, || cluster.stored_count("T") == 1));
    let message = &cluster.messages("T")[0];
    assert_eq!(
        message.prepared_transaction_offset(),
        asked.commit_log_offset
    );
    assert_eq!(message.flag(), 0, "what was asked for has lost it");
    assert!(other.next(Duration::from_millis(1)).is_none());
}

#[test]
fn what_is_asked_for_too_often_goes_to_a_topic_of_its_own() {
    let cluster = cluster();
    cluster
        .configure(|config| config.transaction_check_max = 2)
        .unwrap();
    let mut client = producer(&cluster, "c1", "tg");
    send_half(&mut client, "tg", "K");
    let gone = "TRANS_CHECK_MAX_TIME_TOPIC";
    assert!(cluster.wait_until(LIMIT, || cluster.stored_count(gone) == 1));
    check(&mut client);
    check(&mut client);
    assert!(client.next(Duration::from_millis(60)).is_none());
    let message = &cluster.messages(gone)[0];
    assert_eq!(message.property("TRANSACTION_CHECK_TIMES"), Some("2"));
    assert_eq!(cluster.stored_count("T"), 0);
}

#[test]
fn a_decided_message_is_not_asked_for_and_neither_is_a_protected_one() {
    let cluster = cluster();
    let mut client = producer(&cluster, "c1", "tg");
    let mut message = Message::new("T", b"half".as_slice());
    for (name, value) in [
        ("UNIQ_KEY", "protected"),
        ("TRAN_MSG", "true"),
        ("PGROUP", "tg"),
        ("CHECK_IMMUNITY_TIME_IN_SECONDS", "3600"),
    ] {
        message.put_property(name, value);
    }
    let mut header = send_header(0, &message);
    header.born_timestamp = now();
    let request = RemotingCommand::request(SEND_MESSAGE_V2, &SendMessageRequestHeaderV2(header));
    // With the switch set, half messages are refused.
    let refuse = |refuse| {
        let set = cluster.configure(|c| c.reject_transaction_message = refuse);
        set.unwrap();
    };
    refuse(true);
    let body = message.body().clone();
    assert_eq!(
        client.call(request.clone().with_body(body.clone())).code,
        16
    );
    refuse(false);
    assert_eq!(client.call(request.with_body(body)).code, 0);
    let time_out = |time| {
        let set = cluster.configure(|config| config.transaction_time_out = time);
        set.unwrap();
    };
    time_out(Duration::from_secs(3600));
    let mut rolled_back = send_half(&mut client, "tg", "back");
    rolled_back.commit_or_rollback = sys_flag::TRANSACTION_ROLLBACK;
    let answer = client.call_with(END_TRANSACTION, &rolled_back);
    assert_eq!(answer.code, 0, "{answer:?}");
    time_out(Duration::ZERO);
    send_half(&mut client, "tg", "open");
    for _ in 0..3 {
        assert_eq!(check(&mut client).msg_id.as_deref(), Some("open"));
    }
    assert_eq!(cluster.stored_count("T"), 0);
}

#[test]
fn messages_with_a_time_come_in_its_order_and_never_early() {
    let cluster = cluster();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    let start = now();
    for (name, delay) in [("third", 900), ("first", 250), ("second", 550)] {
        let mut message = Message::new("T", name.as_bytes().to_vec());
        message.put_property("TIMER_DELIVER_MS", (start + delay).to_string());
        message.put_property("DELIVER", (start + delay).to_string());
        client.produce(0, &message);
    }
    assert_eq!(cluster.stored_count("T"), 0);
    // They lie on disk like others.
    cluster.stop_broker("broker-a").unwrap();
    cluster.start_broker("broker-a").unwrap();
    assert!(cluster.wait_until(LIMIT, || cluster.stored_count("T") == 3));
    let messages = cluster.messages("T");
    let bodies: Vec<_> = messages.iter().map(|m| m.body().to_vec()).collect();
    assert_eq!(bodies, [&b"first"[..], b"second", b"third"]);
    for message in messages {
        let deliver: i64 = message.property("DELIVER").unwrap().parse().unwrap();
        assert!(message.store_timestamp() >= deliver, "{message:?}");
    }
}

#[test]
fn a_message_is_taken_back_only_where_that_is_on() {
    let cluster = cluster();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    let mut timer = |key: &str, delay: &str| {
        let mut message = Message::new("T", key.as_bytes().to_vec());
        message.put_property("UNIQ_KEY", key);
        message.put_property("TIMER_DELAY_MS", delay);
        client.produce(0, &message).recall_handle.unwrap()
    };
    let handle = timer("taken-back", "1500");
    timer("delivered", "1500");
    let header = RecallMessageRequestHeader {
        topic: "T".to_owned(),
        recall_handle: handle,
        ..RecallMessageRequestHeader::default()
    };
    let refused = client.call_with(RECALL_MESSAGE, &header);
    assert_eq!(refused.code, 16);
    assert_eq!(
        refused.remark.as_deref(),
        Some("recall failed, operation is forbidden")
    );
    cluster
        .configure(|config| config.recall_message_enable = true)
        .unwrap();
    let answer = client.call_with(RECALL_MESSAGE, &header);
    assert_eq!(answer.ext_fields.get("msgId"), Some("taken-back"));
    assert!(cluster.wait_until(LIMIT, || cluster.stored_count("T") == 1));
    let mut last = Message::new("T", b"last".as_slice());
    last.put_property("TIMER_DELAY_MS", "300");
    client.produce(0, &last);
    assert!(cluster.wait_until(LIMIT, || cluster.stored_count("T") == 2));
    assert_eq!(&cluster.messages("T")[0].body()[..], b"delivered");
    cluster
        .configure(|config| config.timer_wheel_enable = false)
        .unwrap();
    assert_eq!(client.call(send_request(0, &last)).code, 1);
}

#[test]
fn replies_are_stored_unless_that_is_off_and_silence_is_a_failure() {
    let cluster = cluster();
    let topic = "DefaultCluster_REPLY_TOPIC";
    let mut requester = producer(&cluster, "c1", "rg");
    let mut replier = RawClient::to_broker(&cluster, "broker-a");
    let request = reply_to("c1");
    let mut reply = |code: Option<i32>| {
        let opaque = replier.send(request.clone());
        let push = requester.next(LIMIT).unwrap();
        assert_eq!(push.code, PUSH_REPLY_MESSAGE_TO_CLIENT);
        if let Some(code) = code {
            requester.send_as_it_is(RemotingCommand::response(&push, code, None));
        }
        replier.answer_to(opaque)
    };
    let answer = reply(Some(0));
    let header: SendMessageResponseHeader = answer.decode_header().unwrap();
    assert_eq!((answer.code, header.queue_offset), (0, 0));
    assert_ne!(header.msg_id, "0");
    cluster
        .configure(|config| {
            config.store_reply_message_enable = false;
            config.call_client_timeout = Duration::from_millis(50);
        })
        .unwrap();
    let answer = reply(Some(0));
    assert_eq!(answer.ext_fields.get("msgId"), Some("0"));
    assert_eq!(reply(None).code, 1);
    let queue = MessageQueue::new(topic, "broker-a", 0);
    assert_eq!(cluster.max_offset(&queue), 1);
}

fn reply_to(client_id: &str) -> RemotingCommand {
    let mut message = Message::new("DefaultCluster_REPLY_TOPIC", b"answer".as_slice());
    message.put_property("REPLY_TO_CLIENT", client_id);
    let header = SendMessageRequestHeaderV2(send_header(0, &message));
    RemotingCommand::request(SEND_REPLY_MESSAGE_V2, &header).with_body(message.body().clone())
}

/// Java `ProducerManager#unregisterProducer` forgets the client, not only its group.
#[test]
fn a_client_that_leaves_one_of_its_groups_gets_replies_once_it_joins_a_new_one() {
    let cluster = cluster();
    let mut requester = RawClient::to_broker(&cluster, "broker-a");
    requester.heartbeat(&producers_of("c1", &["g1", "g2"]));
    let mut replier = RawClient::to_broker(&cluster, "broker-a");
    let header = UnregisterClientRequestHeader {
        client_id: "c1".to_owned(),
        producer_group: Some("g1".to_owned()),
        consumer_group: None,
    };
    requester.call(RemotingCommand::request(UNREGISTER_CLIENT, &header));
    requester.heartbeat(&producers_of("c1", &["g2"]));
    let answer = replier.call(reply_to("c1"));
    assert_eq!(
        answer.remark.as_deref(),
        Some("push reply message fail, channel of <c1> not found.")
    );
    requester.heartbeat(&producers_of("c1", &["g2", "g1"]));
    replier.send(reply_to("c1"));
    let push = requester.next(LIMIT).unwrap();
    assert_eq!(push.code, PUSH_REPLY_MESSAGE_TO_CLIENT);
}
