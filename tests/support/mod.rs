//! What the integration tests have in common: waiting, clusters and clients, and an inbox behind a listener.
#![allow(
    dead_code,
    unused_imports,
    reason = "each test binary takes what it needs"
)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod clients;
mod fake_peer;
mod inbox;
mod logs;
mod proxy;
mod scripted_broker;
mod target;

use std::time::{Duration, Instant};
use std::{fs, thread};

pub(crate) use clients::{Commits, cluster_of, producer_at, producer_in, producer_of, started};
pub(crate) use fake_peer::{
    FakePeer, reply_to, reply_with, route_of, route_over, stored_in, stored_reply,
};
pub(crate) use inbox::Inbox;
pub(crate) use logs::{keep_logs, logged};
pub(crate) use proxy::{BlackHole, Line, Proxy};
use rocketmq_blocking::{DefaultMQPushConsumerBuilder, MQClientManager};
use rocketmq_embedded::Cluster;
pub(crate) use scripted_broker::{Answer, ScriptedBroker};
pub(crate) use target::{Target, unique};

/// How long a test waits for what must come.
pub(crate) const GENEROUS: Duration = Duration::from_secs(30);

/// Waits until `condition` holds; a test that waits in vain fails with what it waited for.
#[track_caller]
pub(crate) fn wait_until(what: &str, condition: impl FnMut() -> bool) {
    assert!(
        holds_within(GENEROUS, condition),
        "waited {GENEROUS:?} in vain until {what}"
    );
}

/// Whether `condition` comes true in time.
pub(crate) fn holds_within(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= deadline {
            return condition();
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// The names of this process's threads that are the library's, as the system cuts them short.
pub(crate) fn library_threads() -> Vec<String> {
    const NAMES: [&str; 18] = [
        "AsyncSenderExec",
        "AsyncTraceDispa",
        "ClientCallbackE",
        "ClientReaper",
        "ClientTimer",
        "ConsumeMessageT",
        "HeartbeatServic",
        "LatencyFaultTol",
        "MessageQueueLis",
        "MioClientSelect",
        "NameServerAddre",
        "OffsetPersistSe",
        "PullMessageServ",
        "RPCHookExecutor",
        "RebalanceServic",
        "SendCallbackExe",
        "TopicRouteServi",
        "TransactionChec",
    ];
    let tasks = fs::read_dir("/proc/self/task").expect("the system lists threads");
    tasks
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .map(|name| name.trim_end().to_owned())
        .filter(|name| NAMES.contains(&name.as_str()))
        .collect()
}

/// Waits until nothing is left of the clients of a manager that had a cluster to themselves.
#[track_caller]
pub(crate) fn assert_nothing_left(cluster: &Cluster, manager: &MQClientManager, groups: &[&str]) {
    if !holds_within(GENEROUS, || manager.instance_count() == 0) {
        panic!("instances are left: {manager:?}");
    }
    if !holds_within(GENEROUS, || library_threads().is_empty()) {
        panic!("threads are left: {:?}", library_threads());
    }
    if !holds_within(GENEROUS, || cluster.connection_count() == 0) {
        panic!("{} connections are left", cluster.connection_count());
    }
    for group in groups {
        let members = || cluster.consumer_ids(group);
        if !holds_within(GENEROUS, || members().is_empty()) {
            panic!("members of {group} are left: {:?}", members());
        }
    }
}

/// A consumer with short intervals, so that a test does not wait for a period to end.
pub(crate) fn quick(builder: DefaultMQPushConsumerBuilder) -> DefaultMQPushConsumerBuilder {
    builder
        .persist_consumer_offset_interval(Duration::from_millis(200))
        .rebalance_min_interval(Duration::from_millis(100))
        .pull_time_delay_when_exception(Duration::from_millis(100))
}
