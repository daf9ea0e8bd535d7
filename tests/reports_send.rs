//! Public bug reports about sending, as tests of the right outcome; docs/reports.md lists them.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test is outside of what loom models, and fails by panicking"
)]

mod support;

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rocketmq_blocking::{
    ConsumeFromWhere, DefaultMQPushConsumer, Error, MQClientManager, Message, RPCHook,
    RemotingCommand, SendFailure, SendResult, request_code, response_code,
};
use rocketmq_embedded::Cluster;
use rocketmq_protocol::body::{BrokerData, JsonBody, Permission, QueueData, TopicRouteData};
use rocketmq_protocol::{BatchElements, encode_batch, encode_properties};
use support::{FakePeer, GENEROUS, Inbox, producer_at, quick, reply_to, started, stored_reply};

const SEND_MESSAGE_V2: i32 = request_code::SEND_MESSAGE_V2;
const SEND_BATCH_MESSAGE: i32 = request_code::SEND_BATCH_MESSAGE;

/// What a fake broker does with a send.
#[derive(Clone, Copy)]
enum Does {
    Store,
    Refuse(i32),
    Close,
    Nothing,
}

/// The brokers that sends went to, with what came, in their order.
type Log = Arc<Mutex<Vec<(&'static str, RemotingCommand)>>>;

fn broker(
    name: &'static str,
    log: &Log,
    does: impl Fn(usize) -> Does + Send + Sync + 'static,
) -> FakePeer {
    let log = Arc::clone(log);
    let sends = AtomicUsize::new(0);
    FakePeer::start(move |stream, request| {
        let frame = match request.code {
            SEND_MESSAGE_V2 | SEND_BATCH_MESSAGE => {
                log.lock().unwrap().push((name, request.clone()));
                match does(sends.fetch_add(1, Ordering::SeqCst)) {
                    Does::Store => stored_reply(&request, "0A"),
                    Does::Refuse(code) => reply_to(&request, code, Vec::new()),
                    Does::Close => return false,
                    Does::Nothing => return true,
                }
            }
            _ => reply_to(&request, response_code::SUCCESS, Vec::new()),
        };
        stream.write_all(&frame).is_ok()
    })
}

/// A name server whose every route names these brokers, with so many queues each.
fn name_server(brokers: &[(&str, String)], queues: i32) -> FakePeer {
    let route = TopicRouteData {
        broker_datas: brokers
            .iter()
            .map(|(name, addr)| BrokerData {
                cluster: "DefaultCluster".to_owned(),
                broker_name: (*name).to_owned(),
                broker_addrs: BTreeMap::from([(0, addr.clone())]),
                ..BrokerData::default()
            })
            .collect(),
        queue_datas: brokers
            .iter()
            .map(|(name, _)| QueueData {
                broker_name: (*name).to_owned(),
                read_queue_nums: queues,
                write_queue_nums: queues,
                perm: Permission::READ_WRITE.0,
                ..QueueData::default()
            })
            .collect(),
        ..TopicRouteData::default()
    };
    let body = route.to_json().unwrap();
    FakePeer::start(move |stream, request| {
        stream
            .write_all(&reply_to(&request, response_code::SUCCESS, body.clone()))
            .is_ok()
    })
}

fn message(body: &str) -> Message {
    Message::new("T", body.to_owned())
}

fn names(log: &Log) -> Vec<&'static str> {
    log.lock().unwrap().iter().map(|(name, _)| *name).collect()
}

