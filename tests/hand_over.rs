//! What becomes of messages when a queue changes hands.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test is outside of what loom models, and fails by panicking"
)]

mod support;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rocketmq_blocking::service::ServiceState;
use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQProducer,
    DefaultMQPushConsumer, DefaultMQPushConsumerBuilder, MQClientManager, Message, MessageExt,
    MessageQueue,
};
use rocketmq_embedded::Cluster;
use support::{GENEROUS, Inbox, producer_at, quick, started, wait_until};

const TIMEOUT: Duration = Duration::from_secs(10);
const NEVER: Duration = Duration::from_secs(600);

fn builder(cluster: &Cluster, manager: &MQClientManager) -> DefaultMQPushConsumerBuilder {
    quick(DefaultMQPushConsumer::builder("g"))
        .client_manager(manager)
        .namesrv_addr(&cluster.namesrv_addr())
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .persist_consumer_offset_interval(NEVER)
        .rebalance_wait_interval(NEVER)
        .subscribe("T", "*")
}

fn producer(cluster: &Cluster) -> DefaultMQProducer {
    started(producer_at(&cluster.namesrv_addr()))
}

fn owned(consumer: &DefaultMQPushConsumer) -> Vec<MessageQueue> {
    let mut queues = consumer.owned_queues();
    queues.retain(|mq| mq.topic() == "T");
    queues
}

fn share(members: &[&DefaultMQPushConsumer], queues: usize) -> bool {
    let mut all: Vec<MessageQueue> = members.iter().flat_map(|m| owned(m)).collect();
    all.sort();
    let count = all.len();
    all.dedup();
    let fair = |m: &&DefaultMQPushConsumer| owned(m).len() >= queues / members.len();
    count == queues && all.len() == queues && members.iter().all(fair)
}

/// A delivery: which message, where, and when.
type Deliveries = Arc<Mutex<Vec<((MessageQueue, i64), Instant)>>>;

fn noting(
    deliveries: &Deliveries,
    work: Duration,
) -> impl Fn(&[MessageExt], &mut ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus
+ Send
+ Sync
+ use<> {
    let deliveries = Arc::clone(deliveries);
    move |messages, context| {
        let now = Instant::now();
        let mq = context.message_queue();
        let noted = messages
            .iter()
            .map(|message| ((mq.clone(), message.queue_offset()), now));
        deliveries.lock().unwrap().extend(noted);
        thread::sleep(work);
        ConsumeConcurrentlyStatus::ConsumeSuccess
    }
}

fn redelivered(deliveries: &Deliveries) -> usize {
    let deliveries = deliveries.lock().unwrap();
    let different: BTreeSet<_> = deliveries.iter().map(|(message, _)| message).collect();
    deliveries.len() - different.len()
}

/// A member whose listener, for messages of queue 1, tells that it has one in hands and waits to be
/// let go.
struct Held {
    consumer: DefaultMQPushConsumer,
    entered: mpsc::Receiver<i64>,
    gate: mpsc::Sender<()>,
    inbox: Inbox,
}

/// Two queues, and a first member that has two messages of queue 1 in hands and eight more waiting.
fn two_in_hands(cluster: &Cluster, manager: &MQClientManager) -> Held {
    cluster.create_topic("T", 2).unwrap();
    let (told, entered) = mpsc::channel();
    let (gate, waits) = mpsc::channel::<()>();
    let (told, waits) = (Mutex::new(told), Mutex::new(waits));
    let inbox = Inbox::new();
    let received = inbox.clone();
    let consumer = builder(cluster, manager)
        .instance_name("a")
        .consume_threads(2)
        .hand_over_grace(GENEROUS * 2)
        .message_listener(
            move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                if messages[0].queue_id() == 1 {
                    let _ = told.lock().unwrap().send(messages[0].queue_offset());
                    let _ = waits.lock().unwrap().recv_timeout(GENEROUS);
                    received.put(messages);
                }
                ConsumeConcurrentlyStatus::ConsumeSuccess
            },
        )
        .build()
        .unwrap();
    let producer = producer(cluster);
    for n in 0..20 {
        producer.send(&Message::new("T", format!("m{n}"))).unwrap();
    }
    consumer.start().unwrap();
    let in_hands: BTreeSet<i64> = (0..2)
        .map(|_| entered.recv_timeout(GENEROUS).unwrap())
        .collect();
    assert_eq!(in_hands, BTreeSet::from([0, 1]));
    Held {
        consumer,
        entered,
        gate,
        inbox,
    }
}

