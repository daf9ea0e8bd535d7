//! One attempt to send one message to one queue.

use std::collections::BTreeSet;

use bytes::Bytes;
use rocketmq_protocol::compression::CompressionType;
use rocketmq_protocol::header::SendMessageRequestHeader;
use rocketmq_protocol::mix_all::{AUTO_CREATE_TOPIC_KEY_TOPIC, RETRY_GROUP_TOPIC_PREFIX};
use rocketmq_protocol::{
    BatchEncoder, Message, MessageQueue, Properties, decode_properties, encode_properties,
    property, response_code, sys_flag, validators,
};

use super::attempts::Attempt;
use super::message_batch::{check_batch, encoded_size};
use super::message_client_id_setter::append_uniq_id;
use super::send_result::SendResult;
use crate::client::{MQClientInstance, RouteOf, SendReply, SendRequest};
use crate::client_config::Namespace;
use crate::error::{Error, Result, client_error_code};
use crate::sync::{Arc, Deadline, system_time_millis};

/// The longest encoded properties, in bytes: their length field has two.
pub(super) const MAX_PROPERTIES_LENGTH: usize = i16::MAX as usize;

/// What of a producer's settings decides what goes over the wire.
#[derive(Debug, Clone)]
pub(crate) struct SendSettings {
    /// The group as brokers know it, namespace included.
    pub(crate) producer_group: String,
    pub(crate) namespace: Namespace,
    pub(crate) unit_mode: bool,
    pub(crate) create_topic_key: String,
    pub(crate) default_topic_queue_nums: i32,
    pub(crate) compress_msg_body_over_howmuch: usize,
    pub(crate) compress_type: CompressionType,
    pub(crate) compress_level: i32,
    pub(crate) max_message_size: usize,
}

impl SendSettings {
    /// Those of a producer of which nothing is set (Java `DefaultMQProducer`).
    pub(crate) fn of(producer_group: String) -> Self {
        Self {
            producer_group,
            namespace: Namespace::default(),
            unit_mode: false,
            create_topic_key: AUTO_CREATE_TOPIC_KEY_TOPIC.to_owned(),
            default_topic_queue_nums: 4,
            compress_msg_body_over_howmuch: 4096,
            compress_type: CompressionType::default(),
            compress_level: 5,
            max_message_size: 4 * 1024 * 1024,
        }
    }

    /// Gives the group the name by which brokers know it.
    pub(super) fn move_into(&mut self, namespace: Namespace) {
        self.producer_group = namespace.wrap(&self.producer_group).into_owned();
        self.namespace = namespace;
    }

    /// What all headers of this producer have in common.
    fn header(&self, topic: String) -> SendMessageRequestHeader {
        SendMessageRequestHeader {
            producer_group: self.producer_group.clone(),
            topic,
            default_topic: self.create_topic_key.clone(),
            default_topic_queue_nums: self.default_topic_queue_nums,
            born_timestamp: system_time_millis(),
            reconsume_times: Some(0),
            unit_mode: Some(self.unit_mode),
            batch: Some(false),
            ..SendMessageRequestHeader::default()
        }
    }
}

/// A message made ready once for all attempts: they have one unique key and one body.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    uniq_key: String,
    header: SendMessageRequestHeader,
    body: Bytes,
    namespace: Namespace,
}