/// A port on which nobody listens.
fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// apache/rocketmq#2223, #1136: of three brokers two fail, and the third was never tried. No attempt
/// goes to a broker that was tried for this message, so no send fails. (Java remembers the last
/// broker only, and goes a, b, a at times.)
#[test]
fn b03_the_third_of_three_brokers_is_reached() {
    for (latency, does) in [
        (false, Does::Refuse(response_code::SERVICE_NOT_AVAILABLE)),
        (true, Does::Refuse(response_code::SERVICE_NOT_AVAILABLE)),
        (true, Does::Close),
    ] {
        let log = Log::default();
        let brokers = [
            broker("broker-a", &log, move |_| does),
            broker("broker-b", &log, move |_| does),
            broker("broker-c", &log, |_| Does::Store),
        ];
        let named = ["broker-a", "broker-b", "broker-c"].iter().zip(&brokers);
        let route: Vec<_> = named.map(|(name, peer)| (*name, peer.addr())).collect();
        let name_server = name_server(&route, 8);
        // With no back-off all brokers are as good as new at each send.
        let producer = producer_at(&name_server.addr())
            .send_latency_fault_enable(latency)
            .not_available_duration([Duration::ZERO; 7]);
        let producer = started(producer);
        for n in 0..1000 {
            log.lock().unwrap().clear();
            let sent = producer.send(&message("m"));
            let tried = names(&log);
            assert!(sent.is_ok(), "send {n} over {tried:?}: {sent:?}");
            assert_eq!(tried.last(), Some(&"broker-c"));
            assert!(tried.len() <= 3 && tried.windows(2).all(|pair| pair[0] != pair[1]));
        }
    }
}

/// apache/rocketmq-client-go#1013 (PR#1014): the next queue was usually on the same dead broker. The
/// second attempt is on another broker if there is one; with one broker there is no other error.
#[test]
fn b04_the_second_attempt_is_on_another_broker() {
    let log = Log::default();
    let a = broker("broker-a", &log, |_| Does::Close);
    let b = broker("broker-b", &log, |_| Does::Store);
    let both = name_server(&[("broker-a", a.addr()), ("broker-b", b.addr())], 4);
    let producer = started(producer_at(&both.addr()));
    let mut seen = Vec::new();
    while seen.first() != Some(&"broker-a") {
        log.lock().unwrap().clear();
        producer.send(&message("m")).unwrap();
        seen = names(&log);
        assert_eq!(seen.last(), Some(&"broker-b"));
    }
    assert_eq!(seen, ["broker-a", "broker-b"]);

    log.lock().unwrap().clear();
    let one = name_server(&[("broker-a", a.addr())], 4);
    let error = started(producer_at(&one.addr()))
        .send(&message("m"))
        .unwrap_err();
    assert_eq!(names(&log), ["broker-a"; 3]);
    let text = error.to_string();
    assert!(
        text.contains("brokers tried: broker-a, broker-a, broker-a"),
        "{text}"
    );
}

/// Takes its time before a send goes out.
struct SlowHook(Duration);

impl RPCHook for SlowHook {
    fn do_before_request(&self, _: &str, request: &mut RemotingCommand) {
        if request.code == SEND_MESSAGE_V2 {
            thread::sleep(self.0);
        }
    }

    fn do_after_response(&self, _: &str, _: &RemotingCommand, _: &RemotingCommand) {}
}

type Outcome = Result<SendResult, SendFailure>;

/// apache/rocketmq#8168: an asynchronous send whose time was over was tried again with a negative
/// timeout. With no time left there is no attempt, and one callback.
#[test]
fn b09_without_time_there_is_no_attempt() {
    let log = Log::default();
    let a = broker("broker-a", &log, |_| Does::Store);
    let name_server = name_server(&[("broker-a", a.addr())], 4);
    let hook = Arc::new(SlowHook(Duration::from_millis(1200)));
    let producer = started(producer_at(&name_server.addr()).rpc_hook(hook));
    let (to, outcomes) = channel::<Outcome>();
    let limit = Duration::from_millis(1000);
    producer
        .send_async_with_timeout(message("m"), limit, move |outcome| {
            to.send(outcome).unwrap()
        })
        .unwrap();
    let failure = outcomes.recv_timeout(GENEROUS).unwrap().unwrap_err();
    assert!(outcomes.recv().is_err(), "one callback");
    assert!(!failure.error().may_have_been_stored(), "{failure:?}");
    assert!(failure.to_string().contains("used up"), "{failure}");
    producer.shutdown(GENEROUS);
    assert_eq!(names(&log), [""; 0], "nothing was sent");
}

