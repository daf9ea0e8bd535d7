//! What is added to every request, by the library and by the user's hook.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and is outside of what loom models"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rocketmq_blocking::{
    AclClientRPCHook, ConsumeFromWhere, DefaultMQProducer, DefaultMQPushConsumer, Error,
    LanguageCode, MQClientManager, Message, RPCHook, RemotingCommand, SerializeType,
    SessionCredentials, request_code, response_code,
};
use rocketmq_embedded::Cluster;
use rocketmq_protocol::acl;
use rocketmq_protocol::body::{GetConsumerListByGroupResponseBody, HeartbeatData, JsonBody};
use rocketmq_protocol::header::OffsetResponseHeader;
use support::{
    FakePeer, Inbox, producer_at, quick, reply_to, reply_with, stored_in, unique, wait_until,
};

/// Notes what it sees; in requests it counts how often they passed.
#[derive(Default)]
struct Recorder {
    requests: Mutex<Vec<(String, i32)>>,
    responses: Mutex<Vec<(i32, i32)>>,
    threads: Mutex<BTreeSet<String>>,
}

impl RPCHook for Recorder {
    fn do_before_request(&self, addr: &str, request: &mut RemotingCommand) {
        let passed = request
            .ext_fields
            .get("passed")
            .map_or(0, |times| times.parse::<u32>().unwrap());
        request.ext_fields.set("passed", (passed + 1).to_string());
        let mut requests = self.requests.lock().unwrap();
        requests.push((addr.to_owned(), request.code));
        self.note_thread();
    }

    fn do_after_response(&self, _: &str, request: &RemotingCommand, response: &RemotingCommand) {
        assert!(request.ext_fields.get("passed").is_some());
        let mut responses = self.responses.lock().unwrap();
        responses.push((request.code, response.code));
        self.note_thread();
    }
}

impl Recorder {
    fn note_thread(&self) {
        let name = thread::current().name().unwrap_or_default().to_owned();
        self.threads.lock().unwrap().insert(name);
    }

    fn codes(&self) -> BTreeSet<i32> {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(|(_, code)| *code).collect()
    }

    fn answered(&self) -> BTreeSet<i32> {
        let responses = self.responses.lock().unwrap();
        responses.iter().map(|(code, _)| *code).collect()
    }
}

#[test]
fn every_request_of_producer_and_consumer_passes_the_hook() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 1).unwrap();
    let manager = MQClientManager::new();
    let hook = Arc::new(Recorder::default());
    let inbox = Inbox::new();
    let consumer = quick(DefaultMQPushConsumer::builder("g"))
        .client_manager(&manager)
        .namesrv_addr(&cluster.namesrv_addr())
        .rpc_hook(hook.clone())
        .subscribe("T", "*")
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    let producer = producer_at(&cluster.namesrv_addr())
        .client_manager(&manager)
        .rpc_hook(hook.clone())
        .build()
        .unwrap();
    producer.start().unwrap();
    producer.send(&Message::new("T", "m")).unwrap();
    inbox.wait_for(1);
    consumer.shutdown(Duration::from_secs(5));
    producer.shutdown(Duration::from_secs(5));

    let answered = [
        request_code::GET_ROUTEINFO_BY_TOPIC,
        request_code::HEART_BEAT,
        request_code::GET_CONSUMER_LIST_BY_GROUP,
        request_code::QUERY_CONSUMER_OFFSET,
        request_code::PULL_MESSAGE,
        request_code::SEND_MESSAGE_V2,
        request_code::UNREGISTER_CLIENT,
    ];
    let missing = |codes: BTreeSet<i32>| -> Vec<i32> {
        let mut missing = answered.to_vec();
        missing.retain(|code| !codes.contains(code));
        missing
    };
    assert_eq!(missing(hook.codes()), [0; 0]);
    wait_until("all answers were shown", || {
        missing(hook.answered()).is_empty()
    });
    let threads = hook.threads.lock().unwrap();
    let on_event_loop = threads.contains("MioClientSelector");
    assert!(!on_event_loop, "it is the user's code: {threads:?}");
    let requests = hook.requests.lock().unwrap();
    let to_name_server = requests
        .iter()
        .filter(|(addr, _)| *addr == cluster.namesrv_addr());
    assert!(
        to_name_server
            .map(|(_, code)| *code)
            .all(|code| code == 105)
    );
}

