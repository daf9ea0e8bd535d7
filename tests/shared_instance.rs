//! Which clients share an instance, its client id, connections and threads.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test is outside of what loom models, and fails by panicking"
)]

mod support;

use std::time::Duration;

use rocketmq_blocking::service::ServiceState;
use rocketmq_blocking::{
    DefaultMQProducer, DefaultMQPushConsumer, Error, MQClientManager, Message,
};
use rocketmq_embedded::Cluster;
use support::{Inbox, quick, wait_until};

const TIMEOUT: Duration = Duration::from_secs(5);

struct World {
    cluster: Cluster,
    manager: MQClientManager,
}

impl World {
    fn start() -> Self {
        let cluster = Cluster::builder().brokers(2).start().unwrap();
        cluster.create_topic("T", 2).unwrap();
        Self {
            cluster,
            manager: MQClientManager::new(),
        }
    }

    fn producer(&self, group: &str) -> rocketmq_blocking::DefaultMQProducerBuilder {
        DefaultMQProducer::builder(group)
            .client_manager(&self.manager)
            .namesrv_addr(&self.cluster.namesrv_addr())
    }

    fn consumer(&self, group: &str) -> rocketmq_blocking::DefaultMQPushConsumerBuilder {
        let builder = DefaultMQPushConsumer::builder(group)
            .client_manager(&self.manager)
            .namesrv_addr(&self.cluster.namesrv_addr())
            .subscribe("T", "*")
            .message_listener(Inbox::new().listener());
        quick(builder)
    }
}

#[test]
fn equal_settings_share_one_instance_one_id_and_one_connection_a_server() {
    let world = World::start();
    let settings = |builder: rocketmq_blocking::DefaultMQProducerBuilder| {
        // The intervals of `quick`: what differs in a setting does not share.
        builder
            .persist_consumer_offset_interval(Duration::from_millis(200))
            .rebalance_min_interval(Duration::from_millis(100))
    };
    let producers: Vec<_> = ["pa", "pb", "pc"]
        .map(|group| settings(world.producer(group)).build().unwrap())
        .into();
    let consumers: Vec<_> = ["ca", "cb"]
        .map(|group| world.consumer(group).build().unwrap())
        .into();
    for producer in &producers {
        producer.start().unwrap();
    }
    for consumer in &consumers {
        consumer.start().unwrap();
    }
    for _ in 0..4 {
        for producer in &producers {
            producer.send(&Message::new("T", "m")).unwrap();
        }
    }
    assert_eq!(world.manager.instance_count(), 1);
    let id = producers[0].client_id().unwrap();
    assert!(
        producers
            .iter()
            .all(|p| p.client_id().as_ref() == Some(&id))
    );
    assert!(
        consumers
            .iter()
            .all(|c| c.client_id().as_ref() == Some(&id))
    );
    wait_until("both groups have the member", || {
        ["ca", "cb"]
            .iter()
            .all(|group| world.cluster.consumer_ids(group) == [id.clone()])
    });
    assert_eq!(
        world.cluster.connection_count(),
        3,
        "one to the name server and one to each of the two brokers"
    );

    // The last user stops it, in whatever order they leave.
    for consumer in &consumers {
        assert!(consumer.shutdown(TIMEOUT).threads_joined);
        assert_eq!(world.manager.instance_count(), 1);
    }
    for (left, producer) in producers.iter().enumerate().rev() {
        producer.send(&Message::new("T", "still served")).unwrap();
        assert!(producer.shutdown(TIMEOUT).threads_joined);
        assert_eq!(world.manager.instance_count(), usize::from(left > 0));
    }
    wait_until("all sockets are closed", || {
        world.cluster.connection_count() == 0
    });
}

#[test]
fn a_second_member_of_a_group_has_an_instance_of_its_own() {
    let world = World::start();
    let [first, second] = [(); 2].map(|()| {
        let consumer = world.consumer("g").build().unwrap();
        consumer.start().unwrap();
        consumer
    });
    assert_eq!(world.manager.instance_count(), 2);
    let mut ids = [first.client_id().unwrap(), second.client_id().unwrap()];
    ids.sort();
    assert_ne!(ids[0], ids[1]);
    wait_until("the broker knows both", || {
        world.cluster.consumer_ids("g") == ids
    });

    // A third client of another group uses one of the two.
    let third = world.consumer("other").build().unwrap();
    third.start().unwrap();
    assert_eq!(world.manager.instance_count(), 2);
    assert!(ids.contains(&third.client_id().unwrap()));

    assert_eq!(world.cluster.connection_count(), 6);
    let (lonely, shared) = if third.client_id() == first.client_id() {
        (&second, &first)
    } else {
        (&first, &second)
    };
    lonely.shutdown(TIMEOUT);
    assert_eq!(world.manager.instance_count(), 1);
    wait_until("its connections are closed, and only its", || {
        world.cluster.connection_count() == 3
    });
    shared.shutdown(TIMEOUT);
    assert_eq!(world.manager.instance_count(), 1);
    third.shutdown(TIMEOUT);
    assert_eq!(world.manager.instance_count(), 0);
}

