//! Servers that send what they should not, or nothing: each call ends in time with a clear error,
//! and the client works on afterwards.
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
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rocketmq_blocking::{
    DefaultMQProducer, DefaultMQProducerBuilder, DefaultMQPushConsumer, Error, MQClientManager,
    Message, Result, SendResult,
};
use rocketmq_embedded::{Cluster, ControlAction, ControlTimes};
use rocketmq_protocol::RemotingCommand;
use support::{
    FakePeer, GENEROUS, Inbox, cluster_of, producer_at, quick, reply_to, route_of, started,
    wait_until,
};

/// The limit of a send, long enough never to be the reason why one ends.
const LONG: Duration = Duration::from_secs(20);
const PROMPTLY: Duration = Duration::from_secs(10);

fn producer(namesrv: &str) -> DefaultMQProducer {
    started(builder(namesrv))
}

fn builder(namesrv: &str) -> DefaultMQProducerBuilder {
    producer_at(namesrv)
        .retry_times_when_send_failed(0)
        .send_msg_timeout(LONG)
        .mq_client_api_timeout(LONG)
}

fn send(producer: &DefaultMQProducer) -> Result<SendResult> {
    producer.send(&Message::new("T", "m"))
}

/// What a peer does with the first request; all later ones it serves well.
type FirstTime = fn(&mut TcpStream, &RemotingCommand, &[u8]) -> bool;

/// A name server that answers with the route of a real broker, but not at first.
fn name_server(cluster: &Cluster, first_time: FirstTime) -> FakePeer {
    let broker = cluster.broker_addr("broker-a").unwrap();
    let seen = AtomicUsize::new(0);
    FakePeer::start(move |stream, request| {
        let reply = reply_to(&request, 0, route_of("broker-a", &broker));
        if seen.fetch_add(1, Ordering::SeqCst) == 0 {
            return first_time(stream, &request, &reply);
        }
        stream.write_all(&reply).is_ok()
    })
}

/// The first send fails promptly, and the second one works.
#[track_caller]
fn fails_once(first_time: FirstTime) -> Error {
    let cluster = cluster_of(1, 1);
    let peer = name_server(&cluster, first_time);
    let producer = producer(&peer.addr());
    let begun = Instant::now();
    let error = send(&producer).unwrap_err();
    assert!(begun.elapsed() < PROMPTLY, "{:?}: {error}", begun.elapsed());
    assert!(
        error
            .to_string()
            .contains("the route of topic T cannot be asked for"),
        "{error}"
    );
    assert!(
        !error.may_have_been_stored(),
        "nothing was sent to a broker: {error:?}"
    );
    send(&producer).expect("it works afterwards");
    error
}

#[track_caller]
fn works(first_time: FirstTime) {
    let cluster = cluster_of(1, 1);
    let peer = name_server(&cluster, first_time);
    send(&producer(&peer.addr())).unwrap();
    assert_eq!(peer.connections(), 1);
}

#[test]
fn garbage_ends_the_connection() {
    let error =
        fails_once(|stream, _, _| stream.write_all(b"HTTP/1.1 400 Bad Request\r\n").is_ok());
    assert!(error.to_string().contains("cannot be read"), "{error}");
}

#[test]
fn a_frame_of_garbage_ends_the_connection() {
    let error = fails_once(|stream, _, _| {
        stream
            .write_all(&[0, 0, 0, 8, 0, 0, 0, 4, b'x', b'x', b'x', b'x'])
            .is_ok()
    });
    assert!(error.to_string().contains("cannot be read"), "{error}");
}

#[test]
fn a_claimed_length_is_not_believed() {
    let error =
        fails_once(|stream, _, _| stream.write_all(&[0x7f, 0xff, 0xff, 0xff, 0, 0]).is_ok());
    assert!(error.to_string().contains("cannot be read"), "{error}");
}

#[test]
fn half_a_frame_and_the_end_is_an_error() {
    let error = fails_once(|stream, _, reply| {
        stream.write_all(&reply[..reply.len() / 2]).unwrap();
        false
    });
    assert!(
        error.to_string().contains("closed the connection"),
        "{error}"
    );
    assert!(error.is_retryable(), "{error:?}");
}

