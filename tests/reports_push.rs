//! Public bug reports about consumers that are pushed to, each with its right outcome.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test is outside of what loom models, and fails by panicking"
)]

mod support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQProducer,
    DefaultMQPushConsumer, DefaultMQPushConsumerBuilder, MQClientManager, Message, MessageExt,
    MessageListenerConcurrently, MessageQueue, Properties, RPCHook, RemotingCommand, property,
    request_code, response_code,
};
use rocketmq_embedded::{Cluster, ControlAction, ControlHandle, ControlTimes};
use rocketmq_protocol::decode_properties;
use rocketmq_protocol::header::SendMessageRequestHeaderV2;
use support::{
    Answer, GENEROUS, Inbox, ScriptedBroker, holds_within, keep_logs, logged, producer_at, quick,
    unique, wait_until,
};

const TIMEOUT: Duration = Duration::from_secs(10);
/// Brokers hold a pull for 15 s. What happens sooner does not wait for its answer.
const SOONER_THAN_A_HELD_PULL: Duration = Duration::from_secs(10);

struct World {
    cluster: Cluster,
    manager: MQClientManager,
    producer: DefaultMQProducer,
}

impl World {
    /// A cluster of one broker; the topic `T` has so many queues.
    fn start(queues: u16) -> Self {
        let cluster = Cluster::builder().start().unwrap();
        cluster.create_topic("T", queues).unwrap();
        let manager = MQClientManager::new();
        let producer = DefaultMQProducer::builder("p")
            .client_manager(&manager)
            .namesrv_addr(&cluster.namesrv_addr())
            .build()
            .unwrap();
        producer.start().unwrap();
        Self {
            cluster,
            manager,
            producer,
        }
    }

    fn builder(&self, group: &str) -> DefaultMQPushConsumerBuilder {
        quick(DefaultMQPushConsumer::builder(group))
            .client_manager(&self.manager)
            .namesrv_addr(&self.cluster.namesrv_addr())
            .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
            .subscribe("T", "*")
    }

    fn send(&self, prefix: &str, tag: &str, count: usize) {
        for n in 0..count {
            let message = Message::new("T", format!("{prefix}{n}")).with_tags(tag);
            self.producer.send(&message).unwrap();
        }
    }

    /// Counts requests without touching them.
    fn count(&self, code: i32) -> ControlHandle {
        let counted = ControlAction::Delay(Duration::ZERO);
        self.cluster
            .control(code, counted, ControlTimes::UntilLifted)
    }

    fn respond(&self, request: i32, code: i32) -> ControlHandle {
        let answer = ControlAction::Respond(code, None);
        self.cluster
            .control(request, answer, ControlTimes::UntilLifted)
    }

    fn is_all_committed(&self, group: &str) -> bool {
        let queues = self.producer.fetch_publish_message_queues("T").unwrap();
        queues.iter().all(|mq| {
            let committed = self.cluster.committed_offset(group, mq);
            committed.unwrap_or(0) == self.cluster.max_offset(mq)
        })
    }
}

fn started(
    builder: DefaultMQPushConsumerBuilder,
    listener: impl MessageListenerConcurrently + 'static,
) -> DefaultMQPushConsumer {
    let consumer = builder.message_listener(listener).build().unwrap();
    consumer.start().unwrap();
    consumer
}

fn builder_for(broker: &ScriptedBroker) -> DefaultMQPushConsumerBuilder {
    quick(DefaultMQPushConsumer::builder("g"))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&broker.namesrv())
        .subscribe("T", "*")
}

fn no_properties() -> Properties {
    Properties::new()
}

