//! Every way to send: waiting, with a callback, without an answer, to a given queue, to a chosen one, in
//! batches.
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
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rocketmq_blocking::service::ServiceState;
use rocketmq_blocking::{
    DefaultMQProducerBuilder, Error, Message, MessageQueue, SelectMessageQueueByHash, SendFailure,
    SendResult, request_code, response_code, split_batch,
};
use rocketmq_embedded::{Cluster, ControlAction, ControlHandle, ControlScope, ControlTimes};
use support::{GENEROUS, cluster_of, keep_logs, logged, producer_of, started, wait_until};

const SEND_MESSAGE_V2: i32 = request_code::SEND_MESSAGE_V2;

type Outcome = Result<SendResult, SendFailure>;

fn at_broker_a(cluster: &Cluster, action: ControlAction) -> ControlHandle {
    let scope = ControlScope::Broker("broker-a".to_owned());
    cluster.control_on(scope, SEND_MESSAGE_V2, action, ControlTimes::UntilLifted)
}

fn busy() -> ControlAction {
    ControlAction::Respond(response_code::SYSTEM_BUSY, None)
}

fn message(body: &str) -> Message {
    Message::new("T", body.to_owned())
}

fn told() -> (Sender<Outcome>, Receiver<Outcome>) {
    channel()
}

fn tell(to: &Sender<Outcome>) -> impl FnOnce(Outcome) + Send + 'static {
    let to = to.clone();
    move |outcome| to.send(outcome).unwrap()
}

#[test]
fn a_callback_is_told_of_what_is_stored_on_a_thread_of_its_own() {
    let cluster = cluster_of(2, 4);
    let producer = started(producer_of(&cluster));
    let (to, outcomes) = channel();
    for n in 0..100 {
        let to = to.clone();
        let told = move |outcome: Outcome| {
            let name = thread::current().name().unwrap_or_default().to_owned();
            to.send((name, outcome.unwrap().msg_id)).unwrap();
        };
        producer
            .send_async(message(&format!("m{n}")), told)
            .unwrap();
    }
    drop(to);
    let mut ids = BTreeSet::new();
    for _ in 0..100 {
        let (name, id) = outcomes.recv_timeout(GENEROUS).unwrap();
        assert!(name.starts_with("SendCallbackExecutor_"), "{name}");
        ids.insert(id);
    }
    assert!(outcomes.recv_timeout(GENEROUS).is_err(), "each once");
    let stored: BTreeSet<String> = cluster
        .messages("T")
        .iter()
        .map(|m| m.msg_id().to_owned())
        .collect();
    assert_eq!((stored.len(), stored), (100, ids));
}

#[test]
fn an_asynchronous_send_is_tried_again_and_the_message_comes_back_in_the_end() {
    let cluster = cluster_of(2, 4);
    let producer = started(producer_of(&cluster).retry_times_when_send_async_failed(3));
    let (to, outcomes) = told();
    let at_a = at_broker_a(&cluster, busy());
    for n in 0..8 {
        producer
            .send_async(message(&format!("m{n}")), tell(&to))
            .unwrap();
    }
    for _ in 0..8 {
        let result = outcomes.recv_timeout(GENEROUS).unwrap().unwrap();
        assert_eq!(result.message_queue.broker_name(), "broker-b");
    }
    assert!(at_a.hits() > 0);
    at_a.lift();

    let everywhere = cluster.control(SEND_MESSAGE_V2, busy(), ControlTimes::UntilLifted);
    producer.send_async(message("refused"), tell(&to)).unwrap();
    let failure = outcomes.recv_timeout(GENEROUS).unwrap().unwrap_err();
    assert_eq!(failure.message(), &message("refused"));
    assert_eq!(
        failure.error().broker_code(),
        Some(response_code::SYSTEM_BUSY)
    );
    assert!(!failure.error().may_have_been_stored());
    assert_eq!(everywhere.hits(), 4);
    assert_eq!(cluster.stored_count("T"), 8);
}

#[test]
fn a_silent_broker_ends_an_asynchronous_send_at_its_deadline() {
    let cluster = cluster_of(2, 4);
    let producer = started(producer_of(&cluster));
    cluster.control(
        SEND_MESSAGE_V2,
        ControlAction::Drop,
        ControlTimes::UntilLifted,
    );
    let (to, outcomes) = told();
    let limit = Duration::from_millis(200);
    producer
        .send_async_with_timeout(message("m"), limit, tell(&to))
        .unwrap();
    let failure = outcomes.recv_timeout(GENEROUS).unwrap().unwrap_err();
    assert!(failure.error().may_have_been_stored(), "{failure:?}");
    assert_eq!(failure.into_message(), message("m"));
}

