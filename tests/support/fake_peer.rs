use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rocketmq_protocol::body::{BrokerData, JsonBody, Permission, QueueData, TopicRouteData};
use rocketmq_protocol::header::{CommandCustomHeader, SendMessageResponseHeader};
use rocketmq_protocol::{FrameDecoder, RemotingCommand, request_code, response_code};

/// A server of which a test writes every byte. Each connection is served by a thread that calls the
/// script with each request.
pub(crate) struct FakePeer {
    addr: SocketAddr,
    stopped: Arc<AtomicBool>,
    connections: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl FakePeer {
    /// The script is given the socket, to write to, and a request. `false` ends the connection.
    pub(crate) fn start(
        script: impl Fn(&mut TcpStream, RemotingCommand) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::start_at(TcpListener::bind("127.0.0.1:0").unwrap(), script)
    }

    /// [`start`](Self::start) with an address that is known before.
    pub(crate) fn start_at(
        listener: TcpListener,
        script: impl Fn(&mut TcpStream, RemotingCommand) -> bool + Send + Sync + 'static,
    ) -> Self {
        listener.set_nonblocking(false).unwrap();
        let peer = Self {
            addr: listener.local_addr().unwrap(),
            stopped: Arc::new(AtomicBool::new(false)),
            connections: Arc::new(AtomicUsize::new(0)),
            ended: Arc::new(AtomicUsize::new(0)),
            open: Arc::new(Mutex::new(Vec::new())),
        };
        let stopped = Arc::clone(&peer.stopped);
        let connections = Arc::clone(&peer.connections);
        let ended = Arc::clone(&peer.ended);
        let open = Arc::clone(&peer.open);
        let script = Arc::new(script);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                connections.fetch_add(1, Ordering::SeqCst);
                open.lock().unwrap().push(stream.try_clone().unwrap());
                let script = Arc::clone(&script);
                let ended = Arc::clone(&ended);
                thread::spawn(move || {
                    serve(stream, &*script);
                    ended.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        peer
    }

    pub(crate) fn addr(&self) -> String {
        self.addr.to_string()
    }

    /// How many connections neither side has ended.
    pub(crate) fn open_connections(&self) -> usize {
        self.connections().saturating_sub(self.ended())
    }

    /// How many connections there have been.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl FakePeer {
    /// How many of the connections have ended.
    pub(crate) fn ended(&self) -> usize {
        self.ended.load(Ordering::SeqCst)
    }
}

impl Drop for FakePeer {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
        // Lets the accepting thread see that it is over.
        let _ = TcpStream::connect_timeout(&self.addr, Duration::from_secs(1));
    }
}

fn serve(mut stream: TcpStream, script: &impl Fn(&mut TcpStream, RemotingCommand) -> bool) {
    let mut decoder = FrameDecoder::default();
    let mut chunk = [0; 4096];
    loop {
        match stream.read(&mut chunk) {
            Ok(length) if length > 0 => decoder.extend(&chunk[..length]),
            _ => return,
        }
        while let Some(request) = decoder.next_command().unwrap() {
            if !script(&mut stream, request) {
                let _ = stream.shutdown(std::net::Shutdown::Both);
                return;
            }
        }
    }
}

/// A whole frame that answers a request.
pub(crate) fn reply_to(request: &RemotingCommand, code: i32, body: Vec<u8>) -> BytesMut {
    let mut frame = BytesMut::new();
    RemotingCommand::response(request, code, None)
        .with_body(body)
        .encode(&mut frame)
        .unwrap();
    frame
}

/// A whole frame that says that a message is stored; its id is `id`.
pub(crate) fn stored_reply(request: &RemotingCommand, id: &str) -> BytesMut {
    let mut frame = BytesMut::new();
    let mut reply = RemotingCommand::response(request, response_code::SUCCESS, None);
    for (name, value) in [("msgId", id), ("queueId", "0"), ("queueOffset", "0")] {
        reply.ext_fields.set(name, value);
    }
    reply.encode(&mut frame).unwrap();
    frame
}

/// A whole frame that answers a request with a header.
pub(crate) fn reply_with(
    request: &RemotingCommand,
    header: &impl CommandCustomHeader,
    body: impl Into<Bytes>,
) -> BytesMut {
    let mut frame = BytesMut::new();
    RemotingCommand::response(request, response_code::SUCCESS, None)
        .with_header(header)
        .with_body(body)
        .encode(&mut frame)
        .unwrap();
    frame
}

/// What a broker says of a message that it stored in a queue of its own.
pub(crate) fn stored_in(request: &RemotingCommand, queue_id: i32, queue_offset: i64) -> BytesMut {
    let header = SendMessageResponseHeader {
        msg_id: "7F00000100002A9F0000000000000000".to_owned(),
        queue_id,
        queue_offset,
        transaction_id: None,
        batch_uniq_id: None,
        recall_handle: None,
    };
    reply_with(request, &header, Bytes::new())
}

/// A route that names one broker with one queue.
pub(crate) fn route_of(broker_name: &str, broker_addr: &str) -> Vec<u8> {
    route_over(&[(broker_name, broker_addr)])
}

/// A route that names brokers with one queue each.
pub(crate) fn route_over(brokers: &[(&str, &str)]) -> Vec<u8> {
    let broker_datas = brokers.iter().map(|(name, addr)| BrokerData {
        cluster: "DefaultCluster".to_owned(),
        broker_name: (*name).to_owned(),
        broker_addrs: BTreeMap::from([(0, (*addr).to_owned())]),
        ..BrokerData::default()
    });
    let queue_datas = brokers.iter().map(|(name, _)| QueueData {
        broker_name: (*name).to_owned(),
        read_queue_nums: 1,
        write_queue_nums: 1,
        perm: Permission::READ_WRITE.0,
        ..QueueData::default()
    });
    TopicRouteData {
        broker_datas: broker_datas.collect(),
        queue_datas: queue_datas.collect(),
        ..TopicRouteData::default()
    }
    .to_json()
    .unwrap()
}

impl FakePeer {
    /// A name server whose every route names the same broker.
    pub(crate) fn name_server(broker_name: &'static str, broker_addr: String) -> Self {
        Self::start(move |stream, request| {
            let body = route_of(broker_name, &broker_addr);
            let frame = reply_to(&request, response_code::SUCCESS, body);
            stream.write_all(&frame).is_ok()
        })
    }

    /// A broker that stores what is sent to it, as far as it can be told from outside, and takes all
    /// heartbeats; `seen` is shown every request first. It serves nothing else.
    pub(crate) fn broker(seen: impl Fn(&RemotingCommand) + Send + Sync + 'static) -> Self {
        Self::start(move |stream, request| {
            seen(&request);
            let frame = match request.code {
                request_code::SEND_MESSAGE_V2 => stored_reply(&request, "0A"),
                request_code::HEART_BEAT | request_code::UNREGISTER_CLIENT => {
                    reply_to(&request, response_code::SUCCESS, Vec::new())
                }
                _ => reply_to(&request, response_code::SYSTEM_ERROR, Vec::new()),
            };
            request.is_oneway() || stream.write_all(&frame).is_ok()
        })
    }
}
