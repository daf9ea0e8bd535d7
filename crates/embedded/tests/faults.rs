//! Controls that act on answers, on notes, and on chosen requests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod raw_client;

use std::time::{Duration, Instant};

use raw_client::{
    LIMIT, RawClient, heartbeat_data, pull_answer, pull_header, pull_request, send_request,
};
use rocketmq_embedded::{Cluster, ControlAction, ControlScope, ControlTimes};
use rocketmq_protocol::request_code::{
    HEART_BEAT, NOTIFY_CONSUMER_IDS_CHANGED, PULL_MESSAGE, SEND_MESSAGE_V2,
};
use rocketmq_protocol::{Message, RemotingCommand, sys_flag};

fn cluster() -> (Cluster, RawClient) {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 2).unwrap();
    let client = RawClient::to_broker(&cluster, "broker-a");
    (cluster, client)
}

fn send(queue_id: i32) -> RemotingCommand {
    send_request(queue_id, &Message::new("T", b"x".as_slice()))
}

/// The next request of this code is met by an action.
fn once(cluster: &Cluster, action: ControlAction) {
    cluster.control(SEND_MESSAGE_V2, action, ControlTimes::Once);
}

/// Something that comes behind everything else.
fn ping(client: &mut RawClient) -> i32 {
    client.send(RemotingCommand::request_without_header(9999))
}

#[test]
fn a_lost_answer_leaves_the_message_stored() {
    let (cluster, mut client) = cluster();
    once(&cluster, ControlAction::LoseAnswer);
    client.send(send(0));
    let ping = ping(&mut client);
    assert_eq!(client.next(LIMIT).unwrap().opaque, ping);
    assert_eq!(cluster.stored_count("T"), 1);
}

#[test]
fn an_answer_may_come_late_or_with_other_words_or_not_at_all() {
    let (cluster, mut client) = cluster();
    let delay = Duration::from_millis(200);
    once(&cluster, ControlAction::DelayAnswer(delay));
    let started = Instant::now();
    let opaque = client.send(send(0));
    assert!(cluster.wait_for(SEND_MESSAGE_V2, 1, LIMIT));
    assert_eq!(cluster.stored_count("T"), 1, "stored at once");
    assert_eq!(client.answer_to(opaque).code, 0);
    assert!(started.elapsed() >= delay);

    let text = Some("busy".to_owned());
    once(&cluster, ControlAction::RespondAfter(2, text.clone()));
    let answer = client.call(send(0));
    assert_eq!((answer.code, answer.remark), (2, text));
    assert!(answer.ext_fields.is_empty());
    assert_eq!(cluster.stored_count("T"), 2);

    let edit = ControlAction::edit_answer(|answer| answer.ext_fields.set("queueId", "77"));
    once(&cluster, edit);
    assert_eq!(client.call(send(0)).ext_fields.get("queueId"), Some("77"));

    once(&cluster, ControlAction::CloseAfter);
    client.send(send(0));
    assert!(client.is_closed_by_server());
    assert_eq!(cluster.stored_count("T"), 4);
}

#[test]
fn an_answer_of_ones_own_takes_the_place_of_the_server() {
    let (cluster, mut client) = cluster();
    let mut answer = RemotingCommand::request_without_header(19).with_body(b"body".as_slice());
    answer.ext_fields.set("name", "value");
    once(&cluster, ControlAction::Answer(answer));
    let got = client.call(send(0));
    assert_eq!((got.code, got.is_response()), (19, true));
    assert_eq!(got.ext_fields.get("name"), Some("value"));
    assert_eq!(got.body_bytes(), b"body");
    assert_eq!(cluster.stored_count("T"), 0);
}

#[test]
fn a_request_may_arrive_twice() {
    let (cluster, mut client) = cluster();
    once(&cluster, ControlAction::Twice);
    assert_eq!(
        client.call(send(0)).ext_fields.get("queueOffset"),
        Some("0")
    );
    let ping = ping(&mut client);
    assert_eq!(client.next(LIMIT).unwrap().opaque, ping, "one answer only");
    assert_eq!(cluster.stored_count("T"), 2);
}

#[test]
fn what_is_held_goes_on_when_released() {
    let (cluster, mut client) = cluster();
    let until_lifted = ControlTimes::UntilLifted;
    let control = cluster.control(SEND_MESSAGE_V2, ControlAction::Hold, until_lifted);
    let first = client.send(send(0));
    assert!(control.wait_for_hits(1, LIMIT));
    let ping_opaque = ping(&mut client);
    assert_eq!(client.next(LIMIT).unwrap().opaque, ping_opaque);
    assert_eq!((cluster.stored_count("T"), control.held()), (0, 1));
    control.release();
    assert_eq!(client.answer_to(first).code, 0);
    let second = client.send(send(0));
    assert!(cluster.wait_until(LIMIT, || control.held() == 1));
    control.lift();
    assert_eq!(client.answer_to(second).code, 0);
    assert_eq!(client.call(send(0)).code, 0);

    let control = cluster.control(
        SEND_MESSAGE_V2,
        ControlAction::HoldAnswer,
        ControlTimes::Once,
    );
    let held = client.send(send(0));
    assert!(cluster.wait_until(LIMIT, || control.held() == 1));
    assert_eq!(cluster.stored_count("T"), 4, "stored before it is answered");
    control.release();
    assert_eq!(client.answer_to(held).code, 0);
}

