//! Choosing a queue to send to, dividing queues among members, and the account of what a queue has in work.

use std::error::Error;
use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion};
use rocketmq_blocking::internals::{QueueInWork, SelectQueue, WorkedOn, sort_client_ids};
use rocketmq_blocking::rebalance::{
    AllocateMessageQueueAveragely, AllocateMessageQueueAveragelyByCircle,
    AllocateMessageQueueConsistentHash, AllocateMessageQueueStrategy,
};

use rocketmq_blocking::{MessageExt, MessageQueue};
use rocketmq_protocol::StoredMessage;

const MEMBERS: usize = 1000;
/// The messages of a pull.
const PULLED: usize = 32;

fn main() -> Result<(), Box<dyn Error>> {
    let mut criterion = Criterion::default().sample_size(30).configure_from_args();
    select(&mut criterion);
    for count in [1000, 10_000] {
        sort(&mut criterion, count);
        allocate(&mut criterion, count)?;
        plan(&mut criterion, count);
    }
    process_queue(&mut criterion)?;
    criterion.final_summary();
    Ok(())
}

/// A pull's messages are put, and consumed one by one, with so many others in work behind them.
fn process_queue(criterion: &mut Criterion) -> Result<(), Box<dyn Error>> {
    let mut group = criterion.benchmark_group("process-queue");
    for others in [0, 1000, 100_000] {
        let queue = QueueInWork::new();
        queue.put(&messages(PULLED..PULLED + others)?);
        let pulled = messages(0..PULLED)?;
        group.bench_function(BenchmarkId::new("put-and-consume-32", others), |bencher| {
            bencher.iter(|| {
                queue.put(&pulled);
                for message in pulled.chunks(1) {
                    black_box(queue.consume(message));
                }
            });
        });
    }
    group.finish();
    Ok(())
}

fn messages(offsets: std::ops::Range<usize>) -> Result<Vec<MessageExt>, Box<dyn Error>> {
    let host = ([127, 0, 0, 1], 10911).into();
    let message = |offset: usize| {
        let stored = StoredMessage {
            queue_id: 0,
            flag: 0,
            queue_offset: offset as i64,
            commit_log_offset: offset as i64,
            sys_flag: 0,
            born_timestamp: 0,
            born_host: host,
            store_timestamp: 0,
            store_host: host,
            reconsume_times: 0,
            prepared_transaction_offset: 0,
            body: vec![b'x'; 100].into(),
            topic: "bench_topic".to_owned(),
            properties: format!("UNIQ_KEY\u{1}{offset:032X}\u{2}WAIT\u{1}true\u{2}"),
        };
        Ok(stored.into_message_ext(256)?)
    };
    offsets.map(message).collect()
}

/// One topic on ten brokers.
fn queues(count: i32) -> Vec<MessageQueue> {
    let mut queues: Vec<MessageQueue> = (0..count)
        .map(|n| MessageQueue::new("bench_topic", format!("broker-{}", n % 10), n / 10))
        .collect();
    MessageQueue::sort(&mut queues);
    queues
}

fn members() -> Vec<String> {
    let mut members: Vec<String> = (0..MEMBERS)
        .map(|n| format!("10.0.{}.{}@{}#{n}", n / 256, n % 256, 1000 + n * 7))
        .collect();
    sort_client_ids(&mut members);
    members
}

/// In an order that is none, and the same in each run.
fn shuffled<T: Clone>(items: &[T]) -> Vec<T> {
    let mut items = items.to_vec();
    let mut seed = 1_u64;
    for end in (1..items.len()).rev() {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        items.swap(end, (seed >> 33) as usize % (end + 1));
    }
    items
}

fn select(criterion: &mut Criterion) {
    let round = SelectQueue::new((0..8).map(|id| MessageQueue::new("bench_topic", "broker-a", id)));
    let other = SelectQueue::new((0..8).map(|id| MessageQueue::new("other_topic", "broker-a", id)));
    let mut group = criterion.benchmark_group("select");
    group.bench_function("borrowed", |bencher| {
        bencher.iter(|| black_box(round.next_borrowed()));
    });
    group.bench_function("cloned", |bencher| bencher.iter(|| round.next()));
    group.bench_function("two-topics-in-turn", |bencher| {
        bencher.iter(|| (round.next(), other.next()));
    });
    group.finish();
}

fn sort(criterion: &mut Criterion, count: i32) {
    let (queues, members) = (shuffled(&queues(count)), shuffled(&members()));
    let mut group = criterion.benchmark_group("sort");
    group.bench_function(BenchmarkId::new("queues", count), |bencher| {
        bencher.iter_batched_ref(
            || queues.clone(),
            |queues| MessageQueue::sort(queues),
            BatchSize::LargeInput,
        );
    });
    group.bench_function("members", |bencher| {
        bencher.iter_batched_ref(
            || members.clone(),
            |members| sort_client_ids(members),
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

fn allocate(criterion: &mut Criterion, count: i32) -> Result<(), Box<dyn Error>> {
    let (queues, members) = (queues(count), members());
    let me = members.get(MEMBERS / 2).cloned().unwrap_or_default();
    let mut group = criterion.benchmark_group("allocate");
    let strategies: [(&str, &dyn AllocateMessageQueueStrategy); 3] = [
        ("avg", &AllocateMessageQueueAveragely),
        ("circle", &AllocateMessageQueueAveragelyByCircle),
        ("hash", &AllocateMessageQueueConsistentHash::new()),
    ];
    for (name, strategy) in strategies {
        strategy.allocate("g", &me, &queues, &members)?;
        group.bench_function(BenchmarkId::new(name, count), |bencher| {
            bencher.iter(|| strategy.allocate("g", &me, &queues, &members));
        });
    }
    group.bench_function(BenchmarkId::new("hash-first-look", count), |bencher| {
        bencher.iter_batched(
            AllocateMessageQueueConsistentHash::new,
            |strategy| strategy.allocate("g", &me, &queues, &members),
            BatchSize::LargeInput,
        );
    });
    let strategy = AllocateMessageQueueConsistentHash::new();
    let mut gone = 0;
    group.bench_function(BenchmarkId::new("hash-member-changed", count), |bencher| {
        bencher.iter_batched(
            || {
                // Another one is missing each time, and never the one that asks.
                gone = (gone + 1) % (MEMBERS / 2);
                let mut members = members.clone();
                members.remove(gone);
                members
            },
            |members| strategy.allocate("g", &me, &queues, &members),
            BatchSize::LargeInput,
        );
    });
    group.finish();
    Ok(())
}

/// A member works on the first half of the queues, and is to work on every other one of all.
fn plan(criterion: &mut Criterion, count: i32) {
    let queues = queues(count);
    let (mine, others) = queues.split_at(queues.len() / 2);
    let working = WorkedOn::new(mine);
    let allocated: Vec<MessageQueue> = mine.iter().chain(others).step_by(2).cloned().collect();
    let mut group = criterion.benchmark_group("rebalance-plan");
    group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
        bencher.iter(|| working.changes_to(&allocated));
    });
    group.finish();
}
