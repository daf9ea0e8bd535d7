use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rocketmq_blocking::{ConsumeFromWhere, Error, Message, MessageQueue};
use rocketmq_embedded::{Cluster, ControlAction, ControlTimes};
use rocketmq_protocol::request_code::{
    GET_CONSUMER_LIST_BY_GROUP, GET_MAX_OFFSET, GET_MIN_OFFSET, GET_ROUTEINFO_BY_TOPIC, HEART_BEAT,
    PULL_MESSAGE, QUERY_CONSUMER_OFFSET, SEARCH_OFFSET_BY_TIMESTAMP, SEND_MESSAGE_V2,
};
use rocketmq_protocol::{RemotingCommand, response_code};

use crate::support::{
    Answer, FakePeer, GENEROUS, Inbox, ScriptedBroker, cluster_of, holds_within, keep_logs, logged,
    wait_until,
};
use crate::{consumer_builder, producer, says};

/// A code that nobody knows.
const UNKNOWN: i32 = 4242;

/// Changes the answers to requests with a code.
fn edited(
    cluster: &Cluster,
    code: i32,
    edit: impl Fn(&mut RemotingCommand) + Send + Sync + 'static,
) -> rocketmq_embedded::ControlHandle {
    cluster.control(
        code,
        ControlAction::edit_answer(edit),
        ControlTimes::UntilLifted,
    )
}

fn without_fields(answer: &mut RemotingCommand) {
    answer.ext_fields = Default::default();
}

/// The answer of a broker that has stored the message all the same.
#[test]
fn an_answer_to_a_send_that_lacks_or_garbles_its_fields() {
    let cluster = cluster_of(1, 1);
    let producer = producer(&cluster.namesrv_addr());
    let addr = cluster.broker_addr("broker-a").unwrap();
    let message = Message::new("T", "m");
    let mut stored = 0;
    for (field, value, why) in [
        ("", "", "SendMessageResponseHeader"),
        ("queueId", "abc", "\"abc\""),
        ("queueOffset", "9223372036854775808", "9223372036854775808"),
    ] {
        let control = edited(&cluster, SEND_MESSAGE_V2, move |answer| match field {
            "" => without_fields(answer),
            _ => answer.ext_fields.set(field, value),
        });
        let error = producer.send(&message).unwrap_err();
        says(
            &error,
            &["topic T", "broker-a", &addr, "cannot be read", field, why],
        );
        assert!(
            error.may_have_been_stored() && !error.is_retryable(),
            "{error:?}"
        );
        stored += 1;
        assert_eq!(cluster.stored_count("T"), stored);
        control.lift();
    }
    producer.send(&message).unwrap();
}

#[test]
fn an_answer_with_a_code_that_nobody_knows() {
    let cluster = cluster_of(1, 1);
    let producer = producer(&cluster.namesrv_addr());
    let addr = cluster.broker_addr("broker-a").unwrap();
    let refused = |code| {
        let action = ControlAction::Respond(UNKNOWN, Some("because".to_owned()));
        cluster.control(code, action, ControlTimes::UntilLifted)
    };
    let control = refused(SEND_MESSAGE_V2);
    let error = producer.send(&Message::new("T", "m")).unwrap_err();
    says(
        &error,
        &[
            "topic T",
            "broker-a",
            &addr,
            "4242",
            "because",
            "after 1 attempts",
        ],
    );
    assert_eq!(error.broker_code(), Some(UNKNOWN));
    assert!(
        !error.may_have_been_stored() && !error.is_retryable(),
        "{error:?}"
    );
    control.lift();

    let mq = MessageQueue::new("T", "broker-a", 0);
    refused(GET_MAX_OFFSET);
    says(
        &producer.max_offset(&mq).unwrap_err(),
        &[&addr, "4242", "because"],
    );
    let control = refused(GET_ROUTEINFO_BY_TOPIC);
    let error = producer.send(&Message::new("U", "m")).unwrap_err();
    says(
        &error,
        &["topic U", &cluster.namesrv_addr(), "4242", "because"],
    );
    assert!(!error.may_have_been_stored());
    control.lift();
    producer.send(&Message::new("T", "m")).unwrap();
}

