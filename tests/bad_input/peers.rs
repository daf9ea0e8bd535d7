use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rocketmq_blocking::{Error, Message};
use rocketmq_embedded::Cluster;
use rocketmq_protocol::{request_code, response_code};

use crate::support::{
    Answer, BlackHole, FakePeer, GENEROUS, Inbox, ScriptedBroker, keep_logs, logged, reply_to,
    route_of, stored_reply, wait_until,
};
use crate::{LIMIT, SLACK, consumer_builder, producer_builder, says, started};

const HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
const SSH: &[u8] = b"SSH-2.0-OpenSSH_9.6\r\n";
/// A server that wants TLS tells whoever does not speak it with an alert.
const TLS: &[u8] = &[0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x46];
const RANDOM: &[u8] = &[
    0x9d, 0x03, 0xe5, 0x7a, 0x11, 0xc4, 0x5f, 0x00, 0xb2, 0x38, 0x66, 0xfe, 0x91, 0x27, 0xd0, 0x4c,
];
const LENGTH: &str = "cannot be read";

/// Says the same to everybody who connects, and reads on.
struct Greeter {
    addr: String,
    over: Arc<AtomicBool>,
}

impl Greeter {
    fn start(greeting: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                thread::spawn(move || {
                    let _ = stream.write_all(greeting);
                    let mut chunk = [0; 4096];
                    while stream.read(&mut chunk).is_ok_and(|length| length > 0) {}
                });
            }
        });
        Self { addr, over }
    }
}

impl Drop for Greeter {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(&self.addr);
    }
}

/// A server that answers each request with the same bytes.
fn answering(bytes: &'static [u8]) -> FakePeer {
    FakePeer::start(move |stream, _| stream.write_all(bytes).is_ok())
}

fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// A name of a form that no resolver asks anybody for.
fn unknown_host() -> String {
    format!("{}.invalid:9876", "x".repeat(64))
}

fn sent_to(namesrv: &str) -> Error {
    let producer = started(
        producer_builder(namesrv)
            .send_msg_timeout(LIMIT)
            .mq_client_api_timeout(LIMIT)
            .connect_timeout(LIMIT / 2),
    );
    let begun = Instant::now();
    let error = producer.send(&Message::new("T", "m")).unwrap_err();
    assert!(
        begun.elapsed() < LIMIT + SLACK,
        "{:?}: {error}",
        begun.elapsed()
    );
    let report = producer.shutdown(GENEROUS);
    assert!(report.threads_joined, "{report:?}");
    error
}

/// A consumer starts and ends in its time, and the log tells what is wrong.
#[track_caller]
fn consumer_says(namesrv: &str, group: &str, words: &[&str]) {
    keep_logs();
    let consumer = consumer_builder(namesrv, group)
        .mq_client_api_timeout(LIMIT)
        .connect_timeout(LIMIT / 2)
        .message_listener(Inbox::new().listener())
        .build()
        .unwrap();
    let begun = Instant::now();
    consumer.start().unwrap();
    assert!(begun.elapsed() < 3 * LIMIT + SLACK, "{:?}", begun.elapsed());
    wait_until("the log says so", || !logged(words).is_empty());
    let report = consumer.shutdown(GENEROUS);
    assert!(report.threads_joined, "{report:?}");
}

#[track_caller]
fn bad_name_server(namesrv: &str, why: &str, is_retryable: bool) {
    let error = sent_to(namesrv);
    says(
        &error,
        &["the route of topic T cannot be asked for", namesrv, why],
    );
    assert_eq!(error.is_retryable(), is_retryable, "{error:?}");
    assert!(!error.may_have_been_stored(), "{error:?}");
    let group = format!("at_{}", namesrv.rsplit(':').next().unwrap());
    let of_group = format!("group {group}: route of T");
    consumer_says(namesrv, &group, &[&of_group, namesrv, why]);
}

