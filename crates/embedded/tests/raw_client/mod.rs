//! A client of the tests' own: one socket, frames in and out, nothing else.
#![allow(dead_code, unreachable_pub, missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use rocketmq_embedded::Cluster;
use rocketmq_protocol::body::{
    ConsumerData, GetConsumerListByGroupResponseBody, HeartbeatData, JsonBody,
};
use rocketmq_protocol::header::{
    CommandCustomHeader, GetConsumerListByGroupRequestHeader, PullMessageRequestHeader,
    PullMessageResponseHeader, SendMessageRequestHeader, SendMessageRequestHeaderV2,
    SendMessageResponseHeader,
};
use rocketmq_protocol::{
    FrameDecoder, Message, MessageExt, RemotingCommand, StoredMessages, SubscriptionData,
    encode_properties, request_code, response_code, sys_flag,
};

pub const LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct RawClient {
    stream: TcpStream,
    decoder: FrameDecoder,
    next_opaque: i32,
    unread: VecDeque<RemotingCommand>,
}

impl RawClient {
    pub fn connect(addr: &str) -> Self {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            decoder: FrameDecoder::default(),
            next_opaque: 0,
            unread: VecDeque::new(),
        }
    }

    pub fn to_broker(cluster: &Cluster, name: &str) -> Self {
        Self::connect(&cluster.broker_addr(name).unwrap())
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends a request and gives its opaque.
    pub fn send(&mut self, mut request: RemotingCommand) -> i32 {
        self.next_opaque += 1;
        request.opaque = self.next_opaque;
        let mut frame = BytesMut::new();
        request.encode(&mut frame).unwrap();
        self.stream.write_all(&frame).unwrap();
        request.opaque
    }

    /// Sends a command under the opaque that it has, such as an answer.
    pub fn send_as_it_is(&mut self, command: RemotingCommand) {
        let mut frame = BytesMut::new();
        command.encode(&mut frame).unwrap();
        self.stream.write_all(&frame).unwrap();
    }

    pub fn call(&mut self, request: RemotingCommand) -> RemotingCommand {
        let opaque = self.send(request);
        self.answer_to(opaque)
    }

    pub fn call_with(&mut self, code: i32, header: &impl CommandCustomHeader) -> RemotingCommand {
        self.call(RemotingCommand::request(code, header))
    }

    /// Waits for one answer; what else arrives stays for [`RawClient::next`].
    pub fn answer_to(&mut self, opaque: i32) -> RemotingCommand {
        let mut others = VecDeque::new();
        let deadline = Instant::now() + LIMIT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let command = self.next(left).expect("an answer in time");
            if command.is_response() && command.opaque == opaque {
                others.append(&mut self.unread);
                self.unread = others;
                return command;
            }
            others.push_back(command);
        }
    }

    /// The next command in the order of arrival; `None` when none comes in time.
    pub fn next(&mut self, timeout: Duration) -> Option<RemotingCommand> {
        if let Some(command) = self.unread.pop_front() {
            return Some(command);
        }
        let deadline = Instant::now() + timeout;
        let mut buffer = [0; 65_536];
        loop {
            if let Some(command) = self.decoder.next_command().unwrap() {
                return Some(command);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            self.stream.set_read_timeout(Some(left)).unwrap();
            match self.stream.read(&mut buffer) {
                Ok(0) => panic!("connection closed"),
                Ok(count) => self.decoder.extend(&buffer[..count]),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Waits for a note that a group changed.
    pub fn note(&mut self) -> String {
        let note = self.next(LIMIT).expect("a note in time");
        assert_eq!(note.code, request_code::NOTIFY_CONSUMER_IDS_CHANGED);
        assert!(note.is_oneway() && !note.is_response(), "{note:?}");
        note.ext_fields.get("consumerGroup").unwrap().to_owned()
    }

    /// Whether the server closes the connection, without having sent anything more.
    pub fn is_closed_by_server(&mut self) -> bool {
        self.stream.set_read_timeout(Some(LIMIT)).unwrap();
        match self.stream.read(&mut [0; 1]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }

    pub fn heartbeat(&mut self, data: &HeartbeatData) -> RemotingCommand {
        let request = RemotingCommand::request_without_header(request_code::HEART_BEAT);
        self.call(request.with_body(data.to_json().unwrap()))
    }

    pub fn consumer_list(&mut self, group: &str) -> Vec<String> {
        let header = GetConsumerListByGroupRequestHeader {
            consumer_group: group.to_owned(),
        };
        let response = self.call_with(request_code::GET_CONSUMER_LIST_BY_GROUP, &header);
        if response.code != response_code::SUCCESS {
            return Vec::new();
        }
        let body = GetConsumerListByGroupResponseBody::from_command(&response).unwrap();
        let mut ids = body.consumer_id_list;
        ids.sort();
        ids
    }

    /// Sends a message and expects it to be stored.
    pub fn produce(&mut self, queue_id: i32, message: &Message) -> SendMessageResponseHeader {
        let response = self.call(send_request(queue_id, message));
        assert_eq!(response.code, 0, "{response:?}");
        response.decode_header().unwrap()
    }
}

pub fn send_header(queue_id: i32, message: &Message) -> SendMessageRequestHeader {
    SendMessageRequestHeader {
        producer_group: "pg".to_owned(),
        topic: message.topic().to_owned(),
        default_topic: "TBW102".to_owned(),
        default_topic_queue_nums: 4,
        queue_id,
        born_timestamp: 1_700_000_000_000,
        flag: message.flag(),
        properties: Some(encode_properties(message.properties())),
        ..SendMessageRequestHeader::default()
    }
}

pub fn send_request(queue_id: i32, message: &Message) -> RemotingCommand {
    let header = SendMessageRequestHeaderV2(send_header(queue_id, message));
    RemotingCommand::request(request_code::SEND_MESSAGE_V2, &header)
        .with_body(message.body().clone())
}

/// A pull of up to 32 messages that brings its own subscription and does not wait.
pub fn pull_header(topic: &str, queue_id: i32, offset: i64) -> PullMessageRequestHeader {
    PullMessageRequestHeader {
        consumer_group: "g".to_owned(),
        topic: topic.to_owned(),
        queue_id,
        queue_offset: offset,
        max_msg_nums: 32,
        sys_flag: sys_flag::PULL_SUBSCRIPTION,
        ..PullMessageRequestHeader::default()
    }
}

pub fn pull_request(header: &PullMessageRequestHeader) -> RemotingCommand {
    RemotingCommand::request(request_code::PULL_MESSAGE, header)
}

pub fn pull_answer(response: &RemotingCommand) -> (PullMessageResponseHeader, Vec<MessageExt>) {
    let body = response.body.clone().unwrap_or_default();
    let messages = StoredMessages::new(body).collect::<Result<_, _>>().unwrap();
    (response.decode_header().unwrap(), messages)
}

/// A member of one group that subscribes some topics.
pub fn heartbeat_data(client_id: &str, group: &str, topics: &[&str]) -> HeartbeatData {
    HeartbeatData {
        client_id: client_id.to_owned(),
        consumer_data_set: vec![ConsumerData {
            group_name: group.to_owned(),
            subscription_data_set: topics
                .iter()
                .map(|topic| SubscriptionData::build(topic, "*", 1).unwrap())
                .collect(),
            ..ConsumerData::default()
        }],
        ..HeartbeatData::default()
    }
}

/// Asks again and again until something is true.
pub fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !is_true() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::yield_now();
    }
}