#[test]
fn what_is_wrong_from_the_start_comes_back_at_once_and_runs_no_callback() {
    let cluster = cluster_of(2, 4);
    let producer = started(producer_of(&cluster));
    let never = |_: Outcome| panic!("it was refused");
    let empty = producer.send_async(message(""), never).unwrap_err();
    assert!(
        matches!(empty.error(), Error::InvalidMessage { .. }),
        "{empty:?}"
    );
    assert_eq!(empty.message(), &message(""));
    let elsewhere = MessageQueue::new("U", "broker-a", 0);
    let other = producer.send_async_to_queue(message("m"), &elsewhere, never);
    let (error, returned) = other.unwrap_err().into_parts();
    assert!(error.to_string().contains("of another topic"), "{error}");
    assert_eq!(returned, message("m"));
    producer.shutdown(GENEROUS);
    let ended = producer.send_async(message("m"), never).unwrap_err();
    assert!(
        matches!(ended.error(), Error::ServiceState { .. }),
        "{ended:?}"
    );
}

#[test]
fn a_topic_without_a_route_is_told_to_the_callback() {
    let cluster = Cluster::builder()
        .configure(|broker| {
            broker
                .set_property("autoCreateTopicEnable", "false")
                .unwrap()
        })
        .start()
        .unwrap();
    let producer = started(producer_of(&cluster));
    let (to, outcomes) = told();
    producer.send_async(message("m"), tell(&to)).unwrap();
    let failure = outcomes.recv_timeout(GENEROUS).unwrap().unwrap_err();
    assert!(failure.to_string().contains("topic T"), "{failure}");
    assert!(!failure.error().may_have_been_stored());
}

#[test]
fn a_callback_that_panics_or_blocks_stalls_no_pull_and_no_other_send() {
    let cluster = cluster_of(2, 4);
    let producer = started(producer_of(&cluster).client_callback_executor_threads(2));
    let (release, held) = channel::<()>();
    producer
        .send_async(message("panics"), |_| panic!("on purpose"))
        .unwrap();
    producer
        .send_async(message("blocks"), move |_| {
            let _ = held.recv();
        })
        .unwrap();
    let (to, outcomes) = told();
    producer.send_async(message("goes on"), tell(&to)).unwrap();
    outcomes.recv_timeout(GENEROUS).unwrap().unwrap();
    producer.send(&message("too")).unwrap();
    drop(release);
}

#[test]
fn a_shutdown_waits_for_what_is_under_way() {
    let cluster = cluster_of(2, 4);
    let producer = started(producer_of(&cluster).send_msg_timeout(GENEROUS));
    producer.send(&message("first")).unwrap();
    let held = cluster.control(
        SEND_MESSAGE_V2,
        ControlAction::Hold,
        ControlTimes::UntilLifted,
    );
    let done = Arc::new(AtomicUsize::new(0));
    for _ in 0..10 {
        let done = Arc::clone(&done);
        producer
            .send_async(message("m"), move |outcome: Outcome| {
                outcome.unwrap();
                done.fetch_add(1, Ordering::SeqCst);
            })
            .unwrap();
    }
    wait_until("all are at the brokers", || held.held() == 10);
    let ending = producer.clone();
    let end = thread::spawn(move || ending.shutdown(GENEROUS));
    wait_until("the end has begun", || {
        producer.service_state() == ServiceState::ShutdownAlready
    });
    assert_eq!(done.load(Ordering::SeqCst), 0);
    held.lift();
    let report = end.join().unwrap();
    assert!(report.threads_joined);
    assert_eq!((report.drained, report.abandoned), (10, 0));
    assert_eq!(done.load(Ordering::SeqCst), 10, "all callbacks have run");
}

