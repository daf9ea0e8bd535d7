//! The hooks around sends, ends of transactions, pulls and calls of the listener.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and is outside of what loom models"
)]

mod support;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rocketmq_blocking::{
    CheckForbiddenContext, CheckForbiddenHook, CommunicationMode, ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus, ConsumeFromWhere, ConsumeMessageContext, ConsumeMessageHook,
    ConsumeReturnType, DefaultMQProducer, DefaultMQPushConsumer, EndTransactionContext,
    EndTransactionHook, Error, FilterMessageContext, FilterMessageHook, LocalTransactionState,
    MQClientManager, Message, MessageExt, MessageQueue, MessageType, SendMessageContext,
    SendMessageHook, SendStatus, request_code, response_code,
};
use rocketmq_embedded::{Cluster, ControlAction, ControlTimes};
use support::{
    Commits, GENEROUS, Inbox, cluster_of, keep_logs, logged, producer_of, quick, started,
    wait_until,
};

const TIMEOUT: Duration = Duration::from_secs(5);

/// What a hook saw, before or after.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    hook: &'static str,
    when: &'static str,
    mode: CommunicationMode,
    broker: String,
    body: Vec<u8>,
    kind: MessageType,
    outcome: Option<Result<SendStatus, Error>>,
    thread: String,
    kept: Option<u32>,
}

struct Recorder {
    name: &'static str,
    told: Sender<Seen>,
}

impl Recorder {
    fn tell(&self, when: &'static str, context: &mut SendMessageContext) {
        let result = context.send_result().map(|result| Ok(result.send_status));
        let error = context.error().cloned().map(Err);
        let kept = context.mq_trace_context();
        let kept = kept.and_then(|kept| kept.downcast_ref().copied());
        let seen = Seen {
            hook: self.name,
            when,
            mode: context.communication_mode(),
            broker: context.mq().broker_name().to_owned(),
            body: context.message().body().to_vec(),
            kind: context.msg_type(),
            outcome: result.or(error),
            thread: thread::current().name().unwrap_or_default().to_owned(),
            kept,
        };
        self.told.send(seen).unwrap();
    }
}

impl SendMessageHook for Recorder {
    fn hook_name(&self) -> &str {
        self.name
    }

    fn send_message_before(&self, context: &mut SendMessageContext) {
        self.tell("before", context);
        context.set_mq_trace_context(7_u32);
    }

    fn send_message_after(&self, context: &mut SendMessageContext) {
        self.tell("after", context);
    }
}

fn recorder(name: &'static str) -> (Recorder, Receiver<Seen>) {
    let (told, seen) = channel();
    (Recorder { name, told }, seen)
}

struct Panics;

impl SendMessageHook for Panics {
    fn hook_name(&self) -> &str {
        "panics in sends"
    }

    fn send_message_before(&self, _: &mut SendMessageContext) {
        panic!("before, on purpose");
    }

    fn send_message_after(&self, _: &mut SendMessageContext) {
        panic!("after, on purpose");
    }
}

fn next(seen: &Receiver<Seen>) -> Seen {
    seen.recv_timeout(GENEROUS).expect("the hook was called")
}

#[test]
fn a_synchronous_send_is_told_of_before_and_after_in_order_and_on_the_callers_thread() {
    keep_logs();
    let cluster = cluster_of(1, 2);
    let (told, seen) = channel();
    let recorder = |name| Recorder {
        name,
        told: told.clone(),
    };
    let producer = started(
        producer_of(&cluster)
            .send_message_hook(recorder("first"))
            .send_message_hook(Panics)
            .send_message_hook(recorder("last")),
    );
    producer.send(&Message::new("T", "m")).unwrap();
    let own = thread::current().name().unwrap_or_default().to_owned();
    let of = |hook, when, outcome, kept| Seen {
        hook,
        when,
        mode: CommunicationMode::Sync,
        broker: "broker-a".to_owned(),
        body: b"m".to_vec(),
        kind: MessageType::NormalMsg,
        outcome,
        thread: own.clone(),
        kept,
    };
    let stored = || Some(Ok(SendStatus::SendOk));
    assert_eq!(
        seen.try_iter().collect::<Vec<_>>(),
        [
            of("first", "before", None, None),
            of("last", "before", None, Some(7)),
            of("first", "after", stored(), Some(7)),
            of("last", "after", stored(), Some(7)),
        ]
    );
    for method in ["send_message_before", "send_message_after"] {
        let lines = logged(&["panics in sends", method, "on purpose"]);
        assert!(!lines.is_empty(), "the panic of {method} is logged");
    }
}

