//! What a broken or hostile peer sends: every answer is a value or an error, soon, and nothing is
//! allocated because a length field says so.
#![allow(clippy::panic, clippy::unwrap_used)]

mod bodies;
mod compression;
mod frames;
mod mutation;
mod stored_messages;

use std::alloc::System;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rocketmq_protocol::body::{BrokerData, QueueData, TopicRouteData};
use rocketmq_protocol::compression::CompressionType;
use rocketmq_protocol::header::{SendMessageRequestHeader, SendMessageRequestHeaderV2};
use rocketmq_protocol::{CodecError, RemotingCommand, SerializeType, StoredMessage};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations are counted for the whole process, so one test runs at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Far above what any of this takes, far below what work that grows with the square of the input
/// would take.
const NEVER: Duration = Duration::from_secs(120);

/// Runs `work` on a thread of its own and fails when it does not end; `work` may note how far it
/// is, which is then told.
fn ends(work: impl FnOnce(&AtomicU64) + Send + 'static) {
    let _alone = alone();
    let at = Arc::new(AtomicU64::new(0));
    let (done, waiting) = mpsc::channel();
    let worker = {
        let at = Arc::clone(&at);
        thread::Builder::new()
            .name("robustness".into())
            .spawn(move || {
                work(&at);
                let _ = done.send(());
            })
            .unwrap()
    };
    if waiting.recv_timeout(NEVER) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("no end in sight at case {}", at.load(Ordering::Relaxed));
    }
    if let Err(panic) = worker.join() {
        resume_unwind(panic);
    }
}

/// Runs `decode` on the bytes and fails when it allocates out of proportion to them.
fn frugal<T>(input_length: usize, decode: impl FnOnce() -> T) -> T {
    let region = Region::new(ALLOCATOR);
    let result = decode();
    let change = region.change();
    let most = 64 * 1024 + 256 * input_length;
    let allocated = change.bytes_allocated;
    assert!(
        allocated <= most,
        "{allocated} bytes allocated for {input_length} bytes of input"
    );
    result
}

fn command(serialize_type: SerializeType) -> RemotingCommand {
    let header = SendMessageRequestHeader {
        producer_group: "pg".into(),
        topic: "T\u{6F22}".into(),
        default_topic: "TBW102".into(),
        queue_id: 3,
        properties: Some("WAIT\u{1}true\u{2}".into()),
        batch: Some(false),
        ..SendMessageRequestHeader::default()
    };
    let mut command =
        RemotingCommand::request(310, &SendMessageRequestHeaderV2(header)).with_body("hello");
    command.serialize_type = serialize_type;
    command.remark = Some("r\u{1F600}\"\\\n".into());
    command.opaque = 77;
    command
}

fn frame(command: &RemotingCommand) -> Vec<u8> {
    let mut out = BytesMut::new();
    command.encode(&mut out).unwrap();
    out.to_vec()
}

fn stored(body: &'static [u8]) -> StoredMessage {
    StoredMessage {
        queue_id: 1,
        flag: 2,
        queue_offset: 3,
        commit_log_offset: 4,
        sys_flag: 0,
        born_timestamp: 5,
        born_host: "10.0.0.1:1234".parse().unwrap(),
        store_timestamp: 6,
        store_host: "[2001:db8::1]:10911".parse().unwrap(),
        reconsume_times: 7,
        prepared_transaction_offset: 8,
        body: Bytes::from_static(body),
        topic: "T\u{6F22}".into(),
        properties: "TAGS\u{1}a\u{2}UNIQ_KEY\u{1}7F0000010001\u{2}".into(),
    }
}

fn wire(message: &StoredMessage) -> Vec<u8> {
    let mut out = BytesMut::new();
    message.encode(&mut out).unwrap();
    out.to_vec()
}

const KINDS: [CompressionType; 3] = [
    CompressionType::Lz4,
    CompressionType::Zstd,
    CompressionType::Zlib,
];

fn route() -> TopicRouteData {
    TopicRouteData {
        broker_datas: vec![BrokerData {
            broker_addrs: [(0, "10.0.0.1:10911".to_owned())].into(),
            broker_name: "broker-a".into(),
            cluster: "c".into(),
            ..BrokerData::default()
        }],
        queue_datas: vec![QueueData {
            broker_name: "broker-a".into(),
            perm: 6,
            read_queue_nums: 4,
            write_queue_nums: 4,
            topic_sys_flag: 0,
        }],
        ..TopicRouteData::default()
    }
}

fn length_error(what: &'static str, length: i64) -> CodecError {
    CodecError::BadLength { what, length }
}