#[test]
fn what_a_shutdown_cannot_wait_for_is_told_all_the_same() {
    let cluster = cluster_of(2, 4);
    let producer = started(producer_of(&cluster).send_msg_timeout(GENEROUS));
    producer.send(&message("first")).unwrap();
    let silent = cluster.control(
        SEND_MESSAGE_V2,
        ControlAction::Drop,
        ControlTimes::UntilLifted,
    );
    let (to, outcomes) = told();
    producer.send_async(message("m"), tell(&to)).unwrap();
    assert!(silent.wait_for_hits(1, GENEROUS));
    let report = producer.shutdown(Duration::from_millis(100));
    assert_eq!((report.drained, report.abandoned), (0, 1));
    let failure = outcomes.recv_timeout(GENEROUS).unwrap().unwrap_err();
    assert!(failure.error().may_have_been_stored(), "{failure:?}");
    drop(to);
    assert!(outcomes.recv().is_err(), "once");
}

#[test]
fn a_shutdown_waits_for_callbacks_as_for_sends_and_counts_no_refused_ones() {
    keep_logs();
    let cluster = cluster_of(2, 4);
    let producer = started(producer_of(&cluster));
    let (to, outcomes) = told();
    producer.send_async(message("early"), tell(&to)).unwrap();
    outcomes.recv_timeout(GENEROUS).unwrap().unwrap();
    producer.send_async(message(""), |_| {}).unwrap_err();
    let ((enter, entered), (leave, left)) = (channel(), channel::<()>());
    producer
        .send_async(message("blocks"), move |outcome: Outcome| {
            enter.send(outcome.is_ok()).unwrap();
            left.recv().unwrap_err();
        })
        .unwrap();
    producer
        .send_async(message("panics"), |_| panic!("a callback, on purpose"))
        .unwrap();
    assert!(entered.recv_timeout(GENEROUS).unwrap(), "it is stored");
    wait_until("all are stored", || cluster.stored_count("T") == 3);
    wait_until("the panic is over", || {
        !logged(&["caught a panic", "a callback, on purpose"]).is_empty()
    });
    let report = producer.shutdown(Duration::from_millis(200));
    assert_eq!(report.abandoned, 1, "{report:?}");
    assert!(report.drained <= 1, "the one that panics, {report:?}");
    assert!(!report.threads_joined, "{report:?}");
    drop(leave);

    let idle = started(producer_of(&cluster));
    let report = idle.shutdown(GENEROUS);
    assert_eq!((report.drained, report.abandoned), (0, 0));
}

#[test]
fn a_callback_may_end_its_producer() {
    let cluster = cluster_of(2, 4);
    let producer = started(producer_of(&cluster));
    let ending = producer.clone();
    producer
        .send_async(message("m"), move |_: Outcome| {
            assert!(ending.shutdown(GENEROUS).deferred);
        })
        .unwrap();
    wait_until("it has ended", || {
        producer.await_termination(GENEROUS).is_some()
    });
}

#[test]
fn sends_wait_for_room_and_get_it_back_however_they_end() {
    let cluster = cluster_of(2, 4);
    let producer = started(
        producer_of(&cluster)
            .enable_backpressure_for_async_mode(true)
            .back_pressure_for_async_send_num(10)
            .send_msg_timeout(GENEROUS),
    );
    producer.send(&message("first")).unwrap();
    let held = cluster.control(
        SEND_MESSAGE_V2,
        ControlAction::Hold,
        ControlTimes::UntilLifted,
    );
    let (to, outcomes) = told();
    for _ in 0..10 {
        producer.send_async(message("m"), tell(&to)).unwrap();
    }
    let limit = Duration::from_millis(50);
    let full = producer
        .send_async_with_timeout(message("11th"), limit, tell(&to))
        .unwrap_err();
    assert!(
        matches!(full.error(), Error::RemotingTooMuchRequest { .. }),
        "{full:?}"
    );
    assert!(!full.error().may_have_been_stored());
    assert_eq!(full.message(), &message("11th"));
    wait_until("all are at the brokers", || held.held() == 10);
    held.lift();
    for _ in 0..10 {
        outcomes.recv_timeout(GENEROUS).unwrap().unwrap();
    }
    // Rounds that end with success, with a refusal and at the deadline; a lost permit shows.
    for round in 0..6 {
        let control = match round % 3 {
            0 => None,
            1 => Some(cluster.control(SEND_MESSAGE_V2, busy(), ControlTimes::UntilLifted)),
            _ => {
                let drop = ControlAction::Drop;
                Some(cluster.control(SEND_MESSAGE_V2, drop, ControlTimes::UntilLifted))
            }
        };
        let limit = if round % 3 == 2 {
            Duration::from_millis(100)
        } else {
            GENEROUS
        };
        for _ in 0..10 {
            producer
                .send_async_with_timeout(message("m"), limit, tell(&to))
                .unwrap();
        }
        for _ in 0..10 {
            let outcome = outcomes.recv_timeout(GENEROUS).unwrap();
            assert_eq!(outcome.is_ok(), control.is_none());
        }
        if let Some(control) = control {
            control.lift();
        }
    }
}

