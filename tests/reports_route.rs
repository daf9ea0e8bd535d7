//! Public bug reports about routes, and about brokers that may not be used, each with its right
//! outcome.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test is outside of what loom models, and fails by panicking"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rocketmq_blocking::{
    ConsumeFromWhere, DefaultMQPushConsumer, MQClientManager, Message, MessageQueue,
};
use rocketmq_embedded::Cluster;
use rocketmq_protocol::body::{
    BrokerData, GetConsumerListByGroupResponseBody, JsonBody, QueueData, TopicRouteData,
};
use rocketmq_protocol::header::{PullMessageRequestHeader, PullMessageResponseHeader};
use rocketmq_protocol::{RemotingCommand, request_code, response_code, sys_flag};
use support::{FakePeer, Inbox, producer_at, quick, reply_to, started, wait_until};

const PERIOD: Duration = Duration::from_millis(100);
/// Longer than a test waits: whatever happens in time has another cause.
const NEVER: Duration = Duration::from_secs(600);

/// A name server that knows topic T as the test says.
struct Routes {
    peer: FakePeer,
    route: Arc<Mutex<TopicRouteData>>,
}

impl Routes {
    fn start(route: TopicRouteData) -> Self {
        let route = Arc::new(Mutex::new(route));
        let known = Arc::clone(&route);
        let peer = FakePeer::start(move |stream, request| {
            let frame = if request.ext_fields.get("topic") == Some("T") {
                let body = known.lock().unwrap().to_json().unwrap();
                reply_to(&request, response_code::SUCCESS, body)
            } else {
                reply_to(&request, response_code::TOPIC_NOT_EXIST, Vec::new())
            };
            stream.write_all(&frame).is_ok()
        });
        Self { peer, route }
    }

    fn change(&self, change: impl FnOnce(&mut TopicRouteData)) {
        change(&mut self.route.lock().unwrap());
    }
}

/// A route with two queues, to be read and written, at each broker.
fn route(brokers: &[(&str, BTreeMap<i64, String>)]) -> TopicRouteData {
    let broker_datas = brokers.iter().map(|(name, addrs)| BrokerData {
        cluster: "DefaultCluster".to_owned(),
        broker_name: (*name).to_owned(),
        broker_addrs: addrs.clone(),
        ..BrokerData::default()
    });
    let queue_datas = brokers.iter().map(|(name, _)| QueueData {
        broker_name: (*name).to_owned(),
        read_queue_nums: 2,
        write_queue_nums: 2,
        perm: 6,
        ..QueueData::default()
    });
    TopicRouteData {
        broker_datas: broker_datas.collect(),
        queue_datas: queue_datas.collect(),
        ..TopicRouteData::default()
    }
}

/// alibaba/rocketmq#210, apache/rocketmq-client-go#1007, apache/rocketmq#4109, #286: after a broker had
/// lost its permission to be written, senders still chose it. They stop with the next route; what is
/// there is still consumed.
#[test]
fn b81_a_broker_that_may_not_be_written_is_sent_nothing_and_still_read() {
    let cluster = Cluster::builder().brokers(2).start().unwrap();
    cluster.create_topic("T", 2).unwrap();
    let at = |name: &str| BTreeMap::from([(0, cluster.broker_addr(name).unwrap())]);
    let routes = Routes::start(route(&[
        ("broker-a", at("broker-a")),
        ("broker-b", at("broker-b")),
    ]));
    let producer = started(producer_at(&routes.peer.addr()).poll_name_server_interval(PERIOD));
    let send = |count: usize| -> BTreeSet<String> {
        (0..count)
            .map(|n| {
                let message = Message::new("T", format!("m{n}"));
                let result = producer.send(&message).unwrap();
                result.message_queue.broker_name().to_owned()
            })
            .collect()
    };
    assert_eq!(send(8).len(), 2);
    routes.change(|route| route.queue_datas[1].perm = 4);
    wait_until("the producer knows", || {
        producer.fetch_publish_message_queues("T").unwrap().len() == 2
            && send(4) == BTreeSet::from(["broker-a".to_owned()])
    });
    let stored = cluster.stored_count("T");
    let on_b = || -> i64 {
        let queues = (0..2).map(|id| MessageQueue::new("T", "broker-b", id));
        queues.map(|mq| cluster.max_offset(&mq)).sum()
    };
    let before = on_b();
    assert_eq!(send(20), BTreeSet::from(["broker-a".to_owned()]));
    assert_eq!(on_b(), before);

    let inbox = Inbox::new();
    let consumer = quick(DefaultMQPushConsumer::builder("g"))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&routes.peer.addr())
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .subscribe("T", "*")
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    inbox.wait_for(stored + 20);
}

