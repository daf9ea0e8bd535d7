//! A name server and brokers in a process of their own, so that what the client takes is the client's alone.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rocketmq_blocking::{Message, MessageQueue};
use rocketmq_embedded::Cluster;

use crate::Failure;

/// The requests of a consumer, by code.
pub(crate) const REQUESTS: [(i32, &str); 7] = [
    (105, "route"),
    (34, "heartbeat"),
    (38, "members"),
    (11, "pull"),
    (15, "persist"),
    (14, "offset"),
    (30, "end"),
];

/// The word that makes this program the servers.
pub(crate) const ROLE: &str = "servers";

/// Serves until standard input ends; each line of it is an order, answered by a line.
pub(crate) fn serve(brokers: usize) -> Result<(), Failure> {
    let cluster = Cluster::builder().brokers(brokers).start()?;
    println!("{}", cluster.namesrv_addr());
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["topics", count] => {
                for topic in 0..count.parse()? {
                    cluster.create_topic(&topic_name(topic), QUEUES)?;
                }
                println!("done");
            }
            ["put", topics, count] => {
                put(&cluster, topics.parse()?, count.parse()?)?;
                println!("done");
            }
            ["counts"] => {
                let counts = REQUESTS.map(|(code, _)| cluster.request_count(code).to_string());
                println!("{}", counts.join(" "));
            }
            _ => return Err(format!("{line:?} is no order").into()),
        }
    }
    cluster.shutdown();
    Ok(())
}

/// Puts so many messages into each queue, one after the other of each.
fn put(cluster: &Cluster, topics: usize, count: usize) -> Result<(), Failure> {
    for _ in 0..count {
        for topic in (0..topics).map(topic_name) {
            let message = Message::new(topic.as_str(), [b'x'; 100].as_slice());
            for broker in cluster.broker_names() {
                for id in 0..i32::from(QUEUES) {
                    let queue = MessageQueue::new(topic.as_str(), broker.as_str(), id);
                    cluster.put_message(&queue, &message)?;
                }
            }
        }
    }
    Ok(())
}

/// How many queues a topic has at each broker.
pub(crate) const QUEUES: u16 = 8;

pub(crate) fn topic_name(number: usize) -> String {
    format!("topic-{number}")
}

/// The process with the servers; it ends when this is dropped.
pub(crate) struct Servers {
    process: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    pub(crate) namesrv: String,
}

impl Servers {
    /// Starts so many brokers with so many topics.
    pub(crate) fn start(brokers: usize, topics: usize) -> Result<Self, Failure> {
        let mut process = Command::new(std::env::current_exe()?)
            .args([ROLE, &brokers.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let answers = process.stdout.take().ok_or("no standard output")?;
        let mut servers = Self {
            orders: process.stdin.take(),
            process,
            answers: BufReader::new(answers),
            namesrv: String::new(),
        };
        servers.namesrv = servers.answer()?;
        servers.order(&format!("topics {topics}"))?;
        Ok(servers)
    }

    /// Puts so many messages into each queue of the topics.
    pub(crate) fn put(&mut self, topics: usize, count: usize) -> Result<(), Failure> {
        self.order(&format!("put {topics} {count}")).map(drop)
    }

    /// How many requests there were, in the order of [`REQUESTS`].
    pub(crate) fn counts(&mut self) -> Result<Vec<u64>, Failure> {
        let answer = self.order("counts")?;
        answer.split(' ').map(|n| Ok(n.parse()?)).collect()
    }

    /// The requests since an earlier count that were any, by name.
    pub(crate) fn since(&mut self, before: &[u64]) -> Result<BTreeMap<&'static str, u64>, Failure> {
        let now = self.counts()?;
        let grown = now.iter().zip(before).map(|(now, before)| now - before);
        Ok(REQUESTS.iter().map(|(_, name)| *name).zip(grown).collect())
    }

    fn order(&mut self, order: &str) -> Result<String, Failure> {
        let orders = self.orders.as_mut().ok_or("no standard input")?;
        writeln!(orders, "{order}")?;
        orders.flush()?;
        self.answer()
    }

    fn answer(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err("the servers have ended".into());
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Err(error) = self.process.wait() {
            eprintln!("the servers: {error}");
        }
    }
}