/// A name server and a broker in one, which keeps the requests it gets; with `good_byes` it says
/// good-bye to the first sends.
fn recording(good_byes: usize) -> (FakePeer, Arc<Mutex<Vec<RemotingCommand>>>) {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&requests);
    let left = AtomicUsize::new(good_byes);
    let addr = Arc::new(Mutex::new(String::new()));
    let own = Arc::clone(&addr);
    let peer = FakePeer::start(move |stream, request| {
        kept.lock().unwrap().push(request.clone());
        let frame = match request.code {
            request_code::GET_ROUTEINFO_BY_TOPIC => {
                let route = support::route_of("broker-a", &own.lock().unwrap());
                reply_to(&request, response_code::SUCCESS, route)
            }
            request_code::SEND_MESSAGE_V2 => {
                let good_bye = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                    left.checked_sub(1)
                });
                match good_bye {
                    Ok(_) => reply_to(&request, response_code::GO_AWAY, Vec::new()),
                    Err(_) => stored_in(&request, 0, 0),
                }
            }
            _ => reply_to(&request, response_code::SUCCESS, Vec::new()),
        };
        stream.write_all(&frame).is_ok()
    });
    *addr.lock().unwrap() = peer.addr();
    (peer, requests)
}

fn sends(requests: &Mutex<Vec<RemotingCommand>>) -> Vec<RemotingCommand> {
    let mut requests = requests.lock().unwrap().clone();
    requests.retain(|request| request.code == request_code::SEND_MESSAGE_V2);
    requests
}

#[test]
fn fields_are_added_in_javas_order_around_the_hook() {
    let (peer, requests) = recording(0);
    let producer = producer_at(&peer.addr())
        .namespace_v2("space")
        .enable_stream_request_type(true)
        .rpc_hook(Arc::new(Recorder::default()))
        .zone_name("z1")
        .zone_mode("true")
        .language(LanguageCode::Cpp)
        .serialize_type(SerializeType::RocketMq)
        .build()
        .unwrap();
    producer.start().unwrap();
    producer.send(&Message::new("T", "m")).unwrap();
    assert!(producer.client_id().unwrap().ends_with("@STREAM"));
    for request in requests.lock().unwrap().iter() {
        let all: Vec<(&str, &str)> = request.ext_fields.iter().collect();
        let added = [
            ("nsd", "true"),
            ("ns", "space"),
            ("ReqT", "0"),
            ("passed", "1"),
            ("__ZONE_NAME", "z1"),
            ("__ZONE_MODE", "true"),
        ];
        // The order on the wire is that of the fields' making.
        let mut found = all.clone();
        found.retain(|field| added.contains(field));
        assert_eq!(found, added, "{all:?}");
        assert_eq!(
            (request.language, request.version),
            (LanguageCode::Cpp, 513)
        );
        assert_eq!(request.serialize_type, SerializeType::RocketMq);
    }
    let send = sends(&requests).remove(0);
    assert_eq!(send.ext_fields.get("b"), Some("T"), "nothing is renamed");
    assert_eq!(send.ext_fields.get("k"), Some("false"));
}

#[test]
fn by_default_nothing_is_added() {
    let (peer, requests) = recording(0);
    let producer = producer_at(&peer.addr()).unit_mode(true).build().unwrap();
    producer.start().unwrap();
    producer.send(&Message::new("T", "m")).unwrap();
    assert!(!producer.client_id().unwrap().contains("STREAM"));
    for request in requests.lock().unwrap().iter() {
        for name in ["ns", "nsd", "ReqT", "__ZONE_NAME", "__ZONE_MODE"] {
            assert_eq!(request.ext_fields.get(name), None);
        }
        assert_eq!(
            (request.language, request.version),
            (LanguageCode::Rust, 513)
        );
        assert_eq!(request.serialize_type, SerializeType::Json);
    }
    assert_eq!(
        sends(&requests)[0].ext_fields.get("k"),
        Some("true"),
        "unit mode"
    );
}

#[test]
fn a_request_that_is_sent_again_passes_again() {
    let (peer, requests) = recording(1);
    let hook = Arc::new(Recorder::default());
    let producer = producer_at(&peer.addr())
        .rpc_hook(hook.clone())
        .build()
        .unwrap();
    producer.start().unwrap();
    producer.send(&Message::new("T", "m")).unwrap();
    let passed: Vec<_> = sends(&requests)
        .iter()
        .map(|request| request.ext_fields.get("passed").unwrap().to_owned())
        .collect();
    assert_eq!(passed, ["1", "2"]);
    let responses = hook.responses.lock().unwrap();
    let of_send: Vec<_> = responses.iter().filter(|(code, _)| *code == 310).collect();
    assert_eq!(of_send, [&(310, 0)], "the good-bye is no answer");
}

