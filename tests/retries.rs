//! Messages that failed: when they come again, when they are given up, and what of a queue counts as
//! done when it is taken away.
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
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQProducer,
    DefaultMQPushConsumer, DefaultMQPushConsumerBuilder, MQClientManager, Message, MessageExt,
    MessageListenerConcurrently, MessageQueue, property, request_code, response_code,
};
use rocketmq_embedded::{Cluster, ControlAction, ControlScope, ControlTimes};
use support::{GENEROUS, Inbox, quick, wait_until};

const TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than a test waits: whatever happens in time has another cause.
const NEVER: Duration = Duration::from_secs(600);
/// The first delay of a message that is given back without a level.
const LEVEL_3: Duration = Duration::from_millis(500);
const DLQ: &str = "%DLQ%g";

struct World {
    cluster: Cluster,
    manager: MQClientManager,
    producer: DefaultMQProducer,
}

impl World {
    /// The topic `T` has one queue at each of the brokers.
    fn start(brokers: usize) -> Self {
        let levels = [1, 200, 500, 600, 700].map(Duration::from_millis);
        let cluster = Cluster::builder().brokers(brokers).delay_levels(levels);
        let cluster = cluster.start().unwrap();
        cluster.create_topic("T", 1).unwrap();
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

    fn builder(&self) -> DefaultMQPushConsumerBuilder {
        quick(DefaultMQPushConsumer::builder("g"))
            .client_manager(&self.manager)
            .namesrv_addr(&self.cluster.namesrv_addr())
            .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
            .poll_name_server_interval(NEVER)
            .rebalance_wait_interval(NEVER)
            .subscribe("T", "*")
    }

    fn send(&self, bodies: impl IntoIterator<Item = String>) {
        for body in bodies {
            self.producer.send(&Message::new("T", body)).unwrap();
        }
    }

    fn committed(&self, topic: &str) -> Option<i64> {
        let mq = MessageQueue::new(topic, "broker-a", 0);
        self.cluster.committed_offset("g", &mq)
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

#[test]
fn the_first_retry_of_a_new_group_comes_when_it_is_due() {
    let world = World::start(1);
    world.send(["m".to_owned()]);
    let (received, calls) = channel();
    let received = Mutex::new(received);
    let consumer = started(
        world.builder(),
        move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            let message = messages[0].clone();
            let times = message.reconsume_times();
            let call = (Instant::now(), message);
            received.lock().unwrap().send(call).unwrap();
            match times {
                0 => ConsumeConcurrentlyStatus::ReconsumeLater,
                _ => ConsumeConcurrentlyStatus::ConsumeSuccess,
            }
        },
    );
    let (first, _) = calls.recv_timeout(GENEROUS).unwrap();
    let (second, message) = calls.recv_timeout(GENEROUS).unwrap();
    assert!(second - first >= LEVEL_3, "{:?}", second - first);
    assert_eq!((message.topic(), message.reconsume_times()), ("T", 1));
    assert_eq!(message.property(property::RETRY_TOPIC), Some("T"));
    wait_until("both are done", || {
        world.committed("T") == Some(1) && world.committed("%RETRY%g") == Some(1)
    });
    consumer.shutdown(TIMEOUT);
}

#[test]
fn what_is_given_up_goes_to_the_dead_letter_queue() {
    let world = World::start(1);
    world.send(["at once".to_owned(), "in the end".to_owned()]);
    let calls: Arc<Mutex<BTreeMap<String, Vec<i32>>>> = Arc::default();
    let noted = Arc::clone(&calls);
    let consumer = started(
        world.builder().max_reconsume_times(1),
        move |messages: &[MessageExt], context: &mut ConsumeConcurrentlyContext| {
            let body = String::from_utf8_lossy(messages[0].body()).into_owned();
            let level = if body == "at once" { -1 } else { 1 };
            context.set_delay_level_when_next_consume(level);
            let mut calls = noted.lock().unwrap();
            let times = messages[0].reconsume_times();
            calls.entry(body).or_default().push(times);
            ConsumeConcurrentlyStatus::ReconsumeLater
        },
    );
    wait_until("both are given up", || world.cluster.stored_count(DLQ) == 2);
    let calls = calls.lock().unwrap().clone();
    assert_eq!(calls["at once"], [0]);
    assert_eq!(calls["in the end"], [0, 1]);
    consumer.shutdown(TIMEOUT);
}

#[test]
fn another_broker_takes_what_the_messages_own_does_not_take_back() {
    let world = World::start(2);
    world.send((0..2).map(|n| format!("m{n}")));
    let from = ControlScope::Broker("broker-a".to_owned());
    for code in [
        request_code::CONSUMER_SEND_MSG_BACK,
        request_code::SEND_MESSAGE_V2,
    ] {
        world.cluster.control_on(
            from.clone(),
            code,
            ControlAction::Respond(response_code::SYSTEM_ERROR, None),
            ControlTimes::UntilLifted,
        );
    }
    let inbox = Inbox::new();
    let received = inbox.clone();
    let consumer = started(
        world.builder(),
        move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            if messages[0].reconsume_times() == 0 {
                return ConsumeConcurrentlyStatus::ReconsumeLater;
            }
            received.put(messages);
            ConsumeConcurrentlyStatus::ConsumeSuccess
        },
    );
    inbox.wait_for_bodies(2);
    for message in inbox.messages() {
        assert_eq!(message.broker_name(), "broker-b");
        assert_eq!((message.topic(), message.reconsume_times()), ("T", 1));
    }
    consumer.shutdown(TIMEOUT);
}

#[test]
fn what_was_finished_of_a_queue_counts_when_it_is_taken_away_and_the_rest_comes_again() {
    let world = World::start(1);
    world.send((0..6).map(|n| format!("m{n}")));
    let given_back = world.cluster.control(
        request_code::CONSUMER_SEND_MSG_BACK,
        ControlAction::Delay(Duration::ZERO),
        ControlTimes::UntilLifted,
    );
    let (held, finished) = (Arc::new(Mutex::new(())), Arc::new(AtomicUsize::new(0)));
    let gate = held.lock().unwrap();
    let (waiting, count) = (Arc::clone(&held), Arc::clone(&finished));
    let inbox = Inbox::new();
    let received = inbox.clone();
    let consumer = started(
        // Nothing that the listener has in hands is waited for.
        world.builder().hand_over_grace(Duration::ZERO),
        move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            let stuck = messages[0].queue_offset() == 3 && messages[0].reconsume_times() == 0;
            received.put(messages);
            if stuck {
                drop(waiting.lock().unwrap());
                count.fetch_add(100, Ordering::SeqCst);
                return ConsumeConcurrentlyStatus::ReconsumeLater;
            }
            count.fetch_add(1, Ordering::SeqCst);
            ConsumeConcurrentlyStatus::ConsumeSuccess
        },
    );
    wait_until("all but one are finished", || {
        finished.load(Ordering::SeqCst) == 5 && world.committed("T") == Some(3)
    });
    consumer.unsubscribe("T").unwrap();
    wait_until("the queue is taken away", || {
        consumer.owned_queues().iter().all(|mq| mq.topic() != "T")
    });
    drop(gate);
    wait_until("the listener has returned", || {
        finished.load(Ordering::SeqCst) == 105
    });
    consumer.subscribe("T", "*").unwrap();
    // The fourth once more, which fails again, and those behind it.
    wait_until("the rest has come again", || inbox.len() >= 9);
    wait_until("and comes a third time", || {
        world.committed("T") == Some(6) && inbox.len() == 10
    });
    let bodies = inbox.bodies();
    let times: Vec<_> = (0..6).map(|n| bodies[&format!("m{n}")]).collect();
    assert_eq!(times, [1, 1, 1, 3, 2, 2]);
    assert_eq!(
        given_back.hits(),
        1,
        "the first failure was nobody's any more"
    );
    consumer.shutdown(TIMEOUT);
}