/// The same thread: a broker that never answers is tried once when the attempt takes all the time.
#[test]
fn b09_a_timeout_that_takes_all_the_time_is_not_tried_again() {
    let log = Log::default();
    let a = broker("broker-a", &log, |_| Does::Nothing);
    let name_server = name_server(&[("broker-a", a.addr())], 4);
    let producer = started(producer_at(&name_server.addr()));
    let (to, outcomes) = channel::<Outcome>();
    let limit = Duration::from_millis(200);
    producer
        .send_async_with_timeout(message("m"), limit, move |outcome| {
            to.send(outcome).unwrap()
        })
        .unwrap();
    let failure = outcomes.recv_timeout(GENEROUS).unwrap().unwrap_err();
    assert!(outcomes.recv().is_err(), "one callback");
    assert!(failure.error().may_have_been_stored(), "{failure:?}");
    assert_eq!(names(&log), ["broker-a"]);
}

/// apache/rocketmq#3556, #1588, #2198: a send to a broker that could not be connected was neither
/// tried again nor told of. It counts as a failed attempt, and the callback runs once.
#[test]
fn b10_a_broker_that_cannot_be_connected_is_left_for_another() {
    let log = Log::default();
    let b = broker("broker-b", &log, |_| Does::Store);
    let a = closed_port();
    let name_server_of_both = name_server(&[("broker-a", a.clone()), ("broker-b", b.addr())], 4);
    let producer = started(producer_at(&name_server_of_both.addr()));
    let (to, outcomes) = channel::<Outcome>();
    for _ in 0..8 {
        let to = to.clone();
        producer
            .send_async(message("m"), move |outcome| to.send(outcome).unwrap())
            .unwrap();
    }
    drop(to);
    let results: Vec<Outcome> = outcomes.iter().collect();
    assert_eq!(results.len(), 8, "one callback each");
    assert!(
        results
            .iter()
            .all(|r| r.as_ref().unwrap().message_queue.broker_name() == "broker-b"),
        "{results:?}"
    );
    assert_eq!(names(&log).len(), 8);

    let none = name_server(&[("broker-a", a), ("broker-b", closed_port())], 4);
    let producer = started(producer_at(&none.addr()));
    let (to, outcomes) = channel::<Outcome>();
    let began = Instant::now();
    producer
        .send_async_with_timeout(message("m"), GENEROUS, move |outcome| {
            to.send(outcome).unwrap()
        })
        .unwrap();
    let failure = outcomes.recv_timeout(GENEROUS).unwrap().unwrap_err();
    assert!(began.elapsed() < GENEROUS && outcomes.recv().is_err());
    assert!(!failure.error().may_have_been_stored(), "{failure:?}");
    assert!(failure.to_string().contains("3 attempts"), "{failure}");
}

/// apache/rocketmq-externals#66, apache/rocketmq PR#294, PR#89: a body was compressed in place, and
/// once more at the second attempt. Every attempt carries the same bytes, and the message stays.
#[test]
fn b11_a_compressed_body_is_the_same_in_every_attempt() {
    let log = Log::default();
    let first = |n| {
        if n == 0 {
            Does::Refuse(response_code::SYSTEM_BUSY)
        } else {
            Does::Store
        }
    };
    let a = broker("broker-a", &log, first);
    let name_server = name_server(&[("broker-a", a.addr())], 4);
    let producer = started(producer_at(&name_server.addr()));
    let original = Message::new("T", vec![b'a'; 10_000]);
    producer.send(&original).unwrap();
    let (to, outcomes) = channel::<Outcome>();
    producer
        .send_async(original.clone(), move |outcome| to.send(outcome).unwrap())
        .unwrap();
    outcomes.recv_timeout(GENEROUS).unwrap().unwrap();
    assert_eq!(original.body(), &vec![b'a'; 10_000]);
    let frames: Vec<_> = std::mem::take(&mut *log.lock().unwrap());
    assert_eq!(frames.len(), 3);
    for (_, frame) in &frames {
        assert_eq!(frame.body_bytes(), frames[0].1.body_bytes());
        assert_eq!(
            frame.ext_fields.get("f"),
            Some("769"),
            "compressed, as a zlib stream"
        );
        let kind = rocketmq_protocol::compression::CompressionType::Zlib;
        let body = kind.decompress(frame.body_bytes()).unwrap();
        assert_eq!(body, vec![b'a'; 10_000]);
    }
    let keys: Vec<_> = frames[..2]
        .iter()
        .map(|(_, frame)| frame.ext_fields.get("i"))
        .collect();
    assert_eq!(keys[0], keys[1], "one unique key for both attempts");
}