#[test]
fn a_message_goes_to_the_queue_that_is_given_or_chosen_and_nowhere_else() {
    let cluster = cluster_of(2, 4);
    let producer = started(producer_of(&cluster));
    let mq = MessageQueue::new("T", "broker-b", 3);
    let by_number = |mqs: &[MessageQueue], _: &Message, number: &usize| mqs.get(*number).cloned();
    let queues = producer.fetch_publish_message_queues("T").unwrap();
    let (to, outcomes) = told();
    for _ in 0..3 {
        assert_eq!(
            producer
                .send_to_queue(&message("m"), &mq)
                .unwrap()
                .message_queue,
            mq
        );
        producer
            .send_async_to_queue(message("m"), &mq, tell(&to))
            .unwrap();
        assert_eq!(
            outcomes
                .recv_timeout(GENEROUS)
                .unwrap()
                .unwrap()
                .message_queue,
            mq
        );
        let chosen = producer
            .send_with_selector(&message("m"), &by_number, &5)
            .unwrap();
        assert_eq!(chosen.message_queue, queues[5]);
        producer
            .send_async_with_selector(message("m"), by_number, 6, tell(&to))
            .unwrap();
        let chosen = outcomes.recv_timeout(GENEROUS).unwrap().unwrap();
        assert_eq!(chosen.message_queue, queues[6]);
        producer.send_oneway_to_queue(&message("m"), &mq).unwrap();
        producer
            .send_oneway_with_selector(&message("m"), &by_number, &0)
            .unwrap();
        producer
            .send_with_selector(&message("m"), &SelectMessageQueueByHash, "order-7")
            .unwrap();
    }
    let stored = |mq: &MessageQueue| cluster.max_offset(mq);
    wait_until("one-way sends have arrived", || {
        [&mq, &queues[0], &queues[5], &queues[6]].map(stored) == [9, 6, 3, 3]
    });
    assert_eq!(cluster.stored_count("T"), 21);

    let none = producer
        .send_with_selector(&message("m"), &by_number, &99)
        .unwrap_err();
    assert!(none.to_string().contains("has chosen no queue"), "{none}");
    producer
        .send_async_with_selector(message("m"), by_number, 99, tell(&to))
        .unwrap();
    let none = outcomes.recv_timeout(GENEROUS).unwrap().unwrap_err();
    assert!(none.to_string().contains("has chosen no queue"), "{none}");
    let refused = at_broker_a(&cluster, busy());
    let at_a = MessageQueue::new("T", "broker-a", 0);
    let error = producer.send_to_queue(&message("m"), &at_a).unwrap_err();
    assert!(matches!(error, Error::MQBroker { .. }), "{error:?}");
    assert_eq!(refused.hits(), 1, "a queue that is given is tried once");
}

#[test]
fn one_way_sends_go_round_the_queues() {
    let cluster = cluster_of(2, 4);
    let producer = started(producer_of(&cluster));
    for n in 0..16 {
        producer.send_oneway(&message(&format!("m{n}"))).unwrap();
    }
    let queues = producer.fetch_publish_message_queues("T").unwrap();
    wait_until("all have arrived", || {
        queues.iter().all(|mq| cluster.max_offset(mq) == 2)
    });
    let error = producer.send_oneway(&message("")).unwrap_err();
    assert!(matches!(error, Error::InvalidMessage { .. }), "{error:?}");
}

#[test]
fn a_namespace_is_not_seen_by_selectors_and_queues() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("N%T", 4).unwrap();
    let producer = started(producer_of(&cluster).namespace("N"));
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let shown = Arc::clone(&seen);
    let third = move |mqs: &[MessageQueue], _: &Message, (): &()| {
        let topics = mqs.iter().map(|mq| mq.topic().to_owned());
        shown.lock().unwrap().extend(topics);
        mqs.get(2).cloned()
    };
    let sent = producer
        .send_with_selector(&message("m"), &third, &())
        .unwrap();
    assert_eq!(sent.message_queue, MessageQueue::new("T", "broker-a", 2));
    producer
        .send_to_queue(&message("m"), &sent.message_queue)
        .unwrap();
    producer
        .send_batch_to_queue(&[message("m")], &sent.message_queue)
        .unwrap();
    assert_eq!(*seen.lock().unwrap(), BTreeSet::from(["T".to_owned()]));
    assert_eq!(
        cluster.max_offset(&MessageQueue::new("N%T", "broker-a", 2)),
        3
    );
}

