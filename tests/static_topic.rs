//! Queues that keep their number while brokers change.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and is outside of what loom models"
)]

mod support;

use std::collections::BTreeMap;
use std::env;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use bytes::BytesMut;
use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQProducer,
    DefaultMQPushConsumer, MQClientManager, Message, MessageExt, MessageQueue, request_code,
    response_code,
};
use rocketmq_protocol::body::{
    BrokerData, GetConsumerListByGroupResponseBody, HeartbeatData, JsonBody, QueueData,
    TopicQueueMappingInfo, TopicRouteData,
};
use rocketmq_protocol::header::{OffsetResponseHeader, PullMessageResponseHeader};
use rocketmq_protocol::{RemotingCommand, StoredMessage};
use support::{
    FakePeer, Inbox, producer_at, quick, reply_to, reply_with, started, stored_in, unique,
    wait_until,
};

const MOCK: &str = "__syslo__global__";

/// The route of a static topic of two queues, the first on `holders[0]`.
fn static_route(brokers: &BTreeMap<&'static str, String>, holders: [&str; 2]) -> Vec<u8> {
    let mut mappings: BTreeMap<String, TopicQueueMappingInfo> = BTreeMap::new();
    for (id, holder) in holders.into_iter().enumerate() {
        let info = mappings.entry(holder.to_owned()).or_default();
        info.broker_name = holder.to_owned();
        info.scope = "__global__".to_owned();
        info.total_queues = 2;
        info.epoch = 1;
        info.curr_id_map.insert(id as i32, 0);
    }
    TopicRouteData {
        broker_datas: brokers
            .iter()
            .map(|(name, addr)| BrokerData {
                broker_name: (*name).to_owned(),
                broker_addrs: BTreeMap::from([(0, addr.clone())]),
                ..BrokerData::default()
            })
            .collect(),
        queue_datas: brokers
            .keys()
            .map(|name| QueueData {
                broker_name: (*name).to_owned(),
                perm: 6,
                read_queue_nums: 1,
                write_queue_nums: 1,
                ..QueueData::default()
            })
            .collect(),
        topic_queue_mapping_by_broker: Some(mappings),
        ..TopicRouteData::default()
    }
    .to_json()
    .unwrap()
}

/// What a broker was asked: code, queue id, the broker name in the request.
type Asked = Arc<Mutex<Vec<(i32, String, String)>>>;

fn queue_requests(asked: &Asked, code: i32) -> Vec<(String, String)> {
    let asked = asked.lock().unwrap();
    let of_code = asked.iter().filter(|(asked, _, _)| *asked == code);
    of_code
        .map(|(_, id, name)| (id.clone(), name.clone()))
        .collect()
}

