use std::env;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::BytesMut;
use rocketmq_embedded::Cluster;
use rocketmq_protocol::body::{JsonBody, MASTER_ID, Permission, TopicRouteData};
use rocketmq_protocol::header::{CreateTopicRequestHeader, GetRouteInfoRequestHeader};
use rocketmq_protocol::{FrameDecoder, RemotingCommand, request_code, response_code};

use super::{GENEROUS, wait_until};

/// The servers of a test: embedded ones, or those of the name server in `ROCKETMQ_NAMESRV`, which
/// needs as many brokers as the test asks for, and may have more.
pub(crate) struct Target {
    namesrv: String,
    brokers: usize,
    embedded: Option<Cluster>,
}

impl Target {
    /// Starts an embedded cluster of so many brokers, unless a real one is to be used.
    pub(crate) fn start(brokers: usize) -> Self {
        if let Ok(namesrv) = env::var("ROCKETMQ_NAMESRV") {
            return Self {
                namesrv,
                brokers,
                embedded: None,
            };
        }
        let cluster = Cluster::builder().brokers(brokers).start().unwrap();
        Self {
            namesrv: cluster.namesrv_addr(),
            brokers,
            embedded: Some(cluster),
        }
    }

    pub(crate) fn namesrv(&self) -> &str {
        &self.namesrv
    }

    /// The embedded cluster, for what only it can be asked.
    pub(crate) fn embedded(&self) -> Option<&Cluster> {
        self.embedded.as_ref()
    }

    /// Creates a topic on the test's brokers, and waits until the name server knows it of all of
    /// them. The library under test has no part in this.
    pub(crate) fn create_topic(&self, topic: &str, queues_per_broker: u16) {
        if let Some(cluster) = &self.embedded {
            return cluster.create_topic(topic, queues_per_broker).unwrap();
        }
        let template = self
            .route("TBW102")
            .expect("brokers create topics by themselves");
        let masters = template.broker_datas.iter();
        let masters: Vec<&String> = masters
            .filter_map(|b| b.broker_addrs.get(&MASTER_ID))
            .take(self.brokers)
            .collect();
        assert_eq!(
            masters.len(),
            self.brokers,
            "the cluster has too few brokers for this test"
        );
        let header = CreateTopicRequestHeader {
            topic: topic.to_owned(),
            default_topic: "TBW102".to_owned(),
            read_queue_nums: queues_per_broker.into(),
            write_queue_nums: queues_per_broker.into(),
            perm: Permission::READ_WRITE.0,
            topic_filter_type: Some("SINGLE_TAG".to_owned()),
            topic_sys_flag: Some(0),
            order: Some(false),
            attributes: None,
            force: None,
        };
        let request = RemotingCommand::request(request_code::UPDATE_AND_CREATE_TOPIC, &header);
        for addr in masters {
            let reply = call(addr, &request);
            assert_eq!(
                reply.code,
                response_code::SUCCESS,
                "{addr}: {:?}",
                reply.remark
            );
        }
        wait_until("the name server knows the new topic of all brokers", || {
            self.route(topic)
                .is_some_and(|route| route.queue_datas.len() == self.brokers)
        });
    }

    fn route(&self, topic: &str) -> Option<TopicRouteData> {
        let header = GetRouteInfoRequestHeader {
            topic: topic.to_owned(),
            accept_standard_json_only: Some(true),
        };
        let request = RemotingCommand::request(request_code::GET_ROUTEINFO_BY_TOPIC, &header);
        let reply = call(&self.namesrv, &request);
        (reply.code == response_code::SUCCESS)
            .then(|| TopicRouteData::from_command(&reply).unwrap().sorted())
    }
}

fn call(addr: &str, request: &RemotingCommand) -> RemotingCommand {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(GENEROUS)).unwrap();
    let mut frame = BytesMut::new();
    request.encode(&mut frame).unwrap();
    stream.write_all(&frame).unwrap();
    let mut decoder = FrameDecoder::default();
    let mut chunk = [0; 4096];
    loop {
        let length = stream.read(&mut chunk).unwrap();
        assert_ne!(length, 0, "{addr} ended the connection");
        decoder.extend(&chunk[..length]);
        if let Some(reply) = decoder.next_command().unwrap() {
            return reply;
        }
    }
}

/// A name that no other test, and no earlier run on the same cluster, has used.
pub(crate) fn unique(name: &str) -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!("{name}_{}_{number}", now.as_millis())
}
