//! A group that balances itself: three consumers share 8 queues while 10,000 messages are sent; one
//! joins after the other, one is killed, one leaves.
//!
//! ```text
//! cargo run --release --example quickstart                             # on an embedded cluster
//! cargo run --release --example quickstart -- --namesrv 127.0.0.1:9876 # on a real one
//! ```
//!
//! It prints who owns which queue at each change, and at last what became of the messages; what was
//! sent and what was lost is counted from what the brokers have stored. The exit status is 1 if
//! anything was lost.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program, not the library"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQProducer,
    DefaultMQPushConsumer, Message, MessageExt, MessageQueue,
};
use rocketmq_embedded::Cluster;

const USAGE: &str = "usage: quickstart [--namesrv HOST:PORT]";
const QUEUES: usize = 8;
const MESSAGES: usize = 10_000;
/// Messages are sent during each of the five changes.
const MESSAGES_PER_STEP: usize = MESSAGES / 5;
const PATIENCE: Duration = Duration::from_secs(60);

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    env_logger::init();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        [] => on_embedded_cluster(),
        ["--namesrv", namesrv] => main_job(namesrv, 2),
        ["--consumer", namesrv, topic, group] => consume_as_child(namesrv, topic, group),
        ["--help" | "-h"] => {
            println!("{USAGE}");
            Ok(true)
        }
        _ => Err(USAGE.into()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("quickstart: {error}");
            ExitCode::FAILURE
        }
    }
}

fn on_embedded_cluster() -> Result<bool, Failure> {
    let cluster = Cluster::builder().brokers(2).start()?;
    println!(
        "embedded cluster: name server {}, 2 brokers",
        cluster.namesrv_addr()
    );
    main_job(&cluster.namesrv_addr(), 2)
}

/// Returns whether nothing was lost.
fn main_job(namesrv: &str, brokers: usize) -> Result<bool, Failure> {
    let unique = std::process::id();
    let topic = format!("Quickstart_{unique}");
    let group = format!("quickstart_{unique}");
    let board = Arc::new(Board::default());

    let producer = DefaultMQProducer::builder(format!("{group}_producer"))
        .namesrv_addr(namesrv)
        .build()?;
    producer.start()?;
    create_topic(&producer, &topic, brokers)?;

    let mut job = Job {
        board: &board,
        producer: &producer,
        topic: &topic,
        messages_sent: 0,
    };
    let first = job.step("consumer 1 starts", &[1], || {
        consumer(namesrv, &topic, &group, 1, &board)
    })?;
    let second = job.step("consumer 2 joins", &[1, 2], || {
        consumer(namesrv, &topic, &group, 2, &board)
    })?;
    let mut third = job.step(
        "consumer 3, a process of its own, joins",
        &[1, 2, 3],
        || child(namesrv, &topic, &group, 3, &board),
    )?;
    job.step("consumer 3 is killed (SIGKILL)", &[1, 2], || {
        third.end()?;
        board.forget(3);
        Ok(())
    })?;
    job.step("consumer 2 leaves", &[1], || {
        second.shutdown(Duration::from_secs(10));
        board.forget(2);
        Ok(())
    })?;

    let stored = stored_messages(&producer, &topic)?;
    let lost = board.wait_for_all(&stored);
    first.shutdown(Duration::from_secs(10));
    producer.shutdown(Duration::from_secs(10));
    let state = board.state();
    let delivered = stored.len() - lost;
    println!(
        "sent={} delivered={delivered} lost={lost} duplicates={} rebalances={}",
        stored.len(),
        state.deliveries - state.delivered.len(),
        state.rebalances
    );
    Ok(lost == 0 && stored.len() == MESSAGES)
}

