//! Request messages and their replies.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and is outside of what loom models"
)]

mod support;

use std::sync::mpsc;
use std::time::Duration;

use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQProducer,
    DefaultMQPushConsumer, Error, MQClientManager, Message, MessageExt,
    MessageListenerConcurrently, MessageQueue, Result, client_error_code, create_reply_message,
    request_code,
};
use rocketmq_embedded::{Cluster, ControlAction, ControlTimes};
use support::{GENEROUS, Target, producer_in, quick, started, unique, wait_until};

const TOPIC: &str = "Questions";
const TIMEOUT: Duration = Duration::from_secs(5);

struct World {
    cluster: Cluster,
    requester: DefaultMQProducer,
}

fn producer(cluster: &Cluster, group: &str) -> DefaultMQProducer {
    started(producer_in(group, &cluster.namesrv_addr()))
}

impl World {
    fn start() -> Self {
        let cluster = Cluster::builder().start().unwrap();
        cluster.create_topic(TOPIC, 2).unwrap();
        let requester = producer(&cluster, "requester");
        Self { cluster, requester }
    }

    /// A consumer that answers each question so many times, in a process of its own as it were, and
    /// tells what came of the answers.
    fn replier(&self, times: usize) -> (DefaultMQPushConsumer, mpsc::Receiver<Result<(), Error>>) {
        let producer = producer(&self.cluster, "replier");
        let (sender, sent) = mpsc::channel();
        let answer = move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            for message in messages {
                let body = [b"re: ", &message.body()[..]].concat();
                let reply = create_reply_message(message, body).unwrap();
                for _ in 0..times {
                    let outcome = producer.send(&reply);
                    sender.send(outcome.map(|_| ())).unwrap();
                }
            }
            ConsumeConcurrentlyStatus::ConsumeSuccess
        };
        let consumer = quick(
            DefaultMQPushConsumer::builder("repliers")
                .client_manager(&MQClientManager::new())
                .namesrv_addr(&self.cluster.namesrv_addr())
                .subscribe(TOPIC, "*")
                .message_listener(answer),
        )
        .build()
        .unwrap();
        consumer.start().unwrap();
        (consumer, sent)
    }

    fn ask(&self, timeout: Duration) -> mpsc::Receiver<Result<MessageExt>> {
        let (sender, outcome) = mpsc::channel();
        let question = Message::new(TOPIC, b"how many?".as_slice());
        let tell = move |reply| sender.send(reply).unwrap();
        self.requester
            .request_async(&question, timeout, tell)
            .unwrap();
        outcome
    }
}

/// A consumer that answers all questions of a topic, on any cluster.
fn replier_on(
    target: &Target,
    topic: &str,
    answer: impl MessageListenerConcurrently + 'static,
) -> DefaultMQPushConsumer {
    let consumer = DefaultMQPushConsumer::builder(unique("repliers"))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(target.namesrv())
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .subscribe(topic, "*")
        .message_listener(answer);
    let consumer = quick(consumer).build().unwrap();
    consumer.start().unwrap();
    consumer
}

fn code(error: &Error) -> Option<i32> {
    match error {
        Error::MQClient { code, .. } => *code,
        _ => None,
    }
}

/// On a real cluster too. A broker that a producer leaves forgets where replies to its whole client go,
/// and the producers of a process share a client.
#[test]
fn a_question_is_answered_on_any_cluster_also_after_another_producer_has_ended() {
    let target = Target::start(1);
    let topic = unique("Questions");
    target.create_topic(&topic, 2);
    let producer = |group: &str, manager: &MQClientManager| {
        let producer = producer_in(&unique(group), target.namesrv());
        started(producer.client_manager(manager))
    };
    let manager = MQClientManager::new();
    let (requester, ends) = (producer("requester", &manager), producer("ends", &manager));
    let replier = producer("replier", &MQClientManager::new());
    let (sender, sent) = mpsc::channel();
    let answer = move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
        for message in messages {
            let reply = create_reply_message(message, message.body().clone()).unwrap();
            sender.send(replier.send(&reply)).unwrap();
        }
        ConsumeConcurrentlyStatus::ConsumeSuccess
    };
    let consumer = replier_on(&target, &topic, answer);
    for body in [&b"short"[..], &[b'x'; 10_000]] {
        let question = Message::new(topic.as_str(), body.to_vec());
        for producer in [&requester, &ends] {
            let reply = producer.request(&question, GENEROUS).unwrap();
            assert_eq!(&reply.body()[..], body);
            sent.recv_timeout(GENEROUS).unwrap().unwrap();
        }
    }
    ends.shutdown(TIMEOUT);
    let question = Message::new(topic.as_str(), b"still?".as_slice());
    requester.request(&question, GENEROUS).unwrap();
    consumer.shutdown(TIMEOUT);
}

