//! Members of groups, and the notes that tell them of changes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod raw_client;

use std::time::Duration;

use raw_client::{LIMIT, RawClient, heartbeat_data, wait_until};
use rocketmq_embedded::Cluster;
use rocketmq_protocol::RemotingCommand;
use rocketmq_protocol::body::MessageModel;
use rocketmq_protocol::header::UnregisterClientRequestHeader;
use rocketmq_protocol::request_code::{
    GET_CONSUMER_LIST_BY_GROUP, HEART_BEAT, NOTIFY_CONSUMER_IDS_CHANGED, UNREGISTER_CLIENT,
};

fn cluster() -> Cluster {
    Cluster::builder().start().unwrap()
}

fn join(cluster: &Cluster, client_id: &str) -> RawClient {
    let mut client = RawClient::to_broker(cluster, "broker-a");
    assert_eq!(
        client
            .heartbeat(&heartbeat_data(client_id, "g", &["T"]))
            .code,
        0
    );
    client
}

/// A member that has read the note of its own joining.
fn settled(cluster: &Cluster, client_id: &str) -> RawClient {
    let mut client = join(cluster, client_id);
    assert_eq!(client.note(), "g");
    client
}

fn leave(client: &mut RawClient, client_id: &str) {
    let header = UnregisterClientRequestHeader {
        client_id: client_id.to_owned(),
        producer_group: None,
        consumer_group: Some("g".to_owned()),
    };
    assert_eq!(client.call_with(UNREGISTER_CLIENT, &header).code, 0);
}

/// The notes that came before the answer to a request that is sent now.
fn no_note_came(client: &mut RawClient) -> bool {
    let header = UnregisterClientRequestHeader {
        client_id: "nobody".to_owned(),
        producer_group: Some("pg".to_owned()),
        consumer_group: None,
    };
    let opaque = client.send(RemotingCommand::request(UNREGISTER_CLIENT, &header));
    let next = client.next(LIMIT).unwrap();
    next.is_response() && next.opaque == opaque
}

#[test]
fn a_new_member_gets_the_note_before_its_heartbeats_answer() {
    let cluster = cluster();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    let data = heartbeat_data("c1", "g", &["T"]);
    let request = RemotingCommand::request_without_header(HEART_BEAT);
    use rocketmq_protocol::body::JsonBody;
    let opaque = client.send(request.with_body(data.to_json().unwrap()));
    let first = client.next(LIMIT).unwrap();
    assert_eq!(first.code, NOTIFY_CONSUMER_IDS_CHANGED);
    let second = client.next(LIMIT).unwrap();
    assert!(second.is_response() && second.opaque == opaque);
    let field = |name| second.ext_fields.get(name);
    assert_eq!(field("IS_SUPPORT_HEART_BEAT_V2"), Some("true"));
    assert_eq!(field("IS_SUB_CHANGE"), Some("true"));
    assert_eq!(cluster.notes_sent("g"), 1);
    assert_eq!(cluster.notes_sent("other"), 0);
    // The retry topic comes with the group.
    let route = RawClient::connect(&cluster.namesrv_addr()).call({
        let mut request = RemotingCommand::request_without_header(105);
        request.ext_fields.set("topic", "%RETRY%g");
        request
    });
    assert_eq!(route.code, 0);
}

#[test]
fn every_member_is_told_of_joins_and_leaves_and_lost_connections() {
    let cluster = cluster();
    let mut first = settled(&cluster, "c1");
    let mut second = settled(&cluster, "c2");
    assert_eq!(first.note(), "g");
    let third = settled(&cluster, "c3");
    assert_eq!(
        (first.note(), second.note()),
        ("g".to_owned(), "g".to_owned())
    );
    assert_eq!(first.consumer_list("g"), ["c1", "c2", "c3"]);
    assert_eq!(cluster.consumer_ids("g"), ["c1", "c2", "c3"]);

    drop(third);
    assert_eq!(
        (first.note(), second.note()),
        ("g".to_owned(), "g".to_owned())
    );
    assert_eq!(first.consumer_list("g"), ["c1", "c2"]);

    leave(&mut second, "c2");
    assert_eq!(first.note(), "g");
    assert_eq!(first.consumer_list("g"), ["c1"]);
    leave(&mut first, "c1");
    assert!(first.consumer_list("g").is_empty());
    // 1 + 2 + 3 for the joins, 2 for the lost one, 1 for the one that left, 0 for the last.
    assert_eq!(cluster.notes_sent("g"), 9);
    let mut request = RemotingCommand::request_without_header(GET_CONSUMER_LIST_BY_GROUP);
    request.ext_fields.set("consumerGroup", "g");
    let response = first.call(request);
    assert_eq!(response.code, 1);
    assert!(
        response
            .remark
            .unwrap()
            .contains("no consumer for this group")
    );
}

#[test]
fn only_changes_are_told() {
    let cluster = cluster();
    let mut client = settled(&cluster, "c1");
    client.heartbeat(&heartbeat_data("c1", "g", &["T"]));
    assert!(no_note_came(&mut client));
    // A newer version of a known subscription is taken silently.
    let mut newer = heartbeat_data("c1", "g", &["T"]);
    newer.consumer_data_set[0].subscription_data_set[0].sub_version = 2;
    client.heartbeat(&newer);
    assert!(no_note_came(&mut client));
    client.heartbeat(&heartbeat_data("c1", "g", &["T", "U"]));
    assert_eq!(client.note(), "g");
    client.heartbeat(&heartbeat_data("c1", "g", &["U"]));
    assert_eq!(client.note(), "g");
}

