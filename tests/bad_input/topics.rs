use std::time::Duration;

use rocketmq_blocking::{Message, client_error_code, request_code};
use rocketmq_embedded::Cluster;

use crate::support::{GENEROUS, Inbox, keep_logs, logged, wait_until};
use crate::{consumer_builder, producer, producer_builder, says, started};

fn without_auto_create() -> Cluster {
    let builder = Cluster::builder();
    builder
        .configure(|config| config.auto_create_topic = false)
        .start()
        .unwrap()
}

#[test]
fn a_topic_that_is_not_there_is_told_with_what_to_do_and_sent_to_once_it_is() {
    let cluster = without_auto_create();
    let producer = producer(&cluster.namesrv_addr());
    let message = Message::new("T", "m");
    let error = producer.send(&message).unwrap_err();
    says(
        &error,
        &[
            "no route for topic T: create it",
            "autoCreateTopicEnable",
            "code 10005",
        ],
    );
    assert!(error.is_retryable() && !error.may_have_been_stored());
    let error = producer.fetch_publish_message_queues("T").unwrap_err();
    says(&error, &["T"]);
    cluster.create_topic("T", 1).unwrap();
    producer.send(&message).unwrap();
    assert_eq!(cluster.stored_count("T"), 1);
}

#[test]
fn a_topic_is_made_by_the_first_send_where_brokers_do_that() {
    let cluster = Cluster::builder().start().unwrap();
    let producer = started(producer_builder(&cluster.namesrv_addr()).default_topic_queue_nums(2));
    producer.send(&Message::new("T", "m")).unwrap();
    assert_eq!(cluster.stored_count("T"), 1);
    wait_until("the name server knows its two queues", || {
        producer
            .fetch_publish_message_queues("T")
            .is_ok_and(|queues| queues.len() == 2)
    });
}

#[test]
fn a_consumer_waits_for_a_topic_that_comes_later() {
    keep_logs();
    let cluster = without_auto_create();
    let inbox = Inbox::new();
    let consumer = consumer_builder(&cluster.namesrv_addr(), "waits_for_topic")
        .poll_name_server_interval(Duration::from_millis(100))
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    let told = logged(&[
        "group waits_for_topic",
        "does not know topic T",
        "is the name right?",
    ]);
    assert_eq!(told.len(), 1, "{told:?}");
    cluster.create_topic("T", 2).unwrap();
    let producer = producer(&cluster.namesrv_addr());
    for n in 0..4 {
        producer.send(&Message::new("T", format!("m{n}"))).unwrap();
    }
    inbox.wait_for_bodies(4);
    assert!(consumer.shutdown(GENEROUS).threads_joined);
}

#[test]
fn a_tag_that_looks_like_several_is_warned_of() {
    keep_logs();
    for (topic, odd) in [("Odd1", "Books,Music"), ("Odd2", "Books | Music")] {
        let consumer = consumer_builder("127.0.0.1:1", "odd_tags")
            .subscribe(topic, odd)
            .message_listener(Inbox::new().listener())
            .build()
            .unwrap();
        let told = logged(&[topic, odd, "is one tag", "||"]);
        assert_eq!(told.len(), 1, "{told:?}");
        consumer.subscribe("Plain", "Books || Music").unwrap();
        assert!(logged(&["topic Plain", "is one tag"]).is_empty());
    }
}

#[test]
fn a_broker_that_is_gone_is_told_of_once_and_not_once_a_queue() {
    keep_logs();
    let cluster = without_auto_create();
    cluster.create_topic("Outage", 8).unwrap();
    let consumer = consumer_builder(&cluster.namesrv_addr(), "outage")
        .subscribe("Outage", "*")
        .pull_time_delay_when_exception(Duration::from_millis(20))
        .message_listener(Inbox::new().listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    // The queues of the topic and that of the retry topic.
    assert!(cluster.wait_for(request_code::PULL_MESSAGE, 9, GENEROUS));
    let addr = cluster.broker_addr("broker-a").unwrap();
    cluster.stop_broker("broker-a").unwrap();
    // Whichever queue finds out first, that of retries perhaps.
    let told = || logged(&["pulling", &addr, "all queues of its broker"]);
    wait_until("the log says so", || !told().is_empty());
    cluster.start_broker("broker-a").unwrap();
    let pulls = cluster.request_count(request_code::PULL_MESSAGE);
    assert!(cluster.wait_for(request_code::PULL_MESSAGE, pulls + 9, GENEROUS));
    assert_eq!(told().len(), 1, "{:?}", told());
    assert!(consumer.shutdown(GENEROUS).threads_joined);
}

#[test]
fn a_topic_that_is_deleted_under_way_is_told_and_used_again_once_it_is_back() {
    keep_logs();
    let cluster = without_auto_create();
    cluster.create_topic("T", 1).unwrap();
    let namesrv = cluster.namesrv_addr();
    let producer = producer(&namesrv);
    let inbox = Inbox::new();
    let consumer = consumer_builder(&namesrv, "of_deleted")
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    producer.send(&Message::new("T", "before")).unwrap();
    inbox.wait_for_bodies(1);

    cluster.delete_topic("T");
    let error = producer
        .send(&Message::new("T", "lost by nobody"))
        .unwrap_err();
    let addr = cluster.broker_addr("broker-a").unwrap();
    says(
        &error,
        &["topic T", "broker-a", &addr, "TOPIC_NOT_EXIST (17)"],
    );
    assert_eq!(error.broker_code(), Some(17));
    assert!(error.is_retryable() && !error.may_have_been_stored());
    wait_until("the consumer has been told", || {
        !logged(&["pulling", "topic=T", &addr, "TOPIC_NOT_EXIST (17)"]).is_empty()
    });

    cluster.create_topic("T", 1).unwrap();
    producer.send(&Message::new("T", "after")).unwrap();
    inbox.wait_for_bodies(2);
    assert!(
        inbox.bodies().values().all(|times| *times == 1),
        "{:?}",
        inbox.bodies()
    );
    assert!(consumer.shutdown(GENEROUS).threads_joined);
    assert_eq!(client_error_code::NOT_FOUND_TOPIC_EXCEPTION, 10_005);
}
