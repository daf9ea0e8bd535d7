use std::collections::{BTreeMap, BTreeSet};

use rocketmq_protocol::response_code;

use super::*;
use crate::latency::{BackOffTable, FaultUpdate, LatencyConfig};
use crate::producer::SendStatus;
use crate::sync::{Clock, now};

const MINUTE: Duration = Duration::from_secs(60);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn info(brokers: &[&str], queues: i32) -> Arc<TopicPublishInfo> {
    let all: Vec<MessageQueue> = brokers
        .iter()
        .flat_map(|broker| (0..queues).map(|id| MessageQueue::new("t", *broker, id)))
        .collect();
    Arc::new(TopicPublishInfo::new(all))
}

fn stored(mq: &MessageQueue) -> SendResult {
    SendResult {
        send_status: SendStatus::SendOk,
        msg_id: "id".to_owned(),
        offset_msg_id: "offset id".to_owned(),
        message_queue: mq.clone(),
        queue_offset: 0,
        region_id: "r".to_owned(),
        trace_on: true,
        transaction_id: None,
        recall_handle: None,
    }
}

fn refused() -> Error {
    Error::MQBroker {
        code: response_code::SERVICE_NOT_AVAILABLE,
        remark: String::new(),
        broker_addr: "a:1".to_owned(),
    }
}

fn unconnected() -> Error {
    Error::RemotingConnect {
        addr: "a:1".to_owned(),
        reason: "refused".to_owned(),
    }
}

/// A producer without a network.
struct Bench {
    strategy: Arc<MQFaultStrategy>,
    policy: Arc<RetryPolicy>,
    clock: Clock,
    timeout: Duration,
}

impl Bench {
    fn new(send_latency_fault_enable: bool) -> Self {
        let clock = Clock::manual();
        let config = LatencyConfig {
            send_latency_fault_enable,
            ..LatencyConfig::default()
        };
        Self {
            strategy: Arc::new(MQFaultStrategy::new(&config, clock.clone()).unwrap()),
            policy: Arc::new(RetryPolicy {
                send_msg_max_timeout_per_request: None,
                retry_another_broker_when_not_store_ok: false,
                retry_response_codes: BTreeSet::from([response_code::SERVICE_NOT_AVAILABLE]),
            }),
            clock,
            timeout: MINUTE,
        }
    }

    fn attempts(&self, info: &Arc<TopicPublishInfo>, attempts: u32) -> Attempts {
        let budget = Budget {
            attempts,
            timeout: self.timeout,
            deadline: Deadline::after(self.timeout),
        };
        Attempts::new("t", Arc::clone(info), &self.strategy, &self.policy, budget)
    }
}

/// apache/rocketmq#2223, #1136: with three brokers of which two fail, the tries went a, b, a. Every
/// broker is tried before one is tried twice, so the third attempt always reaches the one that works.
///
/// A round that remembers the last broker only passes while each broker's queues stand together; it
/// fails where they alternate, and where an attempt goes on from a random queue.
#[test]
fn b03_the_third_attempt_reaches_the_third_broker() {
    let alternating = ["a", "b", "a", "b", "c"];
    let together = ["a", "a", "b", "b", "c"];
    for (enable, order) in [(false, alternating), (true, alternating), (true, together)] {
        for error in [refused(), unconnected()] {
            let bench = Bench::new(enable);
            // Nobody is left alone for long, so all are available again at each send.
            let never = BackOffTable::new(&[Duration::ZERO], &[Duration::ZERO]).unwrap();
            bench.strategy.set_table(never);
            let queues: Vec<MessageQueue> = order
                .iter()
                .zip(0..)
                .map(|(broker, id)| MessageQueue::new("t", *broker, id))
                .collect();
            let info = Arc::new(TopicPublishInfo::new(queues));
            let mut third = 0;
            for _ in 0..1000 {
                let mut tried: Vec<String> = Vec::new();
                let outcome = bench.attempts(&info, 3).run(|attempt| {
                    tried.push(attempt.mq.broker_name().to_owned());
                    if attempt.mq.broker_name() == "c" {
                        Ok(stored(&attempt.mq))
                    } else {
                        Err(error.clone())
                    }
                });
                assert!(outcome.is_ok(), "switch {enable}: {tried:?}");
                third += usize::from(tried.len() == 3);
            }
            let needed = matches!(error, Error::RemotingConnect { .. }) || !enable;
            assert!(third > 0 || !needed, "two brokers in a row have failed");
        }
    }
}

