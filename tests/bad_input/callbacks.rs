use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, DefaultMQPushConsumer, Message,
    MessageExt, MessageQueue, RPCHook,
};
use rocketmq_embedded::Cluster;
use rocketmq_protocol::{RemotingCommand, request_code};

use crate::support::{GENEROUS, Inbox, keep_logs, logged, wait_until};
use crate::{LIMIT, SLACK, consumer_builder, producer, producer_builder, says, started};

const DONE: ConsumeConcurrentlyStatus = ConsumeConcurrentlyStatus::ConsumeSuccess;

fn cluster() -> Cluster {
    let levels = [std::time::Duration::from_millis(20); 18];
    let cluster = Cluster::builder().delay_levels(levels).start().unwrap();
    cluster.create_topic("T", 1).unwrap();
    cluster
}

#[test]
fn what_a_listener_panics_at_is_delivered_again() {
    keep_logs();
    let cluster = cluster();
    let namesrv = cluster.namesrv_addr();
    let inbox = Inbox::new();
    let (calls, kept) = (AtomicUsize::new(0), inbox.clone());
    let consumer = consumer_builder(&namesrv, "panicking")
        .message_listener(
            move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                if calls.fetch_add(1, Ordering::SeqCst) < 2 {
                    panic!("a listener, on purpose");
                }
                kept.put(messages);
                DONE
            },
        )
        .build()
        .unwrap();
    consumer.start().unwrap();
    producer(&namesrv).send(&Message::new("T", "m")).unwrap();
    let message = &inbox.wait_for(1)[0];
    assert_eq!(
        (&message.body()[..], message.reconsume_times()),
        (&b"m"[..], 2)
    );
    assert!(!logged(&["group panicking", "panicked", "topic=T"]).is_empty());
    let report = consumer.shutdown(GENEROUS);
    assert!(report.threads_joined && report.abandoned == 0, "{report:?}");
}

#[test]
fn a_listener_that_never_returns_does_not_keep_a_shutdown_which_says_so() {
    let cluster = cluster();
    let namesrv = cluster.namesrv_addr();
    let producer = producer(&namesrv);
    for n in 0..3 {
        producer.send(&Message::new("T", format!("m{n}"))).unwrap();
    }
    let (go, waits) = channel::<()>();
    let (entered, entries) = channel();
    let (waits, entered) = (Mutex::new(waits), Mutex::new(entered));
    let consumer = consumer_builder(&namesrv, "g")
        .consume_threads(1)
        .message_listener(
            move |_: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                entered.lock().unwrap().send(()).unwrap();
                let _ = waits.lock().unwrap().recv();
                DONE
            },
        )
        .build()
        .unwrap();
    consumer.start().unwrap();
    entries.recv_timeout(GENEROUS).unwrap();
    let begun = Instant::now();
    let report = consumer.shutdown(LIMIT);
    assert!(begun.elapsed() < LIMIT + SLACK, "{:?}", begun.elapsed());
    assert!(!report.threads_joined && !report.deferred, "{report:?}");
    assert_eq!(report.drained, 0, "{report:?}");
    wait_until("it has left its group", || {
        cluster.consumer_ids("g").is_empty()
    });

    // What it has not done is delivered to the next one.
    let inbox = Inbox::new();
    let next = consumer_builder(&namesrv, "g")
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    next.start().unwrap();
    inbox.wait_for_bodies(3);
    assert!(next.shutdown(GENEROUS).threads_joined);
    drop(go);
}

