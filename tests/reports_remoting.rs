//! Public bug reports about frames, connections and pending calls, each with its right outcome.
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
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rocketmq_blocking::{DefaultMQProducerBuilder, Error, Message};
use rocketmq_protocol::{RemotingCommand, request_code};
use support::{
    BlackHole, FakePeer, producer_at, reply_to, route_of, started, stored_reply, wait_until,
};

/// The limit of a send, long enough never to be the reason why one ends.
const LONG: Duration = Duration::from_secs(60);
const PROMPTLY: Duration = Duration::from_secs(30);
const GO_AWAY: i32 = 1500;

fn builder(namesrv: &str) -> DefaultMQProducerBuilder {
    producer_at(namesrv)
        .retry_times_when_send_failed(0)
        .send_msg_timeout(LONG)
        .mq_client_api_timeout(LONG)
}

/// Sends to a broker that answers the first message with these bytes, and returns the error. Later
/// messages it stores.
#[track_caller]
fn answered_with(bytes: Vec<u8>) -> Error {
    let sends = AtomicUsize::new(0);
    let broker = FakePeer::start(move |stream, request| {
        if request.code != request_code::SEND_MESSAGE_V2 {
            return stream.write_all(&reply_to(&request, 0, Vec::new())).is_ok();
        }
        match sends.fetch_add(1, Ordering::SeqCst) {
            0 => stream.write_all(&bytes).is_ok(),
            _ => stream.write_all(&stored_reply(&request, "0A")).is_ok(),
        }
    });
    let name_server = FakePeer::name_server("fake", broker.addr());
    let producer = started(builder(&name_server.addr()));
    let begun = Instant::now();
    let error = producer.send(&Message::new("T", "m")).unwrap_err();
    assert!(begun.elapsed() < PROMPTLY, "{:?}: {error}", begun.elapsed());
    assert!(error.to_string().contains(&broker.addr()), "{error}");
    wait_until("the connection with the bad bytes is closed", || {
        broker.ended() == 1
    });
    producer
        .send(&Message::new("T", "m"))
        .expect("the next one has a connection of its own");
    assert_eq!(broker.connections(), 2);
    error
}

/// apache/rocketmq#3474 and #10832: frames that contradict themselves crashed the decoder with errors
/// that nobody expected there. Each is an error that ends its one connection and the calls on it.
#[test]
fn b64_a_frame_that_contradicts_itself_ends_its_connection() {
    let header = br#"{"code":0,"flag":1,"opaque":1}"#;
    let frame = |content: &[u8]| {
        let mut bytes = (content.len() as u32).to_be_bytes().to_vec();
        bytes.extend_from_slice(content);
        bytes
    };
    let marked = |mark: u32, content: &[u8]| frame(&[&mark.to_be_bytes(), content].concat());
    let length = header.len() as u32;
    for (what, bytes) in [
        ("no content", frame(b"")),
        ("no whole marker", frame(&[0, 0, 1])),
        ("a header one byte longer", marked(length + 1, header)),
        ("the longest header", marked(0x00FF_FFFF, header)),
        ("type 2", marked(0x0200_0000 | length, header)),
        ("type 255", marked(0xFF00_0000 | length, header)),
        ("no header, but a body", marked(0, header)),
        ("a header that is no JSON", marked(3, b"{{{")),
        ("a header that is a list", marked(2, b"[]")),
    ] {
        let error = answered_with(bytes);
        assert!(
            error.to_string().contains("cannot be read"),
            "{what}: {error}"
        );
        assert!(error.may_have_been_stored(), "{what}: {error:?}");
    }
}