#[test]
fn with_nothing_wrong_it_is_plain_round_robin() {
    for enable in [false, true] {
        let bench = Bench::new(enable);
        let info = info(&["a", "b", "c"], 4);
        info.set_index(u32::MAX);
        let mut picks = Vec::new();
        for _ in 0..24 {
            let sent = bench.attempts(&info, 3).run(|attempt| {
                bench.clock.advance(ms(20));
                Ok(stored(&attempt.mq))
            });
            picks.push(sent.unwrap().message_queue);
        }
        let round: Vec<MessageQueue> = info.queues().iter().cycle().take(24).cloned().collect();
        assert_eq!(picks, round, "switch {enable}");
    }
}

#[test]
fn with_one_broker_all_attempts_go_there_and_the_error_names_it_each_time() {
    let bench = Bench::new(false);
    let info = info(&["a"], 8);
    let mut attempts = 0;
    let error = bench.attempts(&info, 3).run(|_| {
        attempts += 1;
        Err(unconnected())
    });
    let text = error.unwrap_err().to_string();
    assert_eq!(attempts, 3);
    assert!(text.contains("brokers tried: a, a, a"), "{text}");
}

#[test]
fn no_time_before_an_attempt_is_a_call_timeout_and_no_brokers_fault() {
    let mut bench = Bench::new(true);
    bench.timeout = Duration::ZERO;
    let info = info(&["a", "b"], 4);
    let error = bench
        .attempts(&info, 3)
        .run(|_| panic!("there is no time for it"));
    let error = error.unwrap_err();
    assert!(
        matches!(error, Error::RemotingTooMuchRequest { .. }),
        "{error:?}"
    );
    assert!(!error.may_have_been_stored());
    assert!(bench.strategy.fault_items().is_empty());
}

#[test]
fn a_failure_outlives_the_end_of_the_time() {
    let bench = Bench::new(false);
    let info = info(&["a", "b"], 4);
    let mut attempts = Attempts::new(
        "t",
        Arc::clone(&info),
        &bench.strategy,
        &bench.policy,
        Budget {
            attempts: 3,
            timeout: MINUTE,
            deadline: Deadline::after(MINUTE),
        },
    );
    let attempt = attempts.next().unwrap();
    attempts.budget.deadline = Deadline::at(now());
    let progress = attempts.ended(&attempt, ms(1), Err(unconnected()));
    assert_eq!(progress, Progress::GoOn);
    assert!(attempts.next().is_none(), "no time, no attempt");
    let text = attempts.finish().unwrap_err().to_string();
    assert!(
        text.contains("after 1 attempts") && text.contains("cannot connect"),
        "{text}"
    );
}

#[test]
fn an_attempt_is_cut_short_only_while_another_one_is_possible() {
    let mut bench = Bench::new(false);
    Arc::make_mut(&mut bench.policy).send_msg_max_timeout_per_request = Some(ms(10));
    let info = info(&["a", "b"], 4);
    let mut remaining = Vec::new();
    let _ = bench.attempts(&info, 2).run(|attempt| {
        remaining.push(attempt.deadline.remaining());
        Err(unconnected())
    });
    assert!(remaining[0] <= ms(10), "{remaining:?}");
    assert!(remaining[1] > ms(10), "{remaining:?}");
}

#[test]
fn what_is_stored_less_safely_is_better_than_an_error() {
    let mut bench = Bench::new(false);
    Arc::make_mut(&mut bench.policy).retry_another_broker_when_not_store_ok = true;
    let info = info(&["a", "b"], 4);
    let mut first = true;
    let result = bench.attempts(&info, 3).run(|attempt| {
        if std::mem::take(&mut first) {
            return Ok(SendResult {
                send_status: SendStatus::FlushDiskTimeout,
                ..stored(&attempt.mq)
            });
        }
        Err(unconnected())
    });
    assert_eq!(result.unwrap().send_status, SendStatus::FlushDiskTimeout);
}

/// What the table says, computed by itself: for how long a broker is left alone from when on.
struct Expected {
    free_at: BTreeMap<&'static str, Duration>,
    place: usize,
}