/// apache/rocketmq#2777: a consumer of a topic that was deleted pulled it in a busy loop, each time
/// with an error in the log. Pulls keep the pause of failed ones, the log has one warning, and a
/// topic that comes back is consumed.
#[test]
fn b28_a_deleted_topic_is_pulled_at_a_pause_until_it_comes_back() {
    const PAUSE: Duration = Duration::from_millis(200);
    keep_logs();
    let broker = ScriptedBroker::start(|_| Answer::Usual);
    broker.put("m0", &no_properties());
    broker.put("m1", &no_properties());
    let inbox = Inbox::new();
    let builder = builder_for(&broker)
        .pull_time_delay_when_exception(PAUSE)
        .poll_name_server_interval(Duration::from_millis(100));
    let consumer = started(builder, inbox.listener());
    inbox.wait_for_bodies(2);
    broker.set_topics_exist(false);
    let deleted_at = broker.requests(request_code::PULL_MESSAGE).len();
    let of_topic = |from: usize| -> Vec<_> {
        let pulls = broker.requests(request_code::PULL_MESSAGE).into_iter();
        let pulls = pulls.skip(from);
        pulls
            .filter(|(_, pull)| pull.ext_fields.get("topic") == Some("T"))
            .map(|(at, _)| at)
            .collect()
    };
    wait_until("some pulls have failed", || of_topic(deleted_at).len() > 10);
    // The first ones may have been under way.
    let failed = of_topic(deleted_at).split_off(2);
    for pair in failed.windows(2) {
        assert!(pair[1] - pair[0] > PAUSE * 3 / 4, "{:?}", pair[1] - pair[0]);
    }
    let told = logged(&["pulling", "topic=T, brokerName=scripted", "TOPIC_NOT_EXIST"]);
    assert_eq!(told.len(), 1, "{told:?}");
    broker.set_topics_exist(true);
    // The queue begins anew, before the group's offset.
    broker.put("m2", &no_properties());
    inbox.wait_for_bodies(3);
    assert!(consumer.shutdown(TIMEOUT).threads_joined);
}

/// apache/rocketmq-client-go#967, alibaba/rocketmq#325: the answer that a group has no offset yet was
/// taken for a failure. It is what the start position is for; and a failure is none.
#[test]
fn b34_a_group_without_an_offset_is_asked_where_to_start() {
    const NOW: i64 = 1_700_000_000_000;
    for from in [
        ConsumeFromWhere::ConsumeFromLastOffset,
        ConsumeFromWhere::ConsumeFromFirstOffset,
        ConsumeFromWhere::ConsumeFromTimestamp,
    ] {
        let broker = ScriptedBroker::start(|request| match request.code {
            request_code::QUERY_CONSUMER_OFFSET => Answer::Code(response_code::QUERY_NOT_FOUND),
            _ => Answer::Usual,
        });
        for n in 0..3 {
            broker.put(&format!("m{n}"), &no_properties());
        }
        let inbox = Inbox::new();
        let builder = builder_for(&broker)
            .consume_from_where(from)
            .consume_timestamp(NOW);
        let consumer = started(builder, inbox.listener());
        let first_pull = || {
            let pulls = broker.requests(request_code::PULL_MESSAGE).into_iter();
            let mut pulls = pulls.filter(|(_, pull)| pull.ext_fields.get("topic") == Some("T"));
            pulls.next().map(|(_, pull)| pull)
        };
        wait_until("it is pulled", || first_pull().is_some());
        let asked = |code| -> Vec<_> {
            let requests = broker.requests(code).into_iter();
            requests
                .map(|(_, request)| request)
                .filter(|request| request.ext_fields.get("topic") == Some("T"))
                .collect()
        };
        let ends = asked(request_code::GET_MAX_OFFSET).len();
        let searches = asked(request_code::SEARCH_OFFSET_BY_TIMESTAMP);
        let offset = first_pull().unwrap();
        let offset = offset.ext_fields.get("queueOffset").unwrap();
        match from {
            ConsumeFromWhere::ConsumeFromLastOffset => {
                assert_eq!((offset, ends, searches.len()), ("3", 1, 0));
            }
            ConsumeFromWhere::ConsumeFromFirstOffset => {
                assert_eq!((offset, ends, searches.len()), ("0", 0, 0));
            }
            _ => {
                assert_eq!((offset, ends, searches.len()), ("0", 0, 1));
                let timestamp = searches[0].ext_fields.get("timestamp");
                assert_eq!(timestamp, Some(NOW.to_string().as_str()));
            }
        }
        assert!(consumer.shutdown(TIMEOUT).threads_joined);
    }
}

