//! Transactional messages: what consumers get, what brokers ask, and who answers.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and is outside of what loom models"
)]

mod support;

use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rocketmq_blocking::{
    ConsumeFromWhere, DefaultMQProducer, DefaultMQPushConsumer, Error, LocalTransactionState,
    MQClientManager, Message, MessageExt, TransactionListener, TransactionMQProducer, request_code,
};
use rocketmq_embedded::{BrokerConfig, Cluster, ControlAction, ControlTimes};
use support::{GENEROUS, Inbox, Target, quick, unique, wait_until};

const TIMEOUT: Duration = Duration::from_secs(5);
const HALF_TOPIC: &str = "RMQ_SYS_TRANS_HALF_TOPIC";

/// Says what the message's body says, when it is executed and when it is checked.
#[derive(Clone, Default)]
struct AsTold {
    executed: Arc<Mutex<Vec<Message>>>,
    checked: Arc<Mutex<Vec<MessageExt>>>,
}

fn told(message: &Message, word: usize) -> LocalTransactionState {
    let body = String::from_utf8_lossy(message.body()).into_owned();
    match body.split(' ').nth(word) {
        Some("commit") => LocalTransactionState::CommitMessage,
        Some("rollback") => LocalTransactionState::RollbackMessage,
        Some("panic") => panic!("as told"),
        _ => LocalTransactionState::Unknown,
    }
}

impl TransactionListener for AsTold {
    fn execute_local_transaction(&self, message: &Message, arg: &dyn Any) -> LocalTransactionState {
        assert_eq!(arg.downcast_ref(), Some(&7));
        self.executed.lock().unwrap().push(message.clone());
        told(message, 0)
    }

    fn check_local_transaction(&self, message: &MessageExt) -> LocalTransactionState {
        self.checked.lock().unwrap().push(message.clone());
        told(message, 1)
    }
}

impl AsTold {
    fn checked_bodies(&self) -> Vec<String> {
        let checked = self.checked.lock().unwrap();
        let bodies = checked.iter().map(|message| message.body().to_vec());
        bodies
            .map(|body| String::from_utf8(body).unwrap())
            .collect()
    }
}

fn cluster() -> Cluster {
    let cluster = Cluster::builder()
        .configure(|config| {
            config.transaction_check_interval = Duration::from_millis(50);
            config.transaction_time_out = Duration::ZERO;
        })
        .start()
        .unwrap();
    cluster.create_topic("T", 1).unwrap();
    cluster
}

fn producer(
    cluster: &Cluster,
    manager: &MQClientManager,
    group: &str,
    listener: &AsTold,
) -> TransactionMQProducer {
    let producer = DefaultMQProducer::builder(group)
        .client_manager(manager)
        .namesrv_addr(&cluster.namesrv_addr())
        .transaction_listener(listener.clone())
        .build()
        .unwrap();
    producer.start().unwrap();
    producer
}

fn send(producer: &TransactionMQProducer, body: &str) -> LocalTransactionState {
    let message = Message::new("T", body.as_bytes().to_vec()).with_keys(body.replace(' ', "-"));
    let sent = producer.send_message_in_transaction(&message, &7).unwrap();
    sent.local_transaction_state
}

/// What consumers see. A broker that is slow to hear an answer asks again, and stores each commit.
fn visible(cluster: &Cluster) -> Vec<String> {
    let messages = cluster.messages("T");
    let mut bodies: Vec<_> = messages
        .iter()
        .map(|message| String::from_utf8(message.body().to_vec()).unwrap())
        .collect();
    bodies.sort();
    bodies.dedup();
    bodies
}

/// apache/rocketmq-client-cpp#247, apache/rocketmq#8316: a broker's check found no producer to ask,
/// or another group's was asked. Groups are in heartbeats, and each hears of its own messages only.
#[test]
fn b112_each_group_of_a_process_hears_of_its_own_messages() {
    let cluster = cluster();
    let manager = MQClientManager::new();
    let (listener_a, listener_b) = (AsTold::default(), AsTold::default());
    let a = producer(&cluster, &manager, "ga", &listener_a);
    let b = producer(&cluster, &manager, "gb", &listener_b);
    assert_eq!(a.client_id(), b.client_id(), "they share an instance");
    assert_eq!(send(&a, "unknown commit a"), LocalTransactionState::Unknown);
    // The group that has sent nothing is known to the broker as well.
    wait_until("the broker knows both groups", || {
        ["ga", "gb"]
            .iter()
            .all(|group| cluster.producer_ids_on("broker-a", group).len() == 1)
    });
    send(&b, "unknown commit b");
    send(&a, "unknown rollback a");
    wait_until("what is to be committed is there", || {
        visible(&cluster) == ["unknown commit a", "unknown commit b"]
    });
    wait_until("the message that is rolled back has been asked for", || {
        let bodies = listener_a.checked_bodies();
        bodies.contains(&"unknown rollback a".to_owned())
    });
    // Once all are decided, none is put back for another check.
    let mut before = 0;
    wait_until("nothing is left to ask for", || {
        let now = cluster.stored_count(HALF_TOPIC);
        let same = now == before;
        before = now;
        std::thread::sleep(Duration::from_millis(150));
        same
    });
    assert_eq!(visible(&cluster), ["unknown commit a", "unknown commit b"]);
    assert!(
        listener_a
            .checked_bodies()
            .iter()
            .all(|body| body.ends_with('a'))
    );
    assert!(
        listener_b
            .checked_bodies()
            .iter()
            .all(|body| body.ends_with('b'))
    );
    let checked = listener_b.checked.lock().unwrap()[0].clone();
    let executed = listener_b.executed.lock().unwrap()[0].clone();
    assert_eq!((checked.topic(), checked.broker_name()), ("T", "broker-a"));
    for name in ["UNIQ_KEY", "__transactionId__", "KEYS", "PGROUP"] {
        assert!(checked.property(name).is_some(), "{name}: {checked:?}");
        assert_eq!(checked.property(name), executed.property(name), "{name}");
    }
}