/// apache/rocketmq-client-go#646 (PR#647, #648), apache/rocketmq#8250: calls without an answer stayed
/// for ever. Each of 10,000 asynchronous sends fails once; late answers change nothing.
#[test]
fn b69_ten_thousand_sends_without_an_answer_end_once_each() {
    const SENDS: usize = 10_000;
    let log = Log::default();
    let late = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&late);
    let a = FakePeer::start(move |stream, request| {
        if request.code != SEND_MESSAGE_V2 || request.body_bytes() == b"last" {
            return stream.write_all(&stored_reply(&request, "0A")).is_ok();
        }
        kept.lock().unwrap().push(stored_reply(&request, "0A"));
        true
    });
    let name_server = name_server(&[("broker-a", a.addr())], 4);
    let producer = started(producer_at(&name_server.addr()).close_socket_if_timeout(false));
    producer.send(&message("last")).unwrap();
    let (to, outcomes) = channel::<Outcome>();
    for _ in 0..SENDS {
        let to = to.clone();
        producer
            .send_async_with_timeout(message("m"), Duration::from_millis(200), move |outcome| {
                to.send(outcome).unwrap();
            })
            .unwrap();
    }
    drop(to);
    let mut failures = 0;
    while let Ok(outcome) = outcomes.recv_timeout(GENEROUS) {
        let failure = outcome.unwrap_err();
        assert!(failure.error().is_retryable(), "{failure:?}");
        failures += 1;
    }
    assert_eq!(failures, SENDS);
    assert!(late.lock().unwrap().len() <= SENDS);
    producer.send(&message("last")).unwrap();
    drop(log);
}

/// apache/rocketmq#3476 (PR#3479), #7530, apache/skywalking-java#54: without the last separator the
/// broker's properties ran into the tag. Both messages of a batch have their tag.
#[test]
fn b93_messages_of_a_batch_keep_their_tags() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 1).unwrap();
    let manager = MQClientManager::new();
    let inbox = Inbox::new();
    let consumer = quick(
        DefaultMQPushConsumer::builder("g")
            .client_manager(&manager)
            .namesrv_addr(&cluster.namesrv_addr())
            .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
            .subscribe("T", "TagA")
            .message_listener(inbox.listener()),
    )
    .build()
    .unwrap();
    consumer.start().unwrap();
    let producer = started(producer_at(&cluster.namesrv_addr()));
    let batch = ["one", "two"].map(|body| message(body).with_tags("TagA"));
    producer.send_batch(&batch).unwrap();
    producer.send(&message("last").with_tags("TagA")).unwrap();
    let received = inbox.wait_for(3);
    assert!(
        received
            .iter()
            .all(|message| message.tags() == Some("TagA")),
        "{received:?}"
    );
}

/// apache/rocketmq#3786 (PR#3788), #6579: properties beyond 32,767 bytes wrapped their length, in
/// batches too.
#[test]
fn b95_properties_of_a_batch_that_are_too_long_are_refused_here() {
    let log = Log::default();
    let a = broker("broker-a", &log, |_| Does::Store);
    let name_server = name_server(&[("broker-a", a.addr())], 4);
    let producer = started(producer_at(&name_server.addr()));
    let long = |length: usize| {
        let mut message = message("m");
        message.put_property("UNIQ_KEY", "k");
        let others = encode_properties(message.properties()).len();
        message.put_property("u", "x".repeat(length - others - 3));
        message
    };
    let error = producer
        .send_batch(&[message("m"), long(32_768)])
        .unwrap_err();
    assert!(matches!(error, Error::InvalidMessage { .. }), "{error:?}");
    assert_eq!(names(&log).len(), 0, "nothing was sent");
    producer.send_batch(&[message("m"), long(32_767)]).unwrap();
}