#[track_caller]
fn bad_broker(addr: &str, why: &str, is_retryable: bool, may_have_been_stored: bool) {
    let name_server = FakePeer::name_server("broker-a", addr.to_owned());
    let error = sent_to(&name_server.addr());
    says(
        &error,
        &["sending to topic T failed", "broker-a", addr, why],
    );
    assert_eq!(error.is_retryable(), is_retryable, "{error:?}");
    assert_eq!(
        error.may_have_been_stored(),
        may_have_been_stored,
        "{error:?}"
    );
    let heartbeat = format!("heartbeat to {addr}");
    consumer_says(&name_server.addr(), "g", &[&heartbeat, why]);
}

#[test]
fn an_unknown_host() {
    let host = unknown_host();
    bad_name_server(&host, "the name cannot be", true);
    bad_broker(&host, "the name cannot be", true, false);
}

#[test]
fn a_closed_port() {
    bad_name_server(&closed_port(), "cannot connect to", true);
    bad_broker(&closed_port(), "cannot connect to", true, false);
}

#[test]
fn a_server_that_accepts_nobody() {
    let hole = BlackHole::start();
    bad_name_server(&hole.addr(), "cannot connect to", true);
    bad_broker(&hole.addr(), "cannot connect to", true, false);
}

#[test]
fn a_server_that_accepts_and_never_answers() {
    let silent = answering(b"");
    bad_name_server(&silent.addr(), "no answer from", true);
    bad_broker(&silent.addr(), "no answer from", true, true);
}

#[test]
fn a_server_that_closes_at_once() {
    let closing = FakePeer::start(|_, _| false);
    bad_name_server(&closing.addr(), "closed the connection", true);
    bad_broker(&closing.addr(), "closed the connection", true, true);
}

#[test]
fn a_server_that_speaks_http() {
    let peer = answering(HTTP);
    bad_name_server(&peer.addr(), LENGTH, false);
    bad_broker(&peer.addr(), LENGTH, false, true);
}

#[test]
fn a_server_that_speaks_tls() {
    let peer = answering(TLS);
    bad_name_server(&peer.addr(), LENGTH, false);
    bad_broker(&peer.addr(), LENGTH, false, true);
}

#[test]
fn a_server_that_speaks_at_random() {
    let peer = answering(RANDOM);
    bad_name_server(&peer.addr(), LENGTH, false);
    bad_broker(&peer.addr(), LENGTH, false, true);
}

/// It speaks first, so whether the request was on its way when its words came is a matter of luck.
#[test]
fn a_server_that_greets_like_ssh() {
    let peer = Greeter::start(SSH);
    let error = sent_to(&peer.addr);
    says(
        &error,
        &["the route of topic T cannot be asked for", &peer.addr],
    );
    assert!(!error.may_have_been_stored(), "{error:?}");
    let name_server = FakePeer::name_server("broker-a", peer.addr.clone());
    let error = sent_to(&name_server.addr());
    says(
        &error,
        &["sending to topic T failed", "broker-a", &peer.addr],
    );
    consumer_says(&name_server.addr(), "g", &["heartbeat to", &peer.addr]);
}

/// Each answer of the name server ends one byte later than the one before; the whole one counts.
#[test]
fn a_route_that_is_cut_at_each_byte() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 1).unwrap();
    let broker = cluster.broker_addr("broker-a").unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let (cut, length) = (Arc::clone(&asked), Arc::new(AtomicUsize::new(usize::MAX)));
    let whole = Arc::clone(&length);
    let peer = FakePeer::start(move |stream, request| {
        let reply = reply_to(&request, 0, route_of("broker-a", &broker));
        whole.store(reply.len(), Ordering::SeqCst);
        let most = cut.fetch_add(1, Ordering::SeqCst).min(reply.len());
        stream.write_all(&reply[..most]).is_ok() && most == reply.len()
    });
    let producer = started(producer_builder(&peer.addr()));
    let mut failures = 0;
    while let Err(error) = producer.fetch_publish_message_queues("T") {
        failures += 1;
        says(&error, &[&peer.addr(), "closed the connection"]);
        assert!(
            error.is_retryable() && !error.may_have_been_stored(),
            "{error:?}"
        );
        assert!(failures <= length.load(Ordering::SeqCst));
    }
    assert_eq!(failures, length.load(Ordering::SeqCst));
    producer.send(&Message::new("T", "m")).unwrap();
    assert_eq!(peer.open_connections(), 1);
    assert!(producer.shutdown(GENEROUS).threads_joined);
    wait_until("no connection is left", || peer.open_connections() == 0);
}