/// The same threads: whatever else goes wrong with the question is a failure, and nothing is pulled
/// or guessed before there is an answer.
#[test]
fn b34_a_question_that_fails_is_no_answer() {
    for answer in [Some(response_code::SYSTEM_ERROR), None] {
        let failing = Arc::new(AtomicUsize::new(1));
        let fails = Arc::clone(&failing);
        let broker = ScriptedBroker::start(move |request| match request.code {
            request_code::QUERY_CONSUMER_OFFSET if fails.load(Ordering::SeqCst) == 1 => {
                answer.map_or(Answer::Silence, Answer::Code)
            }
            _ => Answer::Usual,
        });
        broker.put("m0", &no_properties());
        let inbox = Inbox::new();
        let consumer = started(builder_for(&broker), inbox.listener());
        // Both queues have asked, and one has asked again.
        broker.wait_for(request_code::QUERY_CONSUMER_OFFSET, 3);
        for code in [
            request_code::PULL_MESSAGE,
            request_code::GET_MAX_OFFSET,
            request_code::SEARCH_OFFSET_BY_TIMESTAMP,
        ] {
            assert_eq!(broker.requests(code).len(), 0, "{answer:?}, code {code}");
        }
        failing.store(0, Ordering::SeqCst);
        inbox.wait_for_bodies(1);
        assert!(consumer.shutdown(TIMEOUT).threads_joined);
    }
}

/// Asks brokers not to say 0 of a queue of which they have no offset.
struct NoZero;

impl RPCHook for NoZero {
    fn do_before_request(&self, _: &str, request: &mut RemotingCommand) {
        if request.code == request_code::QUERY_CONSUMER_OFFSET {
            request.ext_fields.set("setZeroIfNotFound", "false");
        }
    }
}

/// apache/rocketmq#4909, #1135, #242, #617 and #9083, apache/rocketmq-client-go#855: a group that
/// starts at the end received old messages. Of a young queue, which is whole in its memory, a broker
/// says that the group is at 0, and the client believes it: nothing is lost. A client that asks
/// otherwise starts at the end.
#[test]
fn b36_a_new_group_gets_all_of_a_young_queue() {
    let world = World::start(2);
    world.send("m", "A", 10);
    let last = |group: &str| {
        let builder = world.builder(group);
        builder.consume_from_where(ConsumeFromWhere::ConsumeFromLastOffset)
    };
    let inbox = Inbox::new();
    let _consumer = started(last("g"), inbox.listener());
    inbox.wait_for_bodies(10);

    let ends = world.count(request_code::GET_MAX_OFFSET);
    let from_end = Inbox::new();
    let builder = last("h").rpc_hook(Arc::new(NoZero));
    let _other = started(builder, from_end.listener());
    assert!(ends.wait_for_hits(2, GENEROUS), "it asks for both ends");
    let mut rounds = 0;
    wait_until("messages from after the start arrive", || {
        rounds += 1;
        world.send(&format!("new{rounds}_"), "A", 2);
        from_end.len() > 0
    });
    let bodies = from_end.bodies();
    assert!(bodies.keys().all(|body| body.starts_with("new")));
}

/// apache/rocketmq PR#72, apache/rocketmq-client-go#555 (PR#559): the offset of a group stood still
/// while nothing in its queues matched the tag, exactly or by the hash code that brokers compare.
#[test]
fn b37_what_does_not_match_is_done_soon() {
    for (group, tag, matching, rest) in [
        ("by_hash", "Aa", 0, 100),
        ("by_broker", "other", 0, 100),
        // All in one reply.
        ("partly", "C || Aa", 3, 20),
    ] {
        let world = World::start(1);
        world.send("c", "C", 3);
        world.send("b", "BB", rest);
        let inbox = Inbox::new();
        let builder = world.builder(group).subscribe("T", tag);
        let consumer = started(builder, inbox.listener());
        assert!(
            holds_within(SOONER_THAN_A_HELD_PULL, || world.is_all_committed(group)),
            "{group}: the offset stands still"
        );
        let bodies = inbox.bodies();
        assert!(bodies.len() == matching && bodies.keys().all(|body| body.starts_with('c')));
        consumer.shutdown(TIMEOUT);
    }
}