#[test]
fn each_attempt_of_a_synchronous_send_has_its_own_pair() {
    let cluster = cluster_of(2, 2);
    let refuse = ControlAction::Respond(response_code::SYSTEM_BUSY, Some("busy".to_owned()));
    let code = request_code::SEND_MESSAGE_V2;
    cluster.control(code, refuse, ControlTimes::Times(1));
    let (hook, seen) = recorder("h");
    let producer = started(producer_of(&cluster).send_message_hook(hook));
    let sent = producer.send(&Message::new("T", "m")).unwrap();
    let seen: Vec<Seen> = seen.try_iter().collect();
    let whens: Vec<&str> = seen.iter().map(|seen| seen.when).collect();
    assert_eq!(whens, ["before", "after", "before", "after"]);
    let Some(Err(refused)) = &seen[1].outcome else {
        panic!("the first attempt failed: {:?}", seen[1]);
    };
    assert_eq!(refused.broker_code(), Some(response_code::SYSTEM_BUSY));
    assert_eq!(seen[3].outcome, Some(Ok(SendStatus::SendOk)));
    assert_ne!(seen[0].broker, seen[2].broker, "each has its own queue");
    assert_eq!(seen[2].kept, None, "and nothing of the one before");
    assert_eq!(seen[2].broker, sent.message_queue.broker_name());
}

#[test]
fn an_asynchronous_send_has_one_pair_whatever_its_attempts() {
    let cluster = cluster_of(2, 2);
    let refuse = ControlAction::Respond(response_code::SYSTEM_BUSY, Some("busy".to_owned()));
    let code = request_code::SEND_MESSAGE_V2;
    let busy = cluster.control(code, refuse, ControlTimes::Times(1));
    let (hook, seen) = recorder("h");
    let producer = started(producer_of(&cluster).send_message_hook(hook));
    let (told, outcome) = channel();
    producer
        .send_async(Message::new("T", "m"), move |outcome| {
            let name = thread::current().name().unwrap_or_default().to_owned();
            told.send((outcome.is_ok(), name)).unwrap();
        })
        .unwrap();
    let (is_ok, thread) = outcome.recv_timeout(GENEROUS).unwrap();
    assert!(is_ok && thread.starts_with("SendCallbackExecutor"));
    assert_eq!(busy.hits(), 1);
    // All that there will be: the callback comes last.
    let seen: Vec<Seen> = seen.try_iter().collect();
    let whens: Vec<&str> = seen.iter().map(|seen| seen.when).collect();
    assert_eq!(whens, ["before", "after"]);
    assert_eq!(seen[0].mode, CommunicationMode::Async);
    assert_eq!(seen[1].outcome, Some(Ok(SendStatus::SendOk)));
    assert_eq!(seen[1].kept, Some(7));
    assert_eq!(seen[1].thread, thread, "the callback's");
    producer.shutdown(TIMEOUT);
}

