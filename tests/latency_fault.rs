//! Brokers that are slow, fail and come back, with the latency switch on.
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
use std::time::Duration;

use rocketmq_blocking::{DefaultMQProducer, FaultItem, Message, request_code};
use rocketmq_embedded::{ControlAction, ControlScope, ControlTimes};
use support::{GENEROUS, cluster_of, library_threads, producer_of, started, wait_until};

/// Longer than any test here takes.
const LONG: Duration = Duration::from_secs(60 * 60);

/// How many of `sends` each broker stores.
fn shares(producer: &DefaultMQProducer, sends: usize) -> BTreeMap<String, usize> {
    let mut shares = BTreeMap::new();
    for _ in 0..sends {
        let result = producer.send(&Message::new("T", "m")).unwrap();
        *shares
            .entry(result.message_queue.broker_name().to_owned())
            .or_insert(0) += 1;
    }
    shares
}

fn item(producer: &DefaultMQProducer, broker: &str) -> Option<FaultItem> {
    let items = producer.fault_items();
    items.into_iter().find(|item| item.broker_name == broker)
}

fn even(sends: usize) -> BTreeMap<String, usize> {
    ["broker-a", "broker-b"]
        .map(|name| (name.to_owned(), sends / 2))
        .into()
}

#[test]
fn a_slow_broker_is_left_alone_and_the_switch_lets_it_back() {
    let cluster = cluster_of(2, 4);
    let scope = ControlScope::Broker("broker-a".to_owned());
    let slow = cluster.control_on(
        scope,
        request_code::SEND_MESSAGE_V2,
        ControlAction::Delay(Duration::from_millis(300)),
        ControlTimes::UntilLifted,
    );
    let producer = started(producer_of(&cluster).send_latency_fault_enable(true));
    // 200 ms is far above what a send on this machine takes, and below the delay.
    let from = Duration::from_millis(200);
    producer.set_latency_table(&[from], &[LONG]).unwrap();
    assert_eq!(producer.latency_table(), (vec![from], vec![LONG]));
    shares(&producer, 8);
    wait_until("the slow one is known", || {
        shares(&producer, 1);
        item(&producer, "broker-a").is_some_and(|item| !item.not_available_for.is_zero())
    });
    let hits = slow.hits();
    if item(&producer, "broker-b")
        .unwrap()
        .not_available_for
        .is_zero()
    {
        assert_eq!(shares(&producer, 40).get("broker-a"), None);
        assert_eq!(slow.hits(), hits);
        assert_eq!(
            producer.fault_items()[0].broker_name,
            "broker-b",
            "the better one"
        );
    }
    slow.lift();
    producer.set_send_latency_fault_enable(false);
    assert!(!producer.is_send_latency_fault_enable());
    assert_eq!(shares(&producer, 40), even(40));
}

#[test]
fn the_switch_works_on_a_producer_that_runs() {
    let cluster = cluster_of(2, 4);
    let producer = started(producer_of(&cluster));
    assert_eq!(shares(&producer, 40), even(40));
    assert!(producer.fault_items().is_empty(), "nothing is remembered");
    producer.set_send_latency_fault_enable(true);
    shares(&producer, 8);
    assert_eq!(producer.fault_items().len(), 2);
    let wrong = producer.set_latency_table(&[LONG], &[]).unwrap_err();
    assert!(
        wrong.to_string().contains("they must be as many"),
        "{wrong}"
    );
}

#[test]
fn a_failed_send_counts_as_ten_seconds_in_all_forms() {
    let cluster = cluster_of(2, 4);
    let busy = ControlAction::Respond(2, None);
    let scope = ControlScope::Broker("broker-a".to_owned());
    let code = request_code::SEND_MESSAGE_V2;
    let control = cluster.control_on(scope, code, busy, ControlTimes::UntilLifted);
    let table: [Duration; 2] = [Duration::from_secs(9), Duration::from_secs(11)];
    let waits = [LONG, Duration::ZERO];
    let producer = || {
        let builder = producer_of(&cluster).send_latency_fault_enable(true);
        started(builder.latency_max(table).not_available_duration(waits))
    };
    let waiting = producer();
    shares(&waiting, 8);
    let asynchronous = producer();
    let (to, outcomes) = std::sync::mpsc::channel();
    for _ in 0..8 {
        let to = to.clone();
        asynchronous
            .send_async(Message::new("T", "m"), move |outcome| {
                to.send(outcome).unwrap()
            })
            .unwrap();
    }
    for _ in 0..8 {
        outcomes.recv_timeout(GENEROUS).unwrap().unwrap();
    }
    assert!(control.hits() >= 2);
    for producer in [waiting, asynchronous] {
        let item = item(&producer, "broker-a").unwrap();
        assert!(
            !item.not_available_for.is_zero() && !item.reachable,
            "{item:?}"
        );
    }
}

#[test]
fn the_detector_finds_a_broker_that_is_back() {
    let cluster = cluster_of(2, 4);
    let producer = started(
        producer_of(&cluster)
            .send_latency_fault_enable(true)
            .detect_interval(Duration::from_millis(1))
            .detect_timeout(Duration::from_secs(5)),
    );
    shares(&producer, 8);
    assert!(!library_threads().contains(&"LatencyFaultTol".to_owned()));
    producer.set_start_detector_enable(true).unwrap();
    cluster.stop_broker("broker-a").unwrap();
    wait_until("a send has met the broker that is down", || {
        shares(&producer, 8);
        item(&producer, "broker-a").is_some_and(|item| !item.reachable)
    });
    cluster.start_broker("broker-a").unwrap();
    wait_until("a probe has reached it", || {
        item(&producer, "broker-a").is_none_or(|item| item.reachable)
    });
    producer.shutdown(GENEROUS);
    wait_until("its thread has ended", || {
        !library_threads().contains(&"LatencyFaultTol".to_owned())
    });
}
