use std::time::Duration;

use crate::support::Inbox;
use crate::{consumer_builder, problems, producer_builder};

/// One sentence a setting, which begins with its name and tells the value and the range.
#[track_caller]
fn are(problems: &[String], expected: &[&str]) {
    for sentence in expected {
        assert!(
            problems.iter().any(|problem| problem == sentence),
            "{sentence:?} is missing in {problems:#?}"
        );
    }
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
}

#[test]
fn all_wrong_settings_of_a_producer_are_told_at_once() {
    const NANOSECOND: Duration = Duration::from_nanos(1);
    let error = producer_builder("h:1")
        .poll_name_server_interval(Duration::ZERO)
        .heartbeat_broker_interval(Duration::ZERO)
        .persist_consumer_offset_interval(Duration::ZERO)
        .rebalance_wait_interval(Duration::ZERO)
        .rebalance_min_interval(Duration::ZERO)
        .mq_client_api_timeout(Duration::ZERO)
        .connect_timeout(Duration::ZERO)
        .channel_max_idle_time(NANOSECOND)
        .client_callback_executor_threads(0)
        .instance_name(" ")
        .send_msg_timeout(NANOSECOND)
        .send_msg_max_timeout_per_request(Duration::ZERO)
        .default_topic_queue_nums(-4)
        .max_message_size(0)
        .create_topic_key("no topic")
        .topics(["T", "no topic"])
        .compress_level(10)
        .back_pressure_for_async_send_num(9)
        .back_pressure_for_async_send_size(0)
        .batch_max_delay(Duration::from_secs(31))
        .batch_max_bytes(0)
        .total_batch_max_bytes(0)
        .detect_interval(Duration::ZERO)
        .latency_max([])
        .not_available_duration([])
        .build()
        .unwrap_err();
    assert!(!error.is_retryable() && !error.may_have_been_stored());
    are(
        &problems(error),
        &[
            "poll_name_server_interval is 0ns, the least is 1 ms",
            "heartbeat_broker_interval is 0ns, the least is 1 ms",
            "persist_consumer_offset_interval is 0ns, the least is 1 ms",
            "rebalance_wait_interval is 0ns, the least is 1 ms",
            "rebalance_min_interval is 0ns, the least is 1 ms",
            "mq_client_api_timeout is 0ns, the least is 1 ms",
            "connect_timeout is 0ns, the least is 1 ms",
            "channel_max_idle_time is 1ns, the least is 1 ms",
            "client_callback_executor_threads is 0, the least is 1",
            "instance_name is blank",
            "send_msg_timeout is 1ns, the least is 1 ms",
            "send_msg_max_timeout_per_request is 0ns, the least is 1 ms",
            "default_topic_queue_nums is -4, the least is 1",
            "max_message_size is 0, the least is 1",
            "create_topic_key \"no topic\": the name contains ' '; allowed are % | - _ 0-9 a-z A-Z",
            "topics: \"no topic\": the name contains ' '; allowed are % | - _ 0-9 a-z A-Z",
            "compress_level is 10, the range is 0..=9 for Zlib",
            "back_pressure_for_async_send_num is 9, the least is 10",
            "back_pressure_for_async_send_size is 0, the least is 1048576",
            "batch_max_delay is 31s, the range is 1ms to 30s",
            "batch_max_bytes is 0, the range is 1 to 2097152",
            "total_batch_max_bytes is 0, the least is 1",
            "latency_max is empty, the least is one row",
            "detect_interval is 0ns, the range is 1ms to 3600s",
        ],
    );
}

#[test]
fn all_wrong_settings_of_a_consumer_are_told_at_once() {
    let error = consumer_builder("h:1", "g")
        .consume_threads(0)
        .consume_message_batch_max_size(1025)
        .consume_concurrently_max_span(0)
        .pull_threshold_for_queue(65_536)
        .pull_threshold_size_for_queue(0)
        .pull_threshold_for_topic(0)
        .pull_threshold_size_for_topic(102_401)
        .max_retained_bytes(1)
        .pull_interval(Duration::from_secs(66))
        .pull_batch_size(-5)
        .pull_batch_size_in_bytes(i32::MIN)
        .pull_time_delay_when_exception(Duration::ZERO)
        .max_reconsume_times(-1)
        .consume_timeout(Duration::ZERO)
        .hand_over_grace(Duration::from_secs(61))
        .consume_timestamp(-1)
        .client_callback_executor_threads(0)
        .build()
        .unwrap_err();
    are(
        &problems(error),
        &[
            "consume_threads is 0, the range is 1..=1000",
            "consume_message_batch_max_size is 1025, the range is 1..=1024",
            "consume_concurrently_max_span is 0, the range is 1..=65535",
            "pull_threshold_for_queue is 65536, the range is 1..=65535",
            "pull_threshold_size_for_queue is 0, the range is 1..=1024",
            "pull_threshold_for_topic is 0, the range is 1..=6553500",
            "pull_threshold_size_for_topic is 102401, the range is 1..=102400",
            "max_retained_bytes is 1, the range is 1048576..=18446744073709551615",
            "pull_interval is 66s, the range is 0ns..=65.535s",
            "pull_batch_size is -5, the range is 1..=1024",
            "pull_batch_size_in_bytes is -2147483648, the range is 1..=8388608",
            "pull_time_delay_when_exception is 0ns, the range is 1ms..=60s",
            "max_reconsume_times is -1, the least is 0",
            "consume_timeout is 0ns, the least is 1 ms",
            "hand_over_grace is 61s, the range is 0ns..=60s",
            "consume_timestamp is -1, the least is 0",
            "client_callback_executor_threads is 0, the least is 1",
            "no message_listener is set",
        ],
    );
}

/// A time that no process outlives is none that overflows.
#[test]
fn the_longest_times_are_times() {
    let producer = crate::started(
        producer_builder("127.0.0.1:1")
            .poll_name_server_interval(Duration::MAX)
            .heartbeat_broker_interval(Duration::MAX)
            .persist_consumer_offset_interval(Duration::MAX)
            .rebalance_wait_interval(Duration::MAX)
            .rebalance_min_interval(Duration::MAX)
            .mq_client_api_timeout(Duration::MAX)
            .connect_timeout(Duration::MAX)
            .channel_max_idle_time(Duration::MAX)
            .send_msg_timeout(Duration::MAX)
            .retry_times_when_send_failed(u32::MAX),
    );
    let message = rocketmq_blocking::Message::new("T", "m");
    crate::says(&producer.send(&message).unwrap_err(), &["127.0.0.1:1"]);
    assert!(producer.shutdown(Duration::MAX).threads_joined);

    let consumer = consumer_builder("127.0.0.1:1", "g")
        .consume_timeout(Duration::MAX)
        .consume_timestamp(i64::MAX)
        .max_retained_bytes(u64::MAX)
        .max_reconsume_times(i32::MAX)
        .message_listener(Inbox::new().listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    let error = consumer.update_core_pool_size(1001).unwrap_err();
    are(
        &problems(error),
        &["consume_threads is 1001, the range is 1..=1000"],
    );
    assert!(consumer.shutdown(Duration::MAX).threads_joined);
}