/// apache/rocketmq#10832: a header without a number was given the next free one, which is that of
/// some call. Such a reply is nobody's, whichever call waits; the first one, too.
#[test]
fn b64_a_reply_without_a_number_is_nobodys() {
    let without_number = |code: i32| {
        let header = format!(r#"{{"code":{code},"flag":1}}"#);
        let mut frame = (header.len() as u32 + 4).to_be_bytes().to_vec();
        frame.extend_from_slice(&(header.len() as u32).to_be_bytes());
        frame.extend_from_slice(header.as_bytes());
        frame
    };
    let broker = FakePeer::broker(|_| {});
    let addr = broker.addr();
    let name_server = FakePeer::start(move |stream, request| {
        stream.write_all(&without_number(3)).unwrap();
        let reply = reply_to(&request, 0, route_of("fake", &addr));
        stream.write_all(&reply).is_ok()
    });
    // The first request of a new manager goes to the name server.
    let producer = started(builder(&name_server.addr()));
    let queues = producer.fetch_publish_message_queues("T").unwrap();
    assert_eq!(queues.len(), 1);
    producer.send(&Message::new("T", "m")).unwrap();
    assert_eq!(name_server.connections(), 1, "it disturbs nothing");
}

/// apache/rocketmq#8086, #6784 and #2015: who connects to a port of another protocol reads a number
/// without a meaning. The call ends at once, and its error names the length that cannot be.
#[test]
fn b66_a_peer_that_is_no_rocketmq_server() {
    for (bytes, length) in [
        (&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], "1347569952"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "1213486160"),
        // An alert of TLS.
        (&[0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x46], "352518912"),
    ] {
        let error = answered_with(bytes.to_vec());
        assert!(error.to_string().contains(length), "{error}");
    }
}

/// The same reports, at the limits: a length counts the four bytes of the marker, and a frame may
/// have 16 MiB with its length field.
#[test]
fn b66_a_length_out_of_range() {
    for (bytes, length) in [
        ([0xff, 0xff, 0xff, 0xff], "-1"),
        ([0x80, 0x00, 0x00, 0x00], "-2147483648"),
        ([0x00, 0x00, 0x00, 0x00], "0"),
        ([0x00, 0xff, 0xff, 0xfd], "16777213"),
    ] {
        let error = answered_with(bytes.to_vec());
        assert!(
            error
                .to_string()
                .contains(&format!("length {length} of frame")),
            "{error}"
        );
    }
}

/// apache/rocketmq-client-cpp#84 and apache/rocketmq#6979: a request that was copied to be sent again
/// kept its number, and replies crossed. Every frame has a number of its own, a repeated request too.
#[test]
fn b68_a_request_that_is_sent_again_has_a_new_number() {
    let numbers: Arc<Mutex<Vec<i32>>> = Arc::default();
    let seen = Arc::clone(&numbers);
    let broker = FakePeer::start(move |stream, request| {
        if request.code != request_code::SEND_MESSAGE_V2 {
            return stream.write_all(&reply_to(&request, 0, Vec::new())).is_ok();
        }
        let mut numbers = seen.lock().unwrap();
        numbers.push(request.opaque);
        let frame = match numbers.len() {
            // A good-bye is answered on a new connection, a busy broker by a second attempt.
            1 => reply_to(&request, GO_AWAY, Vec::new()),
            2 => reply_to(&request, 2, Vec::new()),
            _ => stored_reply(&request, "0A"),
        };
        stream.write_all(&frame).is_ok()
    });
    let name_server = FakePeer::name_server("fake", broker.addr());
    let producer = started(builder(&name_server.addr()).retry_times_when_send_failed(1));
    producer.send(&Message::new("T", "m")).unwrap();
    let mut numbers = numbers.lock().unwrap().clone();
    assert_eq!(numbers.len(), 3);
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 3, "{numbers:?}");
}

/// A name server that sends topic `Black` to one broker and all others to another.
fn name_server_of_two(black: String, good: String) -> FakePeer {
    FakePeer::start(move |stream, request| {
        let body = match request.ext_fields.get("topic") {
            Some("Black") => route_of("black", &black),
            _ => route_of("good", &good),
        };
        stream.write_all(&reply_to(&request, 0, body)).is_ok()
    })
}

const THREADS: usize = 64;

/// Runs `call` on many threads at the same time.
fn together<R: Send + 'static>(
    call: impl Fn() -> R + Send + Sync + 'static,
) -> Vec<thread::JoinHandle<R>> {
    let barrier = Arc::new(Barrier::new(THREADS));
    let call = Arc::new(call);
    (0..THREADS)
        .map(|_| {
            let (barrier, call) = (Arc::clone(&barrier), Arc::clone(&call));
            thread::spawn(move || {
                barrier.wait();
                call()
            })
        })
        .collect()
}

