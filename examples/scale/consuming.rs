//! Consumers with many topics, many brokers, many groups, and many consumers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQPushConsumer,
    MessageExt,
};

use crate::Failure;
use crate::process::{Stopwatch, status, threads};
use crate::servers::{QUEUES, Servers, topic_name};
use crate::table::Figures;

const PATIENCE: Duration = Duration::from_secs(300);
/// In how much time all offsets have been saved once, and pulls are held again.
const SETTLING: Duration = Duration::from_secs(8);
/// Members of a group where groups have several.
const MEMBERS: usize = 4;

/// What is measured.
struct Shape {
    brokers: usize,
    topics: usize,
    /// The group of each consumer.
    groups: Vec<usize>,
    own_instances: bool,
    /// How many messages each queue gets, which each group receives.
    messages: usize,
}

pub(crate) fn topics(topics: usize, idle: Duration) -> Result<Figures, Failure> {
    let shape = Shape {
        brokers: 1,
        topics,
        groups: vec![0],
        own_instances: false,
        messages: 12,
    };
    measure(&shape, idle)
}

pub(crate) fn brokers(brokers: usize, idle: Duration) -> Result<Figures, Failure> {
    let shape = Shape {
        brokers,
        topics: 1,
        groups: vec![0],
        own_instances: false,
        messages: 250,
    };
    measure(&shape, idle)
}

pub(crate) fn groups(groups: usize, idle: Duration) -> Result<Figures, Failure> {
    let shape = Shape {
        brokers: 1,
        topics: 1,
        groups: (0..groups).collect(),
        own_instances: false,
        messages: 60,
    };
    measure(&shape, idle)
}

pub(crate) fn consumers(consumers: usize, idle: Duration) -> Result<Figures, Failure> {
    in_groups(consumers, true, idle)
}

pub(crate) fn shared(consumers: usize, idle: Duration) -> Result<Figures, Failure> {
    in_groups(consumers, false, idle)
}

fn in_groups(consumers: usize, own: bool, idle: Duration) -> Result<Figures, Failure> {
    let shape = Shape {
        brokers: 1,
        topics: 1,
        groups: (0..consumers).map(|number| number / MEMBERS).collect(),
        own_instances: own,
        messages: 250,
    };
    measure(&shape, idle)
}

/// Consumers that run, and what they have received.
struct Fleet<'a> {
    shape: &'a Shape,
    namesrv: String,
    members: Vec<(usize, DefaultMQPushConsumer)>,
    received: Arc<AtomicUsize>,
}

