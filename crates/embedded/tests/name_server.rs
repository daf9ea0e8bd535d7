//! Brokers that come and go at the name server, and what it stores.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod raw_client;

use std::time::Duration;

use raw_client::{LIMIT, RawClient};
use rocketmq_embedded::{Cluster, Message, MessageQueue, TopicConfig};
use rocketmq_protocol::RemotingCommand;
use rocketmq_protocol::body::{ClusterInfo, JsonBody, TopicRouteData};
use rocketmq_protocol::request_code::{
    GET_BROKER_CLUSTER_INFO, GET_KV_CONFIG, GET_ROUTEINFO_BY_TOPIC, WIPE_WRITE_PERM_OF_BROKER,
};

/// A long registration period, so that only what a test does registers a broker.
fn cluster(expiry: Duration) -> Cluster {
    let cluster = Cluster::builder()
        .brokers(2)
        .configure(|config| config.register_period = Duration::from_secs(3600))
        .configure_name_server(|config| {
            config.broker_expiry = expiry;
            config.broker_scan = Duration::from_millis(20);
        })
        .start()
        .unwrap();
    cluster.create_topic("T", 2).unwrap();
    cluster
}

fn route(cluster: &Cluster, topic: &str) -> Option<TopicRouteData> {
    let mut request = RemotingCommand::request_without_header(GET_ROUTEINFO_BY_TOPIC);
    request.ext_fields.set("topic", topic);
    let response = RawClient::connect(&cluster.namesrv_addr()).call(request);
    (response.code == 0).then(|| TopicRouteData::from_command(&response).unwrap())
}

/// The brokers in a topic's route, and what may be done with their queues.
fn brokers(cluster: &Cluster, topic: &str) -> Vec<(String, i32)> {
    let route = route(cluster, topic).unwrap_or_default();
    assert_eq!(route.queue_datas.len(), route.broker_datas.len());
    let queues = route.queue_datas.into_iter();
    queues.map(|data| (data.broker_name, data.perm)).collect()
}

fn both() -> Vec<(String, i32)> {
    ["broker-a", "broker-b"]
        .map(|name| (name.to_owned(), 6))
        .to_vec()
}

#[test]
fn a_broker_that_does_not_register_is_forgotten_and_comes_back() {
    let cluster = Cluster::builder()
        .brokers(2)
        .configure(|config| config.register_period = Duration::from_millis(50))
        .configure_name_server(|config| {
            config.broker_expiry = Duration::from_millis(1500);
            config.broker_scan = Duration::from_millis(20);
        })
        .start()
        .unwrap();
    cluster.create_topic("T", 1).unwrap();
    cluster.set_registers("broker-b", false).unwrap();
    assert_eq!(brokers(&cluster, "T"), both());
    // What it creates meanwhile the name server does not hear of.
    cluster.create_topic_on("broker-b", "Unheard", 1).unwrap();
    assert_eq!(route(&cluster, "Unheard"), None);
    let gone = || brokers(&cluster, "T") == both()[..1];
    assert!(cluster.wait_until(LIMIT, gone), "broker-b expires");
    let info = RemotingCommand::request_without_header(GET_BROKER_CLUSTER_INFO);
    let info = RawClient::connect(&cluster.namesrv_addr()).call(info);
    let info = ClusterInfo::from_command(&info).unwrap();
    assert_eq!(info.cluster_addr_table["DefaultCluster"], ["broker-a"]);
    // It serves on.
    let queue = MessageQueue::new("T", "broker-b", 0);
    cluster
        .put_message(&queue, &Message::new("T", b"x".as_slice()))
        .unwrap();
    cluster.set_registers("broker-b", true).unwrap();
    assert_eq!(brokers(&cluster, "T"), both());
    assert!(route(&cluster, "Unheard").is_some());
}

#[test]
fn a_killed_broker_stays_in_the_routes_until_it_expires() {
    let cluster = cluster(Duration::from_secs(3600));
    cluster.kill_broker("broker-b").unwrap();
    let addr = cluster.broker_addr("broker-b").unwrap();
    assert!(std::net::TcpStream::connect(addr).is_err());
    assert_eq!(brokers(&cluster, "T"), both());
    cluster.create_topic("Later", 1).unwrap();
    assert_eq!(brokers(&cluster, "Later"), both()[..1]);
    cluster.start_broker("broker-b").unwrap();
    assert_eq!(brokers(&cluster, "Later"), both());

    // A broker that stops in order takes leave.
    cluster.stop_broker("broker-b").unwrap();
    assert_eq!(brokers(&cluster, "T"), both()[..1]);
}

#[test]
fn a_broker_may_come_back_with_an_empty_disk() {
    let cluster = cluster(Duration::from_secs(3600));
    let queue = MessageQueue::new("T", "broker-b", 0);
    let message = Message::new("T", b"x".as_slice());
    cluster.put_message(&queue, &message).unwrap();
    cluster.commit_offset("g", &queue, 1);
    assert!(cluster.wipe_broker("broker-b").is_err(), "it is up");
    cluster.kill_broker("broker-b").unwrap();
    cluster.wipe_broker("broker-b").unwrap();
    cluster.start_broker("broker-b").unwrap();
    assert_eq!(cluster.stored_count("T"), 0);
    assert_eq!(cluster.committed_offset("g", &queue), None);
    assert!(cluster.put_message(&queue, &message).is_err());
    cluster.create_topic_on("broker-b", "T", 1).unwrap();
    assert_eq!(cluster.put_message(&queue, &message).unwrap(), 0);
}