#[test]
fn an_answer_that_waited_is_changed_too() {
    let (cluster, mut client) = cluster();
    let edit = ControlAction::edit_answer(|answer| answer.ext_fields.set("nextBeginOffset", "9"));
    cluster.control(PULL_MESSAGE, edit, ControlTimes::Once);
    let mut header = pull_header("T", 0, 0);
    header.sys_flag |= sys_flag::PULL_SUSPEND;
    header.suspend_timeout_millis = 3_600_000;
    let opaque = client.send(pull_request(&header));
    client.produce(0, &Message::new("T", b"x".as_slice()));
    let (answer, messages) = pull_answer(&client.answer_to(opaque));
    assert_eq!((answer.next_begin_offset, messages.len()), (9, 1));
}

#[test]
fn a_function_chooses_the_requests() {
    let (cluster, mut client) = cluster();
    client.heartbeat(&heartbeat_data("c1", "g", &["T"]));
    client.note();
    let scope = ControlScope::Broker("broker-a".to_owned());
    let control = cluster.control_when(scope, None, ControlTimes::Times(2), |request| {
        let of_queue_1 = request.command.ext_fields.get("e") == Some("1");
        let of_client = request.client_id.as_deref() == Some("c1");
        (of_queue_1 && of_client).then(|| ControlAction::Respond(14, None))
    });
    let codes: Vec<_> = [0, 1, 0, 1, 1]
        .map(|queue| client.call(send(queue)).code)
        .to_vec();
    assert_eq!(codes, [0, 14, 0, 14, 0]);
    assert_eq!(control.hits(), 2);
    let mut stranger = RawClient::to_broker(&cluster, "broker-a");
    assert_eq!(stranger.call(send(1)).code, 0);
}

#[test]
fn notes_may_be_dropped_doubled_and_late() {
    let (cluster, mut first) = cluster();
    first.heartbeat(&heartbeat_data("c1", "g", &["T"]));
    first.note();
    let join = |id: &str| {
        let mut client = RawClient::to_broker(&cluster, "broker-a");
        client.heartbeat(&heartbeat_data(id, "g", &["T"]));
        client
    };
    let to_first = |action: ControlAction| {
        let scope = ControlScope::Cluster;
        let code = NOTIFY_CONSUMER_IDS_CHANGED;
        cluster.control_when(scope, code, ControlTimes::Once, move |note| {
            assert_eq!(note.command.ext_fields.get("consumerGroup"), Some("g"));
            (note.client_id.as_deref() == Some("c1")).then(|| action.clone())
        })
    };
    let dropped = to_first(ControlAction::Drop);
    let _second = join("c2");
    assert_eq!((dropped.hits(), cluster.notes_sent("g")), (1, 2));
    let ping_opaque = ping(&mut first);
    assert_eq!(first.next(LIMIT).unwrap().opaque, ping_opaque, "no note");

    to_first(ControlAction::Twice);
    let _third = join("c3");
    assert_eq!(
        (first.note(), first.note()),
        ("g".to_owned(), "g".to_owned())
    );
    assert_eq!(cluster.notes_sent("g"), 6);

    let late = to_first(ControlAction::Hold);
    let _fourth = join("c4");
    let ping_opaque = ping(&mut first);
    assert_eq!(first.next(LIMIT).unwrap().opaque, ping_opaque);
    assert_eq!((late.held(), cluster.notes_sent("g")), (1, 9));
    late.release();
    assert_eq!(first.note(), "g");

    to_first(ControlAction::Delay(Duration::from_millis(50)));
    let _fifth = join("c5");
    assert_eq!(first.note(), "g");
    assert_eq!(cluster.request_count(HEART_BEAT), 5);
}

#[test]
fn what_is_held_when_a_cluster_ends_is_forgotten() {
    let (cluster, mut client) = cluster();
    let control = cluster.control(
        SEND_MESSAGE_V2,
        ControlAction::Hold,
        ControlTimes::UntilLifted,
    );
    client.send(send(0));
    assert!(control.wait_for_hits(1, LIMIT));
    cluster.shutdown();
    assert_eq!(control.held(), 0);
    control.lift();
    assert_eq!(cluster.stored_count("T"), 0);
}