impl Prepared {
    /// Checks a message and encodes it. The caller's message stays as it is.
    pub(crate) fn new(message: &Message, settings: &SendSettings) -> Result<Self> {
        let topic = settings.namespace.wrap(message.topic()).into_owned();
        check_message(message, &topic, settings.max_message_size)?;
        let mut uniq_key = String::new();
        append_uniq_key_of(message, &mut uniq_key);
        let half = message.property(property::TRANSACTION_PREPARED);
        let half = half.is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let key = (property::UNIQ_KEY, &*uniq_key);
        let encode = |message: &Message| match settings.namespace.name() {
            None => message.encode_properties_with(&[key]),
            Some(namespace) => {
                message.encode_properties_with(&[(property::INSTANCE_ID, namespace), key])
            }
        };
        let mut reconsume_times = None;
        let mut max_reconsume_times = None;
        let properties = if topic.starts_with(RETRY_GROUP_TOPIC_PREFIX) {
            let mut retry = message.clone();
            let mut number = |name: &str| {
                retry
                    .clear_property(name)
                    .and_then(|text| text.parse().ok())
            };
            reconsume_times = number(property::RECONSUME_TIME);
            max_reconsume_times = number(property::MAX_RECONSUME_TIMES);
            encode(&retry)
        } else {
            encode(message)
        };
        if properties.len() > MAX_PROPERTIES_LENGTH {
            return Err(Error::InvalidMessage {
                topic: message.topic().to_owned(),
                reason: format!(
                    "the properties have {} bytes, the most is {MAX_PROPERTIES_LENGTH}",
                    properties.len()
                ),
            });
        }
        let (body, mut sys_flag) = compress(message.body(), settings);
        if half {
            sys_flag |= sys_flag::TRANSACTION_PREPARED;
        }
        let header = SendMessageRequestHeader {
            sys_flag,
            flag: message.flag(),
            properties: Some(properties),
            reconsume_times: Some(reconsume_times.unwrap_or(0)),
            max_reconsume_times,
            ..settings.header(topic)
        };
        Ok(Self {
            uniq_key,
            header,
            body,
            namespace: settings.namespace.clone(),
        })
    }

    /// Checks the messages of a batch and encodes them, each with a unique key of its own. Nothing is
    /// compressed.
    ///
    /// # Java
    /// `DefaultMQProducer#batch`, `MessageBatch#generateFromList`
    pub(super) fn batch(messages: &[Message], settings: &SendSettings) -> Result<Self> {
        Self::batch_with(messages, Properties::new(), settings)
    }

    /// [`batch`](Self::batch) of messages that were gathered: it has their tag and all their keys,
    /// for topics that store it as one message.
    ///
    /// # Java
    /// `ProduceAccumulator.MessageAccumulation#batch`
    pub(super) fn gathered(
        messages: &[Message],
        tags: Option<&str>,
        settings: &SendSettings,
    ) -> Result<Self> {
        let keys: BTreeSet<&str> = messages
            .iter()
            .filter_map(Message::keys)
            .flat_map(|keys| keys.split(' '))
            .collect();
        let keys = keys.into_iter().collect::<Vec<_>>().join(" ");
        let mut properties = Properties::new();
        // Keys that do not fit are left out: each message has its own.
        if !keys.is_empty() && keys.len() < MAX_PROPERTIES_LENGTH / 2 {
            properties.insert(property::KEYS.to_owned(), keys);
        }
        if let Some(tags) = tags {
            properties.insert(property::TAGS.to_owned(), tags.to_owned());
        }
        Self::batch_with(messages, properties, settings)
    }

    fn batch_with(
        messages: &[Message],
        mut properties: Properties,
        settings: &SendSettings,
    ) -> Result<Self> {
        let first = check_batch(messages)?;
        let topic = settings.namespace.wrap(first.topic()).into_owned();
        check_topic(first, &topic)?;
        let refused = |reason: String| Error::InvalidMessage {
            topic: first.topic().to_owned(),
            reason,
        };
        let sizes = messages.iter().map(encoded_size);
        let mut batch =
            BatchEncoder::with_capacity(sizes.sum::<usize>().min(settings.max_message_size));
        let mut keys = String::new();
        for message in messages {
            check_content(message, settings.max_message_size)?;
            if !keys.is_empty() {
                keys.push(',');
            }
            let begin = keys.len();
            append_uniq_key_of(message, &mut keys);
            if begin == 0 {
                keys.reserve((keys.len() + 1) * messages.len());
            }
            let key = keys.get(begin..).unwrap_or_default();
            batch
                .push(message, &[(property::UNIQ_KEY, key)])
                .map_err(|error| refused(error.to_string()))?;
        }
        let body = batch.finish();
        let (length, most) = (body.len(), settings.max_message_size);
        if length > most {
            return Err(refused(format!(
                "the batch has {length} bytes, max_message_size is {most}: split it"
            )));
        }
        let wait = first.is_wait_store_msg_ok().to_string();
        properties.insert(property::WAIT_STORE_MSG_OK.to_owned(), wait);
        if let Some(namespace) = settings.namespace.name() {
            properties.insert(property::INSTANCE_ID.to_owned(), namespace.to_owned());
        }
        let mut header = settings.header(topic);
        header.properties = Some(encode_properties(&properties));
        header.batch = Some(true);
        Ok(Self {
            uniq_key: keys,
            header,
            body,
            namespace: settings.namespace.clone(),
        })
    }

