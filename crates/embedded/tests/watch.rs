//! What a test can see and wait for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod raw_client;

use std::sync::Arc;
use std::time::{Duration, Instant};

use raw_client::{LIMIT, RawClient, heartbeat_data, send_request};
use rocketmq_embedded::{Cluster, ControlAction, ControlScope, ControlTimes, Message};
use rocketmq_protocol::request_code::{HEART_BEAT, SEND_MESSAGE_V2};

fn cluster() -> Cluster {
    let cluster = Cluster::builder().brokers(2).start().unwrap();
    cluster.create_topic("T", 1).unwrap();
    cluster
}

fn send(client: &mut RawClient) -> i32 {
    client
        .call(send_request(0, &Message::new("T", b"x".as_slice())))
        .code
}

#[test]
fn requests_are_counted_by_code_and_server_whatever_became_of_them() {
    let cluster = cluster();
    let mut a = RawClient::to_broker(&cluster, "broker-a");
    let mut b = RawClient::to_broker(&cluster, "broker-b");
    let refuse = ControlAction::Respond(1, None);
    cluster.control(SEND_MESSAGE_V2, refuse, ControlTimes::Once);
    let codes = [send(&mut a), send(&mut a), send(&mut b)];
    assert_eq!(codes, [1, 0, 0]);
    let on = |name: &str| ControlScope::Broker(name.to_owned());
    assert!(cluster.wait_for(SEND_MESSAGE_V2, 3, LIMIT));
    assert_eq!(cluster.request_count(SEND_MESSAGE_V2), 3);
    assert_eq!(
        cluster.request_count_on(&on("broker-a"), SEND_MESSAGE_V2),
        2
    );
    let name_server = &ControlScope::NameServer;
    assert_eq!(cluster.request_count_on(name_server, SEND_MESSAGE_V2), 0);
    let short = Duration::from_millis(1);
    assert!(!cluster.wait_for_on(&on("broker-b"), SEND_MESSAGE_V2, 2, short));
}

#[test]
fn a_wait_ends_when_the_request_comes() {
    let cluster = Arc::new(cluster());
    let waiting = Arc::clone(&cluster);
    let waiter = std::thread::spawn(move || {
        let started = Instant::now();
        let came = waiting.wait_for(SEND_MESSAGE_V2, 1, LIMIT);
        (came, started.elapsed() < LIMIT, waiting.stored_count("T"))
    });
    assert_eq!(send(&mut RawClient::to_broker(&cluster, "broker-a")), 0);
    assert_eq!(waiter.join().unwrap(), (true, true, 1));
}

#[test]
fn a_condition_is_looked_at_after_each_event_and_given_up_in_time() {
    let cluster = Arc::new(cluster());
    let waiting = Arc::clone(&cluster);
    let waiter = std::thread::spawn(move || {
        waiting.wait_until(LIMIT, || waiting.consumer_ids("g") == ["c1"])
    });
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    client.heartbeat(&heartbeat_data("c1", "g", &["T"]));
    assert!(waiter.join().unwrap());
    drop(client);
    assert!(cluster.wait_until(LIMIT, || cluster.connection_count() == 0));
    let started = Instant::now();
    assert!(!cluster.wait_until(Duration::from_millis(50), || false));
    assert!(started.elapsed() < LIMIT);
}

#[test]
fn requests_are_recorded_when_asked_for_the_last_ones_only() {
    let cluster = cluster();
    let mut client = RawClient::to_broker(&cluster, "broker-b");
    send(&mut client);
    assert!(cluster.recorded_requests().is_empty());
    cluster.record_requests(2);
    client.heartbeat(&heartbeat_data("c1", "g", &["T"]));
    send(&mut client);
    send(&mut client);
    let stored = || cluster.request_count(SEND_MESSAGE_V2) == 3;
    assert!(cluster.wait_until(LIMIT, stored));
    let recorded = cluster.recorded_requests();
    assert_eq!(recorded.len(), 2);
    for request in &recorded {
        assert_eq!(
            (&*request.server, request.command.code),
            ("broker-b", SEND_MESSAGE_V2)
        );
        assert_eq!(request.peer, client.stream().local_addr().unwrap());
        assert_eq!(request.client_id.as_deref(), Some("c1"));
        assert_eq!(request.command.body_bytes(), b"x");
        assert_eq!(request.command.ext_fields.get("b"), Some("T"));
    }
    assert_eq!(cluster.take_recorded_requests(), recorded);
    assert!(cluster.recorded_requests().is_empty());
    cluster.record_requests(0);
    send(&mut client);
    assert!(cluster.recorded_requests().is_empty());
}

#[test]
fn connections_are_listed_with_what_came_on_them_and_can_be_cut() {
    let cluster = cluster();
    let mut member = RawClient::to_broker(&cluster, "broker-a");
    member.heartbeat(&heartbeat_data("c1", "g", &["T"]));
    member.note();
    send(&mut member);
    send(&mut member);
    let mut other = RawClient::connect(&cluster.namesrv_addr());
    assert!(cluster.wait_until(LIMIT, || cluster.connection_count() == 2));
    let connections = cluster.connections();
    let of = |server: &str| connections.iter().find(|c| &*c.server == server).unwrap();
    assert_eq!(of("namesrv").peer, other.stream().local_addr().unwrap());
    let member_connection = of("broker-a");
    assert_eq!(member_connection.client_id.as_deref(), Some("c1"));
    let counts: Vec<_> = member_connection.requests.clone().into_iter().collect();
    assert_eq!(counts, [(HEART_BEAT, 1), (SEND_MESSAGE_V2, 2)]);

    assert_eq!(cluster.cut_connections("c9"), 0);
    assert_eq!(cluster.cut_connections("c1"), 1);
    assert!(member.is_closed_by_server());
    assert!(cluster.wait_until(LIMIT, || cluster.consumer_ids("g").is_empty()));
    let unknown = rocketmq_embedded::RemotingCommand::request_without_header(9999);
    assert_eq!(other.call(unknown).code, 3);
}

#[test]
fn members_may_be_shown_different_lists() {
    let cluster = cluster();
    let mut clients: Vec<_> = ["c1", "c2", "c3"]
        .into_iter()
        .map(|id| {
            let mut client = RawClient::to_broker(&cluster, "broker-a");
            client.heartbeat(&heartbeat_data(id, "g", &["T"]));
            client
        })
        .collect();
    cluster.set_member_view("g", |query| {
        assert_eq!((&*query.broker, query.group.as_str()), ("broker-a", "g"));
        assert_eq!(query.members, ["c1", "c2", "c3"]);
        match query.asker.as_deref() {
            Some("c1") => vec!["c1".to_owned(), "c1".to_owned(), "c2".to_owned()],
            Some("c2") => vec!["c2".to_owned()],
            _ => Vec::new(),
        }
    });
    assert_eq!(clients[0].consumer_list("g"), ["c1", "c1", "c2"]);
    assert_eq!(clients[1].consumer_list("g"), ["c2"]);
    assert!(clients[2].consumer_list("g").is_empty());
    let mut stranger = RawClient::to_broker(&cluster, "broker-a");
    assert!(stranger.consumer_list("g").is_empty());
    assert_eq!(cluster.consumer_ids("g"), ["c1", "c2", "c3"], "the truth");
    cluster.clear_member_view("g");
    assert_eq!(clients[2].consumer_list("g"), ["c1", "c2", "c3"]);
}
