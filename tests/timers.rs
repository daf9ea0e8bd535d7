//! A hundred messages with times of their own. On a real cluster too, with `recallMessageEnable=true` and
//! its clock in step with this machine's.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and is outside of what loom models"
)]

mod support;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQPushConsumer,
    MQClientManager, Message, MessageExt,
};
use support::{GENEROUS, Target, producer_in, quick, started, unique, wait_until};

const MESSAGES: usize = 100;
const TIMEOUT: Duration = Duration::from_secs(5);

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_millis() as i64
}

/// A message that came, and when.
#[derive(Debug, Clone)]
struct Arrival {
    at: i64,
    number: usize,
}

type Arrivals = Arc<Mutex<Vec<Arrival>>>;

fn consumer(target: &Target, topic: &str, arrivals: &Arrivals) -> DefaultMQPushConsumer {
    let arrivals = Arc::clone(arrivals);
    let note = move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
        let at = now();
        for message in messages {
            let body = String::from_utf8(message.body().to_vec()).unwrap();
            let number = body.parse().unwrap();
            arrivals.lock().unwrap().push(Arrival { at, number });
        }
        ConsumeConcurrentlyStatus::ConsumeSuccess
    };
    let consumer = quick(DefaultMQPushConsumer::builder(unique("cg")))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(target.namesrv())
        .subscribe(topic, "*")
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .consume_threads(1)
        .message_listener(note)
        .build()
        .unwrap();
    consumer.start().unwrap();
    consumer
}

#[test]
fn a_hundred_messages_come_in_the_order_of_their_seconds_and_none_early() {
    let target = Target::start(1);
    if let Some(cluster) = target.embedded() {
        let set = cluster.configure(|config| config.recall_message_enable = true);
        set.unwrap();
    }
    let topic = unique("Timers");
    target.create_topic(&topic, 1);
    let producer = producer_in(&unique("pg"), target.namesrv());
    let producer = started(producer.send_msg_timeout(GENEROUS));
    let arrivals = Arrivals::default();
    let consumer = consumer(&target, &topic, &arrivals);
    producer.send(&Message::new(&*topic, "1000")).unwrap();
    wait_until("the consumer has begun", || {
        arrivals.lock().unwrap().len() == 1
    });
    arrivals.lock().unwrap().clear();

    // Delays from 1 to 20 s in an order that is none.
    let delay = |number: usize| 1000 + (number * 37 % MESSAGES * 191) as i64;
    let send = |number: usize, due: i64| {
        let mut message = Message::new(&*topic, number.to_string());
        message.set_deliver_time_ms(due);
        let handle = producer.send(&message).unwrap().recall_handle;
        handle.expect("a timer message can be taken back")
    };
    let start = now();
    let due: Vec<i64> = (0..MESSAGES).map(|number| start + delay(number)).collect();
    let handles: Vec<String> = (0..MESSAGES).map(|n| send(n, due[n])).collect();
    // One is taken back at once, one while others come, one shortly before its time.
    let extra = [
        (MESSAGES, 6000),
        (MESSAGES + 1, 15_000),
        (MESSAGES + 2, 12_000),
    ]
    .map(|(number, delay)| send(number, start + delay));
    let take_back = |handle: &str| producer.recall_message(&topic, handle);
    take_back(&extra[0]).unwrap();
    let wait_for = |millis: i64| {
        wait_until("time goes on", || now() >= start + millis);
    };
    wait_for(8000);
    take_back(&extra[1]).unwrap();
    let early = handles[(0..MESSAGES).min_by_key(|n| due[*n]).unwrap()].clone();
    let late = take_back(&early).unwrap_err();
    assert!(late.broker_code().is_some(), "its time was over: {late}");
    wait_for(9500);
    take_back(&extra[2]).unwrap();

    let came = || arrivals.lock().unwrap().len();
    wait_for(20_000);
    wait_until("all have come", || came() >= MESSAGES);
    // The last ones were due after all that were taken back, so none of these follows.
    let arrivals = arrivals.lock().unwrap().clone();
    let numbers: BTreeSet<usize> = arrivals.iter().map(|arrival| arrival.number).collect();
    assert_eq!(
        (arrivals.len(), numbers),
        (MESSAGES, (0..MESSAGES).collect())
    );
    for Arrival { at, number } in &arrivals {
        assert!(
            *at >= due[*number],
            "{number} came {} ms early",
            due[*number] - at
        );
    }
    // A broker takes an exact second for the one before it.
    let second = |number: usize| (due[number] - 1).div_euclid(1000);
    let seconds: Vec<i64> = arrivals
        .iter()
        .map(|arrival| second(arrival.number))
        .collect();
    assert!(seconds.is_sorted(), "{seconds:?}");
    assert!(seconds.last().unwrap() - seconds[0] >= 18, "{seconds:?}");
    consumer.shutdown(TIMEOUT);
    producer.shutdown(GENEROUS);
}