/// apache/rocketmq#1108 and openmessaging/dledger#177: threads that ask for one address at the same
/// time made a connection each, and closed the good ones. They share one.
#[test]
fn b71_threads_that_ask_for_one_address_share_a_connection() {
    let broker = FakePeer::broker(|_| {});
    let name_server = FakePeer::name_server("fake", broker.addr());
    // No heartbeat, which would connect before the threads do: the route is learnt by them.
    let producer = started(builder(&name_server.addr()));
    let sender = producer.clone();
    let sends = together(move || sender.send(&Message::new("T", "m")).map(|_| ()));
    for send in sends {
        send.join().unwrap().unwrap();
    }
    producer.send(&Message::new("T", "m")).unwrap();
    assert_eq!((broker.connections(), broker.ended()), (1, 0));
    assert_eq!((name_server.connections(), name_server.ended()), (1, 0));
}

/// The same reports, at a port that nobody listens at: everybody is told, and nobody waits.
#[test]
fn b71_threads_that_ask_for_a_closed_port_all_get_its_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    drop(listener);
    let name_server = FakePeer::name_server("fake", addr.clone());
    let producer = started(builder(&name_server.addr()).connect_timeout(LONG));
    let begun = Instant::now();
    let sends = together(move || producer.send(&Message::new("T", "m")).unwrap_err());
    for send in sends {
        let error = send.join().unwrap();
        let reason = format!("cannot connect to {addr}");
        assert!(error.to_string().contains(&reason), "{error}");
    }
    assert!(begun.elapsed() < LONG, "{:?}", begun.elapsed());
}

/// The same reports, at a server that answers no connect: all wait for one attempt, and fail with it;
/// whoever calls another server meanwhile is not held up.
#[test]
fn b71_a_connect_that_hangs_is_one_and_holds_up_nobody_else() {
    let connect_timeout = Duration::from_secs(5);
    let black_hole = BlackHole::start();
    let good = FakePeer::broker(|_| {});
    let name_server = name_server_of_two(black_hole.addr(), good.addr());
    let producer = started(builder(&name_server.addr()).connect_timeout(connect_timeout));
    producer.fetch_publish_message_queues("Black").unwrap();
    let other = producer.clone();
    let begun = Instant::now();
    let sends = together(move || other.send(&Message::new("Black", "m")).unwrap_err());
    wait_until("the connect is under way", || {
        black_hole.connects_under_way() > 0
    });
    producer.send(&Message::new("T", "m")).unwrap();
    assert!(begun.elapsed() < connect_timeout, "{:?}", begun.elapsed());
    assert_eq!(black_hole.connects_under_way(), 1);
    assert!(
        sends.iter().all(|send| !send.is_finished()),
        "all wait for the one connect"
    );
    let reason = format!(
        "cannot connect to {}: no answer within 5000 ms",
        black_hole.addr()
    );
    for send in sends {
        let error = send.join().unwrap();
        assert!(error.to_string().contains(&reason), "{error}");
    }
    assert_eq!(black_hole.connects_under_way(), 0, "one attempt for all");
}

/// apache/rocketmq-client-go#646 (and apache/rocketmq#8250): calls that are never answered stayed in
/// the table for ever. They are gone when their time is up, and their replies, should they come
/// then, are passed over; the connection serves on. The table itself is looked at in the unit tests.
#[test]
fn b69_replies_to_calls_that_have_ended_are_passed_over() {
    const CALLS: usize = 200;
    let late: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let kept = Arc::clone(&late);
    let broker = FakePeer::start(move |stream: &mut TcpStream, request: RemotingCommand| {
        if request.code != request_code::SEND_MESSAGE_V2 {
            return stream.write_all(&reply_to(&request, 0, Vec::new())).is_ok();
        }
        let mut kept = kept.lock().unwrap();
        if kept.len() < CALLS {
            kept.push(stored_reply(&request, "late").to_vec());
            return true;
        }
        for reply in kept.iter() {
            stream.write_all(reply).unwrap();
        }
        stream.write_all(&stored_reply(&request, "0A")).is_ok()
    });
    let name_server = FakePeer::name_server("fake", broker.addr());
    let producer = started(builder(&name_server.addr()).close_socket_if_timeout(false));
    producer.fetch_publish_message_queues("T").unwrap();
    let message = Message::new("T", "m");
    let timeout = Duration::from_millis(5);
    // A send whose time is up before it is written does not count.
    wait_until("all are kept", || {
        let error = producer.send_with_timeout(&message, timeout).unwrap_err();
        assert!(error.is_retryable(), "{error:?}");
        late.lock().unwrap().len() == CALLS
    });
    let result = producer.send(&message).unwrap();
    assert_eq!(result.offset_msg_id, "0A", "its own reply");
    assert_eq!(broker.connections(), 1);
}