#[test]
fn a_body_that_cannot_be_read_is_an_error_and_the_connection_stays() {
    let error = fails_once(|stream, request, _| {
        let frame = reply_to(request, 0, b"{\"brokerDatas\":".to_vec());
        stream.write_all(&frame).is_ok()
    });
    assert!(error.to_string().contains("cannot be read"), "{error}");
}

#[test]
fn a_refusal_is_told_with_its_code() {
    let error = fails_once(|stream, request, _| {
        let mut frame = bytes::BytesMut::new();
        RemotingCommand::response(request, 1, Some("out of order".to_owned()))
            .encode(&mut frame)
            .unwrap();
        stream.write_all(&frame).is_ok()
    });
    assert_eq!(error.broker_code(), Some(1));
    assert!(error.to_string().contains("out of order"), "{error}");
}

#[test]
fn a_reply_that_nobody_waits_for_is_passed_over() {
    works(|stream, request, reply| {
        let mut unknown = request.clone();
        unknown.opaque = request.opaque.wrapping_add(1_000_000);
        stream
            .write_all(&reply_to(&unknown, 0, vec![1, 2, 3]))
            .unwrap();
        stream.write_all(reply).is_ok()
    });
}

#[test]
fn a_second_reply_is_passed_over() {
    works(|stream, request, reply| {
        stream.write_all(reply).unwrap();
        stream.write_all(&reply_to(request, 1, Vec::new())).is_ok()
    });
}

#[test]
fn a_request_of_the_server_is_answered_and_disturbs_nothing() {
    works(|stream, _, reply| {
        let mut frame = bytes::BytesMut::new();
        let mut request = RemotingCommand::request_without_header(99_999);
        request.opaque = 7;
        request.encode(&mut frame).unwrap();
        stream.write_all(&frame).unwrap();
        stream.write_all(reply).is_ok()
    });
}

#[test]
fn a_reply_that_comes_byte_by_byte_is_a_reply() {
    works(|stream, _, reply| {
        stream.set_nodelay(true).unwrap();
        for byte in reply {
            stream.write_all(&[*byte]).unwrap();
            thread::sleep(Duration::from_micros(200));
        }
        true
    });
}

#[test]
fn a_reply_that_never_ends_is_waited_for_until_the_deadline() {
    let cluster = cluster_of(1, 1);
    // A byte now and then, which must not put the deadline off.
    let peer = name_server(&cluster, |stream, _, reply| {
        let mut stream = stream.try_clone().unwrap();
        let reply = reply.to_vec();
        thread::spawn(move || {
            for byte in reply {
                if stream.write_all(&[byte]).is_err() {
                    return;
                }
                thread::sleep(Duration::from_millis(100));
            }
        });
        true
    });
    let timeout = Duration::from_millis(500);
    let producer = started(builder(&peer.addr()).mq_client_api_timeout(timeout));
    let begun = Instant::now();
    let error = send(&producer).unwrap_err();
    let took = begun.elapsed();
    assert!(took >= timeout && took < PROMPTLY, "{took:?}: {error}");
    assert!(error.to_string().contains("no answer from"), "{error}");
}

#[test]
fn a_late_reply_is_passed_over_and_the_connection_stays() {
    let cluster = cluster_of(1, 1);
    let late: Arc<Mutex<Vec<u8>>> = Arc::default();
    let broker = cluster.broker_addr("broker-a").unwrap();
    let kept = Arc::clone(&late);
    let peer = FakePeer::start(move |stream, request| {
        let reply = reply_to(&request, 0, route_of("broker-a", &broker));
        let mut kept = kept.lock().unwrap();
        if kept.is_empty() {
            // Kept back until the next request, when nobody waits for it any more.
            kept.extend_from_slice(&reply);
            return true;
        }
        stream.write_all(&kept).unwrap();
        stream.write_all(&reply).is_ok()
    });
    let timeout = Duration::from_millis(200);
    // By default the silence closes the connection, and a late reply has nowhere to come from.
    let producer = started(builder(&peer.addr()).close_socket_if_timeout(false));
    let message = Message::new("T", "m");
    let error = producer.send_with_timeout(&message, timeout).unwrap_err();
    assert!(error.to_string().contains("no answer from"), "{error}");
    assert!(error.is_retryable());
    send(&producer).unwrap();
    assert_eq!(peer.connections(), 1);
}