#[test]
fn an_asynchronous_send_that_fails_tells_why_and_one_that_has_no_broker_tells_nothing() {
    let cluster = cluster_of(1, 2);
    let refuse = ControlAction::Respond(response_code::MESSAGE_ILLEGAL, Some("no".to_owned()));
    let code = request_code::SEND_MESSAGE_V2;
    cluster.control(code, refuse, ControlTimes::UntilLifted);
    let (hook, seen) = recorder("h");
    let producer = started(producer_of(&cluster).send_message_hook(hook));
    let (told, outcome) = channel();
    for broker in ["broker-a", "gone"] {
        let told = told.clone();
        let mq = MessageQueue::new("T", broker, 0);
        producer
            .send_async_to_queue(Message::new("T", "m"), &mq, move |outcome| {
                told.send(outcome.is_ok()).unwrap();
            })
            .unwrap();
        assert!(!outcome.recv_timeout(GENEROUS).unwrap());
    }
    let seen: Vec<Seen> = seen.try_iter().collect();
    assert_eq!(seen.len(), 2, "{seen:?}");
    let Some(Err(why)) = &seen[1].outcome else {
        panic!("{:?}", seen[1]);
    };
    assert_eq!(why.broker_code(), Some(response_code::MESSAGE_ILLEGAL));
}

#[test]
fn a_one_way_send_has_no_outcome_and_a_half_message_is_known_by_its_kind() {
    let cluster = cluster_of(1, 2);
    let (hook, seen) = recorder("h");
    let producer = started(producer_of(&cluster).send_message_hook(hook));
    let mut later = Message::new("T", "later");
    later.set_delay_time_level(3);
    producer.send_oneway(&later).unwrap();
    let (before, after) = (next(&seen), next(&seen));
    assert_eq!((before.when, after.when), ("before", "after"));
    assert_eq!(after.mode, CommunicationMode::Oneway);
    assert_eq!(after.outcome, None);
    assert_eq!(after.kind, MessageType::DelayMsg);
    let mut half = Message::new("T", "half");
    half.put_property("TRAN_MSG", "true");
    producer.send(&half).unwrap();
    assert_eq!(next(&seen).kind, MessageType::TransMsgHalf);
}

#[test]
fn messages_that_were_gathered_have_one_pair_together() {
    let cluster = cluster_of(1, 2);
    let (hook, seen) = recorder("h");
    let producer = started(
        producer_of(&cluster)
            .auto_batch(true)
            .batch_max_delay(Duration::from_secs(20))
            .send_message_hook(hook),
    );
    let (told, outcome) = channel();
    for n in 0..3 {
        let told = told.clone();
        producer
            .send_async(Message::new("T", format!("m{n}")), move |outcome| {
                told.send(outcome.is_ok()).unwrap();
            })
            .unwrap();
    }
    // It sends what is gathered.
    producer.shutdown(TIMEOUT);
    assert_eq!(outcome.try_iter().collect::<Vec<_>>(), [true; 3]);
    let seen: Vec<Seen> = seen.try_iter().collect();
    let whens: Vec<&str> = seen.iter().map(|seen| seen.when).collect();
    assert_eq!(whens, ["before", "after"]);
    assert!(
        seen[1].thread.starts_with("AsyncSenderExecutor"),
        "{seen:?}"
    );
    assert_eq!(cluster.stored_count("T"), 3);
}

/// Puts a property into messages, and calls the producer it belongs to.
struct Adds {
    producer: Arc<Mutex<Option<DefaultMQProducer>>>,
    queues: Sender<usize>,
}

impl SendMessageHook for Adds {
    fn hook_name(&self) -> &str {
        "adds"
    }

    fn send_message_before(&self, context: &mut SendMessageContext) {
        assert_eq!(context.producer_group(), "p");
        assert_eq!(context.namespace(), Some("space"));
        assert_eq!(context.message().topic(), "T");
        assert_eq!(context.mq().topic(), "T");
        assert!(context.message().property("UNIQ_KEY").is_some());
        context.put_user_property("trace", "t1").unwrap();
        assert!(context.put_user_property("KEYS", "k").is_err(), "reserved");
        let long = "x".repeat(40_000);
        let error = context.put_user_property("long", &long).unwrap_err();
        assert!(error.to_string().contains("32767"), "{error}");
    }

    fn send_message_after(&self, context: &mut SendMessageContext) {
        assert!(context.put_user_property("trace", "t2").is_err(), "late");
        let producer = self.producer.lock().unwrap().clone();
        if let Some(producer) = producer {
            let queues = producer.fetch_publish_message_queues("T").unwrap();
            self.queues.send(queues.len()).unwrap();
        }
    }
}

