//! All ways to send, and requests that wait for a reply.

use std::sync::mpsc;

use rocketmq_blocking::{
    CompressionType, DefaultMQProducer, Message, SelectMessageQueueByHash, SendResult,
};
use serde_json::{Value, json};

use crate::session::{Command, LIMIT, Outcome, now};

/// How many asynchronous sends are under way at most, and how many messages are in a batch.
const AT_ONCE: usize = 100;
const BATCH: usize = 50;

/// A message that the other side can tell whole from its number.
pub(crate) fn message(command: &Command, number: usize) -> Outcome<Message> {
    let words = &command.words;
    let key = format!("{}_{number}", words.text("name", "m"));
    let mut body = format!("{key} ").repeat(words.number("size", 100)? / key.len() + 1);
    body.truncate(words.number("size", 100)?);
    let mut message = Message::new(command.topic(), body)
        .with_tags(format!("Tag{}", number % 3))
        .with_keys(key);
    message.set_flag(i32::try_from(number)? + 1);
    message.put_user_property("user_number", number.to_string())?;
    message.put_user_property("user_word", "Größe €")?;
    if words.get("level").is_some() {
        message.set_delay_time_level(words.number("level", 0)?);
    }
    if words.get("delay_sec").is_some() {
        message.set_delay_time_sec(words.number("delay_sec", 0)?);
    }
    if words.get("delay_ms").is_some() {
        message.set_delay_time_ms(words.number("delay_ms", 0)?);
    }
    if words.get("after_ms").is_some() {
        let at = now() + words.number("after_ms", 0)?;
        message.set_deliver_time_ms(i64::try_from(at)?);
    }
    Ok(message)
}

pub(crate) fn send(command: &Command) -> Outcome<()> {
    let words = &command.words;
    let kind = words.text("kind", "sync");
    let compress = match words.text("compress", "ZLIB") {
        "LZ4" => CompressionType::Lz4,
        "ZSTD" => CompressionType::Zstd,
        "ZLIB" => CompressionType::Zlib,
        other => return Err(format!("compress={other} is unknown").into()),
    };
    let producer = command
        .producer()
        .auto_batch(kind == "auto")
        .compress_type(compress)
        .compress_level(words.number("compress_level", 5)?)
        .build()?;
    producer.start()?;
    let count = words.number("n", 10)?;
    let numbers: Vec<usize> = (0..count).collect();
    match kind {
        "sync" => {
            for number in numbers {
                let message = message(command, number)?;
                let began = now();
                say_sent(command, number, began, &producer.send(&message)?);
            }
        }
        "async" | "auto" => {
            for wave in numbers.chunks(AT_ONCE) {
                send_wave(command, &producer, wave)?;
            }
        }
        "oneway" => {
            for number in numbers {
                producer.send_oneway(&message(command, number)?)?;
            }
        }
        "queue" => {
            let queues = producer.fetch_publish_message_queues(command.topic())?;
            for number in numbers {
                let queue = &queues[number % queues.len()];
                let result = producer.send_to_queue(&message(command, number)?, queue)?;
                say_sent(command, number, now(), &result);
            }
        }
        "selector" => {
            for number in numbers {
                let order = format!("order-{}", number % 17);
                let message = message(command, number)?;
                let result = producer.send_with_selector(
                    &message,
                    &SelectMessageQueueByHash,
                    order.as_str(),
                )?;
                let mut line = sent(number, now(), &result);
                line["order"] = json!(order);
                command.say(line);
            }
        }
        "batch" => {
            for numbers in numbers.chunks(BATCH) {
                let batch = numbers.iter().map(|number| message(command, *number));
                let batch = batch.collect::<Outcome<Vec<_>>>()?;
                let mut line = sent(numbers[0], now(), &producer.send_batch(&batch)?);
                line["count"] = json!(batch.len());
                command.say(line);
            }
        }
        other => return Err(format!("kind={other} is unknown").into()),
    }
    producer.shutdown(LIMIT);
    Ok(())
}

/// Sends so many side by side, and waits for all of them.
fn send_wave(command: &Command, producer: &DefaultMQProducer, wave: &[usize]) -> Outcome<()> {
    let (sender, outcomes) = mpsc::channel();
    for number in wave.iter().copied() {
        let (sender, began) = (sender.clone(), now());
        producer.send_async(message(command, number)?, move |outcome| {
            // The receiver waits for all of them, unless one has failed.
            let _ = sender.send((number, began, outcome));
        })?;
    }
    for _ in wave {
        let (number, began, outcome) = outcomes.recv_timeout(LIMIT)?;
        let result = outcome.map_err(|failure| failure.into_parts().0)?;
        say_sent(command, number, began, &result);
    }
    Ok(())
}

fn say_sent(command: &Command, number: usize, began: u64, result: &SendResult) {
    command.say(sent(number, began, result));
}

pub(crate) fn sent(number: usize, began: u64, result: &SendResult) -> Value {
    json!({
        "sent": number,
        "at": began,
        "status": result.send_status.name(),
        "broker": result.message_queue.broker_name(),
        "queueId": result.message_queue.queue_id(),
        "offset": result.queue_offset,
        "msgId": result.msg_id,
        "id": result.offset_msg_id,
        "handle": result.recall_handle,
    })
}

/// Sends requests one after the other, writes what came back, and stays: a producer that ends may cost
/// the others of its process a reply that is on its way.
pub(crate) fn ask(command: &Command, ended: &mpsc::Receiver<()>) -> Outcome<()> {
    let producer = command.producer().build()?;
    producer.start()?;
    for number in 0..command.words.number("n", 10)? {
        let reply = producer.request(&message(command, number)?, LIMIT)?;
        command.say(json!({
            "reply": number,
            "len": reply.body().len(),
            "md5": format!("{:x}", md5::compute(reply.body())),
        }));
    }
    command.say(json!({ "all_sent": true }));
    // Nothing is sent: the channel ends.
    let _ = ended.recv();
    producer.shutdown(LIMIT);
    Ok(())
}