/// apache/rocketmq PR#3490: messages that wait here for another try were lost when the pool had no
/// thread for them. They wait until one is free.
#[test]
fn b51_what_waits_for_another_try_waits_for_a_thread_too() {
    let world = World::start(1);
    let given_back = world.respond(request_code::CONSUMER_SEND_MSG_BACK, 1);
    let sent = world.respond(request_code::SEND_MESSAGE_V2, 1);
    sent.lift();
    world.send("m", "A", 2);
    let sent = world.respond(request_code::SEND_MESSAGE_V2, 1);
    let (held, (entered, entries)) = (Arc::new(Mutex::new(())), channel());
    let gate = held.lock().unwrap();
    let (waiting, entered) = (Arc::clone(&held), Mutex::new(entered));
    let inbox = Inbox::new();
    let received = inbox.clone();
    let consumer = started(
        world.builder("g").consume_threads(1),
        move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            let message = &messages[0];
            entered.lock().unwrap().send(()).unwrap();
            if message.queue_offset() == 0 && message.reconsume_times() == 0 {
                return ConsumeConcurrentlyStatus::ReconsumeLater;
            }
            drop(waiting.lock().unwrap());
            received.put(messages);
            ConsumeConcurrentlyStatus::ConsumeSuccess
        },
    );
    entries.recv_timeout(GENEROUS).unwrap();
    entries.recv_timeout(GENEROUS).unwrap();
    // The first has failed, cannot be given back, and comes again after 5 s; the other one has the
    // only thread for longer.
    assert!(given_back.hits() == 1 && sent.hits() >= 1);
    assert!(entries.recv_timeout(Duration::from_secs(6)).is_err());
    assert!(!world.is_all_committed("g"));
    drop(gate);
    inbox.wait_for_bodies(2);
    let again = inbox.messages();
    let again = again.iter().find(|message| message.queue_offset() == 0);
    assert_eq!(again.unwrap().reconsume_times(), 1);
    wait_until("the offset moves", || world.is_all_committed("g"));
    consumer.shutdown(TIMEOUT);
}

/// apache/rocketmq#3937 and #1190: one failure ended the look for messages that the listener does not
/// return, and then an offset stood still for ever.
#[test]
fn b53_a_failure_does_not_end_the_look_for_expired_messages() {
    let world = World::start(1);
    world.send("m", "A", 1);
    let failing = world.cluster.control(
        request_code::CONSUMER_SEND_MSG_BACK,
        ControlAction::Respond(1, None),
        ControlTimes::Times(2),
    );
    let given_back = world.respond(request_code::CONSUMER_SEND_MSG_BACK, 0);
    let held = Arc::new(Mutex::new(()));
    let gate = held.lock().unwrap();
    let waiting = Arc::clone(&held);
    let consumer = started(
        world
            .builder("g")
            .consume_timeout(Duration::from_millis(100)),
        move |_: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            drop(waiting.lock().unwrap());
            ConsumeConcurrentlyStatus::ConsumeSuccess
        },
    );
    wait_until("the offset moves past it", || world.is_all_committed("g"));
    assert_eq!((failing.hits(), given_back.hits()), (2, 1));
    drop(gate);
    consumer.shutdown(TIMEOUT);
    assert_eq!(given_back.hits(), 1, "it was given back once");
}

/// apache/rocketmq#3731 (PR#9355): what a client sends to the retry topic when its broker does not
/// take a message back.
#[test]
fn b109_a_message_that_is_not_taken_back_is_sent_to_the_retry_topic() {
    for fallback_fails in [false, true] {
        let broker = ScriptedBroker::start(move |request| match request.code {
            request_code::CONSUMER_SEND_MSG_BACK => Answer::Code(response_code::SYSTEM_ERROR),
            request_code::SEND_MESSAGE_V2 if fallback_fails => {
                Answer::Code(response_code::SYSTEM_ERROR)
            }
            _ => Answer::Usual,
        });
        let properties = [
            (property::UNIQ_KEY, "FIRST"),
            (property::TRANSACTION_PREPARED, "true"),
            (property::TAGS, "A"),
        ];
        let properties = properties.map(|(name, value)| (name.to_owned(), value.to_owned()));
        broker.put("m0", &properties.into_iter().collect());
        let (received, calls) = channel();
        let received = Mutex::new(received);
        let consumer = started(
            builder_for(&broker),
            move |messages: &[MessageExt], context: &mut ConsumeConcurrentlyContext| {
                let times = messages[0].reconsume_times();
                received.lock().unwrap().send(times).unwrap();
                context.set_delay_level_when_next_consume(9);
                match times {
                    0 => ConsumeConcurrentlyStatus::ReconsumeLater,
                    _ => ConsumeConcurrentlyStatus::ConsumeSuccess,
                }
            },
        );
        assert_eq!(calls.recv_timeout(GENEROUS), Ok(0));
        let sends = broker.wait_for(request_code::SEND_MESSAGE_V2, 1);
        let SendMessageRequestHeaderV2(header) = sends[0].1.decode_header().unwrap();
        assert_eq!(header.topic, "%RETRY%g");
        assert_eq!(header.producer_group, "CLIENT_INNER_PRODUCER");
        assert_eq!(header.reconsume_times, Some(1));
        assert_eq!(header.max_reconsume_times, Some(16));
        assert_eq!(sends[0].1.body_bytes(), b"m0");
        let sent = decode_properties(header.properties.as_deref().unwrap());
        for (name, value) in [
            (property::DELAY_TIME_LEVEL, Some("3")),
            (property::RETRY_TOPIC, Some("T")),
            (property::ORIGIN_MESSAGE_ID, Some("FIRST")),
            (property::TAGS, Some("A")),
            (property::TRANSACTION_PREPARED, None),
        ] {
            assert_eq!(sent.get(name).map(String::as_str), value, "{name}");
        }
        let saved = || {
            let saves = broker.requests(request_code::UPDATE_CONSUMER_OFFSET);
            let saves = saves.iter().filter_map(|(_, save)| {
                let of_topic = save.ext_fields.get("topic") == Some("T");
                save.ext_fields.get("commitOffset").filter(|_| of_topic)
            });
            saves.last().map(str::to_owned)
        };
        if fallback_fails {
            assert_eq!(
                calls.recv_timeout(GENEROUS),
                Ok(1),
                "it is tried again here"
            );
            // What was saved until then does not pass it.
            assert!(saved().is_none_or(|offset| offset == "0"), "{:?}", saved());
        }
        wait_until("it is done", || saved().as_deref() == Some("1"));
        assert!(calls.try_recv().is_err());
        assert!(consumer.shutdown(TIMEOUT).threads_joined);
    }
}

