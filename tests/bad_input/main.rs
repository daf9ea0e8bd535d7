//! What a user, a server or the network may do wrong: each case has an error that says what failed,
//! where, and what to do, or a rule that the documentation states; nothing is lost, no call outlasts
//! its time, and nothing is left behind.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test is outside of what loom models, and fails by panicking"
)]

mod addresses;
mod callbacks;
mod life;
mod messages;
mod names;
mod peers;
mod replies;
mod settings;
mod strategies;
#[path = "../support/mod.rs"]
mod support;
mod topics;

use std::time::Duration;

use rocketmq_blocking::{
    ConsumeFromWhere, DefaultMQProducer, DefaultMQProducerBuilder, DefaultMQPushConsumer,
    DefaultMQPushConsumerBuilder, Error, MQClientManager,
};
use support::{producer_at, quick, started};

/// How long a call is allowed to take here.
const LIMIT: Duration = Duration::from_secs(1);
/// What a busy machine may add to that.
const SLACK: Duration = Duration::from_secs(15);

fn producer_builder(namesrv: &str) -> DefaultMQProducerBuilder {
    producer_at(namesrv).retry_times_when_send_failed(0)
}

fn producer(namesrv: &str) -> DefaultMQProducer {
    started(producer_builder(namesrv))
}

/// A consumer of all messages of `T`.
fn consumer_builder(namesrv: &str, group: &str) -> DefaultMQPushConsumerBuilder {
    quick(DefaultMQPushConsumer::builder(group))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(namesrv)
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .subscribe("T", "*")
}

#[track_caller]
fn says(error: &Error, words: &[&str]) {
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{word:?} is missing in {text:?}");
    }
}

/// What is wrong with settings, one text a setting.
#[track_caller]
fn problems(error: Error) -> Vec<String> {
    match error {
        Error::InvalidConfig { problems } => problems,
        other => panic!("{other:?}"),
    }
}