fn second(
    cluster: &Cluster,
    manager: &MQClientManager,
    grace: Duration,
    inbox: &Inbox,
) -> DefaultMQPushConsumer {
    let consumer = builder(cluster, manager)
        .instance_name("b")
        .hand_over_grace(grace)
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    consumer
}

fn queue_1() -> MessageQueue {
    MessageQueue::new("T", "broker-a", 1)
}

#[test]
fn what_the_listener_has_in_hands_is_finished_and_saved_and_the_rest_is_let_go() {
    let cluster = Cluster::builder().start().unwrap();
    let manager = MQClientManager::new();
    let first = two_in_hands(&cluster, &manager);
    let inbox = Inbox::new();
    let second = second(&cluster, &manager, Duration::from_secs(2), &inbox);
    wait_until("queue 1 has gone", || {
        owned(&first.consumer) != [queue_1()] && owned(&second) == [queue_1()]
    });
    assert_eq!(cluster.committed_offset("g", &queue_1()), None);
    first.gate.send(()).unwrap();
    first.gate.send(()).unwrap();
    drop(first.gate);
    // The second one asks for the offset later than it is saved.
    wait_until("what was finished is saved", || {
        cluster.committed_offset("g", &queue_1()) == Some(2)
    });
    let received: BTreeSet<i64> = inbox
        .wait_for(8)
        .iter()
        .map(MessageExt::queue_offset)
        .collect();
    assert_eq!(received, (2..10).collect());
    assert_eq!(inbox.len(), 8, "nothing came twice");
    assert_eq!(first.entered.try_recv().ok(), None);
    assert_eq!(first.inbox.len(), 2, "the rest was let go");
}

#[test]
fn a_queue_that_comes_back_waits_for_what_is_in_hands() {
    let cluster = Cluster::builder().start().unwrap();
    let manager = MQClientManager::new();
    let first = two_in_hands(&cluster, &manager);
    let inbox = Inbox::new();
    let second = second(&cluster, &manager, GENEROUS * 2, &inbox);
    wait_until("queue 1 has gone", || {
        owned(&first.consumer).len() == 1 && owned(&second) == [queue_1()]
    });
    second.shutdown(TIMEOUT);
    wait_until("queue 1 is back", || owned(&first.consumer).len() == 2);
    assert_eq!(cluster.committed_offset("g", &queue_1()), None);
    first.gate.send(()).unwrap();
    first.gate.send(()).unwrap();
    drop(first.gate);
    let received = first.inbox.wait_for(10);
    let offsets: BTreeSet<i64> = received.iter().map(MessageExt::queue_offset).collect();
    assert_eq!(offsets, (0..10).collect());
    assert!(first.consumer.shutdown(TIMEOUT).threads_joined);
    assert_eq!(first.inbox.len(), 10, "nothing came twice");
    assert_eq!(inbox.len(), 0);
    assert_eq!(cluster.committed_offset("g", &queue_1()), Some(10));
}

#[test]
fn an_end_saves_what_is_being_handed_over() {
    let cluster = Cluster::builder().start().unwrap();
    let manager = MQClientManager::new();
    let first = two_in_hands(&cluster, &manager);
    let inbox = Inbox::new();
    let second = second(&cluster, &manager, GENEROUS * 2, &inbox);
    wait_until("queue 1 has gone", || {
        owned(&first.consumer).len() == 1 && owned(&second) == [queue_1()]
    });
    // One is finished, the other one is not by the end.
    first.gate.send(()).unwrap();
    first.inbox.wait_for(1);
    let report = first.consumer.shutdown(Duration::from_secs(1));
    assert!(!report.threads_joined);
    let finished = first.inbox.messages()[0].queue_offset();
    let saved = cluster.committed_offset("g", &queue_1());
    assert_eq!(saved, Some(1 - finished), "the first that is not finished");
    first.gate.send(()).unwrap();
}