/// One call of a listener with five messages, and how many of them were given back.
fn given_back_of_five(
    result: impl Fn(&mut ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus
    + Send
    + Sync
    + 'static,
) -> u64 {
    let world = World::start(1);
    world.send("m", "A", 5);
    let given_back = world.respond(request_code::CONSUMER_SEND_MSG_BACK, 0);
    let sizes = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&sizes);
    let consumer = started(
        world.builder("g").consume_message_batch_max_size(5),
        move |messages: &[MessageExt], context: &mut ConsumeConcurrentlyContext| {
            noted.lock().unwrap().push(messages.len());
            result(context)
        },
    );
    wait_until("the call is done with", || world.is_all_committed("g"));
    consumer.shutdown(TIMEOUT);
    assert_eq!(*sizes.lock().unwrap(), [5]);
    given_back.hits()
}

/// apache/rocketmq#1815, #7332 and #1382: which messages of a call count as done.
#[test]
fn b111_an_ack_index_counts_with_success_only() {
    use ConsumeConcurrentlyStatus::{ConsumeSuccess, ReconsumeLater};
    for (index, status, expected) in [
        (Some(2), ConsumeSuccess, 2),
        (Some(99), ConsumeSuccess, 0),
        (Some(i32::MAX), ConsumeSuccess, 0),
        (None, ConsumeSuccess, 0),
        (Some(-1), ConsumeSuccess, 5),
        (Some(i32::MIN), ConsumeSuccess, 5),
        (Some(2), ReconsumeLater, 5),
    ] {
        let given_back = given_back_of_five(move |context| {
            if let Some(index) = index {
                context.set_ack_index(index);
            }
            status
        });
        assert_eq!(given_back, expected, "{index:?}, {status:?}");
    }
    let given_back = given_back_of_five(|context| {
        context.set_ack_index(4);
        panic!("on purpose")
    });
    assert_eq!(given_back, 5, "a panic");
}

/// The same threads: what expired while the listener had it was given back then, and is not once
/// more.
#[test]
fn b111_what_has_expired_is_not_given_back_twice() {
    let world = World::start(1);
    world.send("m", "A", 1);
    let given_back = world.respond(request_code::CONSUMER_SEND_MSG_BACK, 0);
    let (release, released): (_, Receiver<()>) = channel();
    let released = Mutex::new(released);
    let consumer = started(
        world
            .builder("g")
            .consume_timeout(Duration::from_millis(100)),
        move |_: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            let _ = released.lock().unwrap().recv_timeout(GENEROUS);
            ConsumeConcurrentlyStatus::ReconsumeLater
        },
    );
    wait_until("it has expired", || world.is_all_committed("g"));
    release.send(()).unwrap();
    assert_eq!(consumer.shutdown(TIMEOUT).abandoned, 0);
    assert_eq!(given_back.hits(), 1);
}