#[test]
fn batches_are_stored_one_behind_the_other_in_one_queue() {
    let cluster = cluster_of(2, 4);
    let producer = started(producer_of(&cluster));
    let messages: Vec<Message> = (0..5)
        .map(|n| message(&format!("m{n}")).with_tags("A"))
        .collect();
    let result = producer.send_batch(&messages).unwrap();
    let keys: Vec<&str> = result.msg_id.split(',').collect();
    let stored = cluster.messages("T");
    assert_eq!(stored.len(), 5);
    for (n, message) in stored.iter().enumerate() {
        assert_eq!(message.msg_id(), keys[n]);
        assert_eq!(message.queue_offset(), result.queue_offset + n as i64);
        assert_eq!(message.queue_id(), result.message_queue.queue_id());
        assert_eq!(&message.body()[..], format!("m{n}").as_bytes());
        assert_eq!(message.tags(), Some("A"));
    }
    let (to, outcomes) = channel();
    let mq = MessageQueue::new("T", "broker-b", 1);
    let told = to.clone();
    producer
        .send_batch_async(messages.clone(), move |outcome| told.send(outcome).unwrap())
        .unwrap();
    outcomes.recv_timeout(GENEROUS).unwrap().unwrap();
    producer
        .send_batch_async_to_queue(messages, &mq, move |outcome| to.send(outcome).unwrap())
        .unwrap();
    let sent = outcomes.recv_timeout(GENEROUS).unwrap().unwrap();
    assert_eq!(sent.message_queue, mq);
    assert_eq!(cluster.stored_count("T"), 15);
    let failure = producer.send_batch_async(Vec::new(), |_| panic!("it was refused"));
    assert!(
        failure
            .unwrap_err()
            .to_string()
            .contains("the batch is empty")
    );
}

#[test]
fn a_batch_that_is_too_large_is_refused_and_fits_once_it_is_divided() {
    let cluster = cluster_of(2, 4);
    let producer = started(producer_of(&cluster).max_message_size(10_000));
    let messages: Vec<Message> = (0..20).map(|_| message(&"x".repeat(1000))).collect();
    let error = producer.send_batch(&messages).unwrap_err();
    assert!(error.to_string().contains("split it"), "{error}");
    assert_eq!(cluster.stored_count("T"), 0);
    for batch in split_batch(&messages, 10_000) {
        producer.send_batch(batch).unwrap();
    }
    assert_eq!(cluster.stored_count("T"), 20);
}

fn gathering(cluster: &Cluster) -> DefaultMQProducerBuilder {
    producer_of(cluster)
        .auto_batch(true)
        .send_msg_timeout(GENEROUS)
}

#[test]
fn messages_of_many_threads_are_gathered_and_each_has_its_own_result() {
    const THREADS: usize = 8;
    const EACH: usize = 50;
    let cluster = cluster_of(2, 4);
    let producer = started(gathering(&cluster));
    let threads: Vec<_> = (0..THREADS)
        .map(|n| {
            let producer = producer.clone();
            thread::spawn(move || {
                let sends = (0..EACH).map(|m| {
                    let message = message(&format!("{n}-{m}"));
                    let result = producer.send(&message).unwrap();
                    (format!("{n}-{m}"), result)
                });
                sends.collect::<Vec<_>>()
            })
        })
        .collect();
    let results: Vec<_> = threads
        .into_iter()
        .flat_map(|t| t.join().unwrap())
        .collect();
    let stored = cluster.messages("T");
    assert_eq!(stored.len(), THREADS * EACH);
    for (body, result) in &results {
        let found: Vec<_> = stored
            .iter()
            .filter(|m| m.msg_id() == result.msg_id)
            .collect();
        assert_eq!(found.len(), 1, "{result:?}");
        assert_eq!(&found[0].body()[..], body.as_bytes());
        assert_eq!(found[0].queue_offset(), result.queue_offset);
        assert_eq!(found[0].offset_msg_id(), result.offset_msg_id);
    }
    let batches = cluster.request_count(request_code::SEND_BATCH_MESSAGE);
    let single = cluster.request_count(SEND_MESSAGE_V2);
    let requests = batches + single;
    let sends = results.len() as u64;
    assert!(batches > 0 && requests < sends, "{requests} requests");
}

