//! Messages that a listener does not take: what holding them costs, and whether they are let go of.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQPushConsumer,
    FilterMessageContext, FilterMessageHook, MessageExt,
};

use crate::Failure;
use crate::process::{Stopwatch, status, threads};
use crate::servers::{QUEUES, Servers, topic_name};
use crate::table::Figures;

const PATIENCE: Duration = Duration::from_secs(300);

/// Counts what was pulled, before the listener is called.
struct Pulled(Arc<AtomicUsize>);

impl FilterMessageHook for Pulled {
    fn hook_name(&self) -> &str {
        "pulled"
    }

    fn filter_message(&self, context: &mut FilterMessageContext<'_>) {
        self.0
            .fetch_add(context.messages().len(), Ordering::Relaxed);
    }
}

/// Keeps listeners until it is opened.
#[derive(Default)]
struct Gate(Mutex<bool>, Condvar);

impl Gate {
    fn pass(&self) {
        let is_open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.1.wait_while(is_open, |is_open| !*is_open));
    }

    fn open(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.1.notify_all();
    }
}

pub(crate) fn cached(count: usize) -> Result<Figures, Failure> {
    let queues = usize::from(QUEUES);
    let per_queue = count / queues;
    let count = per_queue * queues;
    let mut servers = Servers::start(1, 1)?;
    servers.put(1, per_queue)?;
    let (pulled, done) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let gate = Arc::<Gate>::default();
    let (of_listener, counts) = (Arc::clone(&gate), Arc::clone(&done));
    let consumer = DefaultMQPushConsumer::builder("group-0")
        .namesrv_addr(&servers.namesrv)
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .pull_threshold_for_queue(u64::try_from(per_queue)?)
        .consume_concurrently_max_span(u64::try_from(per_queue)?)
        .filter_message_hook(Pulled(Arc::clone(&pulled)))
        .subscribe(&topic_name(0), "*")
        .message_listener(
            move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                of_listener.pass();
                counts.fetch_add(messages.len(), Ordering::Relaxed);
                ConsumeConcurrentlyStatus::ConsumeSuccess
            },
        )
        .build()?;
    let mut figures = Figures::default();
    let before = status("VmRSS") / 1024.0;
    let pulls = Stopwatch::start();
    consumer.start()?;
    wait_for(&pulled, count)?;
    figures.put("all cached after, s", pulls.wall_s());
    figures.put(
        "caching: processor time a message, us",
        pulls.cpu_s() * 1e6 / count as f64,
    );
    let held = status("VmRSS") / 1024.0;
    figures.put("cached: VmRSS, MiB", held);
    figures.put(
        "cached: bytes a message",
        (held - before) * 1024.0 * 1024.0 / count as f64,
    );
    figures.put("cached: threads", threads().values().sum::<usize>() as f64);
    let idle = Stopwatch::start();
    thread::sleep(Duration::from_secs(10));
    figures.put("cached: processor time a minute, s", idle.cpu_s() * 6.0);
    let work = Stopwatch::start();
    gate.open();
    wait_for(&done, count)?;
    figures.put("working them off, s", work.wall_s());
    figures.put(
        "working them off: processor time a message, us",
        work.cpu_s() * 1e6 / count as f64,
    );
    consumer.shutdown(Duration::from_secs(60));
    figures.put("VmRSS after it, MiB", status("VmRSS") / 1024.0);
    figures.put("VmHWM, MiB", status("VmHWM") / 1024.0);
    Ok(figures)
}

fn wait_for(counter: &AtomicUsize, count: usize) -> Result<(), Failure> {
    let begun = Instant::now();
    while counter.load(Ordering::Relaxed) < count {
        if begun.elapsed() > PATIENCE {
            let got = counter.load(Ordering::Relaxed);
            return Err(format!("{got} of {count} messages after {PATIENCE:?}").into());
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