#[test]
fn the_place_of_a_member_that_left_is_free_for_the_next() {
    let world = World::start();
    let other = world.consumer("other").build().unwrap();
    other.start().unwrap();
    let id = other.client_id();
    for _ in 0..3 {
        let member = world.consumer("g").build().unwrap();
        member.start().unwrap();
        assert_eq!(
            member.client_id(),
            id,
            "it joins the instance that is there"
        );
        member.shutdown(TIMEOUT);
        wait_until("it has left", || world.cluster.consumer_ids("g").is_empty());
    }
    assert_eq!(world.manager.instance_count(), 1);
    other.shutdown(TIMEOUT);
}

#[test]
fn other_settings_never_share() {
    let world = World::start();
    let clients = [
        world.producer("p"),
        world
            .producer("p1")
            .heartbeat_broker_interval(Duration::from_secs(7)),
        world.producer("p2").unit_name("unit"),
        world.producer("p3").instance_name("name"),
        world
            .producer("p4")
            .namesrv_addr(&format!("{};127.0.0.1:1", world.cluster.namesrv_addr())),
    ]
    .map(|builder| builder.build().unwrap());
    for client in &clients {
        client.start().unwrap();
    }
    assert_eq!(world.manager.instance_count(), clients.len());
    let mut ids: Vec<_> = clients
        .iter()
        .map(|client| client.client_id().unwrap())
        .collect();
    assert!(ids[2].ends_with("@unit"), "{ids:?}");
    assert!(ids[3].ends_with("@name"), "{ids:?}");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), clients.len());
}

#[test]
fn managers_share_nothing() {
    let world = World::start();
    let elsewhere = MQClientManager::new();
    let here = world.producer("p").build().unwrap();
    let there = world
        .producer("p2")
        .client_manager(&elsewhere)
        .build()
        .unwrap();
    here.start().unwrap();
    there.start().unwrap();
    assert_ne!(here.client_id(), there.client_id());
    assert_eq!(
        (world.manager.instance_count(), elsewhere.instance_count()),
        (1, 1)
    );
}

#[test]
fn an_instance_name_is_shared_by_those_who_give_it_and_has_each_group_once() {
    let world = World::start();
    let first = world.consumer("g").instance_name("name").build().unwrap();
    let unnamed = world.consumer("unnamed").build().unwrap();
    let same = world.consumer("h").instance_name("name").build().unwrap();
    for client in [&first, &unnamed, &same] {
        client.start().unwrap();
    }
    assert_eq!(world.manager.instance_count(), 2);
    assert_eq!(first.client_id(), same.client_id());
    assert!(first.client_id().unwrap().ends_with("@name"));

    let twice = world.consumer("g").instance_name("name").build().unwrap();
    let error = twice.start().unwrap_err();
    assert!(matches!(error, Error::MQClient { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "group g has been created before in instance \"name\"; choose another group or another \
         instance name"
    );
    assert!(!error.is_retryable());
    assert_eq!(twice.service_state(), ServiceState::StartFailed);

    let differs = world
        .consumer("k")
        .instance_name("name")
        .heartbeat_broker_interval(Duration::from_secs(7))
        .build()
        .unwrap();
    let error = differs.start().unwrap_err();
    assert!(matches!(error, Error::InvalidConfig { .. }), "{error:?}");
    assert!(
        error
            .to_string()
            .contains("\"name\" is in use by a client with other settings")
    );

    // Those who were refused are no users: the instance ends with the two that are.
    drop((twice, differs));
    assert_eq!(world.manager.instance_count(), 2);
    first.shutdown(TIMEOUT);
    assert_eq!(world.manager.instance_count(), 2);
    same.shutdown(TIMEOUT);
    assert_eq!(world.manager.instance_count(), 1);
    let again = world.consumer("g").instance_name("name").build().unwrap();
    again.start().unwrap();
    assert_eq!(world.manager.instance_count(), 2);
}