/// A broker of which each queue has one message, stored at offset 0 and counted from 100 on.
fn broker() -> (FakePeer, Asked) {
    let asked = Asked::default();
    let kept = Arc::clone(&asked);
    let member = Mutex::new(String::new());
    let peer = FakePeer::start(move |stream, request| {
        let field = |names: [&str; 2]| {
            let found = names.iter().find_map(|name| request.ext_fields.get(name));
            found.unwrap_or_default().to_owned()
        };
        let (id, name) = (field(["e", "queueId"]), field(["n", "bname"]));
        kept.lock().unwrap().push((request.code, id.clone(), name));
        let frame = match request.code {
            request_code::SEND_MESSAGE_V2 => stored_in(&request, id.parse().unwrap(), 100),
            request_code::GET_MAX_OFFSET | request_code::QUERY_CONSUMER_OFFSET => {
                reply_with(&request, &OffsetResponseHeader { offset: 100 }, Vec::new())
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
            request_code::PULL_MESSAGE => match found(&request, stream.local_addr().unwrap()) {
                Some(frame) => frame,
                None => return true,
            },
            _ => reply_to(&request, response_code::SUCCESS, Vec::new()),
        };
        stream.write_all(&frame).is_ok()
    });
    (peer, asked)
}

/// The one message, to who asks for it; later pulls wait for ever.
fn found(request: &RemotingCommand, host: SocketAddr) -> Option<BytesMut> {
    let is_first = request.ext_fields.get("queueOffset") == Some("100")
        && request.ext_fields.get("topic") == Some("T");
    if !is_first {
        return None;
    }
    let mut stored = BytesMut::new();
    StoredMessage {
        queue_id: 0,
        flag: 0,
        queue_offset: 0,
        commit_log_offset: 0,
        sys_flag: 0,
        born_timestamp: 0,
        born_host: host,
        store_timestamp: 0,
        store_host: host,
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body: "m".into(),
        topic: "T".to_owned(),
        properties: String::new(),
    }
    .encode(&mut stored)
    .unwrap();
    let header = PullMessageResponseHeader {
        suggest_which_broker_id: 0,
        next_begin_offset: 101,
        min_offset: 100,
        max_offset: 101,
        offset_delta: Some(100),
        topic_sys_flag: None,
        group_sys_flag: None,
        forbidden_type: None,
    };
    Some(reply_with(request, &header, stored.freeze()))
}

struct World {
    brokers: BTreeMap<&'static str, (FakePeer, Asked)>,
    name_server: FakePeer,
    moved: Arc<AtomicBool>,
}

impl World {
    /// Queue 0 is on broker-a, queue 1 on broker-b, until they change places.
    fn start() -> Self {
        let brokers: BTreeMap<_, _> = ["broker-a", "broker-b"].map(|name| (name, broker())).into();
        let addrs: BTreeMap<_, _> = brokers
            .iter()
            .map(|(name, (peer, _))| (*name, peer.addr()))
            .collect();
        let moved = Arc::new(AtomicBool::new(false));
        let has_moved = Arc::clone(&moved);
        let name_server = FakePeer::start(move |stream, request| {
            let frame = if request.ext_fields.get("topic") == Some("T") {
                let holders = if has_moved.load(Ordering::SeqCst) {
                    ["broker-b", "broker-a"]
                } else {
                    ["broker-a", "broker-b"]
                };
                reply_to(
                    &request,
                    response_code::SUCCESS,
                    static_route(&addrs, holders),
                )
            } else {
                reply_to(&request, response_code::TOPIC_NOT_EXIST, Vec::new())
            };
            stream.write_all(&frame).is_ok()
        });
        Self {
            brokers,
            name_server,
            moved,
        }
    }

    fn asked(&self, broker: &str, code: i32) -> Vec<(String, String)> {
        queue_requests(&self.brokers[broker].1, code)
    }
}

fn producer(namesrv: &str) -> DefaultMQProducer {
    started(producer_at(namesrv).poll_name_server_interval(Duration::from_millis(100)))
}

fn pair(id: &str, name: &str) -> (String, String) {
    (id.to_owned(), name.to_owned())
}

#[test]
fn sends_go_to_who_holds_the_queue_and_follow_it() {
    let world = World::start();
    let producer = producer(&world.name_server.addr());
    let queues = producer.fetch_publish_message_queues("T").unwrap();
    let mq = |id| MessageQueue::new("T", MOCK, id);
    assert_eq!(queues, [mq(0), mq(1)]);
    for _ in 0..2 {
        let result = producer.send(&Message::new("T", "m")).unwrap();
        assert!(queues.contains(&result.message_queue));
        assert_eq!(result.queue_offset, 100);
    }
    let send = request_code::SEND_MESSAGE_V2;
    assert_eq!(world.asked("broker-a", send), [pair("0", "broker-a")]);
    assert_eq!(world.asked("broker-b", send), [pair("1", "broker-b")]);
    assert_eq!(producer.max_offset(&mq(1)).unwrap(), 100);
    let max = request_code::GET_MAX_OFFSET;
    assert_eq!(world.asked("broker-b", max), [pair("1", MOCK)]);
    assert!(world.asked("broker-a", max).is_empty());

    world.moved.store(true, Ordering::SeqCst);
    wait_until("sends have followed the queues", || {
        producer.send(&Message::new("T", "m")).unwrap();
        world
            .asked("broker-a", send)
            .contains(&pair("1", "broker-a"))
            && world
                .asked("broker-b", send)
                .contains(&pair("0", "broker-b"))
    });
}

#[test]
fn pulls_and_offsets_go_to_who_holds_the_queue_and_offsets_are_shifted() {
    let world = World::start();
    let inbox = Inbox::new();
    let consumer = quick(DefaultMQPushConsumer::builder("g"))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&world.name_server.addr())
        .subscribe("T", "*")
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    let mut places: Vec<_> = inbox
        .wait_for(2)
        .iter()
        .map(|m| (m.broker_name().to_owned(), m.queue_id(), m.queue_offset()))
        .collect();
    places.sort();
    assert_eq!(
        places,
        [(MOCK.to_owned(), 0, 100), (MOCK.to_owned(), 1, 100)]
    );
    let update = request_code::UPDATE_CONSUMER_OFFSET;
    wait_until("both offsets are saved", || {
        ["broker-a", "broker-b"]
            .iter()
            .all(|broker| !world.asked(broker, update).is_empty())
    });
    for (broker, id) in [("broker-a", "0"), ("broker-b", "1")] {
        for code in [
            request_code::PULL_MESSAGE,
            request_code::QUERY_CONSUMER_OFFSET,
            update,
        ] {
            let asked = world.asked(broker, code);
            assert!(!asked.is_empty(), "{broker} {code}");
            assert!(
                asked.iter().all(|asked| *asked == pair(id, MOCK)),
                "{asked:?}"
            );
        }
    }
    consumer.shutdown(Duration::from_secs(5));
}