/// apache/rocketmq-client-cpp PR#186: a batch of more than 4 KiB was compressed as a whole.
#[test]
fn b114_batches_are_not_compressed() {
    let log = Log::default();
    let a = broker("broker-a", &log, |_| Does::Store);
    let name_server = name_server(&[("broker-a", a.addr())], 4);
    let producer = started(producer_at(&name_server.addr()));
    let messages: Vec<Message> = (0..10)
        .map(|_| Message::new("T", vec![b'x'; 1024]))
        .collect();
    producer.send_batch(&messages).unwrap();
    let frames = std::mem::take(&mut *log.lock().unwrap());
    let frame = &frames[0].1;
    assert_eq!(frame.ext_fields.get("f"), Some("0"));
    let elements: Vec<_> = BatchElements::new(frame.body_bytes().to_vec().into())
        .map(Result::unwrap)
        .collect();
    assert_eq!(elements.len(), 10);
    assert!(
        elements
            .iter()
            .all(|element| element.body == vec![b'x'; 1024])
    );
}

/// apache/rocketmq-client-cpp#189 (PR#152), apache/rocketmq#1475: a batch went under the code of a
/// single message, and its sizes counted characters.
#[test]
fn b115_a_batch_goes_under_its_own_code_and_in_its_own_form() {
    let log = Log::default();
    let a = broker("broker-a", &log, |_| Does::Store);
    let name_server = name_server(&[("broker-a", a.addr())], 4);
    let producer = started(producer_at(&name_server.addr()));
    let tagged = |body: &str, tag: &str| message(body).with_tags(tag);
    let two = [tagged("a", "A"), tagged("b", "B")];
    let expected: String = [("61", "41"), ("62", "42")]
        .map(|(body, tag)| {
            let lengths = "00000028000000000000000000000000";
            let properties = format!("5441475301{tag}0257414954017472756502");
            format!("{lengths}00000001{body}0011{properties}")
        })
        .concat();
    let bytes = encode_batch(&two).unwrap();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        hex, expected,
        "TAGS before WAIT; Java's order is that of a hash map"
    );
    let messages = [tagged("é", "A"), tagged("b", "B")];
    let result = producer.send_batch(&messages).unwrap();
    let frames = std::mem::take(&mut *log.lock().unwrap());
    let (_, frame) = &frames[0];
    assert_eq!(frame.code, SEND_BATCH_MESSAGE);
    let field = |name| frame.ext_fields.get(name);
    assert_eq!(
        (field("m"), field("b"), field("a")),
        (Some("true"), Some("T"), Some("p"))
    );
    assert_eq!(field("i"), Some("WAIT\u{1}true\u{2}"));
    let body = frame.body_bytes().to_vec();
    let first = i32::from_be_bytes(body[..4].try_into().unwrap());
    assert_eq!(&body[4..16], [0; 12]);
    assert_eq!(&body[16..20], 2_i32.to_be_bytes(), "the bytes of é");
    let elements: Vec<_> = BatchElements::new(body.into())
        .map(Result::unwrap)
        .collect();
    assert_eq!(elements[0].body, "é".as_bytes());
    let keys: Vec<_> = elements
        .iter()
        .map(|e| e.properties["UNIQ_KEY"].as_str())
        .collect();
    assert_eq!(keys.join(","), result.msg_id);
    let length = encode_properties(&elements[0].properties).len();
    assert_eq!(usize::try_from(first).unwrap(), 22 + 2 + length);

    let mut delayed = message("m");
    delayed.put_property("DELAY", "3");
    let mut quick = message("m");
    quick.put_property("WAIT", "false");
    for refused in [
        vec![],
        vec![message("m"), Message::new("U", "m")],
        vec![Message::new("%RETRY%g", "m")],
        vec![delayed],
        vec![message("m"), quick],
    ] {
        let error = producer.send_batch(&refused).unwrap_err();
        assert!(matches!(error, Error::InvalidMessage { .. }), "{error:?}");
    }
    assert!(log.lock().unwrap().is_empty(), "nothing was sent");
}
