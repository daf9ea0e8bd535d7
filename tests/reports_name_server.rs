//! Public bug reports about the choice among name servers, each with its right outcome.
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

use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rocketmq_blocking::{
    ConsumeFromWhere, DefaultMQProducer, DefaultMQProducerBuilder, DefaultMQPushConsumer,
    MQClientManager, Message, client_error_code,
};
use rocketmq_embedded::Cluster;
use support::{
    BlackHole, FakePeer, GENEROUS, Inbox, Line, Proxy, producer_at, quick, reply_to, route_of,
    started, unique, wait_until,
};

const TOPIC_NOT_EXIST: i32 = 17;
/// Long enough for a name server that answers, short for one that does not.
const TIMEOUT: Duration = Duration::from_secs(3);

fn builder(list: &str) -> DefaultMQProducerBuilder {
    producer_at(list).mq_client_api_timeout(TIMEOUT)
}

/// Two addresses for name servers: the one that [`started_in_order`] has asked first, and the other.
fn in_order() -> (TcpListener, TcpListener, String) {
    let [first, second] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let list = [&first, &second].map(|listener| listener.local_addr().unwrap().to_string());
    (first, second, list.join(";"))
}

/// Clients shuffle their lists. This one begins with the first server of `list`, since it knows no
/// other at first, and a server in use stays in use.
fn started_in_order(builder: DefaultMQProducerBuilder, list: &str) -> DefaultMQProducer {
    let first = list.split(';').next().unwrap();
    let producer = started(builder.namesrv_addr(first));
    producer.update_name_server_address_list(list).unwrap();
    producer
}

/// A name server whose every route names the same broker, and how often it was asked.
fn name_server(listener: TcpListener, broker: String) -> (FakePeer, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let peer = FakePeer::start_at(listener, move |stream, request| {
        count.fetch_add(1, Ordering::SeqCst);
        let reply = reply_to(&request, 0, route_of("fake", &broker));
        stream.write_all(&reply).is_ok()
    });
    (peer, asked)
}

/// apache/rocketmq#7056: connecting to the first of two name servers used up the time of each call,
/// for ever. One server gets a share of the time, and the one that answered is stayed with.
#[test]
fn b73_a_name_server_that_cannot_be_reached_costs_one_query_at_most() {
    let (first, second, list) = in_order();
    let black_hole = BlackHole::at(first);
    let (_good, asked) = name_server(second, "127.0.0.1:1".to_owned());
    // A connect is given more time than a whole call.
    let producer = started_in_order(builder(&list).connect_timeout(GENEROUS), &list);
    let mut failed = 0;
    for query in 0..20 {
        match producer.fetch_publish_message_queues("T") {
            Ok(queues) => assert_eq!(queues.len(), 1),
            Err(error) => {
                failed += 1;
                assert_eq!(query, 0, "{error}");
            }
        }
    }
    assert_eq!(
        black_hole.connects_under_way(),
        1,
        "it was asked first, and once"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 20 - failed);
    assert_eq!(failed, 0, "a share of the time is left for the second");
}

/// apache/rocketmq-client-go#173: a client whose first name server was down did not start. A dead one
/// is passed over, by producers and consumers.
#[test]
fn b75_a_dead_name_server_is_passed_over_at_the_start() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 1).unwrap();
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    for list in [
        format!("{closed};{}", cluster.namesrv_addr()),
        format!("{};{closed}", cluster.namesrv_addr()),
    ] {
        let producer = started_in_order(builder(&list), &list);
        producer.send(&Message::new("T", list.clone())).unwrap();
        let inbox = Inbox::new();
        let consumer = quick(DefaultMQPushConsumer::builder(unique("g")))
            .client_manager(&MQClientManager::new())
            .namesrv_addr(&list)
            .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
            .subscribe("T", "*")
            .message_listener(inbox.listener())
            .build()
            .unwrap();
        consumer.start().unwrap();
        inbox.wait_for(1);
    }
}

/// The same report: a name server that says that a topic does not exist has answered. The others are
/// not asked, as Java does not ask them either; they are replicas, not parts.
#[test]
fn b75_a_topic_that_the_chosen_name_server_does_not_know_has_no_route() {
    let (first, second, list) = in_order();
    let asked_first = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked_first);
    let _without = FakePeer::start_at(first, move |stream, request| {
        count.fetch_add(1, Ordering::SeqCst);
        let reply = reply_to(&request, TOPIC_NOT_EXIST, Vec::new());
        stream.write_all(&reply).is_ok()
    });
    let (with, asked_second) = name_server(second, "127.0.0.1:1".to_owned());
    let producer = started_in_order(builder(&list), &list);
    let error = producer.send(&Message::new("T", "m")).unwrap_err();
    assert!(
        error.to_string().contains("no route for topic T"),
        "{error}"
    );
    let rocketmq_blocking::Error::MQClient { code, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(*code, Some(client_error_code::NOT_FOUND_TOPIC_EXCEPTION));
    assert_eq!(
        asked_first.load(Ordering::SeqCst),
        2,
        "the topic, then the default topic"
    );
    assert_eq!(asked_second.load(Ordering::SeqCst), 0);
    assert_eq!(with.connections(), 0);
}

/// apache/rocketmq#9290: a name server that lost its power keeps its connections, as far as the
/// client's system can tell, and each query timed out there. A silent one is left, and its
/// connection closed.
#[test]
fn b76_a_name_server_that_never_answers_is_left() {
    let (first, second, list) = in_order();
    let silent = FakePeer::start_at(first, |_, _| true);
    let (_good, asked) = name_server(second, "127.0.0.1:1".to_owned());
    let producer = started_in_order(builder(&list), &list);
    // The first query has time for both; a client with one server's time fails it, and no other.
    producer.fetch_publish_message_queues("T").unwrap();
    wait_until("the silent connection is closed", || silent.ended() == 1);
    for _ in 0..5 {
        producer.fetch_publish_message_queues("T").unwrap();
    }
    assert_eq!(silent.connections(), 1, "it is not asked again");
    assert_eq!(asked.load(Ordering::SeqCst), 6);
}

/// The same report, as it came about: the connection was in use before it went dead.
#[test]
fn b76_a_name_server_that_loses_its_power_is_left() {
    let (first, second, list) = in_order();
    let (behind, asked_first) = name_server(
        TcpListener::bind("127.0.0.1:0").unwrap(),
        "127.0.0.1:1".to_owned(),
    );
    let proxy = Proxy::start_at(first, behind.addr());
    let (_good, asked_second) = name_server(second, "127.0.0.1:1".to_owned());
    let producer = started_in_order(builder(&list), &list);
    for _ in 0..3 {
        producer.fetch_publish_message_queues("T").unwrap();
    }
    assert_eq!(asked_first.load(Ordering::SeqCst), 3);
    proxy.set(Line::BlackHole);
    let begun = Instant::now();
    for _ in 0..5 {
        producer.fetch_publish_message_queues("T").unwrap();
    }
    assert!(begun.elapsed() < TIMEOUT * 2, "{:?}", begun.elapsed());
    assert_eq!(asked_first.load(Ordering::SeqCst), 3);
    assert_eq!(asked_second.load(Ordering::SeqCst), 5);
}
