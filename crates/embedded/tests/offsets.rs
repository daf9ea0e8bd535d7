//! Offsets of groups and of queues.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod raw_client;

use raw_client::{RawClient, heartbeat_data};
use rocketmq_embedded::{Cluster, MessageQueue};
use rocketmq_protocol::header::{
    GetMaxOffsetRequestHeader, GetMinOffsetRequestHeader, OffsetResponseHeader,
    QueryConsumerOffsetRequestHeader, SearchOffsetRequestHeader, UnregisterClientRequestHeader,
    UpdateConsumerOffsetRequestHeader,
};
use rocketmq_protocol::{Message, RemotingCommand, request_code};

fn cluster() -> (Cluster, RawClient) {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 2).unwrap();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    client.heartbeat(&heartbeat_data("c1", "g", &["T"]));
    (cluster, client)
}

fn query(client: &mut RawClient, topic: &str, queue_id: i32, zero: Option<bool>) -> (i32, i64) {
    let header = QueryConsumerOffsetRequestHeader {
        consumer_group: "g".to_owned(),
        topic: topic.to_owned(),
        queue_id,
        set_zero_if_not_found: zero,
        broker_name: None,
    };
    let response = client.call_with(request_code::QUERY_CONSUMER_OFFSET, &header);
    let offset = response.decode_header::<OffsetResponseHeader>();
    (response.code, offset.map_or(-1, |header| header.offset))
}

fn update_request(group: &str, topic: &str, offset: i64) -> RemotingCommand {
    let header = UpdateConsumerOffsetRequestHeader {
        consumer_group: group.to_owned(),
        topic: topic.to_owned(),
        queue_id: 0,
        commit_offset: offset,
        broker_name: None,
    };
    RemotingCommand::request(request_code::UPDATE_CONSUMER_OFFSET, &header)
}

#[test]
fn an_unknown_offset_is_not_found_or_zero_while_the_first_message_is_there() {
    let (_cluster, mut client) = cluster();
    assert_eq!(query(&mut client, "T", 0, None), (22, -1));
    client.produce(0, &Message::new("T", b"x".as_slice()));
    assert_eq!(query(&mut client, "T", 0, None), (0, 0));
    assert_eq!(query(&mut client, "T", 0, Some(true)), (0, 0));
    assert_eq!(query(&mut client, "T", 0, Some(false)), (22, -1));
    assert_eq!(query(&mut client, "T", 1, None), (22, -1));
    assert_eq!(query(&mut client, "T", 9, None), (22, -1));
    assert_eq!(query(&mut client, "Unknown", 0, None), (22, -1));
}

#[test]
fn offsets_are_stored_without_any_check_of_their_value() {
    let (cluster, mut client) = cluster();
    let queue = MessageQueue::new("T", "broker-a", 0);
    for offset in [100, 5, 0] {
        assert_eq!(client.call(update_request("g", "T", offset)).code, 0);
        assert_eq!(query(&mut client, "T", 0, None), (0, offset));
        assert_eq!(cluster.committed_offset("g", &queue), Some(offset));
    }
    assert_eq!(client.call(update_request("g", "T", -3)).code, 0);
    assert_eq!(query(&mut client, "T", 0, None), (22, -1));
    assert_eq!(cluster.committed_offset("g", &queue), None);
}

#[test]
fn unknown_groups_and_topics_are_refused() {
    let (_cluster, mut client) = cluster();
    assert_eq!(client.call(update_request("other", "T", 1)).code, 26);
    assert_eq!(client.call(update_request("g", "Unknown", 1)).code, 17);
    let empty = RemotingCommand::request_without_header(request_code::UPDATE_CONSUMER_OFFSET);
    assert_eq!(client.call(empty).code, 1);
}

#[test]
fn a_oneway_commit_that_comes_after_leaving_is_taken_and_not_answered() {
    let (cluster, mut client) = cluster();
    client.note();
    let leave = UnregisterClientRequestHeader {
        client_id: "c1".to_owned(),
        producer_group: None,
        consumer_group: Some("g".to_owned()),
    };
    assert_eq!(
        client
            .call_with(request_code::UNREGISTER_CLIENT, &leave)
            .code,
        0
    );
    let mut request = update_request("g", "T", 7);
    request.mark_oneway();
    client.send(request);
    // This answer is the next thing that arrives.
    let opaque = client.send(RemotingCommand::request_without_header(9999));
    let next = client.next(raw_client::LIMIT).unwrap();
    assert_eq!((next.opaque, next.code), (opaque, 3));
    let queue = MessageQueue::new("T", "broker-a", 0);
    assert_eq!(cluster.committed_offset("g", &queue), Some(7));
}

#[test]
fn the_ends_of_queues_are_told_and_are_zero_for_what_does_not_exist() {
    let (_cluster, mut client) = cluster();
    for _ in 0..3 {
        client.produce(1, &Message::new("T", b"x".as_slice()));
    }
    let mut ends = |topic: &str, queue_id| {
        let max = GetMaxOffsetRequestHeader {
            topic: topic.to_owned(),
            queue_id,
            committed: None,
            broker_name: None,
        };
        let min = GetMinOffsetRequestHeader {
            topic: topic.to_owned(),
            queue_id,
            broker_name: None,
        };
        let max = client.call_with(request_code::GET_MAX_OFFSET, &max);
        let min = client.call_with(request_code::GET_MIN_OFFSET, &min);
        assert_eq!((max.code, min.code), (0, 0));
        let offset = |response: RemotingCommand| {
            response
                .decode_header::<OffsetResponseHeader>()
                .unwrap()
                .offset
        };
        (offset(min), offset(max))
    };
    assert_eq!(ends("T", 1), (0, 3));
    assert_eq!(ends("T", 0), (0, 0));
    assert_eq!(ends("Unknown", 7), (0, 0));
}

#[test]
fn a_search_by_time_finds_both_boundaries() {
    let (cluster, mut client) = cluster();
    for _ in 0..3 {
        client.produce(0, &Message::new("T", b"x".as_slice()));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let times: Vec<i64> = cluster
        .messages("T")
        .iter()
        .map(|message| message.store_timestamp())
        .collect();
    assert!(times[0] < times[1] && times[1] < times[2], "{times:?}");
    let mut search = |queue_id, timestamp, boundary: Option<&str>| {
        let header = SearchOffsetRequestHeader {
            topic: "T".to_owned(),
            queue_id,
            timestamp,
            boundary_type: boundary.map(str::to_owned),
            ..SearchOffsetRequestHeader::default()
        };
        let response = client.call_with(request_code::SEARCH_OFFSET_BY_TIMESTAMP, &header);
        response
            .decode_header::<OffsetResponseHeader>()
            .unwrap()
            .offset
    };
    assert_eq!(search(0, times[1], None), 1);
    assert_eq!(search(0, times[0] + 1, Some("LOWER")), 1);
    assert_eq!(search(0, times[2] + 1, Some("LOWER")), 3);
    assert_eq!(search(0, 0, Some("LOWER")), 0);
    assert_eq!(search(0, times[1], Some("UPPER")), 1);
    assert_eq!(search(0, times[2] - 1, Some("upper")), 1);
    assert_eq!(search(0, times[2] + 9, Some("UPPER")), 2);
    assert_eq!(search(0, 0, Some("UPPER")), 0);
    assert_eq!(search(1, times[0], Some("UPPER")), 0);
}
