//! A slow broker and a killed one among three, with the latency switch and the detector on.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test is outside of what loom models, and fails by panicking"
)]

mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rocketmq_blocking::{
    DefaultMQProducer, MQClientManager, Message, RPCHook, RemotingCommand, request_code,
};
use rocketmq_embedded::{Cluster, ControlAction, ControlScope, ControlTimes};
use support::{GENEROUS, wait_until};

/// How many messages went to each address, attempts that failed included.
#[derive(Debug, Default)]
struct Traffic(Mutex<BTreeMap<String, usize>>);

impl RPCHook for Traffic {
    fn do_before_request(&self, addr: &str, request: &mut RemotingCommand) {
        if request.code == request_code::SEND_MESSAGE_V2 {
            *self.0.lock().unwrap().entry(addr.to_owned()).or_insert(0) += 1;
        }
    }

    fn do_after_response(&self, _: &str, _: &RemotingCommand, _: &RemotingCommand) {}
}

impl Traffic {
    fn to(&self, addr: &str) -> usize {
        self.0.lock().unwrap().get(addr).copied().unwrap_or(0)
    }
}

/// A slow broker gets nothing for as long as it is to be left alone. A killed one is tried once each time
/// that is over, and gets messages again once it is back; no send fails.
#[test]
fn a_slow_and_a_killed_broker_are_left_alone_and_come_back() {
    const SLOW: Duration = Duration::from_millis(1500);
    const BACK_OFF: Duration = Duration::from_secs(2);
    let cluster = Cluster::builder().brokers(3).start().unwrap();
    cluster.create_topic("T", 2).unwrap();
    let addr = |broker: &str| cluster.broker_addr(broker).unwrap();
    let (b, c) = (addr("broker-b"), addr("broker-c"));
    let traffic = Arc::new(Traffic::default());
    let producer = DefaultMQProducer::builder("p")
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&cluster.namesrv_addr())
        .rpc_hook(traffic.clone())
        .send_msg_timeout(GENEROUS)
        .send_latency_fault_enable(true)
        .latency_max([Duration::from_secs(1)])
        .not_available_duration([BACK_OFF])
        .start_detector_enable(true)
        .detect_interval(Duration::from_millis(1))
        .detect_timeout(Duration::from_secs(5))
        .build()
        .unwrap();
    producer.start().unwrap();
    let item = |broker: &str| {
        let items = producer.fault_items();
        items.into_iter().find(|item| item.broker_name == broker)
    };
    let available = |broker: &str| {
        let item = item(broker);
        item.is_none_or(|item| item.not_available_for.is_zero())
    };
    let mut sent = 0;
    let mut send = || {
        sent += 1;
        let result = producer.send(&Message::new("T", "m")).unwrap();
        result.message_queue.broker_name().to_owned()
    };
    wait_until("all three get messages", || {
        send();
        ["broker-a", "broker-b", "broker-c"]
            .iter()
            .all(|broker| traffic.to(&addr(broker)) > 0)
    });

    let scope = ControlScope::Broker("broker-b".to_owned());
    let code = request_code::SEND_MESSAGE_V2;
    let delay = ControlAction::DelayAnswer(SLOW);
    let slow = cluster.control_on(scope, code, delay, ControlTimes::UntilLifted);
    wait_until("the slow one is known", || {
        send();
        !available("broker-b")
    });
    let slow_item = item("broker-b").unwrap();
    assert!(slow_item.current_latency >= SLOW && slow_item.reachable);
    slow.lift();
    let before = traffic.to(&b);
    let mut left_alone = 0;
    loop {
        let broker = send();
        // Looked at after the send, so that it fell into the time for certain.
        if available("broker-b") {
            break;
        }
        left_alone += 1;
        assert_ne!(broker, "broker-b");
        assert_eq!(traffic.to(&b), before, "after {left_alone} sends");
    }
    assert!(left_alone > 0);
    wait_until("it gets messages again", || send() == "broker-b");

    cluster.kill_broker("broker-c").unwrap();
    wait_until("a send has met the killed one, and gone elsewhere", || {
        send();
        item("broker-c").is_some_and(|item| !item.reachable)
    });
    let known = Instant::now();
    let left_alone_for = item("broker-c").unwrap().not_available_for;
    assert!(!left_alone_for.is_zero());
    let before = traffic.to(&c);
    wait_until("it is tried once more", || {
        assert_ne!(send(), "broker-c");
        traffic.to(&c) > before
    });
    assert!(known.elapsed() >= left_alone_for, "its time was over");
    assert_eq!(traffic.to(&c), before + 1);
    assert!(!available("broker-c") && !item("broker-c").unwrap().reachable);

    cluster.start_broker("broker-c").unwrap();
    wait_until("a probe has reached it", || {
        item("broker-c").unwrap().reachable
    });
    assert_eq!(traffic.to(&c), before + 1, "a probe is no message");
    wait_until("it gets messages again", || send() == "broker-c");
    assert!(item("broker-c").unwrap().reachable);
    assert!(cluster.stored_count("T") >= sent, "nothing is lost");
}