#[test]
fn answers_about_offsets_that_lack_or_garble_them() {
    let cluster = cluster_of(1, 1);
    let producer = producer(&cluster.namesrv_addr());
    let addr = cluster.broker_addr("broker-a").unwrap();
    let mq = MessageQueue::new("T", "broker-a", 0);
    producer.send(&Message::new("T", "m")).unwrap();
    for (code, ask) in [
        (GET_MAX_OFFSET, (|p, mq| p.max_offset(mq)) as Ask),
        (GET_MIN_OFFSET, |p, mq| p.min_offset(mq)),
    ] {
        for value in [None, Some("abc"), Some(""), Some("1.5")] {
            let control = edited(&cluster, code, move |answer| match value {
                None => without_fields(answer),
                Some(value) => answer.ext_fields.set("offset", value),
            });
            let error = ask(&producer, &mq).unwrap_err();
            assert!(matches!(error, Error::RemotingCommand { .. }), "{error:?}");
            says(
                &error,
                &[&addr, "cannot be read", "offset", value.unwrap_or("")],
            );
            control.lift();
        }
        ask(&producer, &mq).unwrap();
    }
}

type Ask =
    fn(&rocketmq_blocking::DefaultMQProducer, &MessageQueue) -> rocketmq_blocking::Result<i64>;

#[test]
fn a_route_that_lacks_or_garbles_its_fields() {
    for body in [
        "",
        "7",
        "{\"queueDatas\":7}",
        "{\"queueDatas\":[{\"brokerName\":\"a\",\"writeQueueNums\":\"many\"}]}",
        "{\"brokerDatas\":[{\"brokerAddrs\":{\"x\":\"h:1\"}}]}",
    ] {
        let peer = FakePeer::start(move |stream, request| {
            let frame = crate::support::reply_to(&request, 0, body.as_bytes().to_vec());
            std::io::Write::write_all(stream, &frame).is_ok()
        });
        let error = producer(&peer.addr())
            .send(&Message::new("T", "m"))
            .unwrap_err();
        says(&error, &["topic T", &peer.addr(), "cannot be read"]);
        assert!(!error.may_have_been_stored(), "{body}: {error:?}");
    }
    // One that is empty, or names queues that nobody holds, is a topic without queues.
    for body in [
        "{}",
        "[]",
        "{\"queueDatas\":[{\"brokerName\":\"a\",\"perm\":6,\"writeQueueNums\":4}]}",
    ] {
        let peer = FakePeer::start(move |stream, request| {
            let frame = crate::support::reply_to(&request, 0, body.as_bytes().to_vec());
            std::io::Write::write_all(stream, &frame).is_ok()
        });
        let error = producer(&peer.addr())
            .send(&Message::new("T", "m"))
            .unwrap_err();
        says(&error, &["topic T", "code 10005"]);
        assert!(
            error.is_retryable() && !error.may_have_been_stored(),
            "{body}: {error:?}"
        );
    }
}

/// A broker that answers the first requests with a code badly, one after the other, and all later
/// ones well: the consumer asks again, and has each message once.
#[track_caller]
fn consumes_after(
    group: &str,
    code: i32,
    answers: impl Fn(usize) -> Option<Answer> + Send + Sync + 'static,
) -> ScriptedBroker {
    keep_logs();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let broker = ScriptedBroker::start(move |request| {
        let is_of_topic = request
            .ext_fields
            .get("topic")
            .is_none_or(|topic| topic == "T");
        if request.code == code && is_of_topic {
            let at = counted.fetch_add(1, Ordering::SeqCst);
            return answers(at).unwrap_or(Answer::Usual);
        }
        match request.code {
            // So that the broker is asked where to start.
            QUERY_CONSUMER_OFFSET if code == SEARCH_OFFSET_BY_TIMESTAMP => {
                Answer::Code(response_code::QUERY_NOT_FOUND)
            }
            _ => Answer::Usual,
        }
    });
    broker.put("m0", &Default::default());
    broker.put("m1", &Default::default());
    let inbox = Inbox::new();
    let consumer = consumer_builder(&broker.namesrv(), group)
        .consume_from_where(ConsumeFromWhere::ConsumeFromTimestamp)
        .heartbeat_broker_interval(Duration::from_millis(100))
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    inbox.wait_for_bodies(2);
    wait_until("all answers have been given", || {
        asked.load(Ordering::SeqCst) > 3
    });
    assert!(
        inbox.bodies().values().all(|times| *times == 1),
        "{:?}",
        inbox.bodies()
    );
    assert!(consumer.shutdown(GENEROUS).threads_joined);
    broker
}