/// On a real cluster too.
#[test]
fn a_question_goes_to_the_queue_that_is_named_or_chosen() {
    const QUEUES: i32 = 4;
    let target = Target::start(1);
    let topic = unique("Questions");
    target.create_topic(&topic, QUEUES as u16);
    let producer = |group: &str, manager: &MQClientManager| {
        let producer = producer_in(&unique(group), target.namesrv());
        started(producer.client_manager(manager))
    };
    let manager = MQClientManager::new();
    let requester = producer("requester", &manager);
    let replier = producer("replier", &MQClientManager::new());
    let answer = move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
        for message in messages {
            let reply = create_reply_message(message, message.queue_id().to_string()).unwrap();
            replier.send(&reply).unwrap();
        }
        ConsumeConcurrentlyStatus::ConsumeSuccess
    };
    let consumer = replier_on(&target, &topic, answer);

    let queue = |reply: Result<MessageExt>| -> i32 {
        let body = reply.unwrap().body().to_vec();
        String::from_utf8(body).unwrap().parse().unwrap()
    };
    let question = Message::new(&*topic, "which queue?");
    let numbered = |mqs: &[MessageQueue], _: &Message, number: &i32| {
        let named = mqs.iter().find(|mq| mq.queue_id() == *number);
        named.cloned()
    };
    let queues = requester.fetch_publish_message_queues(&topic).unwrap();
    for number in 0..QUEUES {
        let mq = queues.iter().find(|mq| mq.queue_id() == number).unwrap();
        let reply = requester.request_to_queue(&question, mq, GENEROUS);
        assert_eq!(queue(reply), number);
        let reply = requester.request_with_selector(&question, &numbered, &number, GENEROUS);
        assert_eq!(queue(reply), number);
        let (told, outcome) = mpsc::channel();
        let also = told.clone();
        requester
            .request_async_to_queue(&question, mq, GENEROUS, move |reply| {
                told.send(reply).unwrap();
            })
            .unwrap();
        assert_eq!(queue(outcome.recv_timeout(GENEROUS).unwrap()), number);
        requester
            .request_async_with_selector(&question, numbered, number, GENEROUS, move |reply| {
                also.send(reply).unwrap();
            })
            .unwrap();
        assert_eq!(queue(outcome.recv_timeout(GENEROUS).unwrap()), number);
        outcome.recv_timeout(GENEROUS).unwrap_err();
    }

    let elsewhere = MessageQueue::new("Elsewhere", queues[0].broker_name(), 0);
    let none = |_: &[MessageQueue], _: &Message, _: &i32| None;
    let refused = requester
        .request_to_queue(&question, &elsewhere, GENEROUS)
        .unwrap_err();
    assert!(matches!(refused, Error::InvalidMessage { .. }), "{refused}");
    let refused = requester
        .request_with_selector(&question, &none, &0, GENEROUS)
        .unwrap_err();
    assert!(matches!(refused, Error::MQClient { .. }), "{refused}");
    let (told, outcomes) = mpsc::channel();
    let also = told.clone();
    requester
        .request_async_to_queue(&question, &elsewhere, GENEROUS, move |reply| {
            told.send(reply).unwrap();
        })
        .unwrap();
    let refused = outcomes.recv_timeout(GENEROUS).unwrap().unwrap_err();
    assert!(matches!(refused, Error::InvalidMessage { .. }), "{refused}");
    requester
        .request_async_with_selector(&question, none, 0, GENEROUS, move |reply| {
            also.send(reply).unwrap();
        })
        .unwrap();
    let refused = outcomes.recv_timeout(GENEROUS).unwrap().unwrap_err();
    assert!(matches!(refused, Error::MQClient { .. }), "{refused}");
    outcomes.recv_timeout(GENEROUS).unwrap_err();
    consumer.shutdown(TIMEOUT);
}

#[test]
fn a_question_gets_its_own_answer() {
    let world = World::start();
    let (_consumer, sent) = world.replier(1);
    for number in 0..3 {
        // One is long enough to be compressed on both ways.
        let body = format!("question {number}").repeat(1 + number * 500);
        let question = Message::new(TOPIC, body.clone().into_bytes());
        let reply = world.requester.request(&question, GENEROUS).unwrap();
        assert_eq!(reply.body()[..], format!("re: {body}").into_bytes()[..]);
        assert_eq!(reply.topic(), "DefaultCluster_REPLY_TOPIC");
        assert!(reply.property("ARRIVE_TIME").is_some());
        assert_eq!(
            question.property("CORRELATION_ID"),
            None,
            "it is the caller's"
        );
        sent.recv_timeout(GENEROUS).unwrap().unwrap();
    }
}