#[test]
fn broadcasting_groups_are_told_nothing() {
    let cluster = cluster();
    let mut data = heartbeat_data("c1", "g", &["T"]);
    data.consumer_data_set[0].message_model = MessageModel::Broadcasting;
    let mut first = RawClient::to_broker(&cluster, "broker-a");
    first.heartbeat(&data);
    let mut second = RawClient::to_broker(&cluster, "broker-a");
    data.client_id = "c2".to_owned();
    second.heartbeat(&data);
    assert_eq!(first.consumer_list("g"), ["c1", "c2"]);
    drop(second);
    wait_until("c2 is gone", || cluster.consumer_ids("g") == ["c1"]);
    assert!(no_note_came(&mut first));
    assert_eq!(cluster.notes_sent("g"), 0);
}

#[test]
fn notes_can_be_switched_off_and_on() {
    let cluster = Cluster::builder()
        .notify_consumer_ids_changed(false)
        .start()
        .unwrap();
    let mut client = join(&cluster, "c1");
    let second = join(&cluster, "c2");
    assert!(no_note_came(&mut client));
    cluster.set_notify_consumer_ids_changed(true);
    drop(second);
    assert_eq!(client.note(), "g");
    assert_eq!(cluster.notes_sent("g"), 1);
}

#[test]
fn a_client_that_is_connected_twice_is_listed_twice() {
    let cluster = cluster();
    let mut first = settled(&cluster, "c1");
    let _second = settled(&cluster, "c1");
    assert_eq!(first.consumer_list("g"), ["c1", "c1"]);
    assert_eq!(cluster.consumer_ids_on("broker-a", "g"), ["c1", "c1"]);
    assert_eq!(cluster.consumer_ids("g"), ["c1"]);
    assert!(cluster.consumer_ids_on("broker-x", "g").is_empty());
}

#[test]
fn a_member_without_heartbeats_expires_and_nobody_is_told() {
    let cluster = Cluster::builder()
        .member_expiry(Duration::from_millis(1500))
        .member_scan(Duration::from_millis(50))
        .start()
        .unwrap();
    let mut silent = settled(&cluster, "c2");
    let mut alive = settled(&cluster, "c1");
    assert_eq!(silent.note(), "g");
    let told = cluster.notes_sent("g");
    wait_until("c2 expires", || {
        alive.heartbeat(&heartbeat_data("c1", "g", &["T"]));
        std::thread::sleep(Duration::from_millis(50));
        cluster.consumer_ids("g") == ["c1"]
    });
    assert!(silent.is_closed_by_server());
    wait_until("its connection is gone", || cluster.connection_count() == 1);
    assert!(no_note_came(&mut alive));
    assert_eq!(cluster.notes_sent("g"), told);
}

#[test]
fn an_idle_connection_is_closed_and_the_others_are_told() {
    let cluster = Cluster::builder()
        .configure(|config| config.server_idle = Duration::from_millis(1500))
        .start()
        .unwrap();
    let mut idle = settled(&cluster, "c2");
    let mut alive = settled(&cluster, "c1");
    assert_eq!(idle.note(), "g");
    wait_until("c2 is closed", || {
        alive.heartbeat(&heartbeat_data("c1", "g", &["T"]));
        std::thread::sleep(Duration::from_millis(50));
        cluster.consumer_ids("g") == ["c1"]
    });
    assert!(idle.is_closed_by_server());
    assert_eq!(alive.note(), "g");
}

#[test]
fn the_second_form_of_heartbeats_keeps_subscriptions_it_does_not_repeat() {
    let cluster = cluster();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    let changed =
        |response: &RemotingCommand| response.ext_fields.get("IS_SUB_CHANGE").map(str::to_owned);
    let mut data = heartbeat_data("c1", "g", &["T"]);
    data.heartbeat_fingerprint = 42;
    assert_eq!(changed(&client.heartbeat(&data)).as_deref(), Some("false"));
    assert_eq!(client.note(), "g");
    data.without_sub = true;
    data.consumer_data_set[0].subscription_data_set.clear();
    assert_eq!(changed(&client.heartbeat(&data)).as_deref(), Some("false"));
    assert!(no_note_came(&mut client));
    data.heartbeat_fingerprint = 43;
    assert_eq!(changed(&client.heartbeat(&data)).as_deref(), Some("true"));
    // A pull by the heartbeats' subscription still finds it.
    let mut header = raw_client::pull_header("T", 0, 0);
    header.sys_flag = 0;
    cluster.create_topic("T", 1).unwrap();
    let response = client.call(raw_client::pull_request(&header));
    assert_eq!(response.code, 19);
}

#[test]
fn a_group_with_a_name_too_long_is_ignored() {
    let cluster = cluster();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    let group = "x".repeat(121);
    let response = client.heartbeat(&heartbeat_data("c1", &group, &["T"]));
    assert_eq!(response.code, 0);
    assert!(client.consumer_list(&group).is_empty());
}
