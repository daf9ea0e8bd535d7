//! Bodies that are compressed on their way: each kind, from which length on, and how hard.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and is outside of what loom models"
)]

mod support;

use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use rocketmq_blocking::{
    CompressionType, ConsumeFromWhere, DefaultMQProducer, DefaultMQProducerBuilder,
    DefaultMQPushConsumer, Error, MQClientManager, Message, RPCHook, RemotingCommand, request_code,
};
use rocketmq_protocol::sys_flag;
use support::{GENEROUS, Inbox, Target, quick, unique};

/// What requests carry, as they leave the client.
#[derive(Debug, Default)]
struct Sent(Mutex<Vec<RemotingCommand>>);

impl RPCHook for Sent {
    fn do_before_request(&self, _: &str, request: &mut RemotingCommand) {
        if request.code == request_code::SEND_MESSAGE_V2 {
            self.0.lock().unwrap().push(request.clone());
        }
    }

    fn do_after_response(&self, _: &str, _: &RemotingCommand, _: &RemotingCommand) {}
}

impl Sent {
    /// The flags and the length of the body of the last message that was sent.
    fn last(&self) -> (i32, usize) {
        let sent = self.0.lock().unwrap();
        let last = sent.last().expect("a message was sent");
        let flags = last.ext_fields.get("f").expect("sends have flags");
        (
            flags.parse().unwrap(),
            last.body.as_ref().map_or(0, Bytes::len),
        )
    }
}

fn producer(
    target: &Target,
    sent: &Arc<Sent>,
    set: impl FnOnce(DefaultMQProducerBuilder) -> DefaultMQProducerBuilder,
) -> DefaultMQProducer {
    let builder = DefaultMQProducer::builder(unique("pg"))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(target.namesrv())
        .send_msg_timeout(GENEROUS)
        .rpc_hook(sent.clone());
    let producer = set(builder).build().unwrap();
    producer.start().unwrap();
    producer
}

/// Text that can be compressed, the better the harder it is tried.
fn text(length: usize) -> String {
    let mut text = String::new();
    let mut number = 7_u64;
    while text.len() < length {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        write!(text, "order {} of shop {}; ", number >> 52, number % 97).unwrap();
    }
    text.truncate(length);
    text
}

/// On a real cluster too.
#[test]
fn each_kind_is_compressed_from_its_length_on_and_consumers_read_it() {
    const OVER: usize = 1000;
    let target = Target::start(1);
    let topic = unique("Compressed");
    target.create_topic(&topic, 1);
    let inbox = Inbox::new();
    let consumer = quick(DefaultMQPushConsumer::builder(unique("cg")))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(target.namesrv())
        .subscribe(&topic, "*")
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    consumer.start().unwrap();

    let mut count = 0;
    for (kind, bits) in [
        (CompressionType::Zlib, sys_flag::COMPRESSION_ZLIB),
        (CompressionType::Lz4, sys_flag::COMPRESSION_LZ4),
        (CompressionType::Zstd, sys_flag::COMPRESSION_ZSTD),
    ] {
        let sent = Arc::new(Sent::default());
        let producer = producer(&target, &sent, |builder| {
            builder
                .compress_type(kind)
                .compress_msg_body_over_howmuch(OVER)
        });
        for (length, flags) in [
            (OVER - 1, 0),
            (OVER, sys_flag::COMPRESSED | bits),
            (100 * OVER, sys_flag::COMPRESSED | bits),
        ] {
            let body = text(length);
            producer.send(&Message::new(&*topic, body.clone())).unwrap();
            let (sent_flags, sent_length) = sent.last();
            assert_eq!(sent_flags, flags, "{kind:?}, {length} bytes");
            assert_eq!(sent_length < length, flags != 0, "{kind:?}, {length} bytes");

            count += 1;
            let received = inbox.wait_for(count);
            let received = received.last().unwrap();
            assert_eq!(*received.body(), body, "{kind:?}, {length} bytes");
            assert_eq!(
                received.sys_flag() & sys_flag::COMPRESSION_MASK,
                flags & sys_flag::COMPRESSION_MASK,
                "which kind it was is kept, {kind:?}"
            );
        }
        producer.shutdown(Duration::from_secs(5));
    }
    consumer.shutdown(Duration::from_secs(5));
}

#[test]
fn a_level_counts_where_there_are_levels() {
    let target = Target::start(1);
    let topic = unique("Levels");
    target.create_topic(&topic, 1);
    let length = |kind: CompressionType, level: Option<i32>| {
        let sent = Arc::new(Sent::default());
        let producer = producer(&target, &sent, |builder| {
            let builder = builder.compress_type(kind);
            match level {
                Some(level) => builder.compress_level(level),
                None => builder,
            }
        });
        let message = Message::new(&*topic, text(200_000));
        producer.send(&message).unwrap();
        sent.last().1
    };
    for kind in [CompressionType::Zlib, CompressionType::Zstd] {
        let levels = kind.levels().unwrap();
        let (least, most) = (*levels.start(), *levels.end());
        let lengths = [least, 5, most].map(|level| length(kind, Some(level)));
        assert!(
            lengths[0] != lengths[1] && lengths[1] > lengths[2],
            "{kind:?}: {lengths:?}"
        );
        assert_eq!(length(kind, None), lengths[1], "the default is 5");
    }
    let lz4 = [1, 5, 1000].map(|level| length(CompressionType::Lz4, Some(level)));
    assert!(lz4[0] == lz4[1] && lz4[1] == lz4[2], "{lz4:?}");
}

#[test]
fn a_level_that_the_kind_does_not_have_is_refused_with_the_range() {
    for (kind, level, problem) in [
        (
            CompressionType::Zlib,
            10,
            Some("compress_level is 10, the range is 0..=9 for Zlib"),
        ),
        (
            CompressionType::Zlib,
            -1,
            Some("compress_level is -1, the range is 0..=9 for Zlib"),
        ),
        (
            CompressionType::Zstd,
            23,
            Some("compress_level is 23, the range is 1..=22 for Zstd"),
        ),
        (
            CompressionType::Zstd,
            0,
            Some("compress_level is 0, the range is 1..=22 for Zstd"),
        ),
        (CompressionType::Zlib, 0, None),
        (CompressionType::Zstd, 22, None),
        (CompressionType::Lz4, i32::MAX, None),
    ] {
        let built = DefaultMQProducer::builder("p")
            .namesrv_addr("127.0.0.1:1")
            .compress_type(kind)
            .compress_level(level)
            .build();
        match (built, problem) {
            (Ok(_), None) => {}
            (Err(Error::InvalidConfig { problems }), Some(problem)) => {
                assert_eq!(problems, [problem]);
            }
            (built, _) => panic!("{kind:?} {level}: {built:?}"),
        }
    }
}
