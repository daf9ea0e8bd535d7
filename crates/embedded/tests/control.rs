//! Requests that meet something else than a working server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod raw_client;

use std::time::{Duration, Instant};

use raw_client::{LIMIT, RawClient, send_request};
use rocketmq_embedded::{Cluster, ControlAction, ControlScope, ControlTimes};
use rocketmq_protocol::{Message, RemotingCommand, request_code};

const SEND: i32 = request_code::SEND_MESSAGE_V2;

fn cluster() -> Cluster {
    let cluster = Cluster::builder().brokers(2).start().unwrap();
    cluster.create_topic("T", 1).unwrap();
    cluster
}

fn send(client: &mut RawClient) -> RemotingCommand {
    client.call(send_request(0, &Message::new("T", b"x".as_slice())))
}

#[test]
fn a_request_is_answered_with_another_code_so_often() {
    let cluster = cluster();
    let mut a = RawClient::to_broker(&cluster, "broker-a");
    let busy = ControlAction::Respond(2, Some("[OVERLOAD]".to_owned()));
    let control = cluster.control(SEND, busy, ControlTimes::Times(2));
    for _ in 0..2 {
        let response = send(&mut a);
        assert_eq!(
            (response.code, response.remark.as_deref()),
            (2, Some("[OVERLOAD]"))
        );
    }
    assert_eq!(send(&mut a).code, 0);
    assert_eq!((control.hits(), cluster.stored_count("T")), (2, 1));
}

#[test]
fn a_scope_keeps_the_other_servers_out_of_it_until_the_control_is_lifted() {
    let cluster = cluster();
    let mut a = RawClient::to_broker(&cluster, "broker-a");
    let mut b = RawClient::to_broker(&cluster, "broker-b");
    let scope = ControlScope::Broker("broker-b".to_owned());
    let refuse = ControlAction::Respond(14, None);
    let control = cluster.control_on(scope, SEND, refuse.clone(), ControlTimes::UntilLifted);
    assert_eq!(
        (send(&mut a).code, send(&mut b).code, send(&mut b).code),
        (0, 14, 14)
    );
    control.lift();
    assert_eq!(send(&mut b).code, 0);
    let name_server = ControlScope::NameServer;
    cluster.control_on(name_server, 9999, refuse, ControlTimes::Once);
    let ask = |addr: &str| {
        let request = RemotingCommand::request_without_header(9999);
        RawClient::connect(addr).call(request).code
    };
    assert_eq!(ask(&cluster.broker_addr("broker-a").unwrap()), 3);
    assert_eq!(ask(&cluster.namesrv_addr()), 14);
    assert_eq!(ask(&cluster.namesrv_addr()), 3);
}

#[test]
fn a_dropped_request_is_not_processed_and_not_answered() {
    let cluster = cluster();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    let control = cluster.control(SEND, ControlAction::Drop, ControlTimes::Once);
    let lost = client.send(send_request(0, &Message::new("T", b"lost".as_slice())));
    assert!(control.wait_for_hits(1, LIMIT));
    let next = client.send(send_request(0, &Message::new("T", b"x".as_slice())));
    let answer = client.next(LIMIT).unwrap();
    assert_eq!((answer.opaque, answer.code), (next, 0));
    assert_ne!(lost, next);
    assert_eq!(cluster.stored_count("T"), 1);
}

#[test]
fn a_closed_connection_takes_what_was_sent_behind_the_request_with_it() {
    let cluster = cluster();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    cluster.control(SEND, ControlAction::Close, ControlTimes::Once);
    client.send(send_request(0, &Message::new("T", b"x".as_slice())));
    assert!(client.is_closed_by_server());
    assert_eq!(cluster.stored_count("T"), 0);
}

#[test]
fn a_delayed_request_is_processed_later_and_holds_no_other() {
    let cluster = cluster();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    let delay = Duration::from_millis(300);
    cluster.control(SEND, ControlAction::Delay(delay), ControlTimes::Once);
    let started = Instant::now();
    let slow = client.send(send_request(0, &Message::new("T", b"slow".as_slice())));
    let fast = client.send(send_request(0, &Message::new("T", b"fast".as_slice())));
    assert_eq!(client.next(LIMIT).unwrap().opaque, fast);
    assert_eq!(client.next(LIMIT).unwrap().opaque, slow);
    assert!(started.elapsed() >= delay);
    let bodies: Vec<_> = cluster
        .messages("T")
        .iter()
        .map(|message| message.body().clone())
        .collect();
    assert_eq!(bodies, ["fast", "slow"]);
}