#[test]
fn a_hook_adds_properties_and_may_call_its_client() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("space%T", 2).unwrap();
    let own = Arc::new(Mutex::new(None));
    let (queues, counted) = channel();
    let producer = started(
        producer_of(&cluster)
            .namespace("space")
            .send_message_hook(Adds {
                producer: Arc::clone(&own),
                queues,
            }),
    );
    *own.lock().unwrap() = Some(producer.clone());
    let message = Message::new("T", "m");
    producer.send(&message).unwrap();
    let (told, outcome) = channel();
    producer
        .send_async(Message::new("T", "m"), move |outcome| {
            told.send(outcome.is_ok()).unwrap();
        })
        .unwrap();
    assert!(outcome.recv_timeout(GENEROUS).unwrap());
    producer.send_oneway(&message).unwrap();
    wait_until("all are stored", || cluster.stored_count("space%T") == 3);
    for stored in cluster.messages("space%T") {
        assert_eq!(stored.property("trace"), Some("t1"));
        assert_eq!(stored.property("long"), None);
    }
    assert_eq!(message.property("trace"), None, "the caller's is as it was");
    for _ in 0..3 {
        assert_eq!(counted.recv_timeout(GENEROUS).unwrap(), 2);
    }
    own.lock().unwrap().take();
}

/// Forbids broker-a, and what has the tag `never`; panics at the tag `panic`.
struct Forbids(Sender<String>);

impl CheckForbiddenHook for Forbids {
    fn hook_name(&self) -> &str {
        "forbids"
    }

    fn check_forbidden(&self, context: &CheckForbiddenContext<'_>) -> Result<(), String> {
        assert_eq!(context.group(), "p");
        assert_eq!(context.name_srv_addr().len(), 1);
        let mode = context.communication_mode();
        let asked = format!("{mode:?} {}", context.mq().broker_name());
        self.0.send(asked).unwrap();
        match context.message().tags() {
            Some("never") => Err("never ever".to_owned()),
            Some("panic") => panic!("on purpose"),
            _ if context.mq().broker_name() == "broker-a" => Err("not there".to_owned()),
            _ => Ok(()),
        }
    }
}

/// Keeps the names of the threads on which it is asked.
struct NotesThreads(Sender<String>);

impl CheckForbiddenHook for NotesThreads {
    fn hook_name(&self) -> &str {
        "notes threads"
    }

    fn check_forbidden(&self, _: &CheckForbiddenContext<'_>) -> Result<(), String> {
        let name = thread::current().name().unwrap_or_default().to_owned();
        self.0.send(name).unwrap();
        Ok(())
    }
}

/// The outcome of an attempt may be found by the event loop, which a hook must not hold up.
#[test]
fn later_attempts_of_an_asynchronous_send_are_asked_for_on_threads_that_may_wait() {
    let cluster = cluster_of(2, 2);
    let busy = ControlAction::Respond(response_code::SYSTEM_BUSY, None);
    cluster.control(request_code::SEND_MESSAGE_V2, busy, ControlTimes::Once);
    let (told, asked) = channel();
    let producer = started(producer_of(&cluster).check_forbidden_hook(NotesThreads(told)));
    producer.fetch_publish_message_queues("T").unwrap();
    let (ended, outcome) = channel();
    producer
        .send_async(Message::new("T", "m"), move |outcome| {
            ended.send(outcome.is_ok()).unwrap();
        })
        .unwrap();
    assert!(outcome.recv_timeout(GENEROUS).unwrap());
    let threads: Vec<String> = asked.try_iter().collect();
    assert_eq!(threads.len(), 2, "{threads:?}");
    assert!(
        threads[1].starts_with("AsyncSenderExecutor_"),
        "{threads:?}"
    );
}

