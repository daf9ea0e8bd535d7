//! A process that takes one command a line from standard input: a number, a verb, `key=value` words.
//!
//! Commands run side by side, and `in` of each line that one writes is its number. Those that stay end
//! with `stop <number>`, or with standard input.

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::io::BufRead;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQProducer,
    DefaultMQProducerBuilder, DefaultMQPushConsumer, MessageExt, create_reply_message,
};
use serde_json::{Value, json};

use crate::sends;
use crate::support::{Options, say};
use crate::transactions;

/// How long anything may take: only what is broken takes so long.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

pub(crate) fn run(options: &Options) -> Outcome<()> {
    let mut running = Vec::new();
    let mut ends = HashMap::new();
    say(&json!({ "ready": true }));
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let mut words = line.split_whitespace();
        let (Some(number), Some(verb)) = (words.next(), words.next()) else {
            return Err(format!("{line:?} has no number and verb").into());
        };
        if number == "stop" {
            ends.remove(verb);
            continue;
        }
        let (end, ended) = mpsc::channel();
        ends.insert(number.to_owned(), end);
        let command = Arc::new(Command {
            number: number.to_owned(),
            namesrv: options.text("ns", "127.0.0.1:9876").to_owned(),
            words: Options::parse(words)?,
        });
        let verb = verb.to_owned();
        running.push(thread::spawn(move || {
            match command.carry_out(&verb, &ended) {
                Ok(()) => command.say(json!({ "ended": verb })),
                Err(error) => command.say(json!({ "error": error.to_string() })),
            }
        }));
    }
    drop(ends);
    for command in running {
        // One that panicked has written no `ended` line.
        let _ = command.join();
    }
    Ok(())
}

/// One line of standard input.
#[derive(Debug)]
pub(crate) struct Command {
    number: String,
    namesrv: String,
    pub(crate) words: Options,
}

impl Command {
    fn carry_out(self: &Arc<Self>, verb: &str, ended: &mpsc::Receiver<()>) -> Outcome<()> {
        match verb {
            "consume" => self.consume(ended),
            "send" => sends::send(self),
            "ask" => sends::ask(self, ended),
            "transact" => transactions::transact(self, ended),
            "key" | "unique" | "id" => self.look_up(verb),
            "recall" => self.recall(),
            other => Err(format!("{other:?} is no command").into()),
        }
    }

    pub(crate) fn say(&self, mut line: Value) {
        line["in"] = json!(self.number);
        say(&line);
    }

    pub(crate) fn topic(&self) -> &str {
        self.words.text("topic", "T8")
    }

    pub(crate) fn producer(&self) -> DefaultMQProducerBuilder {
        DefaultMQProducer::builder(self.words.text("group", "session_p"))
            .namesrv_addr(&self.namesrv)
            .namespace(self.words.text("space", ""))
            .namespace_v2(self.words.text("space2", ""))
            .send_msg_timeout(LIMIT)
    }

    fn started_producer(&self) -> Outcome<DefaultMQProducer> {
        let producer = self.producer().build()?;
        producer.start()?;
        Ok(producer)
    }

    /// Consumes until it is stopped. `fail=true`: fails each message once; `reply=true`: replies.
    fn consume(self: &Arc<Self>, ended: &mpsc::Receiver<()>) -> Outcome<()> {
        let replier = match self.words.flag("reply") {
            true => Some(self.started_producer()?),
            false => None,
        };
        let (command, fail, got) = (Arc::clone(self), self.words.flag("fail"), AtomicU64::new(0));
        let failed = Mutex::new(HashSet::new());
        let listener = move |messages: &[MessageExt], context: &mut ConsumeConcurrentlyContext| {
            for message in messages {
                let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                if fail && failed.insert(message.msg_id().to_owned()) {
                    let times = message.reconsume_times();
                    command.say(json!({ "failed": message.keys(), "reconsume": times }));
                    context.set_delay_level_when_next_consume(1);
                    return ConsumeConcurrentlyStatus::ReconsumeLater;
                }
                let mut line = described(message);
                line["got"] = json!(got.fetch_add(1, Ordering::Relaxed) + 1);
                line["at"] = json!(now());
                command.say(line);
                if let Some(Err(error)) = replier.as_ref().map(|by| reply(by, message)) {
                    command.say(json!({ "error": error.to_string() }));
                }
            }
            ConsumeConcurrentlyStatus::ConsumeSuccess
        };
        let consumer = DefaultMQPushConsumer::builder(self.words.text("group", "session_c"))
            .namesrv_addr(&self.namesrv)
            .namespace(self.words.text("space", ""))
            .namespace_v2(self.words.text("space2", ""))
            .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
            .consume_message_batch_max_size(1)
            .subscribe(self.topic(), "*")
            .message_listener(listener)
            .build()?;
        consumer.start()?;
        // Nothing is sent: the channel ends.
        let _ = ended.recv();
        consumer.shutdown(LIMIT);
        Ok(())
    }

    /// Looks a message up until it is there: brokers write their index a moment later.
    fn look_up(&self, by: &str) -> Outcome<()> {
        let producer = self.started_producer()?;
        let (topic, what) = (self.topic(), self.words.text("what", ""));
        let deadline = Instant::now() + LIMIT;
        let found = loop {
            let found = match by {
                "key" => producer
                    .query_message(topic, what, 32, 0, i64::MAX)
                    .map(|found| found.messages),
                "unique" => producer
                    .query_message_by_uniq_key(topic, what)
                    .map(|message| vec![message]),
                _ => producer
                    .view_message(topic, what)
                    .map(|message| vec![message]),
            };
            match found {
                Ok(found) => break found,
                Err(error) if Instant::now() > deadline => return Err(error.into()),
                Err(_) => thread::sleep(Duration::from_millis(100)),
            }
        };
        for message in &found {
            let mut line = described(message);
            line["found"] = json!(by);
            self.say(line);
        }
        producer.shutdown(LIMIT);
        Ok(())
    }

    fn recall(&self) -> Outcome<()> {
        let producer = self.started_producer()?;
        let id = producer.recall_message(self.topic(), self.words.text("handle", ""))?;
        self.say(json!({ "recalled": id }));
        producer.shutdown(LIMIT);
        Ok(())
    }
}

fn reply(replier: &DefaultMQProducer, question: &MessageExt) -> rocketmq_blocking::Result<()> {
    let body = [b"re: ", &question.body()[..]].concat();
    replier.send(&create_reply_message(question, body)?)?;
    Ok(())
}

pub(crate) fn described(message: &MessageExt) -> Value {
    let own = |name: &str| name.starts_with("user_");
    let user: HashMap<_, _> = message
        .properties()
        .iter()
        .filter(|(name, _)| own(name))
        .collect();
    json!({
        "topic": message.topic(),
        "broker": message.broker_name(),
        "queueId": message.queue_id(),
        "offset": message.queue_offset(),
        "msgId": message.msg_id(),
        "key": message.keys(),
        "tag": message.tags(),
        "flag": message.flag(),
        "user": user,
        "len": message.body().len(),
        "md5": format!("{:x}", md5::compute(message.body())),
        "reconsume": message.reconsume_times(),
        "sysFlag": message.sys_flag(),
        "stored": message.store_size(),
    })
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}