#[test]
fn a_listener_may_call_all_that_blocks() {
    let cluster = cluster();
    let namesrv = cluster.namesrv_addr();
    let producer = producer(&namesrv);
    let (own, sender): (Arc<OnceLock<DefaultMQPushConsumer>>, _) =
        (Arc::default(), producer.clone());
    let (done, outcome) = channel();
    let (handle, done) = (Arc::clone(&own), Mutex::new(done));
    let other = namesrv.clone();
    let consumer = consumer_builder(&namesrv, "g")
        .message_listener(
            move |_: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                wait_until("the test has put it there", || handle.get().is_some());
                let consumer = handle.get().unwrap();
                sender.send(&Message::new("Sent", "by a listener")).unwrap();
                consumer.subscribe("Elsewhere", "*").unwrap();
                let started = started(producer_builder(&other));
                started
                    .send(&Message::new("Sent", "by another one"))
                    .unwrap();
                // It is none of the listener's own, but ended in the background all the same.
                let reports = [
                    started.shutdown(GENEROUS),
                    sender.shutdown(GENEROUS),
                    consumer.shutdown(GENEROUS),
                ];
                let sent = sender.send(&Message::new("Sent", "too late")).unwrap_err();
                done.lock().unwrap().send((reports, sent)).unwrap();
                DONE
            },
        )
        .build()
        .unwrap();
    consumer.start().unwrap();
    assert!(own.set(consumer.clone()).is_ok());
    producer.send(&Message::new("T", "m")).unwrap();
    let (reports, sent) = outcome.recv_timeout(GENEROUS).unwrap();
    assert!(reports.iter().all(|report| report.deferred), "{reports:?}");
    says(
        &sent,
        &["using producer p", "SHUTDOWN_ALREADY", "build a new one"],
    );
    let report = consumer.await_termination(GENEROUS).unwrap();
    assert!(report.threads_joined && report.drained == 1, "{report:?}");
    assert!(producer.await_termination(GENEROUS).unwrap().threads_joined);
    assert_eq!(cluster.stored_count("Sent"), 2);
    let mq = MessageQueue::new("T", "broker-a", 0);
    assert_eq!(
        cluster.committed_offset("g", &mq),
        Some(1),
        "the listener's result counts"
    );
}

#[test]
fn a_listener_of_queue_changes_may_shut_its_consumer_down_and_panic() {
    let cluster = cluster();
    let own: Arc<OnceLock<DefaultMQPushConsumer>> = Arc::default();
    let (done, outcome) = channel();
    let (handle, done) = (Arc::clone(&own), Mutex::new(done));
    let consumer = consumer_builder(&cluster.namesrv_addr(), "g")
        .message_listener(Inbox::new().listener())
        .message_queue_listener(move |_: &str, _: &[MessageQueue], _: &[MessageQueue]| {
            wait_until("the test has put it there", || handle.get().is_some());
            let report = handle.get().unwrap().shutdown(GENEROUS);
            let _ = done.lock().unwrap().send(report.deferred);
            panic!("a listener of queue changes, on purpose");
        })
        .build()
        .unwrap();
    consumer.start().unwrap();
    assert!(own.set(consumer.clone()).is_ok());
    assert!(outcome.recv_timeout(GENEROUS).unwrap(), "deferred");
    assert!(consumer.await_termination(GENEROUS).unwrap().threads_joined);
    wait_until("it has left its group", || {
        cluster.consumer_ids("g").is_empty()
    });
}

/// Panics before some requests, and after the answers to others.
struct Panics {
    before: i32,
    after: i32,
}

impl RPCHook for Panics {
    fn do_before_request(&self, _: &str, request: &mut RemotingCommand) {
        assert_ne!(request.code, self.before, "on purpose");
    }

    fn do_after_response(&self, _: &str, request: &RemotingCommand, _: &RemotingCommand) {
        assert_ne!(request.code, self.after, "on purpose");
    }
}

#[test]
fn a_hook_that_panics_is_named_and_what_was_answered_counts() {
    keep_logs();
    let cluster = cluster();
    let hooked = |before, after| {
        started(
            producer_builder(&cluster.namesrv_addr()).rpc_hook(Arc::new(Panics { before, after })),
        )
    };
    let message = Message::new("T", "m");
    let error = hooked(request_code::SEND_MESSAGE_V2, 0)
        .send(&message)
        .unwrap_err();
    let addr = cluster.broker_addr("broker-a").unwrap();
    let words = format!("the RPC hook panicked before request 310 to {addr}");
    says(&error, &["topic T", "broker-a", &words]);
    assert!(!error.may_have_been_stored());
    assert_eq!(cluster.stored_count("T"), 0);
    hooked(0, request_code::SEND_MESSAGE_V2)
        .send(&message)
        .unwrap();
    assert_eq!(cluster.stored_count("T"), 1);
    assert!(
        !logged(&[
            "the RPC hook panicked after the answer to request 310",
            &addr
        ])
        .is_empty()
    );
}