#[test]
fn callbacks_of_gathered_messages_run_once_each_with_its_result() {
    let cluster = cluster_of(2, 4);
    let producer = started(
        gathering(&cluster)
            .batch_max_bytes(1500)
            .batch_max_delay(Duration::from_secs(30)),
    );
    let (to, outcomes) = told();
    // The delay never ends here: a batch goes when the next message finds no room in it.
    for n in 0..41 {
        producer
            .send_async(message(&format!("{n:03}{}", "x".repeat(97))), tell(&to))
            .unwrap();
    }
    let mut ids = BTreeSet::new();
    let per_batch = 7;
    for _ in 0..35 {
        ids.insert(outcomes.recv_timeout(GENEROUS).unwrap().unwrap().msg_id);
    }
    assert_eq!(ids.len(), 35);
    let batches = || cluster.request_count(request_code::SEND_BATCH_MESSAGE);
    wait_until("the broker has counted them", || {
        batches() >= 35 / per_batch
    });
    assert_eq!(batches(), 35 / per_batch);
    assert_eq!(cluster.stored_count("T"), 35);
    // A shutdown sends what is gathered.
    producer.shutdown(GENEROUS);
    for _ in 35..41 {
        ids.insert(outcomes.recv_timeout(GENEROUS).unwrap().unwrap().msg_id);
    }
    drop(to);
    assert!(outcomes.recv().is_err(), "each once");
    assert_eq!((ids.len(), cluster.stored_count("T")), (41, 41));
}

#[test]
fn messages_that_differ_in_topic_tag_queue_or_wait_are_not_gathered_together() {
    let cluster = cluster_of(2, 4);
    cluster.create_topic("U", 4).unwrap();
    let producer = started(gathering(&cluster).batch_max_delay(Duration::from_secs(30)));
    let (to, outcomes) = told();
    let mut quick = message("quick");
    quick.put_property("WAIT", "false");
    let all = [
        message("plain"),
        message("tag").with_tags("A"),
        message("other tag").with_tags("B"),
        Message::new("U", "topic"),
        quick,
    ];
    for message in all {
        producer.send_async(message.clone(), tell(&to)).unwrap();
        producer.send_async(message, tell(&to)).unwrap();
    }
    let mq = MessageQueue::new("T", "broker-b", 2);
    producer
        .send_async_to_queue(message("queue"), &mq, tell(&to))
        .unwrap();
    producer
        .send_async_to_queue(message("queue"), &mq, tell(&to))
        .unwrap();
    let report = producer.shutdown(GENEROUS);
    assert_eq!((report.drained, report.abandoned), (12, 0));
    drop(to);
    let stored: Vec<Outcome> = outcomes.iter().collect();
    assert_eq!(stored.iter().filter(|outcome| outcome.is_ok()).count(), 12);
    let batches = || cluster.request_count(request_code::SEND_BATCH_MESSAGE);
    wait_until("the broker has counted them", || batches() >= 6);
    assert_eq!(batches(), 6);
    assert!(cluster.max_offset(&mq) >= 2);
}

#[test]
fn what_cannot_be_gathered_goes_by_itself() {
    let cluster = cluster_of(2, 4);
    let producer = started(
        gathering(&cluster)
            .batch_max_bytes(1000)
            .batch_max_delay(Duration::from_secs(30)),
    );
    let mut delayed = message("delayed");
    delayed.put_property("DELAY", "1");
    producer.send(&delayed).unwrap();
    producer.send(&message(&"x".repeat(2000))).unwrap();
    producer.send_with_timeout(&message("m"), GENEROUS).unwrap();
    // The broker may count a request after it has answered it.
    assert!(cluster.wait_for(SEND_MESSAGE_V2, 3, GENEROUS));
    assert_eq!(cluster.request_count(request_code::SEND_BATCH_MESSAGE), 0);
    let error = producer.send(&message("")).unwrap_err();
    assert!(matches!(error, Error::InvalidMessage { .. }), "{error:?}");
}

