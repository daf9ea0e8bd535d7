//! The bytes of the two busiest requests: a send that goes out, a pull's answer that comes in.

use std::error::Error;
use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};

use bytes::{Bytes, BytesMut};
use criterion::{BatchSize, Criterion, Throughput};
use rocketmq_blocking::{RemotingCommand, request_code};
use rocketmq_protocol::header::{SendMessageRequestHeader, SendMessageRequestHeaderV2};
use rocketmq_protocol::{StoredMessage, StoredMessages};

const MESSAGES: usize = 32;
const BODY: usize = 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let mut criterion = Criterion::default().configure_from_args();
    encode_send(&mut criterion);
    decode_pull(&mut criterion)?;
    criterion.final_summary();
    Ok(())
}

/// Header and frame; the body is copied once.
fn encode_send(criterion: &mut Criterion) {
    let header = SendMessageRequestHeaderV2(SendMessageRequestHeader {
        producer_group: "bench_producer".to_owned(),
        topic: "bench_topic".to_owned(),
        default_topic: "TBW102".to_owned(),
        default_topic_queue_nums: 4,
        queue_id: 3,
        born_timestamp: 1_700_000_000_000,
        properties: Some(properties(0)),
        reconsume_times: Some(0),
        unit_mode: Some(false),
        batch: Some(false),
        broker_name: Some("broker-a".to_owned()),
        ..SendMessageRequestHeader::default()
    });
    let body = Bytes::from(vec![b'x'; BODY]);
    let mut out = BytesMut::with_capacity(4096);
    criterion
        .benchmark_group("encode")
        .bench_function("send-request", |bencher| {
            bencher.iter(|| {
                out.clear();
                let request = RemotingCommand::request(request_code::SEND_MESSAGE_V2, &header);
                let _ = black_box(request.with_body(body.clone()).encode(&mut out));
            });
        });
}

fn decode_pull(criterion: &mut Criterion) -> Result<(), Box<dyn Error>> {
    let frame = pull_reply()?;
    let mut group = criterion.benchmark_group("decode");
    group.throughput(Throughput::Elements(MESSAGES as u64));
    group.bench_function("pull-reply-32", |bencher| {
        bencher.iter_batched(
            || frame.clone(),
            |frame| {
                let reply = RemotingCommand::decode(frame)?;
                StoredMessages::new(reply.body.unwrap_or_default()).collect::<Result<Vec<_>, _>>()
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
    Ok(())
}

/// What follows the length of the frame.
fn pull_reply() -> Result<Bytes, Box<dyn Error>> {
    let host = SocketAddr::from((Ipv4Addr::LOCALHOST, 10911));
    let mut body = BytesMut::new();
    for offset in 0..i64::try_from(MESSAGES)? {
        let message = StoredMessage {
            queue_id: 3,
            flag: 0,
            queue_offset: offset,
            commit_log_offset: 1200 * offset,
            sys_flag: 0,
            born_timestamp: 1_700_000_000_000,
            born_host: host,
            store_timestamp: 1_700_000_000_001,
            store_host: host,
            reconsume_times: 0,
            prepared_transaction_offset: 0,
            body: Bytes::from(vec![b'x'; BODY]),
            topic: "bench_topic".to_owned(),
            properties: properties(offset),
        };
        message.encode(&mut body)?;
    }
    let reply = RemotingCommand::request_without_header(0).with_body(body.freeze());
    let mut frame = BytesMut::new();
    reply.encode(&mut frame)?;
    let _length = frame.split_to(4);
    Ok(frame.freeze())
}

fn properties(number: i64) -> String {
    format!(
        "KEYS\u{1}order-{number}\u{2}UNIQ_KEY\u{1}7F0000010A2B3C4D5E6F0000{number:08X}\u{2}WAIT\u{1}true\u{2}TAGS\u{1}Books\u{2}"
    )
}