#[test]
fn a_silent_server_is_left_and_connected_anew() {
    let cluster = cluster_of(1, 1);
    let broker = cluster.broker_addr("broker-a").unwrap();
    let requests = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&requests);
    let peer = FakePeer::start(move |stream, request| {
        let silent = seen.fetch_add(1, Ordering::SeqCst) == 0;
        silent || {
            let reply = reply_to(&request, 0, route_of("broker-a", &broker));
            stream.write_all(&reply).is_ok()
        }
    });
    let producer = started(builder(&peer.addr()));
    let timeout = Duration::from_millis(300);
    let error = producer
        .send_with_timeout(&Message::new("T", "m"), timeout)
        .unwrap_err();
    assert!(error.to_string().contains("no answer from"), "{error}");
    send(&producer).unwrap();
    assert_eq!(peer.connections(), 2);
}

#[test]
fn a_connection_without_traffic_is_closed_and_made_again_when_it_is_needed() {
    let cluster = cluster_of(1, 1);
    let broker = cluster.broker_addr("broker-a").unwrap();
    let peer = FakePeer::start(move |stream, request| {
        let reply = reply_to(&request, 0, route_of("broker-a", &broker));
        stream.write_all(&reply).is_ok()
    });
    let idle = Duration::from_millis(300);
    let producer = started(builder(&peer.addr()).channel_max_idle_time(idle));
    send(&producer).unwrap();
    let begun = Instant::now();
    wait_until("the idle connection is closed", || peer.ended() == 1);
    assert!(begun.elapsed() > idle / 2, "{:?}", begun.elapsed());
    producer.fetch_publish_message_queues("T").unwrap();
    assert_eq!(peer.connections(), 2);
}

#[test]
fn a_server_that_says_good_bye_is_connected_anew_and_asked_again() {
    const GO_AWAY: i32 = 1500;
    let cluster = cluster_of(1, 1);
    let broker = cluster.broker_addr("broker-a").unwrap();
    let requests = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&requests);
    let peer = FakePeer::start(move |stream, request| {
        let reply = match seen.fetch_add(1, Ordering::SeqCst) {
            0 => reply_to(&request, GO_AWAY, Vec::new()),
            _ => reply_to(&request, 0, route_of("broker-a", &broker)),
        };
        stream.write_all(&reply).is_ok()
    });
    let producer = started(builder(&peer.addr()));
    send(&producer).unwrap();
    assert_eq!(requests.load(Ordering::SeqCst), 2);
    assert_eq!(peer.connections(), 2);
}

#[test]
fn a_server_that_says_nothing_but_good_bye_is_an_error() {
    const GO_AWAY: i32 = 1500;
    let peer = FakePeer::start(move |stream, request| {
        stream
            .write_all(&reply_to(&request, GO_AWAY, Vec::new()))
            .is_ok()
    });
    let producer = started(builder(&peer.addr()));
    let error = send(&producer).unwrap_err();
    assert!(error.to_string().contains("shutting down"), "{error}");
    assert_eq!(peer.connections(), 2, "once is enough");
}

#[test]
fn a_closed_port_is_told_with_its_address() {
    let addr = closed_port();
    let error = send(&producer(&addr)).unwrap_err();
    assert!(
        error
            .to_string()
            .contains(&format!("cannot connect to {addr}")),
        "{error}"
    );
    assert!(
        error.is_retryable() && !error.may_have_been_stored(),
        "{error:?}"
    );
}

#[test]
fn a_name_that_is_none_is_told() {
    // A label of 64 characters cannot be asked for, so the resolver says no by itself.
    let name = format!("{}.invalid:9876", "x".repeat(64));
    let begun = Instant::now();
    let error = send(&producer(&name)).unwrap_err();
    assert!(begun.elapsed() < PROMPTLY);
    assert!(
        error
            .to_string()
            .contains(&format!("cannot connect to {name}: the name cannot be")),
        "{error}"
    );
    assert!(
        error.is_retryable() && !error.may_have_been_stored(),
        "{error:?}"
    );
}

