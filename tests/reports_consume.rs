//! Public bug reports about messages that cannot be read, each with its right outcome.
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
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::BytesMut;
use log::Level;
use rocketmq_blocking::{DefaultMQPushConsumer, MQClientManager};
use rocketmq_protocol::body::{GetConsumerListByGroupResponseBody, HeartbeatData, JsonBody};
use rocketmq_protocol::{RemotingCommand, StoredMessage, request_code, response_code};
use support::{
    FakePeer, GENEROUS, Inbox, keep_logs, logged, quick, reply_to, route_of, wait_until,
};

const FIRST: i64 = 7;
const END: i64 = 10;

/// The stored form of the message at an offset.
fn stored(offset: i64, sys_flag: i32) -> BytesMut {
    let host = "127.0.0.1:10911".parse().unwrap();
    let message = StoredMessage {
        queue_id: 0,
        flag: 0,
        queue_offset: offset,
        commit_log_offset: offset * 1000,
        sys_flag,
        born_timestamp: 1,
        born_host: host,
        store_timestamp: 1,
        store_host: host,
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body: format!("m{offset}").into(),
        topic: "T".to_owned(),
        properties: String::new(),
    };
    let mut bytes = BytesMut::new();
    message.encode(&mut bytes).unwrap();
    bytes
}

/// What a broker has, and what it was asked.
struct Queue {
    /// The messages from [`FIRST`] to [`END`], as they are sent.
    messages: Vec<Vec<u8>>,
    members: Mutex<Vec<String>>,
    pulls: Mutex<Vec<i64>>,
    saved: Mutex<Vec<i64>>,
}

impl Queue {
    fn serve(&self, stream: &mut TcpStream, request: &RemotingCommand) -> bool {
        let field = |name: &str| -> i64 {
            let value = request.ext_fields.get(name).unwrap();
            value.parse().unwrap()
        };
        let mut reply = RemotingCommand::response(request, response_code::SUCCESS, None);
        match request.code {
            request_code::HEART_BEAT => {
                let data = HeartbeatData::from_command(request).unwrap();
                *self.members.lock().unwrap() = vec![data.client_id];
            }
            request_code::GET_CONSUMER_LIST_BY_GROUP => {
                let body = GetConsumerListByGroupResponseBody {
                    consumer_id_list: self.members.lock().unwrap().clone(),
                };
                reply = reply.with_body(body.to_json().unwrap());
            }
            request_code::QUERY_CONSUMER_OFFSET => {
                reply.ext_fields.set("offset", FIRST.to_string());
            }
            request_code::UPDATE_CONSUMER_OFFSET => {
                self.saved.lock().unwrap().push(field("commitOffset"));
                if request.is_oneway() {
                    return true;
                }
            }
            request_code::PULL_MESSAGE => {
                let offset = field("queueOffset");
                if offset == END {
                    // A broker holds it a while; then what was passed over counts as done.
                    thread::sleep(Duration::from_millis(50));
                } else {
                    self.pulls.lock().unwrap().push(offset);
                }
                for (name, value) in [
                    ("suggestWhichBrokerId", 0),
                    ("nextBeginOffset", END),
                    ("minOffset", 0),
                    ("maxOffset", END),
                ] {
                    reply.ext_fields.set(name, value.to_string());
                }
                let from = (offset - FIRST) as usize;
                match self.messages.get(from..).filter(|rest| !rest.is_empty()) {
                    Some(messages) => reply = reply.with_body(messages.concat()),
                    None => reply.code = response_code::PULL_NOT_FOUND,
                }
            }
            request_code::UNREGISTER_CLIENT => {}
            _ => reply.code = response_code::SYSTEM_ERROR,
        }
        let mut frame = BytesMut::new();
        reply.encode(&mut frame).unwrap();
        stream.write_all(&frame).is_ok()
    }
}

