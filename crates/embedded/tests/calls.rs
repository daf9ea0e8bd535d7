//! Requests that a broker hands on to a client.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod raw_client;

use std::time::Duration;

use raw_client::{LIMIT, RawClient, heartbeat_data};
use rocketmq_embedded::{Cluster, Message};
use rocketmq_protocol::RemotingCommand;
use rocketmq_protocol::header::{
    ConsumeMessageDirectlyResultRequestHeader, GetConsumerRunningInfoRequestHeader,
};
use rocketmq_protocol::request_code::{CONSUME_MESSAGE_DIRECTLY, GET_CONSUMER_RUNNING_INFO};

fn running_info(client_id: &str) -> RemotingCommand {
    let header = GetConsumerRunningInfoRequestHeader {
        consumer_group: "g".to_owned(),
        client_id: client_id.to_owned(),
        jstack_enable: Some(true),
    };
    RemotingCommand::request(GET_CONSUMER_RUNNING_INFO, &header)
}

fn member(cluster: &Cluster) -> RawClient {
    let mut member = RawClient::to_broker(cluster, "broker-a");
    member.heartbeat(&heartbeat_data("c1", "g", &["T"]));
    member.note();
    member
}

#[test]
fn a_client_may_ask_for_itself_on_its_own_connection() {
    let cluster = Cluster::builder().start().unwrap();
    let mut member = member(&cluster);
    let opaque = member.send(running_info("c1"));
    let request = member.next(LIMIT).unwrap();
    assert!(!request.is_response());
    assert_eq!(request.ext_fields.get("jstackEnable"), Some("true"));
    let mut answer = RemotingCommand::response(&request, 0, Some("fine".to_owned()));
    answer.ext_fields.set("name", "value");
    member.send_as_it_is(answer.with_body(b"{}".as_slice()));
    let answer = member.answer_to(opaque);
    assert_eq!((answer.code, answer.remark.as_deref()), (0, Some("fine")));
    assert_eq!(answer.ext_fields.get("name"), Some("value"));
    assert_eq!(answer.body_bytes(), b"{}");
}

#[test]
fn a_client_that_says_nothing_is_told_so_after_a_while() {
    let cluster = Cluster::builder()
        .configure(|config| config.call_client_timeout = Duration::from_millis(100))
        .start()
        .unwrap();
    let mut member = member(&cluster);
    let mut admin = RawClient::to_broker(&cluster, "broker-a");
    let opaque = admin.send(running_info("c1"));
    let request = member.next(LIMIT).unwrap();
    assert_eq!(admin.answer_to(opaque).code, 207);
    // What it says now is for nobody.
    member.send_as_it_is(RemotingCommand::response(&request, 0, None));
    let unknown = RemotingCommand::request_without_header(9999);
    assert_eq!(member.call(unknown.clone()).code, 3);
    assert_eq!(admin.call(unknown).code, 3);
}

#[test]
fn the_end_of_a_client_ends_what_was_asked_of_it() {
    let cluster = Cluster::builder().start().unwrap();
    let mut member = member(&cluster);
    let mut admin = RawClient::to_broker(&cluster, "broker-a");
    let opaque = admin.send(running_info("c1"));
    member.next(LIMIT).unwrap();
    drop(member);
    assert_eq!(admin.answer_to(opaque).code, 1);
    let answer = admin.call(running_info("c1"));
    assert_eq!(answer.code, 1);
    assert!(answer.remark.unwrap().contains("not online"));
}

#[test]
fn a_message_goes_to_the_client_as_it_is_stored() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 1).unwrap();
    let mut member = member(&cluster);
    let mut admin = RawClient::to_broker(&cluster, "broker-a");
    let sent = admin.produce(0, &Message::new("T", b"now".as_slice()));
    let ask = |id: String| {
        let header = ConsumeMessageDirectlyResultRequestHeader {
            consumer_group: "g".to_owned(),
            client_id: Some("c1".to_owned()),
            msg_id: Some(id),
            topic: Some("T".to_owned()),
            ..ConsumeMessageDirectlyResultRequestHeader::default()
        };
        RemotingCommand::request(CONSUME_MESSAGE_DIRECTLY, &header)
    };
    let opaque = admin.send(ask(sent.msg_id));
    let request = member.next(LIMIT).unwrap();
    assert_eq!(request.code, CONSUME_MESSAGE_DIRECTLY);
    assert_eq!(request.ext_fields.get("brokerName"), Some("broker-a"));
    let (_, messages) = {
        let messages = rocketmq_protocol::StoredMessages::new(request.body.clone().unwrap());
        ((), messages.collect::<Result<Vec<_>, _>>().unwrap())
    };
    assert_eq!(&messages[0].body()[..], b"now");
    member.send_as_it_is(RemotingCommand::response(&request, 0, None));
    assert_eq!(admin.answer_to(opaque).code, 0);
    assert_eq!(admin.call(ask("no id".to_owned())).code, 1);
}
