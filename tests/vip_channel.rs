//! Which requests go to a broker's second port.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and is outside of what loom models"
)]

mod support;

use std::collections::BTreeSet;
use std::io::Write;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rocketmq_blocking::{
    DefaultMQProducer, DefaultMQPushConsumer, MQClientManager, Message, MessageQueue, request_code,
    response_code,
};
use rocketmq_protocol::RemotingCommand;
use rocketmq_protocol::body::{GetConsumerListByGroupResponseBody, HeartbeatData, JsonBody};
use rocketmq_protocol::header::OffsetResponseHeader;
use support::{FakePeer, Inbox, quick, reply_to, reply_with, stored_in, wait_until};

/// Listeners two ports apart: the VIP one and the ordinary one.
fn two_ports() -> (TcpListener, TcpListener) {
    for _ in 0..1000 {
        let ordinary = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = ordinary.local_addr().unwrap().port();
        if let Ok(vip) = TcpListener::bind(("127.0.0.1", port - 2)) {
            return (vip, ordinary);
        }
    }
    panic!("no two ports are free");
}

type Codes = Arc<Mutex<BTreeSet<i32>>>;

/// A broker of one member, which keeps the codes it is asked.
fn broker(listener: TcpListener, member: &Arc<Mutex<String>>) -> (FakePeer, Codes) {
    let codes = Codes::default();
    let kept = Arc::clone(&codes);
    let member = Arc::clone(member);
    let peer = FakePeer::start_at(listener, move |stream, request: RemotingCommand| {
        kept.lock().unwrap().insert(request.code);
        let frame = match request.code {
            request_code::SEND_MESSAGE_V2 => stored_in(&request, 0, 0),
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
            request_code::QUERY_CONSUMER_OFFSET
            | request_code::GET_MAX_OFFSET
            | request_code::GET_MIN_OFFSET => {
                reply_with(&request, &OffsetResponseHeader { offset: 7 }, Vec::new())
            }
            // A pull that nobody answers is under way for ever.
            request_code::PULL_MESSAGE | request_code::UPDATE_CONSUMER_OFFSET => return true,
            _ => reply_to(&request, response_code::SUCCESS, Vec::new()),
        };
        stream.write_all(&frame).is_ok()
    });
    (peer, codes)
}

fn work(vip: bool) -> (BTreeSet<i32>, BTreeSet<i32>) {
    let (second, first) = two_ports();
    let member = Arc::new(Mutex::new(String::new()));
    let (ordinary, ordinary_codes) = broker(first, &member);
    let (_vip, vip_codes) = broker(second, &member);
    let name_server = FakePeer::name_server("broker-a", ordinary.addr());
    let manager = MQClientManager::new();
    let consumer = quick(DefaultMQPushConsumer::builder("g"))
        .client_manager(&manager)
        .namesrv_addr(&name_server.addr())
        .vip_channel_enabled(vip)
        .subscribe("T", "*")
        .message_listener(Inbox::new().listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    let producer = DefaultMQProducer::builder("p")
        .client_manager(&manager)
        .namesrv_addr(&name_server.addr())
        .vip_channel_enabled(vip)
        .build()
        .unwrap();
    producer.start().unwrap();
    producer.send(&Message::new("T", "m")).unwrap();
    let mq = MessageQueue::new("T", "broker-a", 0);
    assert_eq!(producer.max_offset(&mq).unwrap(), 7);
    assert_eq!(producer.min_offset(&mq).unwrap(), 7);
    producer.create_topic("TBW102", "U", 1).unwrap();
    wait_until("the consumer pulls and saves its offset", || {
        let mut all = ordinary_codes.lock().unwrap().clone();
        all.extend(vip_codes.lock().unwrap().iter());
        [
            request_code::PULL_MESSAGE,
            request_code::UPDATE_CONSUMER_OFFSET,
        ]
        .iter()
        .all(|code| all.contains(code))
    });
    consumer.shutdown(Duration::from_millis(500));
    producer.shutdown(Duration::from_millis(500));
    let ordinary = ordinary_codes.lock().unwrap().clone();
    let vip = vip_codes.lock().unwrap().clone();
    (ordinary, vip)
}

const FIRST_PORT: [i32; 3] = [
    request_code::PULL_MESSAGE,
    request_code::HEART_BEAT,
    request_code::UNREGISTER_CLIENT,
];
const SECOND_PORT: [i32; 7] = [
    request_code::QUERY_CONSUMER_OFFSET,
    request_code::UPDATE_CONSUMER_OFFSET,
    request_code::UPDATE_AND_CREATE_TOPIC,
    request_code::GET_MAX_OFFSET,
    request_code::GET_MIN_OFFSET,
    request_code::GET_CONSUMER_LIST_BY_GROUP,
    request_code::SEND_MESSAGE_V2,
];

#[test]
fn sends_offsets_and_administration_take_the_second_port() {
    let (ordinary, vip) = work(true);
    assert_eq!(ordinary, BTreeSet::from(FIRST_PORT));
    assert_eq!(vip, BTreeSet::from(SECOND_PORT));
}

#[test]
fn by_default_everything_takes_the_first_port() {
    let (ordinary, vip) = work(false);
    let all: BTreeSet<i32> = FIRST_PORT.into_iter().chain(SECOND_PORT).collect();
    assert_eq!((ordinary, vip), (all, BTreeSet::new()));
}
