use std::collections::{BTreeMap, BTreeSet};

use super::*;

const GOOD: FaultUpdate = FaultUpdate::Of {
    isolation: false,
    reachable: true,
};
const ISOLATED: FaultUpdate = FaultUpdate::Of {
    isolation: true,
    reachable: true,
};
const UNREACHABLE: FaultUpdate = FaultUpdate::Of {
    isolation: true,
    reachable: false,
};

fn strategy(send_latency_fault_enable: bool) -> (MQFaultStrategy, Clock) {
    let clock = Clock::manual();
    let config = LatencyConfig {
        send_latency_fault_enable,
        ..LatencyConfig::default()
    };
    let strategy = MQFaultStrategy::new(&config, clock.clone()).unwrap();
    (strategy, clock)
}

fn info(brokers: &[&str], queues: i32) -> TopicPublishInfo {
    let all: Vec<MessageQueue> = brokers
        .iter()
        .flat_map(|broker| (0..queues).map(|id| MessageQueue::new("t", *broker, id)))
        .collect();
    TopicPublishInfo::new(all)
}

fn name(mq: &MessageQueue) -> String {
    format!("{}{}", mq.broker_name(), mq.queue_id())
}

/// How many of `picks` go to each broker.
fn shares(
    strategy: &MQFaultStrategy,
    info: &TopicPublishInfo,
    last: Option<&str>,
    picks: usize,
) -> BTreeMap<String, usize> {
    let mut shares = BTreeMap::new();
    for _ in 0..picks {
        let mq = strategy
            .select_one_message_queue(info, last, false)
            .unwrap();
        *shares.entry(mq.broker_name().to_owned()).or_insert(0) += 1;
    }
    shares
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn share(pairs: &[(&str, usize)]) -> BTreeMap<String, usize> {
    let owned = pairs.iter().map(|(name, n)| ((*name).to_owned(), *n));
    owned.collect()
}

/// apache/rocketmq#7779, #7812: the strategy wrote into the published list, so a broker that was
/// slow once got no traffic any more. The list stays as it is, and the broker comes back after its
/// time.
#[test]
fn b05_an_isolated_broker_is_used_again_after_its_time() {
    let (strategy, clock) = strategy(true);
    let info = info(&["a", "b"], 4);
    strategy.update_fault_item("a", ms(10_000), ISOLATED);
    assert_eq!(shares(&strategy, &info, None, 80), share(&[("b", 80)]));
    clock.advance(ms(9_999));
    assert_eq!(shares(&strategy, &info, None, 80), share(&[("b", 80)]));
    clock.advance(ms(2));
    assert_eq!(
        shares(&strategy, &info, None, 800),
        share(&[("a", 400), ("b", 400)])
    );
    let listed: BTreeSet<String> = (0..8)
        .map(|_| name(&info.select_one_message_queue(None).unwrap()))
        .collect();
    assert_eq!(listed.len(), 8, "{listed:?}");
}

/// The same threads: the table, and a failed call that counts as one of 10 s.
#[test]
fn b05_each_latency_has_its_back_off_and_a_failure_that_of_ten_seconds() {
    for (latency, back_off) in [
        (0, 0),
        (549, 0),
        (550, 2000),
        (1799, 2000),
        (1800, 5000),
        (2999, 5000),
        (3000, 6000),
        (4999, 6000),
        (5000, 10_000),
        (14_999, 10_000),
        (15_000, 30_000),
    ] {
        let (strategy, _) = strategy(true);
        strategy.update_fault_item("a", ms(latency), GOOD);
        let waits = strategy.fault_items()[0].not_available_for;
        assert_eq!(waits, ms(back_off), "after {latency} ms");
    }
    let (strategy, _) = strategy(true);
    strategy.update_fault_item("a", ms(1), ISOLATED);
    let item = &strategy.fault_items()[0];
    assert_eq!(item.not_available_for, ms(10_000));
    assert_eq!(item.current_latency, ms(1), "the latency itself is kept");
}

/// apache/rocketmq#1302, #1576, #2204, #2358, #4139: the broker that had just failed was preferred
/// to all others.
#[test]
fn b07_the_last_broker_is_avoided() {
    let (strategy, _) = strategy(true);
    let info = info(&["a", "b"], 4);
    assert_eq!(
        shares(&strategy, &info, Some("a"), 100),
        share(&[("b", 100)])
    );
    assert_eq!(
        shares(&strategy, &info, None, 80),
        share(&[("a", 40), ("b", 40)]),
        "without anything known it is plain round robin"
    );
    strategy.update_fault_item("b", ms(1), ISOLATED);
    assert_eq!(
        shares(&strategy, &info, Some("a"), 80),
        share(&[("b", 80)]),
        "what is reachable is better than the last one"
    );
    strategy.update_fault_item("b", ms(1), UNREACHABLE);
    assert_eq!(
        shares(&strategy, &info, Some("a"), 80),
        share(&[("a", 40), ("b", 40)]),
        "with nothing to prefer it is plain round robin"
    );
}

#[test]
fn with_the_switch_off_nothing_is_remembered_and_the_last_broker_is_avoided_all_the_same() {
    let (strategy, _) = strategy(false);
    let info = info(&["a", "b"], 4);
    strategy.update_fault_item("b", ms(60_000), UNREACHABLE);
    assert!(strategy.fault_items().is_empty());
    assert_eq!(
        shares(&strategy, &info, None, 80),
        share(&[("a", 40), ("b", 40)])
    );
    assert_eq!(shares(&strategy, &info, Some("a"), 80), share(&[("b", 80)]));
}

#[test]
fn switch_and_table_count_from_the_next_choice_on() {
    let (strategy, _) = strategy(false);
    let info = info(&["a", "b"], 4);
    strategy.set_send_latency_fault_enable(true);
    strategy.set_table(BackOffTable::new(&[ms(5)], &[ms(60_000)]).unwrap());
    strategy.update_fault_item("a", ms(5), GOOD);
    assert_eq!(shares(&strategy, &info, None, 80), share(&[("b", 80)]));
    strategy.set_send_latency_fault_enable(false);
    assert_eq!(
        shares(&strategy, &info, None, 80),
        share(&[("a", 40), ("b", 40)])
    );
}

#[test]
fn an_attempt_that_asked_no_broker_says_nothing_of_one() {
    let (strategy, _) = strategy(true);
    strategy.update_fault_item("a", ms(60_000), FaultUpdate::None);
    assert!(strategy.fault_items().is_empty());
}

/// The third attempt goes to the third broker whatever is remembered of it.
#[test]
fn another_attempt_prefers_brokers_that_were_not_tried() {
    for enable in [false, true] {
        let (strategy, _) = strategy(enable);
        let info = info(&["a", "b", "c"], 4);
        for broker in ["a", "b", "c"] {
            strategy.update_fault_item(broker, ms(1), UNREACHABLE);
        }
        for _ in 0..50 {
            let tried = ["a".to_owned(), "b".to_owned()];
            let mq = strategy.select_another(&info, &tried).unwrap();
            assert_eq!(mq.broker_name(), "c", "switch {enable}");
        }
    }
}

#[test]
fn another_attempt_prefers_what_is_available_then_what_is_reachable() {
    let (strategy, _) = strategy(true);
    let info = info(&["a", "b", "c"], 4);
    let tried = ["a".to_owned()];
    let chosen = || {
        let picks = (0..50).map(|_| strategy.select_another(&info, &tried).unwrap());
        let brokers: BTreeSet<String> = picks.map(|mq| mq.broker_name().to_owned()).collect();
        brokers.into_iter().collect::<Vec<_>>().join("")
    };
    assert_eq!(chosen(), "bc");
    strategy.update_fault_item("b", ms(1), UNREACHABLE);
    assert_eq!(chosen(), "c");
    strategy.update_fault_item("c", ms(1), ISOLATED);
    assert_eq!(chosen(), "c");
    strategy.update_fault_item("c", ms(1), UNREACHABLE);
    assert_eq!(chosen(), "bc");
}

#[test]
fn when_all_brokers_were_tried_the_last_one_is_avoided_and_one_is_better_than_none() {
    for enable in [false, true] {
        let (strategy, _) = strategy(enable);
        let two = info(&["a", "b"], 4);
        for _ in 0..20 {
            let tried = ["a".to_owned(), "b".to_owned()];
            let mq = strategy.select_another(&two, &tried).unwrap();
            assert_eq!(mq.broker_name(), "a");
        }
        let one = info(&["a"], 4);
        let mq = strategy.select_another(&one, &["a".to_owned()]).unwrap();
        assert_eq!(mq.broker_name(), "a");
        let none = TopicPublishInfo::unknown();
        assert_eq!(strategy.select_another(&none, &["a".to_owned()]), None);
        assert_eq!(strategy.select_one_message_queue(&none, None, false), None);
    }
}

#[test]
fn an_attempt_after_a_failure_goes_on_from_a_random_queue_in_latency_mode_only() {
    let spread = |enable| {
        let (strategy, _) = strategy(enable);
        let info = info(&["a", "b"], 100);
        let picks: BTreeSet<String> = (0..20)
            .map(|_| {
                info.set_index(0);
                name(
                    &strategy
                        .select_one_message_queue(&info, Some("a"), true)
                        .unwrap(),
                )
            })
            .collect();
        picks.len()
    };
    assert_eq!(spread(false), 1);
    assert!(spread(true) > 1);
}

#[test]
fn times_out_of_range_are_refused_with_the_range() {
    let wrong = LatencyConfig {
        detect_interval: Duration::ZERO,
        detect_timeout: Duration::from_secs(3601),
        latency_max: Vec::new(),
        ..LatencyConfig::default()
    };
    let problems = MQFaultStrategy::new(&wrong, Clock::manual()).unwrap_err();
    let text = problems.join("; ");
    assert!(
        text.contains("detect_interval is 0ns, the range is 1ms to 3600s"),
        "{text}"
    );
    assert!(text.contains("detect_timeout is 3601s"), "{text}");
    assert!(text.contains("latency_max is empty"), "{text}");
}