impl Expected {
    /// The next of a round of three brokers with one queue each that is free and was not tried.
    fn next(&mut self, at: Duration, tried: &[&'static str]) -> &'static str {
        for _ in 0..3 {
            let broker = ["fast", "slow", "down"][self.place % 3];
            self.place += 1;
            if self.free_at[broker] <= at && !tried.contains(&broker) {
                return broker;
            }
        }
        panic!("the fast broker is always free");
    }
}

/// One minute of a thread that sends without pause: a broker that answers in 10 ms, one that takes
/// 600 ms, which costs it 2 s, and one that cannot be connected, which costs it 10 s.
#[test]
fn over_a_minute_each_broker_gets_what_the_table_says() {
    let bench = Bench::new(true);
    let info = info(&["fast", "slow", "down"], 1);
    let began = bench.clock.now();
    let mut expected = Expected {
        free_at: ["fast", "slow", "down"]
            .map(|name| (name, Duration::ZERO))
            .into(),
        place: 0,
    };
    info.set_index(u32::MAX);
    let mut sends = BTreeMap::from([("fast", 0_u64), ("slow", 0), ("down", 0)]);
    let mut down_at = Vec::new();
    loop {
        let at = bench.clock.now() - began;
        if at >= MINUTE {
            break;
        }
        // A retry in latency mode begins at a random place: with two brokers left in turn and one of
        // them asleep, or both free, only the place matters, so it is read back.
        let mut tried: Vec<&'static str> = Vec::new();
        let outcome = bench.attempts(&info, 3).run(|attempt| {
            let at = bench.clock.now() - began;
            let broker = ["fast", "slow", "down"]
                .into_iter()
                .find(|name| *name == attempt.mq.broker_name())
                .unwrap();
            if tried.is_empty() {
                assert_eq!(broker, expected.next(at, &[]), "at {at:?}");
            } else {
                assert!(expected.free_at[broker] <= at && !tried.contains(&broker));
                let place = ["fast", "slow", "down"]
                    .iter()
                    .position(|name| *name == broker);
                expected.place = place.unwrap() + 1;
            }
            tried.push(broker);
            *sends.get_mut(broker).unwrap() += 1;
            match broker {
                "fast" => {
                    bench.clock.advance(ms(10));
                    Ok(stored(&attempt.mq))
                }
                "slow" => {
                    bench.clock.advance(ms(600));
                    *expected.free_at.get_mut("slow").unwrap() = at + ms(600) + ms(2000);
                    Ok(stored(&attempt.mq))
                }
                _ => {
                    down_at.push(at);
                    bench.clock.advance(ms(1));
                    *expected.free_at.get_mut("down").unwrap() = at + ms(1) + ms(10_000);
                    Err(unconnected())
                }
            }
        });
        assert!(outcome.is_ok(), "{outcome:?}");
    }
    // One send in 2.6 s and a little to the slow one, one in 10 s and a little to the one that is
    // down, and all other time in sends of 10 ms.
    let slow = sends["slow"];
    assert!((22..=24).contains(&slow), "{sends:?}");
    assert_eq!(
        sends["down"], 6,
        "it is tried again after each back-off: {down_at:?}"
    );
    let pauses: Vec<Duration> = down_at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(
        pauses
            .iter()
            .all(|pause| (ms(10_001)..ms(10_700)).contains(pause)),
        "{pauses:?}"
    );
    let took = bench.clock.now() - began;
    assert_eq!(
        took,
        ms(10 * sends["fast"] + 600 * slow + sends["down"]),
        "{sends:?}"
    );
}

#[test]
fn a_broker_that_failed_once_gets_its_share_again_after_its_back_off() {
    let bench = Bench::new(true);
    let info = info(&["a", "b"], 4);
    bench.strategy.update_fault_item(
        "a",
        ms(1),
        FaultUpdate::Of {
            isolation: true,
            reachable: true,
        },
    );
    let share = |sends: usize| {
        let brokers = (0..sends).map(|_| {
            let sent = bench
                .attempts(&info, 3)
                .run(|attempt| Ok(stored(&attempt.mq)));
            sent.unwrap().message_queue.broker_name().to_owned()
        });
        brokers.filter(|broker| broker == "a").count()
    };
    assert_eq!(share(80), 0);
    bench.clock.advance(ms(10_000));
    assert_eq!(share(80), 40);
}