#[test]
fn a_batch_that_fails_fails_for_each_of_its_messages() {
    let cluster = cluster_of(2, 4);
    let producer = started(gathering(&cluster).batch_max_delay(Duration::from_millis(50)));
    let code = request_code::SEND_BATCH_MESSAGE;
    let refused = cluster.control(code, busy(), ControlTimes::UntilLifted);
    let (to, outcomes) = told();
    for n in 0..5 {
        producer
            .send_async(message(&format!("m{n}")), tell(&to))
            .unwrap();
    }
    let mut returned = BTreeSet::new();
    for _ in 0..5 {
        let failure = outcomes.recv_timeout(GENEROUS).unwrap().unwrap_err();
        assert_eq!(
            failure.error().broker_code(),
            Some(response_code::SYSTEM_BUSY)
        );
        returned.insert(String::from_utf8(failure.message().body().to_vec()).unwrap());
    }
    assert_eq!(returned.len(), 5, "each has its own message back");
    assert!(refused.hits() >= 3, "it is tried again: {}", refused.hits());
    refused.lift();
    producer.send(&message("after")).unwrap();
}

#[test]
fn values_out_of_range_are_refused_with_the_range() {
    let cluster = cluster_of(2, 4);
    let error = producer_of(&cluster)
        .back_pressure_for_async_send_num(9)
        .back_pressure_for_async_send_size(1024)
        .latency_max([Duration::from_millis(1)])
        .detect_timeout(Duration::ZERO)
        .batch_max_delay(Duration::ZERO)
        .send_msg_max_timeout_per_request(Duration::ZERO)
        .build()
        .unwrap_err()
        .to_string();
    for part in [
        "back_pressure_for_async_send_num is 9, the least is 10",
        "back_pressure_for_async_send_size is 1024, the least is 1048576",
        "latency_max has 1 rows and not_available_duration 7",
        "detect_timeout is 0ns, the range is",
        "batch_max_delay is 0ns, the range is 1ms to 30s",
        "send_msg_max_timeout_per_request is 0ns, the least is 1 ms",
    ] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_callback_may_send_the_next_message_and_finds_room() {
    let cluster = cluster_of(2, 4);
    let producer = started(
        producer_of(&cluster)
            .enable_backpressure_for_async_mode(true)
            .back_pressure_for_async_send_num(10)
            .client_callback_executor_threads(1)
            .send_msg_timeout(GENEROUS),
    );
    producer.send(&message("first")).unwrap();
    let held = cluster.control(
        SEND_MESSAGE_V2,
        ControlAction::Hold,
        ControlTimes::UntilLifted,
    );
    let (to, outcomes) = told();
    for _ in 0..10 {
        let (next, to) = (producer.clone(), to.clone());
        producer
            .send_async(message("m"), move |outcome: Outcome| {
                outcome.unwrap();
                let limit = Duration::from_secs(10);
                let next = next.send_async_with_timeout(message("next"), limit, tell(&to));
                assert!(next.is_ok(), "{next:?}");
            })
            .unwrap();
    }
    wait_until("all are at the brokers", || held.held() == 10);
    held.lift();
    for _ in 0..10 {
        outcomes.recv_timeout(GENEROUS).unwrap().unwrap();
    }
}

/// The route is never told, so sends are queued behind those that wait for it; a shutdown drops the
/// queue, and all are told.
#[test]
fn sends_that_wait_for_a_route_when_the_producer_ends_are_told() {
    const SENDS: usize = 2000;
    let cluster = cluster_of(2, 4);
    let code = request_code::GET_ROUTEINFO_BY_TOPIC;
    let held = cluster.control(code, ControlAction::Drop, ControlTimes::UntilLifted);
    let producer = started(producer_of(&cluster));
    let (to, outcomes) = told();
    for n in 0..SENDS {
        producer
            .send_async(message(&format!("m{n}")), tell(&to))
            .unwrap();
    }
    drop(to);
    assert!(held.wait_for_hits(1, GENEROUS));
    let report = producer.shutdown(Duration::ZERO);
    assert_eq!(report.drained + report.abandoned, SENDS, "{report:?}");
    let mut returned = BTreeSet::new();
    while let Ok(outcome) = outcomes.recv_timeout(GENEROUS) {
        let failure = outcome.unwrap_err();
        assert!(!failure.error().may_have_been_stored(), "{failure:?}");
        let first = returned.insert(failure.into_message().body().to_vec());
        assert!(first, "each once");
    }
    assert_eq!(returned.len(), SENDS);
}