#[test]
fn the_name_of_this_machine_is_looked_up() {
    let cluster = cluster_of(1, 1);
    let namesrv = cluster.namesrv_addr().replace("127.0.0.1", "localhost");
    send(&producer(&namesrv)).unwrap();
}

fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// Several, so that whichever name server a client begins with, it meets dead ones.
#[test]
fn dead_name_servers_are_passed_over() {
    let cluster = cluster_of(1, 1);
    let silent = FakePeer::start(|_, _| true);
    let closing = FakePeer::start(|_, _| false);
    for dead in [
        vec![closed_port()],
        vec![closed_port(), closed_port(), closed_port()],
        vec![silent.addr()],
        vec![closing.addr(), silent.addr(), closed_port()],
    ] {
        let list = format!("{};{}", dead.join(";"), cluster.namesrv_addr());
        let producer = started(builder(&list).mq_client_api_timeout(Duration::from_millis(200)));
        send(&producer).unwrap_or_else(|error| panic!("{list}: {error}"));
    }
}

#[test]
fn name_servers_that_are_all_dead_are_all_tried() {
    let first = FakePeer::start(|_, _| false);
    let second = FakePeer::start(|_, _| false);
    let list = format!("{};{}", first.addr(), second.addr());
    send(&producer(&list)).unwrap_err();
    assert_eq!((first.connections(), second.connections()), (1, 1));
}

/// A broker that answers the first send with something else than a reply.
#[track_caller]
fn broker_fails_once(first_time: FirstTime) -> Error {
    let seen = AtomicUsize::new(0);
    let broker = FakePeer::start(move |stream, request| {
        const HEART_BEAT: i32 = 34;
        if request.code == HEART_BEAT {
            return stream.write_all(&reply_to(&request, 0, Vec::new())).is_ok();
        }
        let mut frame = bytes::BytesMut::new();
        let mut reply = RemotingCommand::response(&request, 0, None);
        for (name, value) in [("msgId", "0A"), ("queueId", "0"), ("queueOffset", "5")] {
            reply.ext_fields.set(name, value);
        }
        reply.encode(&mut frame).unwrap();
        if seen.fetch_add(1, Ordering::SeqCst) == 0 {
            return first_time(stream, &request, &frame);
        }
        stream.write_all(&frame).is_ok()
    });
    let name_server = FakePeer::name_server("fake", broker.addr());
    let producer = producer(&name_server.addr());
    let begun = Instant::now();
    let error = send(&producer).unwrap_err();
    assert!(begun.elapsed() < PROMPTLY, "{:?}: {error}", begun.elapsed());
    let text = error.to_string();
    assert!(
        text.contains("fake") && text.contains(&broker.addr()),
        "{text}"
    );
    let result = send(&producer).expect("it works afterwards");
    assert_eq!(
        (result.queue_offset, result.offset_msg_id.as_str()),
        (5, "0A")
    );
    error
}

#[test]
fn a_broker_whose_answer_cannot_be_read_may_have_stored_the_message() {
    let error = broker_fails_once(|stream, _, _| stream.write_all(&[0xff; 16]).is_ok());
    assert!(error.may_have_been_stored(), "{error:?}");
    let error = broker_fails_once(|stream, request, _| {
        // No field of the header is there.
        stream.write_all(&reply_to(request, 0, Vec::new())).is_ok()
    });
    assert!(error.may_have_been_stored(), "{error:?}");
}

#[test]
fn a_broker_that_ends_the_connection_may_have_stored_the_message() {
    let error = broker_fails_once(|_, _, _| false);
    assert!(
        error.may_have_been_stored() && error.is_retryable(),
        "{error:?}"
    );
    let error = broker_fails_once(|stream, _, reply| {
        stream.write_all(&reply[..5]).unwrap();
        false
    });
    assert!(
        error.may_have_been_stored() && error.is_retryable(),
        "{error:?}"
    );
}