/// Notes the threads it is called on.
#[derive(Default)]
struct Threads(Mutex<Vec<(i32, String)>>);

impl Threads {
    fn note(&self, code: i32) {
        let name = thread::current().name().unwrap_or_default().to_owned();
        self.0.lock().unwrap().push((code, name));
    }
}

impl RPCHook for Threads {
    fn do_before_request(&self, _: &str, request: &mut RemotingCommand) {
        self.note(request.code);
    }

    fn do_after_response(&self, _: &str, request: &RemotingCommand, _: &RemotingCommand) {
        self.note(request.code);
    }
}

/// Heartbeats begin and end on the event loop, and what a server says good-bye to is sent again from
/// there; a hook that took its time there would stop all clients of the process.
#[test]
fn the_event_loop_runs_no_hook() {
    const GOODBYE_FIRST: [i32; 3] = [
        request_code::HEART_BEAT,
        request_code::QUERY_CONSUMER_OFFSET,
        request_code::UNREGISTER_CLIENT,
    ];
    let addr = Arc::new(Mutex::new(String::new()));
    let own = Arc::clone(&addr);
    let counts: Arc<Mutex<BTreeMap<i32, usize>>> = Arc::default();
    let counted = Arc::clone(&counts);
    let member = Mutex::new(String::new());
    let peer = FakePeer::start(move |stream, request| {
        let mut counts = counted.lock().unwrap();
        let count = counts.entry(request.code).or_default();
        *count += 1;
        let first = *count == 1;
        drop(counts);
        let frame = match request.code {
            code if first && GOODBYE_FIRST.contains(&code) => {
                reply_to(&request, response_code::GO_AWAY, Vec::new())
            }
            request_code::GET_ROUTEINFO_BY_TOPIC => {
                let route = support::route_of("broker-a", &own.lock().unwrap());
                reply_to(&request, response_code::SUCCESS, route)
            }
            request_code::HEART_BEAT => {
                let data = HeartbeatData::from_command(&request).unwrap();
                *member.lock().unwrap() = data.client_id;
                reply_to(&request, response_code::SUCCESS, Vec::new())
            }
            request_code::GET_CONSUMER_LIST_BY_GROUP => {
                let body = GetConsumerListByGroupResponseBody {
                    consumer_id_list: vec![member.lock().unwrap().clone()],
                };
                reply_to(&request, response_code::SUCCESS, body.to_json().unwrap())
            }
            request_code::QUERY_CONSUMER_OFFSET => {
                reply_with(&request, &OffsetResponseHeader { offset: 7 }, Vec::new())
            }
            request_code::PULL_MESSAGE => return true,
            _ => reply_to(&request, response_code::SUCCESS, Vec::new()),
        };
        stream.write_all(&frame).is_ok()
    });
    *addr.lock().unwrap() = peer.addr();
    let hook = Arc::new(Threads::default());
    let consumer = quick(DefaultMQPushConsumer::builder("g"))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&peer.addr())
        .rpc_hook(hook.clone())
        .subscribe("T", "*")
        .message_listener(Inbox::new().listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    wait_until("the queues are pulled from", || {
        counts.lock().unwrap().get(&request_code::PULL_MESSAGE) >= Some(&1)
    });
    assert!(consumer.shutdown(Duration::from_secs(5)).threads_joined);
    let calls = hook.0.lock().unwrap();
    for code in GOODBYE_FIRST {
        let sent = counts.lock().unwrap()[&code];
        let of_code = calls.iter().filter(|(of, _)| *of == code).count();
        assert!(sent >= 2, "{code} was sent again");
        // Each before it is sent, and all but the good-bye after the answer.
        assert!(of_code > sent, "{code}: {of_code} calls, {sent} sent");
    }
    let on_loop = |(_, name): &&(i32, String)| name.starts_with("MioClientSelect");
    let on_loop: Vec<_> = calls.iter().filter(on_loop).collect();
    assert!(on_loop.is_empty(), "{on_loop:?}");
}

#[test]
fn a_signature_covers_what_is_sent() {
    let (peer, requests) = recording(1);
    let credentials = SessionCredentials::new("user", "key");
    let producer = producer_at(&peer.addr())
        .namespace_v2("space")
        .rpc_hook(Arc::new(AclClientRPCHook::new(credentials)))
        .build()
        .unwrap();
    producer.start().unwrap();
    producer.send(&Message::new("T", "m")).unwrap();
    assert_eq!(
        sends(&requests).len(),
        2,
        "the second time after a good-bye"
    );
    for request in requests.lock().unwrap().iter() {
        let signed = acl::signature(&request.ext_fields, request.body_bytes(), "key");
        assert_eq!(request.ext_fields.get(acl::SIGNATURE), Some(&*signed));
        assert_eq!(request.ext_fields.get(acl::ACCESS_KEY), Some("user"));
    }
}