#[test]
fn a_hook_that_forbids_a_broker_has_another_one_tried() {
    let cluster = cluster_of(2, 2);
    let (told, asked) = channel();
    let (hook, seen) = recorder("h");
    let producer = started(
        producer_of(&cluster)
            .send_message_hook(hook)
            .check_forbidden_hook(Forbids(told)),
    );
    for n in 0..4 {
        let sent = producer.send(&Message::new("T", format!("m{n}"))).unwrap();
        assert_eq!(sent.message_queue.broker_name(), "broker-b");
    }
    let (told, outcome) = channel();
    for n in 0..4 {
        let told = told.clone();
        producer
            .send_async(Message::new("T", format!("a{n}")), move |outcome| {
                told.send(outcome.unwrap().message_queue).unwrap();
            })
            .unwrap();
        let mq = outcome.recv_timeout(GENEROUS).unwrap();
        assert_eq!(mq.broker_name(), "broker-b");
    }
    let asked: Vec<String> = asked.try_iter().collect();
    for refused in ["Sync broker-a", "Async broker-a"] {
        assert!(asked.iter().any(|asked| asked == refused), "{asked:?}");
    }
    assert!(seen.try_iter().all(|seen| seen.broker == "broker-b"));
    assert_eq!(cluster.stored_count("T"), 8);
}

#[test]
fn what_is_forbidden_everywhere_is_not_sent() {
    let cluster = cluster_of(2, 2);
    let (told, asked) = channel();
    let (hook, seen) = recorder("h");
    let producer = started(
        producer_of(&cluster)
            .send_message_hook(hook)
            .check_forbidden_hook(Forbids(told)),
    );
    let never = Message::new("T", "m").with_tags("never");
    let error = producer.send(&never).unwrap_err().to_string();
    assert!(
        error.contains("never ever") && error.contains("forbids"),
        "{error}"
    );
    assert_eq!(asked.try_iter().count(), 3, "once an attempt");
    let panics = Message::new("T", "m").with_tags("panic");
    let error = producer.send(&panics).unwrap_err().to_string();
    assert!(error.contains("panicked: on purpose"), "{error}");
    assert!(producer.send_oneway(&never).is_err());
    let (told, outcome) = channel();
    producer
        .send_async(never, move |outcome| {
            told.send(outcome.unwrap_err().to_string()).unwrap();
        })
        .unwrap();
    let error = outcome.recv_timeout(GENEROUS).unwrap();
    assert!(error.contains("never ever"), "{error}");
    assert_eq!(seen.try_iter().count(), 0);
    assert_eq!(cluster.request_count(request_code::SEND_MESSAGE_V2), 0);
}

/// Takes all the time of a send.
struct Slow;

impl SendMessageHook for Slow {
    fn hook_name(&self) -> &str {
        "slow"
    }

    fn send_message_before(&self, _: &mut SendMessageContext) {
        thread::sleep(Duration::from_millis(20));
    }

    fn send_message_after(&self, context: &mut SendMessageContext) {
        assert!(context.error().is_some());
    }
}

#[test]
fn a_hook_that_takes_all_the_time_keeps_the_message_from_being_sent() {
    let cluster = cluster_of(1, 2);
    let producer = started(producer_of(&cluster).send_message_hook(Slow));
    // Now the route is known.
    assert_eq!(producer.fetch_publish_message_queues("T").unwrap().len(), 2);
    let mq = MessageQueue::new("T", "broker-a", 0);
    let long = producer.send_to_queue_with_timeout(&Message::new("T", "m"), &mq, GENEROUS);
    long.unwrap();
    let short = Duration::from_millis(10);
    let message = Message::new("T", "m");
    let late = producer.send_to_queue_with_timeout(&message, &mq, short);
    let error = late.unwrap_err();
    assert!(error.to_string().contains("hooks"), "{error}");
    assert!(!error.may_have_been_stored());
    assert_eq!(cluster.stored_count("T"), 1);
}

#[derive(Debug, PartialEq)]
struct Ended {
    message_topic: String,
    msg_id: String,
    transaction_id: Option<String>,
    state: LocalTransactionState,
    checked: bool,
}

