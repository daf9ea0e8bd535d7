//! Members of the group: consumers of this process, and processes that can be killed.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQPushConsumer,
    DefaultMQPushConsumerBuilder, MessageExt, MessageQueue,
};

use crate::ledger::{Ledger, Name};
use crate::scenario::Random;

/// Where a group meets.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) namesrv: String,
    pub(crate) topic: String,
    pub(crate) group: String,
}

/// How listeners behave; read at each call.
#[derive(Debug, Default)]
pub(crate) struct Moods {
    pub(crate) calm: AtomicBool,
    pub(crate) slow_calls: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) panics: AtomicU64,
}

pub(crate) fn id_of(message: &MessageExt) -> u64 {
    std::str::from_utf8(message.body())
        .unwrap()
        .parse()
        .unwrap()
}

/// Everything periodical is short, so that a seed takes a second.
fn builder(place: &Place, name: &str) -> DefaultMQPushConsumerBuilder {
    DefaultMQPushConsumer::builder(place.group.as_str())
        .namesrv_addr(&place.namesrv)
        .instance_name(name)
        .subscribe(&place.topic, "*")
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .consume_threads(3)
        .poll_name_server_interval(Duration::from_millis(150))
        .heartbeat_broker_interval(Duration::from_millis(150))
        .persist_consumer_offset_interval(Duration::from_millis(60))
        .rebalance_wait_interval(Duration::from_millis(250))
        .rebalance_min_interval(Duration::from_millis(20))
        .pull_time_delay_when_exception(Duration::from_millis(50))
        .mq_client_api_timeout(Duration::from_secs(2))
}

/// A consumer of this process.
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) name: Name,
    pub(crate) consumer: DefaultMQPushConsumer,
}

impl Local {
    pub(crate) fn start(
        place: &Place,
        name: Name,
        ledger: &Arc<Ledger>,
        moods: &Arc<Moods>,
        seed: u64,
    ) -> Result<Self, String> {
        let listener = Listener {
            name: name.clone(),
            ledger: Arc::clone(ledger),
            moods: Arc::clone(moods),
            random: Mutex::new(Random::new(seed)),
        };
        let heard = (
            Arc::clone(ledger),
            name.clone(),
            Mutex::new(BTreeSet::new()),
        );
        let consumer = builder(place, &name)
            .message_listener(
                move |messages: &[MessageExt], context: &mut ConsumeConcurrentlyContext| {
                    listener.consume(messages, context.message_queue())
                },
            )
            .message_queue_listener(
                move |topic: &str, _: &[MessageQueue], mine: &[MessageQueue]| {
                    let (ledger, name, all) = &heard;
                    let mut all = all.lock().unwrap();
                    let now: BTreeSet<MessageQueue> = mine.iter().cloned().collect();
                    let before = all
                        .iter()
                        .filter(|mq: &&MessageQueue| mq.topic() == topic)
                        .cloned()
                        .collect();
                    ledger.assigned(name, topic, &before, &now);
                    all.retain(|mq| mq.topic() != topic);
                    all.extend(now);
                },
            )
            .build()
            .map_err(|error| format!("{name} is not built: {error}"))?;
        consumer
            .start()
            .map_err(|error| format!("{name} does not start: {error}"))?;
        Ok(Self { name, consumer })
    }
}

struct Listener {
    name: Name,
    ledger: Arc<Ledger>,
    moods: Arc<Moods>,
    random: Mutex<Random>,
}