#[test]
fn a_member_that_ends_lets_go_of_what_its_listener_has_not_begun() {
    let cluster = Cluster::builder().start().unwrap();
    let manager = MQClientManager::new();
    let first = two_in_hands(&cluster, &manager);
    let consumer = first.consumer.clone();
    let end = thread::spawn(move || consumer.shutdown(GENEROUS * 2));
    wait_until("it is ending", || {
        first.consumer.service_state() == ServiceState::ShutdownAlready
    });
    // Any further call would wait for ever.
    first.gate.send(()).unwrap();
    first.gate.send(()).unwrap();
    let report = end.join().unwrap();
    assert!(report.threads_joined && report.abandoned == 0, "{report:?}");
    assert_eq!(first.inbox.len(), 2);
    assert_eq!(cluster.committed_offset("g", &queue_1()), Some(2));
    let inbox = Inbox::new();
    let _second = second(&cluster, &manager, GENEROUS * 2, &inbox);
    let of_queue_1 = || {
        let messages = inbox.messages();
        messages.iter().filter(|m| m.queue_id() == 1).count()
    };
    wait_until("the rest goes to the next", || of_queue_1() == 8);
}

#[test]
fn nothing_is_lost_or_delivered_twice_when_members_join_and_leave() {
    const GRACE: Duration = Duration::from_secs(1);
    let cluster = Cluster::builder().brokers(2).start().unwrap();
    cluster.create_topic("T", 4).unwrap();
    let manager = MQClientManager::new();
    let deliveries = Deliveries::default();
    let member = || {
        let consumer = builder(&cluster, &manager)
            .hand_over_grace(GRACE)
            .message_listener(noting(&deliveries, Duration::from_millis(5)))
            .build()
            .unwrap();
        consumer.start().unwrap();
        consumer
    };
    let backlog = producer(&cluster);
    for _ in 0..4000 {
        backlog.send(&Message::new("T", "m")).unwrap();
    }
    let stays = member();
    wait_until("one has all", || share(&[&stays], 8));
    let traffic = Traffic::start(&cluster, 500);
    for _ in 0..2 {
        let guest = member();
        wait_until("two share", || share(&[&stays, &guest], 8));
        let moved = owned(&guest);
        let so_far = deliveries.lock().unwrap().len();
        wait_until("the guest is at work", || {
            let deliveries = deliveries.lock().unwrap();
            let mut new = deliveries[so_far..].iter();
            new.any(|((mq, _), at)| moved.contains(mq) && at.elapsed() < GRACE / 2)
        });
        let report = guest.shutdown(TIMEOUT);
        assert_eq!(report.abandoned, 0);
        wait_until("one has all again", || share(&[&stays], 8));
    }
    let sent = traffic.stop() + 4000;
    wait_until("all are delivered", || {
        deliveries.lock().unwrap().len() >= sent
    });
    assert!(stays.shutdown(TIMEOUT).threads_joined);
    assert_eq!(redelivered(&deliveries), 0);
    assert_eq!(deliveries.lock().unwrap().len(), sent);
}

struct Traffic {
    stop: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<usize>>,
}

impl Traffic {
    fn start(cluster: &Cluster, per_second: u32) -> Self {
        const THREADS: u32 = 2;
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..THREADS)
            .map(|_| {
                let (producer, stop) = (producer(cluster), Arc::clone(&stop));
                thread::spawn(move || {
                    let begin = Instant::now();
                    let mut sent = 0;
                    while !stop.load(Ordering::SeqCst) {
                        producer.send(&Message::new("T", "m")).unwrap();
                        sent += 1;
                        let due = begin + Duration::from_secs(1) * sent * THREADS / per_second;
                        thread::sleep(due.saturating_duration_since(Instant::now()));
                    }
                    sent as usize
                })
            })
            .collect();
        Self { stop, threads }
    }

    fn stop(self) -> usize {
        self.stop.store(true, Ordering::SeqCst);
        self.threads.into_iter().map(|t| t.join().unwrap()).sum()
    }
}