#[test]
fn an_offset_that_is_none_of_the_queue_is_mended() {
    let world = World::start(1);
    world.send((0..3).map(|n| format!("m{n}")));
    let inbox = Inbox::new();
    let consumer = started(world.builder(), inbox.listener());
    inbox.wait_for_bodies(3);
    consumer.shutdown(TIMEOUT);
    assert_eq!(world.committed("T"), Some(3));

    // Another member of the group has saved nonsense.
    let mq = MessageQueue::new("T", "broker-a", 0);
    save(&world, 1000);
    let moved = started(world.builder(), inbox.listener());
    wait_until("the queue's end is saved", || {
        world.committed("T") == Some(world.cluster.max_offset(&mq))
    });
    world.send(["m3".to_owned()]);
    inbox.wait_for_bodies(4);
    assert!(inbox.bodies().values().all(|times| *times == 1));
    moved.shutdown(TIMEOUT);
}

/// Saves an offset of the group as a member does.
fn save(world: &World, offset: i64) {
    use std::io::{Read, Write};

    use rocketmq_blocking::RemotingCommand;
    use rocketmq_protocol::header::UpdateConsumerOffsetRequestHeader;

    let header = UpdateConsumerOffsetRequestHeader {
        consumer_group: "g".to_owned(),
        topic: "T".to_owned(),
        queue_id: 0,
        commit_offset: offset,
        broker_name: None,
    };
    let request = RemotingCommand::request(request_code::UPDATE_CONSUMER_OFFSET, &header);
    let mut frame = bytes::BytesMut::new();
    request.encode(&mut frame).unwrap();
    let addr = world.cluster.broker_addr("broker-a").unwrap();
    let mut stream = std::net::TcpStream::connect(addr).unwrap();
    stream.write_all(&frame).unwrap();
    stream.read_exact(&mut [0; 4]).unwrap();
    assert_eq!(world.committed("T"), Some(offset));
}