/// Creates the topic and waits until the name server knows all its queues.
fn create_topic(producer: &DefaultMQProducer, topic: &str, brokers: usize) -> Result<(), Failure> {
    producer.create_topic("TBW102", topic, i32::try_from(QUEUES / brokers)?)?;
    let end = Instant::now() + PATIENCE;
    loop {
        match producer.fetch_publish_message_queues(topic) {
            Ok(queues) if queues.len() == QUEUES => return Ok(()),
            Ok(queues) if Instant::now() > end => {
                return Err(
                    format!("the topic has {} queues, wanted {QUEUES}", queues.len()).into(),
                );
            }
            Err(error) if Instant::now() > end => return Err(error.into()),
            _ => thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// The messages on their way through the changes of the group.
struct Job<'a> {
    board: &'a Board,
    producer: &'a DefaultMQProducer,
    topic: &'a str,
    messages_sent: usize,
}

impl Job<'_> {
    /// Sends a fifth of the messages while the group changes and settles, then prints who owns what.
    fn step<T>(
        &mut self,
        what: &str,
        members: &[usize],
        change: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        println!("\n{what}:");
        let sender = self.send_some();
        let begun = Instant::now();
        let changed = change()?;
        let settled = self.board.wait_until_settled(members);
        let millis = begun.elapsed().as_millis();
        for (member, queues) in &self.board.state().owners {
            let names: Vec<&str> = queues.iter().map(String::as_str).collect();
            println!(
                "  consumer {member} | {} queues | {}",
                queues.len(),
                names.join(" ")
            );
        }
        sender.join().map_err(|_| "the sending thread panicked")??;
        if !settled {
            return Err(format!("no settled group within {} s", PATIENCE.as_secs()).into());
        }
        println!("  settled after {millis} ms");
        Ok(changed)
    }

    fn send_some(&mut self) -> thread::JoinHandle<Result<(), Failure>> {
        let producer = self.producer.clone();
        let topic = self.topic.to_owned();
        let from = self.messages_sent;
        self.messages_sent += MESSAGES_PER_STEP;
        thread::spawn(move || {
            for i in from..from + MESSAGES_PER_STEP {
                let message = Message::new(topic.as_str(), format!("message {i}"));
                producer.send(&message.with_keys(i.to_string()))?;
            }
            Ok(())
        })
    }
}

/// What the consumers report: who owns what, and what was delivered.
#[derive(Default)]
struct Board {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    owners: BTreeMap<usize, BTreeSet<String>>,
    rebalances: usize,
    deliveries: usize,
    delivered: BTreeSet<(String, i64)>,
}

impl Board {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn assigned(&self, member: usize, queues: BTreeSet<String>) {
        let mut state = self.state();
        state.owners.insert(member, queues);
        state.rebalances += 1;
        drop(state);
        self.changed.notify_all();
    }

    fn delivered(&self, queue: String, offset: i64) {
        let mut state = self.state();
        state.deliveries += 1;
        state.delivered.insert((queue, offset));
        drop(state);
        self.changed.notify_all();
    }

    fn forget(&self, member: usize) {
        self.state().owners.remove(&member);
    }

    /// Waits until each queue has one owner and the owners are these members.
    fn wait_until_settled(&self, members: &[usize]) -> bool {
        self.wait_until(|state| {
            let owned: Vec<&String> = state.owners.values().flatten().collect();
            let distinct: BTreeSet<&String> = owned.iter().copied().collect();
            owned.len() == QUEUES
                && distinct.len() == QUEUES
                && state.owners.keys().copied().eq(members.iter().copied())
        })
    }

    /// Waits until everything stored was delivered, and returns how much was not.
    fn wait_for_all(&self, stored: &BTreeSet<(String, i64)>) -> usize {
        // The set grows by one with each new delivery, so its size answers cheaply most times.
        self.wait_until(|state| {
            state.delivered.len() >= stored.len() && stored.is_subset(&state.delivered)
        });
        stored.difference(&self.state().delivered).count()
    }

    fn wait_until(&self, done: impl Fn(&State) -> bool) -> bool {
        let end = Instant::now() + PATIENCE;
        let mut state = self.state();
        loop {
            if done(&state) {
                return true;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = match self.changed.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }
}

/// Every message of the topic, by queue and offset, as the brokers count them.
fn stored_messages(
    producer: &DefaultMQProducer,
    topic: &str,
) -> Result<BTreeSet<(String, i64)>, Failure> {
    let mut stored = BTreeSet::new();
    for mq in producer.fetch_publish_message_queues(topic)? {
        let queue = name_of(&mq);
        let offsets = producer.min_offset(&mq)?..producer.max_offset(&mq)?;
        stored.extend(offsets.map(|offset| (queue.clone(), offset)));
    }
    Ok(stored)
}

fn name_of(mq: &MessageQueue) -> String {
    format!("{}#{}", mq.broker_name(), mq.queue_id())
}

fn queue_names(queues: &[MessageQueue]) -> BTreeSet<String> {
    queues.iter().map(name_of).collect()
}

/// A consumer in this process. The second member of the group gets connections and a client id of
/// its own.
fn consumer(
    namesrv: &str,
    topic: &str,
    group: &str,
    member: usize,
    board: &Arc<Board>,
) -> Result<DefaultMQPushConsumer, Failure> {
    let deliveries = Arc::clone(board);
    let assignments = Arc::clone(board);
    let of_topic = topic.to_owned();
    let consumer = DefaultMQPushConsumer::builder(group)
        .namesrv_addr(namesrv)
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .subscribe(topic, "*")
        .message_listener(
            move |messages: &[MessageExt], context: &mut ConsumeConcurrentlyContext| {
                for message in messages {
                    deliveries.delivered(name_of(context.message_queue()), message.queue_offset());
                }
                ConsumeConcurrentlyStatus::ConsumeSuccess
            },
        )
        .message_queue_listener(
            move |topic: &str, _all: &[MessageQueue], divided: &[MessageQueue]| {
                if topic == of_topic {
                    assignments.assigned(member, queue_names(divided));
                }
            },
        )
        .build()?;
    consumer.start()?;
    Ok(consumer)
}

/// A child process that ends when this program does, however that is.
struct ChildProcess(Child);

impl ChildProcess {
    /// Ends it by SIGKILL.
    fn end(&mut self) -> std::io::Result<()> {
        self.0.kill()?;
        self.0.wait().map(|_| ())
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("the child process cannot be ended: {error}");
        }
    }
}

/// A consumer in a process of its own, which reports by lines on its standard output.
fn child(
    namesrv: &str,
    topic: &str,
    group: &str,
    member: usize,
    board: &Arc<Board>,
) -> Result<ChildProcess, Failure> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--consumer", namesrv, topic, group])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let lines = child.stdout.take().ok_or("the child has no output")?;
    let board = Arc::clone(board);
    thread::spawn(move || {
        for line in BufReader::new(lines).lines().map_while(Result::ok) {
            match line.split(' ').collect::<Vec<_>>().as_slice() {
                ["got", queue, offset] => {
                    if let Ok(offset) = offset.parse() {
                        board.delivered((*queue).to_owned(), offset);
                    }
                }
                ["assigned", queues @ ..] => {
                    board.assigned(
                        member,
                        queues.iter().map(|queue| (*queue).to_owned()).collect(),
                    );
                }
                _ => {}
            }
        }
    });
    Ok(ChildProcess(child))
}

/// What the child process does, until it is killed or its parent is gone.
fn consume_as_child(namesrv: &str, topic: &str, group: &str) -> Result<bool, Failure> {
    let of_topic = topic.to_owned();
    let consumer = DefaultMQPushConsumer::builder(group)
        .namesrv_addr(namesrv)
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .subscribe(topic, "*")
        .message_listener(
            |messages: &[MessageExt], context: &mut ConsumeConcurrentlyContext| {
                for message in messages {
                    report(&format!(
                        "got {} {}",
                        name_of(context.message_queue()),
                        message.queue_offset()
                    ));
                }
                ConsumeConcurrentlyStatus::ConsumeSuccess
            },
        )
        .message_queue_listener(
            move |topic: &str, _all: &[MessageQueue], divided: &[MessageQueue]| {
                if topic == of_topic {
                    let names: Vec<String> = queue_names(divided).into_iter().collect();
                    report(&format!("assigned {}", names.join(" ")));
                }
            },
        )
        .build()?;
    consumer.start()?;
    // The parent's end closes the pipe.
    let _ = std::io::stdin().read_line(&mut String::new());
    consumer.shutdown(Duration::from_secs(5));
    Ok(true)
}

/// One line at once, so that a kill never leaves half of one before a whole one.
fn report(line: &str) {
    let mut out = std::io::stdout().lock();
    // Nobody is left to tell when the pipe is closed.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