    /// The topic as brokers know it.
    pub(crate) fn topic(&self) -> &str {
        &self.header.topic
    }

    /// The message as it goes over the wire, under its plain topic: for hooks.
    pub(super) fn shown(&self) -> Message {
        let properties = self.header.properties.as_deref().unwrap_or_default();
        Message::from_parts(
            &*self.namespace.unwrap(&self.header.topic),
            self.header.flag,
            decode_properties(properties),
            self.body.clone(),
        )
    }

    /// The same message with these properties.
    pub(super) fn with_properties(&self, properties: &Properties) -> Self {
        let mut changed = self.clone();
        changed.header.properties = Some(encode_properties(properties));
        changed
    }

    fn request_to<'a>(&'a self, master: &'a Master, mq: &MessageQueue) -> SendRequest<'a> {
        SendRequest {
            header: &self.header,
            queue_id: mq.queue_id(),
            broker_name: &master.broker_name,
            body: &self.body,
        }
    }

    fn result(
        &self,
        instance: &MQClientInstance,
        mq: &MessageQueue,
        reply: Result<SendReply>,
    ) -> Result<SendResult> {
        let reply = reply.inspect_err(|error| {
            if error.broker_code() == Some(response_code::NOT_LEADER_FOR_QUEUE) {
                // The queue has moved, and the next attempt should know where.
                instance.refresh_routes_soon();
            }
        })?;
        let mq = self.namespace.unwrap_queue(mq);
        Ok(SendResult::new(self.uniq_key.clone(), &mq, reply))
    }
}

/// The master that an attempt goes to.
#[derive(Debug)]
pub(super) struct Master {
    /// The real name of the broker, that of a static topic's queue too.
    broker_name: String,
    addr: Arc<str>,
}

impl Master {
    /// That of a queue, as far as it is known. Does not wait.
    pub(super) fn known(instance: &MQClientInstance, mq: &MessageQueue) -> Option<Self> {
        let broker_name = instance.routes().broker_name(mq);
        let addr = instance
            .brokers()
            .find_broker_address_in_publish(&broker_name)?;
        Some(Self {
            broker_name: broker_name.into_owned(),
            addr,
        })
    }

    pub(super) fn addr(&self) -> &Arc<str> {
        &self.addr
    }

    /// That of a queue; the route of the topic is asked for if it is not known.
    pub(super) fn find(
        instance: &MQClientInstance,
        topic: &str,
        mq: &MessageQueue,
        deadline: Deadline,
    ) -> Result<Self> {
        if let Some(known) = Self::known(instance, mq) {
            return Ok(known);
        }
        let asked = instance.update_topic_route_info(topic, RouteOf::Topic, deadline);
        Self::known(instance, mq).ok_or_else(|| Error::MQClient {
            code: Some(client_error_code::BROKER_NOT_EXIST_EXCEPTION),
            reason: format!(
                "broker {} has no master in the route of {topic}",
                mq.broker_name()
            ),
            source: asked.err().map(Box::new),
        })
    }
}

/// Sends to the master of a queue's broker (Java `DefaultMQProducerImpl#sendKernelImpl`).
pub(crate) fn send_kernel(
    instance: &MQClientInstance,
    message: &Prepared,
    mq: &MessageQueue,
    deadline: Deadline,
) -> Result<SendResult> {
    let master = Master::find(instance, message.topic(), mq, deadline)?;
    send_kernel_to(instance, message, &master, mq, deadline)
}

/// [`send_kernel`] to a master that is known.
pub(super) fn send_kernel_to(
    instance: &MQClientInstance,
    message: &Prepared,
    master: &Master,
    mq: &MessageQueue,
    deadline: Deadline,
) -> Result<SendResult> {
    let request = message.request_to(master, mq);
    let reply = instance
        .api()
        .send_message(&master.addr, &request, deadline);
    message.result(instance, mq, reply)
}