/// What consumers get, on a real cluster too (with `transactionCheckInterval=1000`, lest it take half
/// a minute).
#[test]
fn consumers_get_what_is_committed_at_once_or_when_asked() {
    let target = Target::start(1);
    if let Some(cluster) = target.embedded() {
        let interval = Duration::from_millis(50);
        let set = cluster.configure(|config| {
            config.transaction_check_interval = interval;
            config.transaction_time_out = Duration::from_millis(100);
        });
        set.unwrap();
        // The interval that has begun is the long one.
        cluster.stop_broker("broker-a").unwrap();
        cluster.start_broker("broker-a").unwrap();
    }
    let topic = unique("Transactions");
    target.create_topic(&topic, 2);
    let inbox = Inbox::new();
    let consumer = DefaultMQPushConsumer::builder(unique("g"))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(target.namesrv())
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .subscribe(&topic, "A")
        .message_listener(inbox.listener());
    let consumer = quick(consumer).build().unwrap();
    consumer.start().unwrap();
    let listener = AsTold::default();
    let producer = DefaultMQProducer::builder(unique("pg"))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(target.namesrv())
        .transaction_listener(listener.clone())
        .build()
        .unwrap();
    producer.start().unwrap();
    for body in ["rollback", "unknown rollback", "commit", "unknown commit"] {
        let message = Message::new(topic.as_str(), body.as_bytes().to_vec()).with_tags("A");
        producer.send_message_in_transaction(&message, &7).unwrap();
    }
    inbox.wait_for_bodies(2);
    wait_until("the one to be rolled back was asked for", || {
        let bodies = listener.checked_bodies();
        bodies.contains(&"unknown rollback".to_owned())
    });
    let bodies = inbox.bodies();
    assert_eq!(
        bodies.keys().collect::<Vec<_>>(),
        ["commit", "unknown commit"]
    );
    consumer.shutdown(TIMEOUT);
}

#[test]
fn a_decision_needs_no_question() {
    let cluster = cluster();
    cluster
        .configure(|config| config.transaction_time_out = Duration::from_secs(3600))
        .unwrap();
    let listener = AsTold::default();
    let producer = producer(&cluster, &MQClientManager::new(), "g", &listener);
    let message = Message::new("T", vec![b'c'; 5000]).with_tags("A");
    let compressed = TransactionMQProducer::send_message_in_transaction;
    let sent = compressed(&producer, &message, &7).unwrap();
    assert_eq!(sent.local_transaction_state, LocalTransactionState::Unknown);
    assert_eq!(
        send(&producer, "rollback x"),
        LocalTransactionState::RollbackMessage
    );
    assert_eq!(
        send(&producer, "commit x"),
        LocalTransactionState::CommitMessage
    );
    wait_until("the committed one is there", || {
        visible(&cluster) == ["commit x"]
    });
    let stored = &cluster.messages("T")[0];
    assert_eq!(stored.sys_flag(), 8);
    assert_eq!(cluster.request_count(request_code::END_TRANSACTION), 3);
    assert!(listener.checked_bodies().is_empty());
    // The first is asked for once it is old enough, and reads as it was sent.
    cluster
        .configure(|config| config.transaction_time_out = Duration::ZERO)
        .unwrap();
    wait_until("it is asked for", || !listener.checked_bodies().is_empty());
    assert_eq!(listener.checked_bodies()[0].len(), 5000);
}

#[test]
fn a_listener_that_panics_has_decided_nothing_and_is_asked_again() {
    let cluster = cluster();
    let listener = AsTold::default();
    let producer = producer(&cluster, &MQClientManager::new(), "g", &listener);
    assert_eq!(
        send(&producer, "panic panic"),
        LocalTransactionState::Unknown
    );
    assert_eq!(
        send(&producer, "panic commit"),
        LocalTransactionState::Unknown
    );
    wait_until("the second is committed", || {
        visible(&cluster) == ["panic commit"]
    });
    wait_until("the first is asked for again", || {
        let bodies = listener.checked_bodies();
        bodies.iter().filter(|body| *body == "panic panic").count() > 1
    });
    assert!(producer.shutdown(TIMEOUT).threads_joined);
}