struct Ends(Sender<Ended>);

impl EndTransactionHook for Ends {
    fn hook_name(&self) -> &str {
        "ends"
    }

    fn end_transaction(&self, context: &EndTransactionContext<'_>) {
        assert_eq!(context.producer_group(), "p");
        assert!(context.broker_addr().contains(':'));
        let ended = Ended {
            message_topic: context.message().topic().to_owned(),
            msg_id: context.msg_id().to_owned(),
            transaction_id: context.transaction_id().map(str::to_owned),
            state: context.transaction_state(),
            checked: context.is_from_transaction_check(),
        };
        self.0.send(ended).unwrap();
        panic!("on purpose, in the end of a transaction");
    }
}

#[test]
fn the_end_of_a_transaction_is_told_of_from_the_send_and_from_a_check() {
    let cluster = Cluster::builder()
        .configure(|config| {
            config.transaction_check_interval = Duration::from_millis(50);
            config.transaction_time_out = Duration::ZERO;
        })
        .start()
        .unwrap();
    cluster.create_topic("T", 1).unwrap();
    let (told, ended) = channel();
    let producer = producer_of(&cluster)
        .end_transaction_hook(Ends(told))
        .transaction_listener(Commits)
        .build()
        .unwrap();
    producer.start().unwrap();
    let send = |tag: &str| {
        let message = Message::new("T", "m").with_tags(tag);
        producer.send_message_in_transaction(&message, &()).unwrap()
    };
    let now = send("now").send_result;
    let of = |msg_id: &str, state, checked| Ended {
        message_topic: "T".to_owned(),
        msg_id: msg_id.to_owned(),
        transaction_id: Some(msg_id.to_owned()),
        state,
        checked,
    };
    let committed = ended.recv_timeout(GENEROUS).unwrap();
    let commit = LocalTransactionState::CommitMessage;
    assert_eq!(committed, of(&now.msg_id, commit, false));
    wait_until("it is committed in spite of the panic", || {
        cluster.stored_count("T") == 1
    });
    let later = send("later").send_result;
    let unknown = ended.recv_timeout(GENEROUS).unwrap();
    let state = LocalTransactionState::Unknown;
    assert_eq!(unknown, of(&later.msg_id, state, false));
    let checked = ended.recv_timeout(GENEROUS).unwrap();
    let rollback = LocalTransactionState::RollbackMessage;
    assert_eq!(checked, of(&later.msg_id, rollback, true));
    producer.shutdown(TIMEOUT);
}

#[derive(Debug, PartialEq)]
struct Consumed {
    body: Vec<u8>,
    status: Option<&'static str>,
    success: bool,
    return_type: Option<ConsumeReturnType>,
    kept: Option<String>,
}

struct Consumes(Sender<Consumed>);

impl Consumes {
    fn tell(&self, context: &mut ConsumeMessageContext<'_>) {
        assert_eq!(context.consumer_group(), "c");
        assert_eq!(context.namespace(), Some("space"));
        assert_eq!(context.mq().topic(), "T");
        assert_eq!(context.messages()[0].topic(), "T");
        let kept = context.mq_trace_context();
        let kept = kept.and_then(|kept| kept.downcast_ref::<String>().cloned());
        let consumed = Consumed {
            body: context.messages()[0].body().to_vec(),
            status: context.status(),
            success: context.is_success(),
            return_type: context.return_type(),
            kept,
        };
        self.0.send(consumed).unwrap();
    }
}

impl ConsumeMessageHook for Consumes {
    fn hook_name(&self) -> &str {
        "consumes"
    }

    fn consume_message_before(&self, context: &mut ConsumeMessageContext<'_>) {
        self.tell(context);
        let name = thread::current().name().unwrap_or_default().to_owned();
        context.set_mq_trace_context(name);
    }

    fn consume_message_after(&self, context: &mut ConsumeMessageContext<'_>) {
        self.tell(context);
        panic!("on purpose, after the listener");
    }
}

