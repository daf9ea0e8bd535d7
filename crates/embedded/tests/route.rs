//! What the name server answers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod raw_client;

use raw_client::RawClient;
use rocketmq_embedded::Cluster;
use rocketmq_protocol::RemotingCommand;
use rocketmq_protocol::body::{ClusterInfo, JsonBody, QueueData, TopicRouteData};
use rocketmq_protocol::header::GetRouteInfoRequestHeader;
use rocketmq_protocol::request_code::{GET_BROKER_CLUSTER_INFO, GET_ROUTEINFO_BY_TOPIC};

fn route_request(topic: &str) -> RemotingCommand {
    let header = GetRouteInfoRequestHeader {
        topic: topic.to_owned(),
        accept_standard_json_only: None,
    };
    RemotingCommand::request(GET_ROUTEINFO_BY_TOPIC, &header)
}

#[test]
fn a_topic_is_found_at_once_on_all_brokers_that_have_it() {
    let cluster = Cluster::builder().brokers(2).start().unwrap();
    let mut client = RawClient::connect(&cluster.namesrv_addr());
    assert_eq!(client.call(route_request("T")).code, 17);
    cluster.create_topic("T", 4).unwrap();
    cluster.create_topic_on("broker-b", "OnlyB", 1).unwrap();
    let response = client.call(route_request("T"));
    assert_eq!((response.code, response.version), (0, 513));
    let route = TopicRouteData::from_command(&response).unwrap();
    let broker = |index: usize| {
        let data = &route.broker_datas[index];
        assert_eq!(data.cluster, "DefaultCluster");
        (data.broker_name.clone(), data.broker_addrs[&0].clone())
    };
    for (index, name) in ["broker-a", "broker-b"].into_iter().enumerate() {
        let addr = cluster.broker_addr(name).unwrap();
        assert_eq!(broker(index), (name.to_owned(), addr));
        let queues = QueueData {
            broker_name: name.to_owned(),
            perm: 6,
            read_queue_nums: 4,
            topic_sys_flag: 0,
            write_queue_nums: 4,
        };
        assert_eq!(route.queue_datas[index], queues);
    }
    let only_b = TopicRouteData::from_command(&client.call(route_request("OnlyB"))).unwrap();
    assert_eq!(only_b.queue_datas.len(), 1);
    assert_eq!(only_b.broker_datas[0].broker_name, "broker-b");
}

#[test]
fn the_json_dialect_follows_the_version_of_the_request() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 1).unwrap();
    let mut client = RawClient::connect(&cluster.namesrv_addr());
    let mut text = |version, standard_only| {
        let mut request = route_request("T");
        request.version = version;
        if standard_only {
            request.ext_fields.set("acceptStandardJsonOnly", "true");
        }
        String::from_utf8(client.call(request).body_bytes().to_vec()).unwrap()
    };
    let addr = cluster.broker_addr("broker-a").unwrap();
    let strict = format!(r#""brokerAddrs":{{"0":"{addr}"}}"#);
    let bare = format!(r#""brokerAddrs":{{0:"{addr}"}}"#);
    assert!(text(513, false).contains(&strict));
    assert!(text(401, false).contains(&strict));
    assert!(text(400, false).contains(&bare));
    assert!(text(400, true).contains(&strict));
}

#[test]
fn the_template_topic_is_there_while_topics_may_be_created_by_sends() {
    let cluster = Cluster::builder().start().unwrap();
    let mut client = RawClient::connect(&cluster.namesrv_addr());
    let route = TopicRouteData::from_command(&client.call(route_request("TBW102"))).unwrap();
    let queues = &route.queue_datas[0];
    assert_eq!((queues.perm, queues.write_queue_nums), (7, 8));
    let cluster = Cluster::builder().auto_create_topic(false).start().unwrap();
    let mut client = RawClient::connect(&cluster.namesrv_addr());
    assert_eq!(client.call(route_request("TBW102")).code, 17);
}

#[test]
fn a_stopped_broker_leaves_the_routes() {
    let cluster = Cluster::builder().brokers(2).start().unwrap();
    cluster.create_topic("T", 1).unwrap();
    let mut client = RawClient::connect(&cluster.namesrv_addr());
    let mut brokers = || {
        let route = TopicRouteData::from_command(&client.call(route_request("T"))).unwrap();
        let names = route.queue_datas.into_iter().map(|data| data.broker_name);
        names.collect::<Vec<_>>()
    };
    cluster.stop_broker("broker-a").unwrap();
    assert_eq!(brokers(), ["broker-b"]);
    cluster.start_broker("broker-a").unwrap();
    assert_eq!(brokers(), ["broker-a", "broker-b"]);
}

#[test]
fn the_cluster_is_told_and_unknown_codes_are_refused() {
    let cluster = Cluster::builder().brokers(2).start().unwrap();
    let mut client = RawClient::connect(&cluster.namesrv_addr());
    let request = RemotingCommand::request_without_header(GET_BROKER_CLUSTER_INFO);
    let response = client.call(request);
    let info = ClusterInfo::from_command(&response).unwrap();
    let brokers = &info.cluster_addr_table["DefaultCluster"];
    assert_eq!(brokers, &["broker-a", "broker-b"]);
    let addr = cluster.broker_addr("broker-b").unwrap();
    assert_eq!(info.broker_addr_table["broker-b"].broker_addrs[&0], addr);
    // Java servers write this body with bare numbers, even for the newest client.
    assert!(
        response
            .body_bytes()
            .windows(3)
            .any(|bytes| bytes == b"{0:")
    );
    let unknown = RemotingCommand::request_without_header(9999);
    assert_eq!(client.call(unknown).code, 3);
    let no_topic = RemotingCommand::request_without_header(GET_ROUTEINFO_BY_TOPIC);
    assert_eq!(client.call(no_topic).code, 17);
}