#[test]
fn what_is_not_stored_safely_is_rolled_back_without_the_listener() {
    let cluster = cluster();
    let listener = AsTold::default();
    let producer = producer(&cluster, &MQClientManager::new(), "g", &listener);
    let edit = ControlAction::edit_answer(|answer| answer.code = 10);
    let control = cluster.control(request_code::SEND_MESSAGE_V2, edit, ControlTimes::Once);
    assert_eq!(
        send(&producer, "commit"),
        LocalTransactionState::RollbackMessage
    );
    assert_eq!(control.hits(), 1);
    assert!(listener.executed.lock().unwrap().is_empty());
    wait_until("the broker has been told", || {
        cluster.request_count(request_code::END_TRANSACTION) >= 1
    });
    assert_eq!(cluster.stored_count("T"), 0);
}

/// A producer is known to the brokers that its routes name (Java's as well), and so asked of what others
/// of its group have sent before it has sent anything itself, if it names their topic for the start.
#[test]
fn a_producer_that_has_sent_nothing_is_asked_once_its_topics_are_named() {
    let cluster = cluster();
    let keep = |config: &mut BrokerConfig| config.transaction_time_out = GENEROUS;
    cluster.configure(keep).unwrap();
    let listener = AsTold::default();
    let sender = producer(&cluster, &MQClientManager::new(), "g", &AsTold::default());
    let idle = producer(&cluster, &MQClientManager::new(), "g", &listener);
    let known = || cluster.producer_ids_on("broker-a", "g");
    send(&sender, "unknown commit");
    wait_until("the sender is known", || known().len() == 1);
    sender.shutdown(TIMEOUT);
    wait_until("nobody of the group is known", || known().is_empty());
    let ask = |config: &mut BrokerConfig| config.transaction_time_out = Duration::ZERO;
    cluster.configure(ask).unwrap();
    let named = DefaultMQProducer::builder("g")
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&cluster.namesrv_addr())
        .topics(["T", "Missing"])
        .transaction_listener(listener.clone())
        .build()
        .unwrap();
    named.start().unwrap();
    wait_until("it is committed", || {
        visible(&cluster) == ["unknown commit"]
    });
    assert_eq!(listener.checked_bodies(), ["unknown commit"]);
    assert_eq!(known(), [named.client_id().unwrap()]);
    let asked = cluster.request_count(request_code::GET_ROUTEINFO_BY_TOPIC);
    named.send(&Message::new("T", "m")).unwrap();
    assert_eq!(
        cluster.request_count(request_code::GET_ROUTEINFO_BY_TOPIC),
        asked,
        "the first send needs no route"
    );
    idle.shutdown(TIMEOUT);
}

#[test]
fn a_message_cannot_wait_for_its_transaction_and_for_a_time() {
    let cluster = cluster();
    let listener = AsTold::default();
    let producer = producer(&cluster, &MQClientManager::new(), "g", &listener);
    type Delay = fn(&mut Message);
    let delays: [Delay; 4] = [
        |message| message.set_delay_time_level(1),
        |message| message.set_delay_time_sec(1),
        |message| message.set_delay_time_ms(1),
        |message| message.set_deliver_time_ms(1),
    ];
    for delay in delays {
        let mut message = Message::new("T", b"commit".as_slice());
        delay(&mut message);
        let refused = producer
            .send_message_in_transaction(&message, &7)
            .unwrap_err();
        assert!(matches!(refused, Error::InvalidMessage { .. }), "{refused}");
    }
    assert!(listener.executed.lock().unwrap().is_empty());
    assert_eq!(cluster.stored_count(HALF_TOPIC), 0);
}

/// Blocks its first check until the test lets it go.
struct Blocked {
    calls: Arc<AtomicUsize>,
    gate: Mutex<std::sync::mpsc::Receiver<()>>,
}

impl TransactionListener for Blocked {
    fn execute_local_transaction(&self, _: &Message, _: &dyn Any) -> LocalTransactionState {
        LocalTransactionState::Unknown
    }

    fn check_local_transaction(&self, _: &MessageExt) -> LocalTransactionState {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let _ = self.gate.lock().unwrap().recv();
        LocalTransactionState::CommitMessage
    }
}

#[test]
fn a_check_that_takes_long_holds_up_neither_sends_nor_the_client() {
    let cluster = cluster();
    let (open, gate) = std::sync::mpsc::channel();
    let calls = Arc::new(AtomicUsize::new(0));
    let listener = Blocked {
        calls: Arc::clone(&calls),
        gate: Mutex::new(gate),
    };
    let producer = DefaultMQProducer::builder("g")
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&cluster.namesrv_addr())
        .transaction_listener(listener)
        .check_request_hold_max(1)
        .build()
        .unwrap();
    producer.start().unwrap();
    let message = Message::new("T", b"half".as_slice());
    producer.send_message_in_transaction(&message, &()).unwrap();
    wait_until("the check has begun", || calls.load(Ordering::SeqCst) == 1);
    for _ in 0..20 {
        producer
            .send(&Message::new("T", b"plain".as_slice()))
            .unwrap();
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1, "there is one thread");
    drop(open);
    wait_until("it is committed", || {
        visible(&cluster).contains(&"half".to_owned())
    });
}