/// Consumes three messages of which one was changed by `spoil`, and checks what of it is delivered,
/// and what is told of the rest.
#[track_caller]
fn consumes(what: &str, spoil: impl Fn(&mut [Vec<u8>]), delivered: &[&str]) {
    keep_logs();
    let mut messages: Vec<Vec<u8>> = (FIRST..END)
        .map(|offset| stored(offset, 0).to_vec())
        .collect();
    spoil(&mut messages);
    let queue = Arc::new(Queue {
        messages,
        members: Mutex::default(),
        pulls: Mutex::default(),
        saved: Mutex::default(),
    });
    let serving = Arc::clone(&queue);
    let broker = FakePeer::start(move |stream, request| serving.serve(stream, &request));
    let addr = broker.addr();
    let broker_name = support::unique("broker");
    let name = broker_name.clone();
    let name_server = FakePeer::start(move |stream, request| {
        let frame = match request.ext_fields.get("topic") {
            Some("T") => reply_to(&request, 0, route_of(&name, &addr)),
            _ => reply_to(&request, response_code::TOPIC_NOT_EXIST, Vec::new()),
        };
        stream.write_all(&frame).is_ok()
    });
    let inbox = Inbox::new();
    let consumer = quick(DefaultMQPushConsumer::builder("g"))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&name_server.addr())
        .persist_consumer_offset_interval(Duration::from_millis(50))
        .subscribe("T", "*")
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    wait_until("the queue is read to its end, and the offset saved", || {
        queue.saved.lock().unwrap().last() == Some(&END)
    });
    let mut bodies: Vec<_> = inbox.bodies().into_iter().collect();
    bodies.sort();
    let expected: Vec<_> = delivered
        .iter()
        .map(|body| ((*body).to_owned(), 1))
        .collect();
    assert_eq!(bodies, expected, "{what}");
    let told = logged(&[&broker_name, "cannot be decoded"]);
    assert!(!told.is_empty(), "{what}: nothing is told");
    assert!(
        told.iter().all(|(level, _)| *level == Level::Error),
        "{told:?}"
    );
    let pulls = queue.pulls.lock().unwrap().clone();
    assert!(pulls.len() <= 6, "{what}: no endless loop: {pulls:?}");
    assert!(consumer.shutdown(GENEROUS).threads_joined);
}

/// apache/rocketmq#5230: a client that met a message in a form it did not know said nothing, and lost
/// what came with it. The others are delivered, and the one that cannot be is told of.
#[test]
fn b91_a_message_in_an_unknown_form_is_told_of_and_the_others_are_delivered() {
    /// Compressed, by a method that does not exist.
    const TYPE_4: i32 = 0x401;
    consumes(
        "an unknown compression",
        |messages| messages[1] = stored(8, TYPE_4).to_vec(),
        &["m7", "m9"],
    );
    consumes(
        "an unknown layout",
        |messages| messages[1][4..8].copy_from_slice(&[0xDA, 0xA3, 0x20, 0x00]),
        &["m7", "m9"],
    );
}

/// The same report, with messages whose end cannot be found: nothing behind them can be read in that
/// reply. It is read in the next one, which begins there.
#[test]
fn b91_what_comes_behind_a_message_without_an_end_is_not_lost() {
    for (what, size) in [
        ("a size of 0", 0),
        ("a size of 7", 7),
        ("a negative size", -1),
        ("the smallest size there is", i32::MIN),
        ("a size beyond the reply", 1_000_000),
        ("the largest size there is", i32::MAX),
    ] {
        consumes(
            what,
            |messages| messages[1][..4].copy_from_slice(&size.to_be_bytes()),
            &["m7", "m9"],
        );
    }
    consumes(
        "a first message without an end",
        |messages| messages[0][..4].copy_from_slice(&[0; 4]),
        &["m8", "m9"],
    );
    consumes(
        "a last message that is cut short",
        |messages| {
            let length = messages[2].len();
            messages[2].truncate(length - 10);
        },
        &["m7", "m8"],
    );
}
