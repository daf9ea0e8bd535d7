//! Dividing queues among members: no broker, one thread.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rocketmq_blocking::MessageQueue;
use rocketmq_blocking::internals::{WorkedOn, sort_client_ids};
use rocketmq_blocking::rebalance::{
    AllocateMessageQueueAveragely, AllocateMessageQueueAveragelyByCircle,
    AllocateMessageQueueConsistentHash, AllocateMessageQueueStrategy,
};

use crate::Failure;
use crate::table::Figures;

const ROUND: Duration = Duration::from_millis(200);

/// Microseconds of an operation: the best of three rounds, after one to warm up.
fn micros(mut operation: impl FnMut()) -> f64 {
    let round = |operation: &mut dyn FnMut()| {
        let begun = Instant::now();
        let mut times = 0_u32;
        while begun.elapsed() < ROUND {
            operation();
            times += 1;
        }
        begun.elapsed().as_secs_f64() * 1e6 / f64::from(times)
    };
    round(&mut operation);
    (0..3).fold(f64::INFINITY, |best, _| best.min(round(&mut operation)))
}

pub(crate) fn allocation(count: usize) -> Result<Figures, Failure> {
    let count = i32::try_from(count)?;
    let mut queues: Vec<MessageQueue> = (0..count)
        .map(|n| MessageQueue::new("scale_topic", format!("broker-{}", n % 50), n / 50))
        .collect();
    let mut members: Vec<String> = (0..count / 10)
        .map(|n| format!("10.0.{}.{}@{}#{n}", n / 256, n % 256, 1000 + n * 7))
        .collect();
    let mut figures = Figures::default();
    let unsorted = (queues.clone(), members.clone());
    figures.put(
        "sorting both anew, us",
        micros(|| {
            let (mut queues, mut members) = unsorted.clone();
            MessageQueue::sort(&mut queues);
            sort_client_ids(&mut members);
            black_box((queues, members));
        }),
    );
    MessageQueue::sort(&mut queues);
    sort_client_ids(&mut members);
    let me = members.get(members.len() / 2).cloned().ok_or("no member")?;
    let hash = AllocateMessageQueueConsistentHash::new();
    let strategies: [(&str, &dyn AllocateMessageQueueStrategy); 3] = [
        ("AVG, us", &AllocateMessageQueueAveragely),
        ("AVG_BY_CIRCLE, us", &AllocateMessageQueueAveragelyByCircle),
        ("CONSISTENT_HASH again, us", &hash),
    ];
    for (name, strategy) in strategies {
        strategy.allocate("g", &me, &queues, &members)?;
        let allocate = || drop(black_box(strategy.allocate("g", &me, &queues, &members)));
        figures.put(name, micros(allocate));
    }
    let first = || {
        let strategy = AllocateMessageQueueConsistentHash::new();
        drop(black_box(strategy.allocate("g", &me, &queues, &members)));
    };
    figures.put("CONSISTENT_HASH first, us", micros(first));
    let mut gone = 0;
    let changed = || {
        // Another one is missing each time, and never the one that asks.
        gone = (gone + 1) % (members.len() / 2);
        let mut members = members.clone();
        members.remove(gone);
        drop(black_box(hash.allocate("g", &me, &queues, &members)));
    };
    figures.put("CONSISTENT_HASH, a member changed, us", micros(changed));
    let all = WorkedOn::new(&queues);
    figures.put(
        "plan, nothing changes, us",
        micros(|| {
            black_box(all.changes_to(&queues));
        }),
    );
    let (mine, others) = queues.split_at(queues.len() / 2);
    let working = WorkedOn::new(mine);
    let allocated: Vec<MessageQueue> = mine.iter().chain(others).step_by(2).cloned().collect();
    figures.put(
        "plan, three quarters change, us",
        micros(|| {
            black_box(working.changes_to(&allocated));
        }),
    );
    Ok(figures)
}
