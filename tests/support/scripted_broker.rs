use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use rocketmq_protocol::body::{GetConsumerListByGroupResponseBody, HeartbeatData, JsonBody};
use rocketmq_protocol::{
    Properties, RemotingCommand, StoredMessage, encode_properties, request_code, response_code,
};

use super::{FakePeer, GENEROUS, reply_to, route_of, wait_until};

/// What a script does with a request.
pub(crate) enum Answer {
    /// What a broker does.
    Usual,
    /// A failure with this code.
    Code(i32),
    /// Success with these fields, and nothing else.
    Fields(Vec<(&'static str, &'static str)>),
    /// Nothing.
    Silence,
    /// What a broker does, but only so many bytes of it, and then the end of the connection.
    Cut(usize),
    /// These bytes, and then the end of the connection.
    Bytes(Vec<u8>),
    /// Success with this body, and no fields.
    Body(Vec<u8>),
}

/// A name server and a broker with one queue of each topic. The broker has messages of the topic `T`
/// from offset 0 on; a script may answer in its place, and all requests are noted.
pub(crate) struct ScriptedBroker {
    shared: Arc<Shared>,
    name_server: FakePeer,
    _broker: FakePeer,
}

struct Shared {
    script: Box<dyn Fn(&RemotingCommand) -> Answer + Send + Sync>,
    messages: Mutex<Vec<Bytes>>,
    /// The connection that the last heartbeat came on.
    client: Mutex<Option<TcpStream>>,
    answers: Mutex<Vec<RemotingCommand>>,
    members: Mutex<Vec<String>>,
    requests: Mutex<Vec<(Instant, RemotingCommand)>>,
    arrived: Condvar,
    topics_exist: AtomicBool,
}

impl ScriptedBroker {
    pub(crate) fn start(
        script: impl Fn(&RemotingCommand) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            script: Box::new(script),
            messages: Mutex::default(),
            client: Mutex::default(),
            answers: Mutex::default(),
            members: Mutex::default(),
            requests: Mutex::default(),
            arrived: Condvar::new(),
            topics_exist: AtomicBool::new(true),
        });
        let serving = Arc::clone(&shared);
        let broker = FakePeer::start(move |stream, request| serving.serve(stream, request));
        let addr = broker.addr();
        let serving = Arc::clone(&shared);
        let name_server = FakePeer::start(move |stream, request| {
            let frame = if serving.topics_exist.load(Ordering::SeqCst) {
                reply_to(
                    &request,
                    response_code::SUCCESS,
                    route_of("scripted", &addr),
                )
            } else {
                reply_to(&request, response_code::TOPIC_NOT_EXIST, Vec::new())
            };
            stream.write_all(&frame).is_ok()
        });
        Self {
            shared,
            name_server,
            _broker: broker,
        }
    }

    pub(crate) fn namesrv(&self) -> String {
        self.name_server.addr()
    }

    /// Stores a message.
    pub(crate) fn put(&self, body: &str, properties: &Properties) {
        let mut messages = self.shared.messages.lock().unwrap();
        let host = "127.0.0.1:10911".parse().unwrap();
        let message = StoredMessage {
            queue_id: 0,
            flag: 0,
            queue_offset: messages.len() as i64,
            commit_log_offset: messages.len() as i64 * 1000,
            sys_flag: 0,
            born_timestamp: 1,
            born_host: host,
            store_timestamp: 1,
            store_host: host,
            reconsume_times: 0,
            prepared_transaction_offset: 0,
            body: body.to_owned().into(),
            topic: "T".to_owned(),
            properties: encode_properties(properties),
        };
        let mut bytes = BytesMut::new();
        message.encode(&mut bytes).unwrap();
        messages.push(bytes.freeze());
    }

    /// Sends a request to the client, once it has said who it is.
    pub(crate) fn tell(&self, request: &RemotingCommand) {
        self.wait_for(request_code::HEART_BEAT, 1);
        let mut frame = BytesMut::new();
        request.encode(&mut frame).unwrap();
        let mut client = self.shared.client.lock().unwrap();
        client.as_mut().unwrap().write_all(&frame).unwrap();
    }

    /// The same, and waits for the client's answer.
    #[track_caller]
    pub(crate) fn ask(&self, mut request: RemotingCommand) -> RemotingCommand {
        static NUMBER: AtomicI32 = AtomicI32::new(1_000_000);
        request.opaque = NUMBER.fetch_add(1, Ordering::SeqCst);
        self.tell(&request);
        let mut found = None;
        wait_until("the client answers", || {
            let mut answers = self.shared.answers.lock().unwrap();
            let of_request = |answer: &RemotingCommand| answer.opaque == request.opaque;
            found = answers
                .iter()
                .position(of_request)
                .map(|at| answers.remove(at));
            found.is_some()
        });
        found.unwrap()
    }

    /// The stored form of a message that was put.
    pub(crate) fn stored(&self, offset: usize) -> Bytes {
        self.shared.messages.lock().unwrap()[offset].clone()
    }

    /// Deletes all topics, or creates them without messages.
    pub(crate) fn set_topics_exist(&self, exist: bool) {
        self.shared.messages.lock().unwrap().clear();
        self.shared.topics_exist.store(exist, Ordering::SeqCst);
    }

    /// The requests with a code, in the order of their arrival.
    pub(crate) fn requests(&self, code: i32) -> Vec<(Instant, RemotingCommand)> {
        let requests = self.shared.requests.lock().unwrap();
        let of_code = requests.iter().filter(|(_, request)| request.code == code);
        of_code.cloned().collect()
    }

    /// Waits until so many requests with a code have come.
    #[track_caller]
    pub(crate) fn wait_for(&self, code: i32, count: usize) -> Vec<(Instant, RemotingCommand)> {
        let deadline = Instant::now() + GENEROUS;
        let mut requests = self.shared.requests.lock().unwrap();
        let counted = |requests: &[(Instant, RemotingCommand)]| {
            requests.iter().filter(|(_, r)| r.code == code).count()
        };
        while counted(&requests) < count {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "{} of {count} requests with code {code} came within {GENEROUS:?}",
                counted(&requests)
            );
            let waited = self.shared.arrived.wait_timeout(requests, left).unwrap();
            requests = waited.0;
        }
        drop(requests);
        self.requests(code)
    }
}

