//! Queue locks, and what they do to messages that are sent to a retry topic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod raw_client;

use std::collections::BTreeSet;
use std::time::Duration;

use raw_client::{RawClient, wait_until};
use rocketmq_embedded::{Cluster, MessageQueue};
use rocketmq_protocol::body::{
    JsonBody, LockBatchRequestBody, LockBatchResponseBody, UnlockBatchRequestBody,
};
use rocketmq_protocol::request_code::{LOCK_BATCH_MQ, UNLOCK_BATCH_MQ};
use rocketmq_protocol::{Message, RemotingCommand};

fn queue(id: i32) -> MessageQueue {
    MessageQueue::new("T", "broker-a", id)
}

fn queues(ids: &[i32]) -> BTreeSet<MessageQueue> {
    ids.iter().map(|id| queue(*id)).collect()
}

/// Which of the queues the client has now.
fn lock(client: &mut RawClient, id: &str, ids: &[i32]) -> Vec<i32> {
    let body = LockBatchRequestBody {
        client_id: id.to_owned(),
        consumer_group: "g".to_owned(),
        mq_set: queues(ids),
        only_this_broker: false,
    };
    let request = RemotingCommand::request_without_header(LOCK_BATCH_MQ);
    let response = client.call(request.with_body(body.to_json().unwrap()));
    assert_eq!(response.code, 0);
    let body = LockBatchResponseBody::from_command(&response).unwrap();
    body.lock_ok_mq_set
        .iter()
        .map(MessageQueue::queue_id)
        .collect()
}

fn unlock_request(id: &str, ids: &[i32]) -> RemotingCommand {
    let body = UnlockBatchRequestBody {
        client_id: id.to_owned(),
        consumer_group: "g".to_owned(),
        mq_set: queues(ids),
        only_this_broker: false,
    };
    RemotingCommand::request_without_header(UNLOCK_BATCH_MQ).with_body(body.to_json().unwrap())
}

#[test]
fn a_lock_is_one_clients_and_only_its_own_unlock_frees_it() {
    let cluster = Cluster::builder().start().unwrap();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    assert_eq!(lock(&mut client, "a", &[0, 1]), [0, 1]);
    assert_eq!(lock(&mut client, "b", &[0, 1, 2]), [2]);
    assert_eq!(lock(&mut client, "a", &[0, 1, 2]), [0, 1]);
    assert_eq!(client.call(unlock_request("b", &[0, 1])).code, 0);
    assert!(lock(&mut client, "b", &[0, 1]).is_empty());
    let mut oneway = unlock_request("a", &[0]);
    oneway.mark_oneway();
    client.send(oneway);
    assert_eq!(lock(&mut client, "b", &[0, 1]), [0]);
    let holders = ["b", "a", "b"].map(str::to_owned);
    let expected: Vec<_> = (0..3).map(queue).zip(holders).collect();
    assert_eq!(cluster.locked_queues("g"), expected);
}

#[test]
fn a_lock_outlives_its_client_until_it_expires_and_renewal_keeps_it() {
    let cluster = Cluster::builder()
        .configure(|config| config.lock_max_live_time = Duration::from_millis(1500))
        .start()
        .unwrap();
    let mut gone = RawClient::to_broker(&cluster, "broker-a");
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    assert_eq!(lock(&mut gone, "a", &[0]), [0]);
    drop(gone);
    wait_until("a is gone", || cluster.connection_count() == 1);
    // Another connection with the client's id renews it.
    assert_eq!(lock(&mut client, "a", &[0]), [0]);
    assert_eq!(lock(&mut client, "c", &[1]), [1]);
    assert!(lock(&mut client, "b", &[0, 1]).is_empty());
    wait_until("a's lock expires, c's does not", || {
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(lock(&mut client, "c", &[1]), [1]);
        lock(&mut client, "b", &[0, 1]) == [0]
    });
    assert!(lock(&mut client, "a", &[0]).is_empty());
}

#[test]
fn locks_end_with_the_broker_and_a_lock_without_a_group_is_refused() {
    let cluster = Cluster::builder().start().unwrap();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    assert_eq!(lock(&mut client, "a", &[0]), [0]);
    assert_eq!(
        client
            .call(RemotingCommand::request_without_header(LOCK_BATCH_MQ))
            .code,
        1
    );
    cluster.stop_broker("broker-a").unwrap();
    assert!(cluster.locked_queues("g").is_empty());
    cluster.start_broker("broker-a").unwrap();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    assert_eq!(lock(&mut client, "b", &[0]), [0]);
}

#[test]
fn what_a_group_with_a_lock_sends_to_its_retry_topic_is_dead() {
    let cluster = Cluster::builder()
        .configure(|config| config.lock_max_live_time = Duration::from_secs(3600))
        .start()
        .unwrap();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    let message = Message::new("%RETRY%g", b"again".as_slice());
    let send = |client: &mut RawClient| {
        client.produce(0, &message);
        (
            cluster.stored_count("%RETRY%g"),
            cluster.dead_letter_count("g"),
        )
    };
    assert_eq!(send(&mut client), (1, 0));
    assert_eq!(lock(&mut client, "a", &[7]), [7]);
    assert_eq!(send(&mut client), (1, 1));
    cluster
        .configure(|config| config.lock_max_live_time = Duration::ZERO)
        .unwrap();
    wait_until("the lock is older than nothing", || {
        cluster.locked_queues("g").is_empty()
    });
    assert_eq!(send(&mut client), (2, 1));
}