/// apache/rocketmq#2836 and #5388: members of one group with different expressions. A broker filters
/// by the one told last, so each member loses messages; but none gets what it did not ask for, and
/// nothing stands still.
#[test]
fn b122_members_with_different_expressions_get_their_own_tags_only() {
    let world = World::start(4);
    let members: Vec<_> = ["A", "B"]
        .into_iter()
        .map(|tag| {
            let inbox = Inbox::new();
            let builder = world.builder("g").subscribe("T", tag);
            (tag, started(builder, inbox.listener()), inbox)
        })
        .collect();
    wait_until("the queues are divided", || {
        members.iter().all(|(_, member, _)| {
            let own = member.owned_queues().into_iter();
            own.filter(|mq: &MessageQueue| mq.topic() == "T").count() == 2
        })
    });
    for n in 0..100 {
        for tag in ["A", "B"] {
            let message = Message::new("T", format!("{tag}{n}")).with_tags(tag);
            world.producer.send(&message).unwrap();
        }
    }
    wait_until("what nobody gets is passed over", || {
        world.is_all_committed("g")
    });
    for (tag, member, inbox) in &members {
        let messages = inbox.messages();
        assert!(
            messages.iter().all(|message| message.tags() == Some(tag)),
            "{tag}"
        );
        assert!(member.shutdown(TIMEOUT).threads_joined);
    }
}

/// mxsm/rocketmq-rust#1106 (PR#1108): a consumer that was started before its topic existed never
/// consumed it.
#[test]
fn b123_a_topic_that_comes_after_the_consumer_is_consumed() {
    keep_logs();
    let cluster = Cluster::builder().auto_create_topic(false).start().unwrap();
    let topic = unique("Later");
    let inbox = Inbox::new();
    let routes = cluster.control(
        request_code::GET_ROUTEINFO_BY_TOPIC,
        ControlAction::Delay(Duration::ZERO),
        ControlTimes::UntilLifted,
    );
    let builder = quick(DefaultMQPushConsumer::builder("g"))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&cluster.namesrv_addr())
        .poll_name_server_interval(Duration::from_millis(300))
        .rebalance_wait_interval(Duration::from_secs(600))
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .subscribe(&topic, "*");
    let consumer = started(builder, inbox.listener());
    assert_eq!(logged(&[&topic, "does not know"]).len(), 1);
    assert!(routes.wait_for_hits(5, GENEROUS), "it is asked for again");
    cluster.create_topic(&topic, 2).unwrap();
    let producer = support::started(producer_at(&cluster.namesrv_addr()));
    for n in 0..10 {
        let message = Message::new(topic.as_str(), format!("m{n}"));
        producer.send(&message).unwrap();
    }
    inbox.wait_for_bodies(10);
    let once: BTreeMap<_, _> = (0..10).map(|n| (format!("m{n}"), 1)).collect();
    assert_eq!(inbox.bodies(), once);
    assert!(consumer.shutdown(TIMEOUT).threads_joined);
}

/// The same report: an answer that lacks a field ended the process. It is a failed answer.
#[test]
fn b123_an_answer_without_its_field_is_a_failure() {
    let ends = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&ends);
    let broker = ScriptedBroker::start(move |request| match request.code {
        request_code::QUERY_CONSUMER_OFFSET => Answer::Code(response_code::QUERY_NOT_FOUND),
        request_code::GET_MAX_OFFSET if request.ext_fields.get("topic") == Some("T") => {
            match asked.fetch_add(1, Ordering::SeqCst) {
                0 => Answer::Fields(Vec::new()),
                1 => Answer::Fields(vec![("offset", "abc")]),
                2 => Answer::Fields(vec![("offset", "9223372036854775808")]),
                _ => Answer::Fields(vec![("offset", "1")]),
            }
        }
        _ => Answer::Usual,
    });
    broker.put("before", &no_properties());
    broker.put("after", &no_properties());
    let inbox = Inbox::new();
    let consumer = started(builder_for(&broker), inbox.listener());
    inbox.wait_for_bodies(1);
    assert_eq!(inbox.bodies(), BTreeMap::from([("after".to_owned(), 1)]));
    assert_eq!(ends.load(Ordering::SeqCst), 4);
    assert!(consumer.shutdown(TIMEOUT).threads_joined);
}
