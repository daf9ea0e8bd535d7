//! Namespaces of the first kind: wrapped on the servers, plain in the program.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and is outside of what loom models"
)]

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQProducer,
    DefaultMQPushConsumer, MQClientManager, Message, MessageExt, MessageQueue, RPCHook,
    RemotingCommand, request_code,
};
use rocketmq_embedded::Cluster;
use support::{Inbox, producer_at, quick, started, wait_until};

/// Keeps under which topic messages are given back.
#[derive(Default)]
struct GivenBack(Mutex<Vec<String>>);

impl RPCHook for GivenBack {
    fn do_before_request(&self, _: &str, request: &mut RemotingCommand) {
        if request.code == request_code::CONSUMER_SEND_MSG_BACK {
            let topic = request.ext_fields.get("originTopic").unwrap();
            self.0.lock().unwrap().push(topic.to_owned());
        }
    }
}

fn producer(cluster: &Cluster, namespace: &str) -> DefaultMQProducer {
    started(producer_at(&cluster.namesrv_addr()).namespace(namespace))
}

/// apache/rocketmq-client-go#933, #945 (PR#944), apache/rocketmq#6326: tables that had the bare name
/// did not find messages of the wrapped topic, nor those of the retry topic.
#[test]
fn b119_a_retry_in_a_namespace_comes_back_under_its_plain_topic() {
    let cluster = Cluster::builder()
        .delay_levels(vec![Duration::from_millis(10); 18])
        .start()
        .unwrap();
    let producer = producer(&cluster, "ns");
    producer.create_topic("TBW102", "T", 2).unwrap();
    let mut queues = Vec::new();
    wait_until("the topic is there", || {
        queues = producer
            .fetch_publish_message_queues("T")
            .unwrap_or_default();
        !queues.is_empty()
    });
    let mq = |id| MessageQueue::new("T", "broker-a", id);
    assert_eq!(queues, [mq(0), mq(1)]);

    let given_back = Arc::new(GivenBack::default());
    let inbox = Inbox::new();
    let seen = inbox.clone();
    let contexts = Arc::new(Mutex::new(Vec::new()));
    let changes = Arc::new(Mutex::new(Vec::new()));
    let (context_notes, change_notes) = (Arc::clone(&contexts), Arc::clone(&changes));
    // `namespace` after `subscribe`: the order of settings does not matter.
    let consumer = quick(DefaultMQPushConsumer::builder("g"))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&cluster.namesrv_addr())
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .subscribe("T", "A || B")
        .namespace("ns")
        .rpc_hook(given_back.clone())
        .message_queue_listener(
            move |topic: &str, all: &[MessageQueue], mine: &[MessageQueue]| {
                let queues = [all, mine].concat();
                change_notes
                    .lock()
                    .unwrap()
                    .push((topic.to_owned(), queues));
            },
        )
        .message_listener(
            move |messages: &[MessageExt], context: &mut ConsumeConcurrentlyContext| {
                let mut notes = context_notes.lock().unwrap();
                notes.push(context.message_queue().topic().to_owned());
                seen.put(messages);
                if messages[0].reconsume_times() == 0 {
                    ConsumeConcurrentlyStatus::ReconsumeLater
                } else {
                    ConsumeConcurrentlyStatus::ConsumeSuccess
                }
            },
        )
        .build()
        .unwrap();
    consumer.start().unwrap();
    let result = producer
        .send(&Message::new("T", "m").with_tags("A"))
        .unwrap();
    assert_eq!(result.message_queue.topic(), "T");
    assert_eq!(producer.max_offset(&result.message_queue).unwrap(), 1);
    assert_eq!(producer.min_offset(&result.message_queue).unwrap(), 0);

    let messages = inbox.wait_for(2);
    assert_eq!(
        messages.iter().map(|m| m.topic()).collect::<Vec<_>>(),
        ["T", "T"]
    );
    assert_eq!(messages[1].reconsume_times(), 1);
    assert_eq!(*contexts.lock().unwrap(), ["T", "%RETRY%g"]);
    for (topic, queues) in changes.lock().unwrap().iter() {
        assert!(["T", "%RETRY%g"].contains(&topic.as_str()), "{topic}");
        assert!(queues.iter().all(|mq| mq.topic() == topic), "{queues:?}");
    }
    let owned = consumer.owned_queues();
    assert!(
        owned.contains(&mq(0)) && owned.contains(&mq(1)),
        "{owned:?}"
    );

    // On the broker everything is wrapped.
    assert_eq!(*given_back.0.lock().unwrap(), ["ns%T"]);
    assert_eq!(
        cluster.consumer_ids("ns%g"),
        [consumer.client_id().unwrap()]
    );
    assert!(cluster.consumer_ids("g").is_empty());
    assert_eq!(cluster.stored_count("T"), 0);
    let stored = cluster.messages("ns%T");
    assert_eq!(stored[0].property("INSTANCE_ID"), Some("ns"));
    assert_eq!(cluster.stored_count("%RETRY%ns%g"), 1);
    let retry = cluster.messages("%RETRY%ns%g");
    assert_eq!(retry[0].property("RETRY_TOPIC"), Some("ns%T"));
    assert_eq!(consumer.shutdown(Duration::from_secs(5)).abandoned, 0);
    let id = result.message_queue.queue_id();
    let of_broker = MessageQueue::new("ns%T", "broker-a", id);
    assert_eq!(cluster.committed_offset("ns%g", &of_broker), Some(1));
}

#[test]
fn namespaces_do_not_see_each_other() {
    let cluster = Cluster::builder().start().unwrap();
    for topic in ["one%T", "two%T", "T"] {
        cluster.create_topic(topic, 1).unwrap();
    }
    let [one, none] = ["one", ""].map(|namespace| {
        let inbox = Inbox::new();
        let consumer = quick(DefaultMQPushConsumer::builder("g"))
            .client_manager(&MQClientManager::new())
            .namesrv_addr(&cluster.namesrv_addr())
            .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
            .namespace(namespace)
            .subscribe("T", "*")
            .message_listener(inbox.listener())
            .build()
            .unwrap();
        consumer.start().unwrap();
        (consumer, inbox)
    });
    for namespace in ["two", "one", ""] {
        let producer = producer(&cluster, namespace);
        let body = format!("of {namespace}");
        producer.send(&Message::new("T", body)).unwrap();
    }
    assert_eq!(one.1.wait_for(1)[0].body(), "of one");
    assert_eq!(none.1.wait_for(1)[0].body(), "of ");
    assert_eq!(one.0.owned_queues()[0].topic(), "%RETRY%g");
    assert_eq!((one.1.len(), none.1.len()), (1, 1));
}

#[test]
fn names_of_the_system_are_sent_to_as_they_are() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("BenchmarkTest", 1).unwrap();
    let producer = producer(&cluster, "ns");
    producer.send(&Message::new("BenchmarkTest", "m")).unwrap();
    assert_eq!(cluster.stored_count("BenchmarkTest"), 1);
}