#[test]
fn a_name_server_that_comes_back_learns_the_brokers_from_their_registrations() {
    let cluster = cluster(Duration::from_secs(3600));
    cluster.put_kv_config("N", "k", "kept");
    let addr = cluster.namesrv_addr();
    let mut client = RawClient::connect(&addr);
    cluster.stop_name_server();
    cluster.stop_name_server();
    assert!(client.is_closed_by_server());
    assert!(std::net::TcpStream::connect(&addr).is_err());
    cluster.create_topic("Meanwhile", 1).unwrap();
    cluster.start_name_server().unwrap();
    cluster.start_name_server().unwrap();
    assert_eq!(cluster.namesrv_addr(), addr);
    assert_eq!(route(&cluster, "T"), None);
    let mut get = RemotingCommand::request_without_header(GET_KV_CONFIG);
    get.ext_fields.set("namespace", "N");
    get.ext_fields.set("key", "k");
    let value = RawClient::connect(&addr).call(get);
    assert_eq!(value.ext_fields.get("value"), Some("kept"));
    for broker in ["broker-a", "broker-b"] {
        cluster.set_registers(broker, true).unwrap();
    }
    assert_eq!(brokers(&cluster, "T"), both());
    assert_eq!(brokers(&cluster, "Meanwhile"), both());
}

#[test]
fn a_broker_that_is_added_takes_part_once_it_has_topics() {
    let cluster = cluster(Duration::from_secs(3600));
    assert_eq!(cluster.add_broker().unwrap(), "broker-c");
    assert_eq!(brokers(&cluster, "T"), both());
    cluster.create_topic_on("broker-c", "T", 1).unwrap();
    assert_eq!(brokers(&cluster, "T").len(), 3);
    let mut client = RawClient::to_broker(&cluster, "broker-c");
    client.produce(0, &Message::new("T", b"x".as_slice()));
    assert_eq!(cluster.stored_count("T"), 1);
    cluster.shutdown();
    assert!(client.is_closed_by_server());
}

#[test]
fn a_wiped_permission_lasts_until_the_broker_registers_all_topics_anew() {
    let cluster = cluster(Duration::from_secs(3600));
    let mut request = RemotingCommand::request_without_header(WIPE_WRITE_PERM_OF_BROKER);
    request.ext_fields.set("brokerName", "broker-b");
    let response = RawClient::connect(&cluster.namesrv_addr()).call(request);
    // T, TBW102 and the topic of replies.
    assert_eq!(response.ext_fields.get("wipeTopicCount"), Some("3"));
    let perms = || {
        brokers(&cluster, "T")
            .into_iter()
            .map(|(_, perm)| perm)
            .collect::<Vec<_>>()
    };
    assert_eq!(perms(), [6, 4]);
    cluster.set_registers("broker-b", true).unwrap();
    assert_eq!(perms(), [6, 4], "nothing changed there");
    cluster.stop_broker("broker-b").unwrap();
    cluster.start_broker("broker-b").unwrap();
    assert_eq!(perms(), [6, 6]);
}

#[test]
fn a_brokers_own_permission_shows_in_the_routes() {
    let cluster = cluster(Duration::from_secs(3600));
    cluster
        .configure_on("broker-b", |config| config.broker_permission = 4)
        .unwrap();
    let perms = || {
        brokers(&cluster, "T")
            .into_iter()
            .map(|(_, perm)| perm)
            .collect::<Vec<_>>()
    };
    assert_eq!(perms(), [6, 4]);
    cluster
        .configure_on("broker-b", |config| config.broker_permission = 6)
        .unwrap();
    assert_eq!(perms(), [6, 6]);
}

#[test]
fn routes_carry_the_order_configuration_where_that_is_on_and_brokers_hear_of_it() {
    let with = |enabled| {
        let cluster = Cluster::builder()
            .configure_name_server(move |config| config.order_message_enable = enabled)
            .start()
            .unwrap();
        cluster.create_topic("T", 4).unwrap();
        cluster.put_kv_config("ORDER_TOPIC_CONFIG", "T", "broker-a:4");
        let conf = route(&cluster, "T").unwrap().order_topic_conf;
        (cluster, conf)
    };
    assert_eq!(with(false).1, None);
    let (cluster, conf) = with(true);
    assert_eq!(conf.as_deref(), Some("broker-a:4"));
    cluster.set_registers("broker-a", true).unwrap();
    let mut request = RemotingCommand::request_without_header(351);
    request.ext_fields.set("topic", "T");
    let response = RawClient::to_broker(&cluster, "broker-a").call(request);
    assert!(TopicConfig::from_command(&response).unwrap().order);
}
