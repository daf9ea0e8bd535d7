use std::time::Duration;

use rocketmq_blocking::service::ServiceState;
use rocketmq_blocking::{
    DefaultMQPushConsumer, DefaultMQPushConsumerBuilder, Error, MQClientManager, Message,
    MessageQueue,
};

use crate::support::{GENEROUS, Inbox, cluster_of, keep_logs, logged, wait_until};
use crate::{consumer_builder, producer, producer_builder, says};

fn built(builder: DefaultMQPushConsumerBuilder, inbox: &Inbox) -> DefaultMQPushConsumer {
    builder.message_listener(inbox.listener()).build().unwrap()
}

#[track_caller]
fn wrong_state<T: std::fmt::Debug>(outcome: Result<T, Error>, expected: ServiceState, text: &str) {
    let error = outcome.unwrap_err();
    assert!(
        matches!(&error, Error::ServiceState { state, .. } if *state == expected),
        "{error:?}"
    );
    assert_eq!(error.to_string(), text);
    assert!(!error.is_retryable() && !error.may_have_been_stored());
}

#[test]
fn a_producer_out_of_its_time_says_so_and_what_to_do() {
    let cluster = cluster_of(1, 4);
    let message = Message::new("T", "m");
    let early = producer_builder(&cluster.namesrv_addr()).build().unwrap();
    let text = "using producer p is not possible in state CREATE_JUST: call start first";
    wrong_state(early.send(&message), ServiceState::CreateJust, text);
    wrong_state(
        early.fetch_publish_message_queues("T"),
        ServiceState::CreateJust,
        text,
    );
    let mq = MessageQueue::new("T", "broker-a", 0);
    wrong_state(early.max_offset(&mq), ServiceState::CreateJust, text);
    early.start().unwrap();
    wrong_state(
        early.start(),
        ServiceState::Running,
        "starting producer p is not possible in state RUNNING: it runs already",
    );
    early.send(&message).unwrap();
    let report = early.shutdown(GENEROUS);
    assert!(report.threads_joined);
    let text = "using producer p is not possible in state SHUTDOWN_ALREADY: it has ended, build a \
                new one";
    wrong_state(early.send(&message), ServiceState::ShutdownAlready, text);
    wrong_state(
        early.update_name_server_address_list("h:1"),
        ServiceState::ShutdownAlready,
        "updating the name servers of producer p is not possible in state SHUTDOWN_ALREADY: it \
         has ended, build a new one",
    );
    assert_eq!(
        early.shutdown(GENEROUS),
        report,
        "a second shutdown has the first one's report"
    );
    assert_eq!(early.client_id(), None);
    assert_eq!(cluster.stored_count("T"), 1);

    let never = producer_builder(&cluster.namesrv_addr()).build().unwrap();
    assert!(never.shutdown(GENEROUS).threads_joined);
    wrong_state(
        never.start(),
        ServiceState::ShutdownAlready,
        "starting producer p is not possible in state SHUTDOWN_ALREADY: it has ended, build a new \
         one",
    );
}

#[test]
fn a_consumer_out_of_its_time_says_so_and_what_to_do() {
    let cluster = cluster_of(1, 4);
    let namesrv = cluster.namesrv_addr();
    let consumer = built(consumer_builder(&namesrv, "g"), &Inbox::new());
    consumer.subscribe("U", "*").expect("before the start, too");
    consumer.start().unwrap();
    wrong_state(
        consumer.start(),
        ServiceState::Running,
        "starting consumer g is not possible in state RUNNING: it runs already",
    );
    let report = consumer.shutdown(GENEROUS);
    assert!(report.threads_joined);
    let ended = "is not possible in state SHUTDOWN_ALREADY: it has ended, build a new one";
    for (outcome, doing) in [
        (consumer.start(), "starting consumer g"),
        (consumer.subscribe("V", "*"), "subscribing with consumer g"),
        (consumer.unsubscribe("T"), "unsubscribing with consumer g"),
    ] {
        wrong_state(
            outcome,
            ServiceState::ShutdownAlready,
            &format!("{doing} {ended}"),
        );
    }
    assert_eq!(consumer.shutdown(Duration::ZERO), report);
    assert!(consumer.owned_queues().is_empty());

    let never = built(consumer_builder(&namesrv, "g"), &Inbox::new());
    let report = never.shutdown(GENEROUS);
    assert!(report.threads_joined && report.abandoned == 0, "{report:?}");
    let text = format!("starting consumer g {ended}");
    wrong_state(never.start(), ServiceState::ShutdownAlready, &text);
}

/// The second one in an instance has the id of the first: brokers could not tell them apart.
#[test]
fn a_group_is_in_a_named_instance_once() {
    let cluster = cluster_of(1, 4);
    let namesrv = cluster.namesrv_addr();
    let manager = MQClientManager::new();
    let named = || {
        consumer_builder(&namesrv, "g")
            .client_manager(&manager)
            .instance_name("name")
    };
    let inbox = Inbox::new();
    let first = built(named(), &inbox);
    first.start().unwrap();
    let second = built(named(), &inbox);
    let error = second.start().unwrap_err();
    says(
        &error,
        &[
            "group g",
            "instance \"name\"",
            "choose another group or another instance name",
        ],
    );
    assert!(!error.is_retryable());
    wrong_state(
        second.start(),
        ServiceState::StartFailed,
        "starting consumer g is not possible in state START_FAILED: its start is under way, or has \
         failed: then build a new one",
    );
    assert!(second.shutdown(GENEROUS).threads_joined);
    producer(&namesrv).send(&Message::new("T", "m")).unwrap();
    inbox.wait_for_bodies(1);
    assert_eq!(manager.instance_count(), 1);
    assert!(first.shutdown(GENEROUS).threads_joined);
    assert_eq!(manager.instance_count(), 0);
}

/// Two managers stand for two processes of one machine. The rule is that of `instance_name`.
#[test]
fn two_processes_with_one_client_id_behave_alike_and_say_so() {
    keep_logs();
    let cluster = cluster_of(1, 4);
    let namesrv = cluster.namesrv_addr();
    let inboxes = [Inbox::new(), Inbox::new()];
    let members = inboxes.each_ref().map(|inbox| {
        let consumer = built(
            consumer_builder(&namesrv, "one_id").instance_name("same"),
            inbox,
        );
        consumer.start().unwrap();
        consumer
    });
    assert_eq!(members[0].client_id(), members[1].client_id());
    let own = |consumer: &DefaultMQPushConsumer| {
        let mut queues = consumer.owned_queues();
        queues.retain(|mq| mq.topic() == "T");
        queues
    };
    wait_until("both have the first share", || {
        let [a, b] = members.each_ref().map(own);
        a.len() == 2 && a == b
    });
    let id = members[0].client_id().unwrap();
    let told = logged(&[
        "one_id",
        "more than one member",
        &id,
        "give one of them another",
    ]);
    assert!(!told.is_empty());

    // Nothing is lost: what lay in the second share is consumed when one of them has ended.
    let producer = producer(&namesrv);
    for n in 0..8 {
        producer.send(&Message::new("T", format!("m{n}"))).unwrap();
    }
    inboxes[0].wait_for_bodies(4);
    inboxes[1].wait_for_bodies(4);
    assert!(members[1].shutdown(GENEROUS).threads_joined);
    wait_until("the other one has all queues", || {
        own(&members[0]).len() == 4
    });
    inboxes[0].wait_for_bodies(8);
    assert!(members[0].shutdown(GENEROUS).threads_joined);
}
