//! The same questions to this broker and to Apache RocketMQ 5.5.0.
//!
//! `answers.txt` was taken from a real cluster. With `ROCKETMQ_NAMESRV` set, a real one is asked
//! again (with `enablePropertyFilter=false`, which is a broker's default, `recallMessageEnable=true` and
//! `transactionCheckInterval=1000`); with
//! `ROCKETMQ_WRITE_ANSWERS` its answers are written to that file.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../raw_client/mod.rs"]
mod raw_client;
mod script;

use std::time::Duration;

use rocketmq_embedded::Cluster;
use script::Script;

const ANSWERS: &str = include_str!("answers.txt");

fn assert_same(expected: &str, found: &str) {
    let mut lines = expected.lines().zip(found.lines()).enumerate();
    if let Some((number, (expected, found))) = lines.find(|(_, (a, b))| a != b) {
        panic!(
            "line {}\n expected {expected}\n    found {found}",
            number + 1
        );
    }
    assert_eq!(expected.lines().count(), found.lines().count());
}

#[test]
fn this_broker_answers_as_a_real_one_did() {
    let cluster = Cluster::builder()
        .configure(|config| {
            config.recall_message_enable = true;
            config.transaction_check_interval = Duration::from_secs(1);
        })
        .start()
        .unwrap();
    assert_same(ANSWERS, &Script::run(&cluster.namesrv_addr()));
}

#[test]
fn a_real_broker_still_answers_so() {
    let Ok(namesrv) = std::env::var("ROCKETMQ_NAMESRV") else {
        return;
    };
    let answers = Script::run(&namesrv);
    if let Ok(path) = std::env::var("ROCKETMQ_WRITE_ANSWERS") {
        std::fs::write(path, &answers).unwrap();
        return;
    }
    assert_same(ANSWERS, &answers);
}
