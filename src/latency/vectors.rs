//! The Java client's own picks: the lines of `tests/vectors/selection.jsonl`.

use std::path::PathBuf;
use std::time::Duration;

use rocketmq_protocol::MessageQueue;
use serde::Deserialize;

use super::*;
use crate::client::TopicPublishInfo;
use crate::sync::Clock;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    /// A letter and the number of queues each.
    brokers: Vec<String>,
    /// Where the thread's index begins.
    start: i32,
    latency: bool,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Step {
    Update {
        update: String,
        took: u64,
        isolation: bool,
        reachable: bool,
    },
    Pass {
        pass: u64,
    },
    Latency {
        latency: bool,
    },
    Picks {
        last: Option<String>,
        /// Where the index was set to at random before.
        place: Option<i32>,
        /// A digit to the base 36 each: the queue's place in the list.
        picks: String,
    },
}

/// Each pick is Java's, with the switch on and off, with brokers that are left alone and come back,
/// and with a last broker that is avoided.
#[test]
fn selections_are_those_of_java_pick_by_pick() {
    let folder = std::env::var_os("ROCKETMQ_VECTORS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors")),
        PathBuf::from,
    );
    let text = std::fs::read_to_string(folder.join("selection.jsonl")).unwrap();
    let mut picks = 0;
    for (number, line) in text.lines().enumerate() {
        picks += check(serde_json::from_str(line).unwrap(), number + 1);
    }
    assert!(picks >= 10_000, "{picks} picks");
}

fn check(line: Line, number: usize) -> usize {
    let clock = Clock::manual();
    let config = LatencyConfig {
        send_latency_fault_enable: line.latency,
        ..LatencyConfig::default()
    };
    let strategy = MQFaultStrategy::new(&config, clock.clone()).unwrap();
    let queues: Vec<MessageQueue> = line
        .brokers
        .iter()
        .flat_map(|broker| {
            let (name, count) = broker.split_at(1);
            let count: i32 = count.parse().unwrap();
            (0..count).map(move |id| MessageQueue::new("t", name, id))
        })
        .collect();
    let info = TopicPublishInfo::new(queues.clone());
    info.set_index(line.start as u32);
    let mut checked = 0;
    for (step_number, step) in line.steps.into_iter().enumerate() {
        match step {
            Step::Update {
                update,
                took,
                isolation,
                reachable,
            } => {
                let fault = FaultUpdate::Of {
                    isolation,
                    reachable,
                };
                strategy.update_fault_item(&update, Duration::from_millis(took), fault);
            }
            Step::Pass { pass } => clock.advance(Duration::from_millis(pass)),
            Step::Latency { latency } => strategy.set_send_latency_fault_enable(latency),
            Step::Picks { last, place, picks } => {
                if let Some(place) = place {
                    info.set_index(place as u32);
                }
                let ours: String = picks
                    .chars()
                    .filter_map(|_| {
                        let mq = strategy.select_one_message_queue(&info, last.as_deref(), false);
                        let place = queues.iter().position(|queue| Some(queue) == mq.as_ref());
                        char::from_digit(place.unwrap() as u32, 36)
                    })
                    .collect();
                assert_eq!(ours, picks, "line {number}, step {step_number}");
                checked += picks.len();
            }
        }
    }
    checked
}