#[track_caller]
fn was_told(words: &[&str]) {
    assert!(!logged(words).is_empty(), "{words:?} are not in the log");
}

#[test]
fn a_groups_offset_that_lacks_or_garbles_its_field() {
    consumes_after("offset", QUERY_CONSUMER_OFFSET, |at| match at {
        0 => Some(Answer::Fields(Vec::new())),
        1 => Some(Answer::Fields(vec![("offset", "abc")])),
        2 => Some(Answer::Code(UNKNOWN)),
        _ => None,
    });
    was_told(&["pulling", "topic=T", "OffsetResponseHeader", "offset"]);
}

#[test]
fn an_offset_by_time_that_lacks_or_garbles_its_field() {
    consumes_after("by_time", SEARCH_OFFSET_BY_TIMESTAMP, |at| match at {
        0 => Some(Answer::Fields(Vec::new())),
        1 => Some(Answer::Fields(vec![("offset", "-")])),
        2 => Some(Answer::Code(UNKNOWN)),
        _ => None,
    });
}

#[test]
fn a_list_of_members_that_lacks_or_garbles_its_fields() {
    consumes_after("members", GET_CONSUMER_LIST_BY_GROUP, |at| match at {
        0 => Some(Answer::Fields(Vec::new())),
        1 => Some(Answer::Body(b"{}".to_vec())),
        2 => Some(Answer::Body(b"{\"consumerIdList\":7}".to_vec())),
        3 => Some(Answer::Body(b"{\"consumerIdList\":[1,null]}".to_vec())),
        4 => Some(Answer::Body(b"\xff\xfe".to_vec())),
        5 => Some(Answer::Code(UNKNOWN)),
        _ => None,
    });
    // Six failures in a row are one warning.
    let told = logged(&[
        "group members, topic T",
        "its queues stay as they are",
        "tried again soon",
        "127.0.0.1:",
    ]);
    assert_eq!(told.len(), 1, "{told:?}");
}

#[test]
fn an_answer_to_a_heartbeat_with_a_code_that_nobody_knows() {
    consumes_after("heartbeats", HEART_BEAT, |at| {
        (at < 3).then_some(Answer::Code(UNKNOWN))
    });
    was_told(&["heartbeat to", "4242"]);
}

#[test]
fn an_answer_to_a_pull_that_lacks_or_garbles_its_fields() {
    consumes_after("pulls", PULL_MESSAGE, |at| match at {
        0 => Some(Answer::Fields(Vec::new())),
        1 => Some(Answer::Fields(vec![
            ("suggestWhichBrokerId", "x"),
            ("nextBeginOffset", "1"),
            ("minOffset", "0"),
            ("maxOffset", "1"),
        ])),
        2 => Some(Answer::Code(UNKNOWN)),
        _ => None,
    });
    was_told(&["pulling", "topic=T", "PullMessageResponseHeader"]);
}

/// A broker that says it has found something, brings nothing, and does not go on: it is asked again
/// at the pause of failed pulls, not at once for ever.
#[test]
fn an_answer_to_a_pull_that_goes_round_in_a_circle() {
    let broker = consumes_after("circle", PULL_MESSAGE, |at| {
        let circle = vec![
            ("suggestWhichBrokerId", "0"),
            ("nextBeginOffset", "0"),
            ("minOffset", "0"),
            ("maxOffset", "2"),
        ];
        (at < 6).then_some(Answer::Fields(circle))
    });
    was_told(&["pulling", "topic=T", "from offset 0 with 0 messages"]);
    let pulls = broker.requests(PULL_MESSAGE);
    let of_topic: Vec<_> = pulls
        .iter()
        .filter(|(_, request)| request.ext_fields.get("topic") == Some("T"))
        .collect();
    // The pause is 100 ms here, and six pulls have one behind them.
    let took = of_topic[6].0 - of_topic[0].0;
    assert!(took >= Duration::from_millis(500), "{took:?}");
    assert!(!holds_within(Duration::ZERO, || of_topic.len() < 7));
}