impl Listener {
    fn consume(&self, messages: &[MessageExt], mq: &MessageQueue) -> ConsumeConcurrentlyStatus {
        self.ledger.begin(&self.name, mq, messages);
        let (die, pause) = {
            let mut random = self.random.lock().unwrap();
            (random.below(100), random.below(15))
        };
        if die < 6 {
            self.moods.slow_calls.fetch_add(1, Ordering::Relaxed);
            thread::sleep(Duration::from_millis(pause));
        }
        if !self.moods.calm.load(Ordering::Relaxed) {
            if die == 50 {
                self.moods.panics.fetch_add(1, Ordering::Relaxed);
                self.ledger.fail(&self.name, mq, messages);
                panic!("one of the listener's moods");
            }
            if die == 60 {
                self.moods.failures.fetch_add(1, Ordering::Relaxed);
                self.ledger.fail(&self.name, mq, messages);
                return ConsumeConcurrentlyStatus::ReconsumeLater;
            }
        }
        for message in messages {
            self.ledger.done(id_of(message));
        }
        self.ledger.succeed(&self.name, mq, messages);
        ConsumeConcurrentlyStatus::ConsumeSuccess
    }
}

/// A consumer in a process of its own. It says on its standard output what it did.
#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) name: Name,
    child: Child,
    owned: Arc<Mutex<BTreeSet<String>>>,
    reader: Option<thread::JoinHandle<()>>,
}

impl Remote {
    pub(crate) fn start(place: &Place, name: Name, ledger: &Arc<Ledger>) -> Result<Self, String> {
        let words = [&place.namesrv, &place.topic, &place.group, &name]
            .map(String::as_str)
            .join(" ");
        let mut child = crate::this_program("be_a_member")
            .env("GROUP_MEMBER", words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{name} does not start: {error}"))?;
        let owned = Arc::new(Mutex::new(BTreeSet::new()));
        let stdout = child.stdout.take().unwrap();
        let (ledger, said) = (Arc::clone(ledger), Arc::clone(&owned));
        let reader = thread::spawn(move || {
            // The last line of a process that was killed may be cut: it does not count.
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                if let Some(id) = line
                    .strip_prefix("done ")
                    .and_then(|text| text.strip_suffix('.'))
                {
                    ledger.done(id.parse().unwrap());
                } else if let Some(queues) = line
                    .strip_prefix("owns ")
                    .and_then(|text| text.strip_suffix('.'))
                {
                    *said.lock().unwrap() = queues
                        .split(',')
                        .filter(|queue| !queue.is_empty())
                        .map(str::to_owned)
                        .collect();
                }
            }
        });
        Ok(Self {
            name,
            child,
            owned,
            reader: Some(reader),
        })
    }

    pub(crate) fn owned(&self) -> BTreeSet<String> {
        self.owned.lock().unwrap().clone()
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.end();
    }

    /// A clean end.
    pub(crate) fn leave(mut self) -> Result<(), String> {
        drop(self.child.stdin.take());
        let status = self.end();
        if status.success() {
            Ok(())
        } else {
            Err(format!("{} ended with {status}", self.name))
        }
    }

    fn end(&mut self) -> std::process::ExitStatus {
        let status = self.child.wait().unwrap();
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        status
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // Only when a seed has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever reads this may be gone.
    let _ = writeln!(out, "{line}.");
    let _ = out.flush();
}

pub(crate) fn run_as_child(words: &str) {
    let words: Vec<&str> = words.split(' ').collect();
    let place = Place {
        namesrv: words[0].into(),
        topic: words[1].into(),
        group: words[2].into(),
    };
    let topic = place.topic.clone();
    crate::log_what_is_asked_for();
    // After a line of the test harness.
    say("");
    let consumer = builder(&place, words[3])
        .message_listener(
            |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                for message in messages {
                    say(&format!("done {}", id_of(message)));
                }
                ConsumeConcurrentlyStatus::ConsumeSuccess
            },
        )
        .message_queue_listener(move |of: &str, _: &[MessageQueue], mine: &[MessageQueue]| {
            if of == topic {
                let queues: Vec<String> = mine.iter().map(name_of).collect();
                say(&format!("owns {}", queues.join(",")));
            }
        })
        .build()
        .unwrap();
    consumer.start().unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    let report = consumer.shutdown(Duration::from_secs(10));
    assert!(report.threads_joined, "{report:?}");
}

pub(crate) fn name_of(mq: &MessageQueue) -> String {
    format!("{}#{}", mq.broker_name(), mq.queue_id())
}