/// One of a broker's two processes. Its queues have no messages, but their offsets move.
#[derive(Clone, Default)]
struct Replica {
    pulls: Arc<Mutex<Vec<PullMessageRequestHeader>>>,
    asked_for_members: Arc<AtomicBool>,
}

impl Replica {
    /// Pulls are told to go on at `next`, the first ones; the others wait.
    fn start(&self, next: i64) -> FakePeer {
        let this = self.clone();
        FakePeer::start(move |stream, request| {
            let frame = match request.code {
                request_code::GET_CONSUMER_LIST_BY_GROUP => {
                    this.asked_for_members.store(true, Ordering::SeqCst);
                    let body = GetConsumerListByGroupResponseBody {
                        consumer_id_list: vec!["10.0.0.1@a".to_owned()],
                    };
                    reply_to(&request, response_code::SUCCESS, body.to_json().unwrap())
                }
                request_code::QUERY_CONSUMER_OFFSET => {
                    reply_to(&request, response_code::QUERY_NOT_FOUND, Vec::new())
                }
                request_code::PULL_MESSAGE => {
                    let header: PullMessageRequestHeader = request.decode_header().unwrap();
                    let waits = header.queue_offset >= next;
                    this.pulls.lock().unwrap().push(header);
                    if waits {
                        return true;
                    }
                    return stream.write_all(&nothing_until(&request, next)).is_ok();
                }
                _ => reply_to(&request, response_code::SUCCESS, Vec::new()),
            };
            request.is_oneway() || stream.write_all(&frame).is_ok()
        })
    }

    fn has_pull_at(&self, offset: i64) -> bool {
        let pulls = self.pulls.lock().unwrap();
        pulls.iter().any(|pull| pull.queue_offset == offset)
    }
}

/// No message matches before `next`.
fn nothing_until(request: &RemotingCommand, next: i64) -> Vec<u8> {
    let header = PullMessageResponseHeader {
        next_begin_offset: next,
        min_offset: 0,
        max_offset: next,
        ..PullMessageResponseHeader::default()
    };
    let mut frame = bytes::BytesMut::new();
    RemotingCommand::response(request, response_code::PULL_RETRY_IMMEDIATELY, None)
        .with_header(&header)
        .encode(&mut frame)
        .unwrap();
    frame.to_vec()
}

/// apache/rocketmq-client-cpp#88 (PR#105), apache/rocketmq-client-go#850, #1055, apache/rocketmq#2165
/// (PR#2167): with the master down, clients neither read from its replica nor asked it for members.
/// The next poll of the routes is further away than this test waits.
#[test]
fn b121_a_replica_goes_on_where_the_master_was() {
    let (master, replica) = (Replica::default(), Replica::default());
    let (master_peer, replica_peer) = (master.start(7), replica.start(9));
    let addrs = BTreeMap::from([(0, master_peer.addr()), (1, replica_peer.addr())]);
    let routes = Routes::start(route(&[("broker-a", addrs)]));
    routes.change(|route| route.queue_datas[0].read_queue_nums = 1);
    let consumer = quick(DefaultMQPushConsumer::builder("g"))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&routes.peer.addr())
        .client_ip("10.0.0.1".parse().unwrap())
        .instance_name("a")
        .poll_name_server_interval(NEVER)
        .heartbeat_broker_interval(NEVER)
        .rebalance_wait_interval(PERIOD)
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .subscribe("T", "*")
        .message_listener(Inbox::new().listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    wait_until("the master was pulled from", || master.has_pull_at(7));
    assert!(!replica.has_pull_at(0), "reads go to the master");
    assert!(!replica.asked_for_members.load(Ordering::SeqCst));

    routes.change(|route| drop(route.broker_datas[0].broker_addrs.remove(&0)));
    drop(master_peer);
    wait_until("the replica is pulled from", || replica.has_pull_at(9));
    let pulls = replica.pulls.lock().unwrap();
    let offsets: Vec<i64> = pulls.iter().map(|pull| pull.queue_offset).collect();
    assert_eq!(offsets, [7, 9], "from where the master was on");
    let commits =
        |pull: &PullMessageRequestHeader| pull.sys_flag & sys_flag::PULL_COMMIT_OFFSET != 0;
    assert!(!pulls.iter().any(commits), "a replica takes no commits");
    drop(pulls);
    wait_until("the replica is asked for the members", || {
        replica.asked_for_members.load(Ordering::SeqCst)
    });
    assert_eq!(consumer.owned_queues().len(), 1);
}