/// Its place in the log means something to that broker only, and a made-up broker name to none.
#[test]
fn a_message_that_the_listener_keeps_is_given_back_to_who_stored_it() {
    let world = World::start();
    let (release, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let consumer = quick(DefaultMQPushConsumer::builder("g"))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&world.name_server.addr())
        .subscribe("T", "*")
        .consume_timeout(Duration::from_millis(100))
        .message_listener(
            move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                if messages[0].queue_id() == 0 {
                    let _ = held.lock().unwrap().recv();
                }
                ConsumeConcurrentlyStatus::ConsumeSuccess
            },
        )
        .build()
        .unwrap();
    consumer.start().unwrap();
    let back = request_code::CONSUMER_SEND_MSG_BACK;
    wait_until("the message is given back", || {
        !world.asked("broker-a", back).is_empty()
    });
    assert_eq!(world.asked("broker-a", back), [pair("", "")]);
    assert!(world.asked("broker-b", back).is_empty());
    drop(release);
    consumer.shutdown(Duration::from_secs(5));
}

/// Needs servers with a static topic on two brokers, and their names in the environment:
/// `ROCKETMQ_NAMESRV` and `ROCKETMQ_STATIC_TOPIC`. `mqadmin updateStaticTopic` makes one.
#[test]
#[ignore = "needs a real cluster with a static topic"]
fn a_real_static_topic_is_sent_to_consumed_and_retried() {
    let namesrv = env::var("ROCKETMQ_NAMESRV").unwrap();
    let topic = env::var("ROCKETMQ_STATIC_TOPIC").unwrap();
    let group = unique("g");
    let producer = producer(&namesrv);
    let queues = producer.fetch_publish_message_queues(&topic).unwrap();
    assert!(
        queues.iter().all(|mq| mq.broker_name() == MOCK),
        "{queues:?}"
    );
    let before: BTreeMap<_, _> = queues
        .iter()
        .map(|mq| (mq.queue_id(), producer.max_offset(mq).unwrap()))
        .collect();

    let inbox = Inbox::new();
    let seen = inbox.clone();
    let failed = Arc::new(AtomicUsize::new(0));
    let failures = Arc::clone(&failed);
    let run = unique("run");
    let of_run = run.clone();
    let consumer = quick(DefaultMQPushConsumer::builder(&group))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&namesrv)
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .subscribe(&topic, "*")
        .message_listener(
            move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                let message = &messages[0];
                if message.tags() != Some(&of_run) {
                    return ConsumeConcurrentlyStatus::ConsumeSuccess;
                }
                if message.body() == "fails once" && message.reconsume_times() == 0 {
                    failures.fetch_add(1, Ordering::SeqCst);
                    return ConsumeConcurrentlyStatus::ReconsumeLater;
                }
                seen.put(messages);
                ConsumeConcurrentlyStatus::ConsumeSuccess
            },
        )
        .build()
        .unwrap();
    consumer.start().unwrap();

    let mut stored = Vec::new();
    for n in 0..3 * queues.len() {
        let body = format!("{n}");
        let result = producer
            .send(&Message::new(&*topic, body).with_tags(&run))
            .unwrap();
        stored.push((result.message_queue.queue_id(), result.queue_offset));
    }
    stored.sort();
    let expected: Vec<_> = before
        .iter()
        .flat_map(|(id, from)| (*from..*from + 3).map(move |offset| (*id, offset)))
        .collect();
    assert_eq!(stored, expected, "offsets go on queue by queue");
    let mut places: Vec<_> = inbox
        .wait_for(stored.len())
        .iter()
        .map(|message| (message.queue_id(), message.queue_offset()))
        .collect();
    places.sort();
    assert_eq!(
        places, stored,
        "a consumer sees the offsets that the producer was told"
    );

    producer
        .send(&Message::new(&*topic, "fails once").with_tags(&run))
        .unwrap();
    let messages = inbox.wait_for(stored.len() + 1);
    let last = messages.last().unwrap();
    assert_eq!(
        (&last.body()[..], last.reconsume_times()),
        (&b"fails once"[..], 1)
    );
    assert_eq!(last.topic(), topic);
    assert_eq!(failed.load(Ordering::SeqCst), 1);
    let report = consumer.shutdown(Duration::from_secs(10));
    assert!(report.offsets_saved >= queues.len(), "{report:?}");
}