impl Fleet<'_> {
    fn add(&mut self, group: usize) -> Result<(), Failure> {
        let received = Arc::clone(&self.received);
        let mut builder = DefaultMQPushConsumer::builder(format!("group-{group}"))
            .namesrv_addr(&self.namesrv)
            .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
            .message_listener(
                move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                    received.fetch_add(messages.len(), Ordering::Relaxed);
                    ConsumeConcurrentlyStatus::ConsumeSuccess
                },
            );
        for topic in 0..self.shape.topics {
            builder = builder.subscribe(&topic_name(topic), "*");
        }
        if self.shape.own_instances {
            builder = builder.instance_name(format!("instance-{}", self.members.len()));
        }
        let consumer = builder.build()?;
        consumer.start()?;
        self.members.push((group, consumer));
        Ok(())
    }

    fn queues_of_topic(&self) -> usize {
        usize::from(QUEUES) * self.shape.brokers
    }

    /// Whether each group has divided all queues of its topics evenly.
    fn is_settled(&self) -> bool {
        let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
        for (group, _) in &self.members {
            *sizes.entry(*group).or_default() += 1;
        }
        let mut owned: BTreeMap<usize, usize> = BTreeMap::new();
        let of_topic = self.queues_of_topic();
        let is_even = self.members.iter().all(|(group, consumer)| {
            let queues = consumer.owned_queues();
            let count = queues
                .iter()
                .filter(|mq| !mq.topic().starts_with('%'))
                .count();
            *owned.entry(*group).or_default() += count;
            let members = sizes.get(group).copied().unwrap_or(1);
            let least = of_topic / members * self.shape.topics;
            let most = of_topic.div_ceil(members) * self.shape.topics;
            (least..=most).contains(&count)
        });
        is_even
            && owned
                .values()
                .all(|count| *count == of_topic * self.shape.topics)
    }

    fn wait(&self, what: &str, mut is_true: impl FnMut(&Self) -> bool) -> Result<(), Failure> {
        let begun = Instant::now();
        while !is_true(self) {
            if begun.elapsed() > PATIENCE {
                return Err(format!("waited {PATIENCE:?} in vain until {what}").into());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

fn measure(shape: &Shape, idle: Duration) -> Result<Figures, Failure> {
    let mut servers = Servers::start(shape.brokers, shape.topics)?;
    let mut figures = Figures::default();
    let mut fleet = Fleet {
        shape,
        namesrv: servers.namesrv.clone(),
        members: Vec::new(),
        received: Arc::default(),
    };
    let begun = Stopwatch::start();
    for group in &shape.groups {
        fleet.add(*group)?;
    }
    figures.put("start calls, s", begun.wall_s());
    fleet.wait("all queues are divided", Fleet::is_settled)?;
    figures.put("all queues divided after, s", begun.wall_s());
    figures.put("processor time until then, s", begun.cpu_s());
    thread::sleep(SETTLING);
    for (name, count) in servers.since(&[0; 7])? {
        figures.put(format!("requests of the start: {name}"), count as f64);
    }
    figures.put("VmRSS, MiB", status("VmRSS") / 1024.0);

    let groups = shape.groups.last().map_or(1, |last| last + 1);
    let total = fleet.queues_of_topic() * shape.topics * shape.messages * groups;
    let load = Stopwatch::start();
    servers.put(shape.topics, shape.messages)?;
    fleet.wait("all messages have come", |fleet| {
        fleet.received.load(Ordering::Relaxed) >= total
    })?;
    figures.put("messages of the load", total as f64);
    figures.put(
        "loaded: processor time a message, us",
        load.cpu_s() * 1e6 / total as f64,
    );
    figures.put("loaded: messages a second", total as f64 / load.wall_s());
    figures.put("loaded: VmHWM, MiB", status("VmHWM") / 1024.0);
    figures.put("loaded: threads", threads().values().sum::<usize>() as f64);

    thread::sleep(SETTLING);
    let minutes = idle.as_secs_f64() / 60.0;
    let (rest, before) = (Stopwatch::start(), servers.counts()?);
    thread::sleep(idle);
    let cpu = rest.cpu_s();
    let mut all = 0.0;
    for (name, count) in servers.since(&before)? {
        all += count as f64;
        figures.put(format!("idle: {name} a minute"), count as f64 / minutes);
    }
    figures.put("idle: all requests a minute", all / minutes);
    figures.put("idle: processor time a minute, s", cpu / minutes);
    figures.put("idle: VmRSS, MiB", status("VmRSS") / 1024.0);
    let threads = threads();
    figures.put("idle: threads", threads.values().sum::<usize>() as f64);
    for (name, count) in threads {
        figures.put(format!("idle: threads {name}"), count as f64);
    }

    let before = servers.counts()?;
    let join = Stopwatch::start();
    fleet.add(0)?;
    fleet.wait("the newcomer has its share", Fleet::is_settled)?;
    figures.put("a member joins: divided after, s", join.wall_s());
    figures.put("a member joins: processor time, s", join.cpu_s());
    for (name, count) in servers.since(&before)? {
        figures.put(format!("a member joins: {name}"), count as f64);
    }
    let end = Stopwatch::start();
    for (_, consumer) in fleet.members.drain(..) {
        consumer.shutdown(Duration::from_secs(60));
    }
    figures.put("shutdown of all, s", end.wall_s());
    figures.put("VmRSS after it, MiB", status("VmRSS") / 1024.0);
    Ok(figures)
}