#[test]
fn calls_of_the_listener_are_told_of_with_how_they_ended() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("space%T", 1).unwrap();
    let (told, consumed) = channel();
    let consumer = quick(DefaultMQPushConsumer::builder("c"))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&cluster.namesrv_addr())
        .namespace("space")
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .consume_threads(1)
        .consume_timeout(Duration::from_millis(1))
        .subscribe("T", "*")
        .message_listener(
            |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| match &messages[0].body()
                [..]
            {
                b"panics" => panic!("on purpose"),
                b"slow" => {
                    thread::sleep(Duration::from_millis(2));
                    ConsumeConcurrentlyStatus::ConsumeSuccess
                }
                b"fails" => ConsumeConcurrentlyStatus::ReconsumeLater,
                _ => ConsumeConcurrentlyStatus::ConsumeSuccess,
            },
        )
        .consume_message_hook(Consumes(told))
        .build()
        .unwrap();
    consumer.start().unwrap();
    let mq = MessageQueue::new("space%T", "broker-a", 0);
    for (body, status, return_type) in [
        ("panics", "RECONSUME_LATER", ConsumeReturnType::Exception),
        ("slow", "CONSUME_SUCCESS", ConsumeReturnType::TimeOut),
        ("fails", "RECONSUME_LATER", ConsumeReturnType::Failed),
        ("works", "CONSUME_SUCCESS", ConsumeReturnType::Success),
    ] {
        cluster
            .put_message(&mq, &Message::new("space%T", body))
            .unwrap();
        // A machine that is busy may make any call a slow one.
        let (before, after) = loop {
            let before = consumed.recv_timeout(GENEROUS).unwrap();
            let after = consumed.recv_timeout(GENEROUS).unwrap();
            let slow = after.return_type == Some(ConsumeReturnType::TimeOut);
            if !slow || return_type == ConsumeReturnType::TimeOut {
                break (before, after);
            }
            cluster
                .put_message(&mq, &Message::new("space%T", body))
                .unwrap();
        };
        let body = body.as_bytes().to_vec();
        assert_eq!(
            before,
            Consumed {
                body: body.clone(),
                status: None,
                success: false,
                return_type: None,
                kept: None,
            }
        );
        let kept = after.kept.clone().unwrap_or_default();
        assert!(kept.starts_with("ConsumeMessageThread_"), "{kept}");
        assert_eq!(
            after,
            Consumed {
                body,
                status: Some(status),
                success: status == "CONSUME_SUCCESS",
                return_type: Some(return_type),
                kept: Some(kept),
            }
        );
    }
    consumer.shutdown(TIMEOUT);
}

/// Takes out what has the body `no`.
struct Filters;

impl FilterMessageHook for Filters {
    fn hook_name(&self) -> &str {
        "filters"
    }

    fn filter_message(&self, context: &mut FilterMessageContext<'_>) {
        assert_eq!((context.consumer_group(), context.mq().topic()), ("c", "T"));
        context.retain(|message| &message.body()[..] != b"no");
        panic!("on purpose, in the filter");
    }
}

#[test]
fn what_a_hook_filters_out_never_comes_and_counts_as_consumed() {
    let cluster = cluster_of(1, 2);
    let mq = MessageQueue::new("T", "broker-a", 0);
    for body in ["no", "yes", "no"] {
        cluster.put_message(&mq, &Message::new("T", body)).unwrap();
    }
    let inbox = Inbox::new();
    let consumer = quick(DefaultMQPushConsumer::builder("c"))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&cluster.namesrv_addr())
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .subscribe("T", "*")
        .message_listener(inbox.listener())
        .filter_message_hook(Filters)
        .build()
        .unwrap();
    consumer.start().unwrap();
    wait_until("all three are passed", || {
        cluster.committed_offset("c", &mq) == Some(3)
    });
    consumer.shutdown(TIMEOUT);
    assert_eq!(
        inbox.bodies().into_iter().collect::<Vec<_>>(),
        [("yes".to_owned(), 1)]
    );
}