/// Many callers of one connection each get their own reply, in whatever order replies come.
#[test]
fn replies_find_their_callers() {
    const CALLERS: usize = 16;
    const CALLS: usize = 50;
    let (requests, received) = std::sync::mpsc::channel::<(TcpStream, RemotingCommand)>();
    let requests = Mutex::new(requests);
    let broker = FakePeer::start(move |stream, request| {
        let stream = stream.try_clone().unwrap();
        requests.lock().unwrap().send((stream, request)).is_ok()
    });
    // Answers whatever has come together backwards; the body comes back as the message id.
    thread::spawn(move || {
        while let Ok(first) = received.recv() {
            thread::sleep(Duration::from_millis(1));
            let group: Vec<_> = std::iter::once(first).chain(received.try_iter()).collect();
            for (mut stream, request) in group.into_iter().rev() {
                let mut frame = bytes::BytesMut::new();
                let mut reply = RemotingCommand::response(&request, 0, None);
                let body = String::from_utf8_lossy(request.body_bytes()).into_owned();
                reply.ext_fields.set("msgId", body);
                reply.ext_fields.set("queueId", "0");
                reply.ext_fields.set("queueOffset", "0");
                reply.encode(&mut frame).unwrap();
                let _ = stream.write_all(&frame);
            }
        }
    });
    let name_server = FakePeer::name_server("fake", broker.addr());
    let producer = producer(&name_server.addr());
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let producer = producer.clone();
            thread::spawn(move || {
                for call in 0..CALLS {
                    let text = format!("{caller}-{call}");
                    let result = producer.send(&Message::new("T", text.clone())).unwrap();
                    assert_eq!(result.offset_msg_id, text);
                }
            })
        })
        .collect();
    for caller in callers {
        caller.join().unwrap();
    }
    assert_eq!(broker.connections(), 1);
}

#[test]
fn a_broker_that_does_not_read_fills_nothing_but_its_own_queue() {
    let broker = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = broker.local_addr().unwrap().to_string();
    let held = thread::spawn(move || broker.accept().unwrap());
    let name_server = FakePeer::name_server("fake", addr.clone());
    let timeout = Duration::from_millis(50);
    let producer = builder(&name_server.addr())
        .send_msg_timeout(timeout)
        .close_socket_if_timeout(false)
        .compress_msg_body_over_howmuch(usize::MAX);
    let producer = started(producer);
    let message = Message::new("T", vec![b'x'; 4 * 1024 * 1024]);
    let mut refused = None;
    for _ in 0..40 {
        let begun = Instant::now();
        let error = producer.send(&message).unwrap_err();
        assert!(begun.elapsed() < PROMPTLY);
        assert!(error.is_retryable(), "{error:?}");
        if error.to_string().contains("bytes wait for") {
            refused = Some(error);
            break;
        }
    }
    let refused = refused.expect("what waits for a peer has a limit");
    assert!(refused.to_string().contains(&addr), "{refused}");
    assert!(!refused.may_have_been_stored(), "{refused:?}");
    drop(held);
}

/// A consumer lives through the loss of every connection.
#[test]
fn a_consumer_outlives_closed_connections() {
    const PULL_MESSAGE: i32 = 11;
    let cluster = cluster_of(1, 1);
    let manager = MQClientManager::new();
    let inbox = Inbox::new();
    let consumer = quick(DefaultMQPushConsumer::builder("g"))
        .client_manager(&manager)
        .namesrv_addr(&cluster.namesrv_addr())
        .subscribe("T", "*")
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    let closed = cluster.control(PULL_MESSAGE, ControlAction::Close, ControlTimes::Times(3));
    consumer.start().unwrap();
    assert!(closed.wait_for_hits(3, GENEROUS));
    let producer = producer(&cluster.namesrv_addr());
    let mut sent = 0;
    wait_until("messages arrive", || {
        sent += 1;
        send(&producer).unwrap();
        inbox.len() > 0
    });
    wait_until("the broker knows the member again", || {
        cluster.consumer_ids("g").len() == 1
    });
    assert!(consumer.shutdown(PROMPTLY).threads_joined);
}