/// The same at a broker: it may have stored each of the messages.
#[test]
fn an_answer_to_a_send_that_is_cut_at_each_byte() {
    let sends = Arc::new(AtomicUsize::new(0));
    let (cut, length) = (Arc::clone(&sends), Arc::new(AtomicUsize::new(usize::MAX)));
    let whole = Arc::clone(&length);
    let broker = FakePeer::start(move |stream, request| {
        if request.code != request_code::SEND_MESSAGE_V2 {
            let frame = reply_to(&request, response_code::SUCCESS, Vec::new());
            return request.is_oneway() || stream.write_all(&frame).is_ok();
        }
        let reply = stored_reply(&request, "0A");
        whole.store(reply.len(), Ordering::SeqCst);
        let most = cut.fetch_add(1, Ordering::SeqCst).min(reply.len());
        stream.write_all(&reply[..most]).is_ok() && most == reply.len()
    });
    let name_server = FakePeer::name_server("broker-a", broker.addr());
    let producer = started(producer_builder(&name_server.addr()));
    let mut failures = 0;
    while let Err(error) = producer.send(&Message::new("T", "m")) {
        failures += 1;
        says(
            &error,
            &[
                "topic T",
                "broker-a",
                &broker.addr(),
                "closed the connection",
            ],
        );
        assert!(
            error.is_retryable() && error.may_have_been_stored(),
            "{error:?}"
        );
        assert!(failures <= length.load(Ordering::SeqCst));
    }
    assert_eq!(failures, length.load(Ordering::SeqCst));
    assert!(producer.shutdown(GENEROUS).threads_joined);
    wait_until("no connection is left", || broker.open_connections() == 0);
}

/// A consumer pulls again until the answer is one and whole, and has each message once.
#[test]
fn an_answer_to_a_pull_that_is_garbage_or_cut() {
    // Wherever it falls in the frame; each byte of it is the codec's own test.
    const STEP: usize = 7;
    let pulls = AtomicUsize::new(0);
    let is_pull = |request: &rocketmq_protocol::RemotingCommand| {
        request.code == request_code::PULL_MESSAGE && request.ext_fields.get("topic") == Some("T")
    };
    let broker = ScriptedBroker::start(move |request| {
        if is_pull(request) {
            return match pulls.fetch_add(1, Ordering::SeqCst) {
                0 => Answer::Bytes(HTTP.to_vec()),
                1 => Answer::Bytes(TLS.to_vec()),
                2 => Answer::Bytes(RANDOM.to_vec()),
                at => Answer::Cut((at - 3) * STEP),
            };
        }
        Answer::Usual
    });
    broker.put("m0", &Default::default());
    broker.put("m1", &Default::default());
    let inbox = Inbox::new();
    let consumer = consumer_builder(&broker.namesrv(), "g")
        .pull_time_delay_when_exception(Duration::from_millis(1))
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    inbox.wait_for_bodies(2);
    assert!(
        inbox.bodies().values().all(|times| *times == 1),
        "{:?}",
        inbox.bodies()
    );
    let pulls = broker.requests(request_code::PULL_MESSAGE);
    let of_topic = pulls.iter().filter(|(_, request)| is_pull(request));
    assert!(of_topic.count() > 20);
    assert!(consumer.shutdown(GENEROUS).threads_joined);
}

/// A peer that ends its connection in the middle of a client's request.
#[test]
fn a_server_that_reads_nothing_and_resets() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok).take(4) {
            // With bytes unread the system resets the connection.
            let mut one = [0; 1];
            let _ = stream.peek(&mut one);
            let _ = stream.shutdown(Shutdown::Read);
        }
    });
    let error = sent_to(&addr);
    says(&error, &["the route of topic T cannot be asked for", &addr]);
    assert!(
        error.is_retryable() && !error.may_have_been_stored(),
        "{error:?}"
    );
}