/// apache/rocketmq#1727, #10613 (PR#10614), #9319: the callback came too early with nothing, or
/// several times.
#[test]
fn b117_a_callback_runs_once_with_the_reply() {
    let world = World::start();
    let (_consumer, sent) = world.replier(2);
    let outcome = world.ask(GENEROUS);
    let reply = outcome.recv_timeout(GENEROUS).unwrap().unwrap();
    assert_eq!(&reply.body()[..], b"re: how many?");
    // The second reply was taken, and nobody hears of it: the callback and its sender are gone.
    for _ in 0..2 {
        sent.recv_timeout(GENEROUS).unwrap().unwrap();
    }
    assert_eq!(
        outcome.recv_timeout(GENEROUS).unwrap_err(),
        mpsc::RecvTimeoutError::Disconnected
    );
}

/// The second case of the same report: the broker has the request, and nobody replies.
#[test]
fn b117_a_callback_runs_once_when_the_time_is_over() {
    let world = World::start();
    let outcome = world.ask(Duration::from_millis(300));
    let late = outcome.recv_timeout(GENEROUS).unwrap().unwrap_err();
    assert_eq!(
        code(&late),
        Some(client_error_code::REQUEST_TIMEOUT_EXCEPTION)
    );
    assert_eq!(
        outcome.recv_timeout(GENEROUS).unwrap_err(),
        mpsc::RecvTimeoutError::Disconnected
    );
    assert_eq!(world.cluster.stored_count(TOPIC), 1);
    let question = Message::new(TOPIC, b"how many?".as_slice());
    let late = world
        .requester
        .request(&question, Duration::from_millis(300))
        .unwrap_err();
    assert_eq!(
        code(&late),
        Some(client_error_code::REQUEST_TIMEOUT_EXCEPTION)
    );
}

/// The third: the request cannot be sent.
#[test]
fn b117_a_callback_runs_once_with_the_failure_of_the_send() {
    let world = World::start();
    let refuse = ControlAction::Respond(13, Some("no".to_owned()));
    let control = world.cluster.control(
        request_code::SEND_MESSAGE_V2,
        refuse,
        ControlTimes::UntilLifted,
    );
    let outcome = world.ask(TIMEOUT);
    let refused = outcome.recv_timeout(GENEROUS).unwrap().unwrap_err();
    assert_eq!(refused.broker_code(), Some(13), "{refused}");
    assert_eq!(
        outcome.recv_timeout(GENEROUS).unwrap_err(),
        mpsc::RecvTimeoutError::Disconnected
    );
    assert!(control.hits() >= 1);
}

#[test]
fn the_end_of_the_producer_ends_what_waits() {
    let world = World::start();
    let outcome = world.ask(GENEROUS);
    world.requester.shutdown(TIMEOUT);
    let ended = outcome.recv_timeout(GENEROUS).unwrap().unwrap_err();
    assert!(matches!(ended, Error::ServiceState { .. }), "{ended}");
    let question = Message::new(TOPIC, b"how many?".as_slice());
    let refused = world.requester.request(&question, TIMEOUT).unwrap_err();
    assert!(matches!(refused, Error::ServiceState { .. }), "{refused}");
}

#[test]
fn a_reply_to_a_client_that_has_gone_fails() {
    let world = World::start();
    let outcome = world.ask(TIMEOUT);
    world.requester.shutdown(TIMEOUT);
    outcome.recv_timeout(GENEROUS).unwrap().unwrap_err();
    wait_until("the broker has forgotten the requester", || {
        world
            .cluster
            .producer_ids_on("broker-a", "requester")
            .is_empty()
    });
    let (_consumer, sent) = world.replier(1);
    let lost = sent.recv_timeout(GENEROUS).unwrap().unwrap_err();
    assert_eq!(lost.broker_code(), Some(1), "{lost}");
}

#[test]
fn a_message_without_a_cluster_is_no_request() {
    let refused = create_reply_message(&Message::new("T", b"x".as_slice()), "y").unwrap_err();
    assert_eq!(
        code(&refused),
        Some(client_error_code::CREATE_REPLY_MESSAGE_EXCEPTION)
    );
}