impl Shared {
    fn serve(&self, stream: &mut TcpStream, request: RemotingCommand) -> bool {
        if request.is_response() {
            self.answers.lock().unwrap().push(request);
            return true;
        }
        if request.code == request_code::HEART_BEAT {
            *self.client.lock().unwrap() = Some(stream.try_clone().unwrap());
        }
        let answer = (self.script)(&request);
        let mut reply = RemotingCommand::response(&request, response_code::SUCCESS, None);
        let mut most = usize::MAX;
        match answer {
            Answer::Usual => self.usual(&request, &mut reply),
            Answer::Cut(bytes) => {
                self.usual(&request, &mut reply);
                most = bytes;
            }
            Answer::Bytes(bytes) => {
                self.note(request);
                let _ = stream.write_all(&bytes);
                return false;
            }
            Answer::Body(body) => reply.body = Some(body.into()),
            Answer::Code(code) => reply.code = code,
            Answer::Fields(fields) => {
                for (name, value) in fields {
                    reply.ext_fields.set(name, value);
                }
            }
            Answer::Silence => {
                self.note(request);
                return true;
            }
        }
        let oneway = request.is_oneway();
        self.note(request);
        let mut frame = BytesMut::new();
        reply.encode(&mut frame).unwrap();
        if most < frame.len() {
            let _ = stream.write_all(&frame[..most]);
            return false;
        }
        oneway || stream.write_all(&frame).is_ok()
    }

    fn note(&self, request: RemotingCommand) {
        let mut requests = self.requests.lock().unwrap();
        requests.push((Instant::now(), request));
        self.arrived.notify_all();
    }

    fn usual(&self, request: &RemotingCommand, reply: &mut RemotingCommand) {
        let end = match request.ext_fields.get("topic") {
            Some("T") => self.messages.lock().unwrap().len() as i64,
            _ => 0,
        };
        match request.code {
            request_code::HEART_BEAT => {
                let data = HeartbeatData::from_command(request).unwrap();
                *self.members.lock().unwrap() = vec![data.client_id];
            }
            request_code::GET_CONSUMER_LIST_BY_GROUP => {
                let body = GetConsumerListByGroupResponseBody {
                    consumer_id_list: self.members.lock().unwrap().clone(),
                };
                reply.body = Some(body.to_json().unwrap().into());
            }
            request_code::QUERY_CONSUMER_OFFSET | request_code::SEARCH_OFFSET_BY_TIMESTAMP => {
                reply.ext_fields.set("offset", "0");
            }
            request_code::GET_MAX_OFFSET => reply.ext_fields.set("offset", end.to_string()),
            request_code::SEND_MESSAGE_V2 => {
                for (name, value) in [("msgId", "0A"), ("queueId", "0"), ("queueOffset", "0")] {
                    reply.ext_fields.set(name, value);
                }
            }
            request_code::PULL_MESSAGE if !self.topics_exist.load(Ordering::SeqCst) => {
                reply.code = response_code::TOPIC_NOT_EXIST;
            }
            request_code::PULL_MESSAGE => self.pull(request, end, reply),
            request_code::UPDATE_CONSUMER_OFFSET
            | request_code::CONSUMER_SEND_MSG_BACK
            | request_code::UNREGISTER_CLIENT => {}
            _ => reply.code = response_code::SYSTEM_ERROR,
        }
    }

    fn pull(&self, request: &RemotingCommand, end: i64, reply: &mut RemotingCommand) {
        let field = |name: &str| -> i64 { request.ext_fields.get(name).unwrap().parse().unwrap() };
        let offset = field("queueOffset");
        let mut next = end;
        if offset > end {
            reply.code = response_code::PULL_OFFSET_MOVED;
        } else if offset == end {
            // A broker holds it a while.
            thread::sleep(Duration::from_millis(20));
            reply.code = response_code::PULL_NOT_FOUND;
            next = offset;
        } else {
            let messages = self.messages.lock().unwrap();
            next = end.min(offset + field("maxMsgNums"));
            reply.body = Some(messages[offset as usize..next as usize].concat().into());
        }
        for (name, value) in [
            ("suggestWhichBrokerId", 0),
            ("nextBeginOffset", next),
            ("minOffset", 0),
            ("maxOffset", end),
        ] {
            reply.ext_fields.set(name, value.to_string());
        }
    }
}