/// Needs servers with access control, and in the environment `ROCKETMQ_ACL_NAMESRV`, and
/// `ROCKETMQ_ACL_USER` as `<access key>:<secret key>`.
#[test]
#[ignore = "needs a real cluster with access control"]
fn a_real_cluster_takes_what_is_signed_and_nothing_else() {
    let namesrv = env::var("ROCKETMQ_ACL_NAMESRV").unwrap();
    let user = env::var("ROCKETMQ_ACL_USER").unwrap();
    let (access_key, secret_key) = user.split_once(':').unwrap();
    let hook = |secret_key: &str| {
        let credentials = SessionCredentials::new(access_key, secret_key);
        Arc::new(AclClientRPCHook::new(credentials))
    };
    let topic = unique("T");
    let sender = |hook: Option<Arc<AclClientRPCHook>>| {
        let mut builder = producer_at(&namesrv);
        if let Some(hook) = hook {
            builder = builder.rpc_hook(hook);
        }
        let producer = builder.build().unwrap();
        producer.start().unwrap();
        producer
    };
    let signed = sender(Some(hook(secret_key)));
    signed.create_topic("TBW102", &topic, 1).unwrap();
    wait_until("the name server knows the topic", || {
        signed.fetch_publish_message_queues(&topic).is_ok()
    });
    let group = unique("g");
    let inbox = Inbox::new();
    let consumer = quick(DefaultMQPushConsumer::builder(&group))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&namesrv)
        .rpc_hook(hook(secret_key))
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .subscribe(&topic, "*")
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    // A body beyond the limit of compression, and one below.
    for body in ["short".to_owned(), "long ".repeat(2000)] {
        signed.send(&Message::new(&*topic, body)).unwrap();
    }
    inbox.wait_for(2);
    let report = consumer.shutdown(Duration::from_secs(10));
    assert!(report.offsets_saved > 0, "{report:?}");
    for hook in [None, Some(hook("wrong"))] {
        let error = sender(hook).send(&Message::new(&*topic, "m")).unwrap_err();
        assert_eq!(
            error.broker_code(),
            Some(response_code::NO_PERMISSION),
            "{error}"
        );
    }
}

struct Refuses;

impl RPCHook for Refuses {
    fn do_before_request(&self, _: &str, request: &mut RemotingCommand) {
        assert_ne!(request.code, request_code::SEND_MESSAGE_V2, "on purpose");
    }
}

#[test]
fn a_hook_that_panics_fails_the_send_and_nothing_else() {
    let (peer, requests) = recording(0);
    let producer = producer_at(&peer.addr())
        .rpc_hook(Arc::new(Refuses))
        .build()
        .unwrap();
    producer.start().unwrap();
    let error = producer.send(&Message::new("T", "m")).unwrap_err();
    assert!(
        error.to_string().contains("the RPC hook panicked"),
        "{error}"
    );
    assert!(!error.may_have_been_stored());
    assert!(sends(&requests).is_empty());
    assert!(producer.shutdown(Duration::from_secs(5)).threads_joined);
}

#[test]
fn clients_with_different_hooks_never_share() {
    let cluster = Cluster::builder().start().unwrap();
    let manager = MQClientManager::new();
    let (one, other) = (Arc::new(Recorder::default()), Arc::new(Recorder::default()));
    let client = |group: &str| {
        DefaultMQProducer::builder(group)
            .client_manager(&manager)
            .namesrv_addr(&cluster.namesrv_addr())
    };
    let clients = [
        client("a").rpc_hook(one.clone()),
        client("b").rpc_hook(one.clone()),
        client("c").rpc_hook(other.clone()),
        client("d"),
    ]
    .map(|builder| builder.build().unwrap());
    for client in &clients {
        client.start().unwrap();
    }
    assert_eq!(manager.instance_count(), 3);
    assert_eq!(clients[0].client_id(), clients[1].client_id());

    let named = client("e")
        .instance_name("n")
        .rpc_hook(one)
        .build()
        .unwrap();
    named.start().unwrap();
    let differs = client("f")
        .instance_name("n")
        .rpc_hook(other)
        .build()
        .unwrap();
    let error = differs.start().unwrap_err();
    assert!(matches!(error, Error::InvalidConfig { .. }), "{error:?}");
}