/// [`send_kernel`] without waiting; `callback` runs once, on the thread that finds the outcome, the event
/// loop's perhaps: it must not block.
pub(super) fn send_kernel_async(
    instance: &Arc<MQClientInstance>,
    message: Arc<Prepared>,
    master: &Master,
    attempt: &Attempt,
    callback: impl FnOnce(Result<SendResult>) + Send + 'static,
) {
    let mq = attempt.mq.clone();
    let of = Arc::clone(instance);
    let sent = Arc::clone(&message);
    let completion = move |reply| callback(sent.result(&of, &mq, reply));
    let request = message.request_to(master, &attempt.mq);
    instance
        .api()
        .send_message_async(&master.addr, &request, attempt.deadline, completion);
}

/// [`send_kernel_to`] without an answer.
pub(super) fn send_kernel_oneway(
    instance: &MQClientInstance,
    message: &Prepared,
    master: &Master,
    mq: &MessageQueue,
) -> Result<()> {
    let request = message.request_to(master, mq);
    instance.api().send_message_oneway(&master.addr, &request)
}

/// Whether a message can be sent at all.
pub(super) fn check_sendable(message: &Message, settings: &SendSettings) -> Result<()> {
    let topic = settings.namespace.wrap(message.topic());
    check_message(message, &topic, settings.max_message_size)?;
    check_properties(message)
}

/// The key that the message brings, or a new one.
fn append_uniq_key_of(message: &Message, keys: &mut String) {
    match message.property(property::UNIQ_KEY) {
        Some(key) => keys.push_str(key),
        None => append_uniq_id(keys),
    }
}

/// Java `Validators#checkMessage`, of a message whose topic is called `topic` on the brokers.
fn check_message(message: &Message, topic: &str, max_message_size: usize) -> Result<()> {
    check_topic(message, topic)?;
    check_content(message, max_message_size)
}

fn check_topic(message: &Message, topic: &str) -> Result<()> {
    validators::check_topic(topic)
        .and_then(|()| validators::check_sendable(topic))
        .map_err(|error| Error::InvalidMessage {
            topic: message.topic().to_owned(),
            reason: format!("topic: {error}"),
        })
}

fn check_content(message: &Message, max_message_size: usize) -> Result<()> {
    let refused = |reason: String| Error::InvalidMessage {
        topic: message.topic().to_owned(),
        reason,
    };
    let length = message.body().len();
    if length == 0 {
        return Err(refused("the body is empty".to_owned()));
    }
    if length > max_message_size {
        return Err(refused(format!(
            "the body has {length} bytes, max_message_size is {max_message_size}"
        )));
    }
    let light = message.property(property::INNER_MULTI_DISPATCH);
    if let Some(queues) = light.filter(|queues| queues.contains('/')) {
        return Err(refused(format!(
            "the light queues {queues:?} contain '/', which their names may not"
        )));
    }
    Ok(())
}

/// What would part the properties elsewhere, and so change or lose some of them, is refused. (Java
/// checks what `putUserProperty` is given, and sends tags, keys and all others as they are.)
///
/// A message that comes back from a listener is not asked: its properties were read, and go as they
/// came.
pub(super) fn check_properties(message: &Message) -> Result<()> {
    const SEPARATORS: [char; 2] = ['\u{1}', '\u{2}'];
    if message.has_plain_properties() {
        return Ok(());
    }
    let wrong = message.properties().iter().find_map(|(name, value)| {
        if name.is_empty() {
            Some(format!("a property without a name has the value {value:?}"))
        } else if name.contains(SEPARATORS) || value.contains(SEPARATORS) {
            Some(format!(
                "the property {name:?} = {value:?} contains U+0001 or U+0002, which separate \
                 properties"
            ))
        } else {
            None
        }
    });
    match wrong {
        None => Ok(()),
        Some(reason) => Err(Error::InvalidMessage {
            topic: message.topic().to_owned(),
            reason,
        }),
    }
}

fn compress(body: &Bytes, settings: &SendSettings) -> (Bytes, i32) {
    if body.len() >= settings.compress_msg_body_over_howmuch {
        let kind = settings.compress_type;
        match kind.compress(body, settings.compress_level) {
            Ok(compressed) => return (compressed, sys_flag::COMPRESSED | kind.flag()),
            Err(error) => log::warn!("sent uncompressed: {error}"),
        }
    }
    (body.clone(), 0)
}
