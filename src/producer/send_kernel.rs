//! One attempt to send one message to one queue.

use bytes::Bytes;
use rocketmq_protocol::compression::CompressionType;
use rocketmq_protocol::header::SendMessageRequestHeader;
use rocketmq_protocol::mix_all::RETRY_GROUP_TOPIC_PREFIX;
use rocketmq_protocol::{
    Message, MessageQueue, Properties, encode_properties, property, response_code, sys_flag,
    validators,
};

use super::message_client_id_setter::create_uniq_id;
use super::send_result::SendResult;
use crate::client::{MQClientInstance, RouteOf};
use crate::client_config::Namespace;
use crate::error::{Error, Result, client_error_code};
use crate::sync::{Deadline, system_time_millis};

/// The longest encoded properties, in bytes: their length field has two.
const MAX_PROPERTIES_LENGTH: usize = i16::MAX as usize;
const COMPRESS_LEVEL: u32 = 5;

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
    pub(crate) max_message_size: usize,
}

/// A message made ready once for all attempts: they have one unique key and one body.
#[derive(Debug)]
pub(crate) struct Prepared {
    topic: String,
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
        let mut properties: Properties = message.properties().clone();
        if let Some(namespace) = settings.namespace.name() {
            properties.insert(property::INSTANCE_ID.to_owned(), namespace.to_owned());
        }
        let uniq_key = properties
            .entry(property::UNIQ_KEY.to_owned())
            .or_insert_with(create_uniq_id)
            .clone();
        let mut reconsume_times = None;
        let mut max_reconsume_times = None;
        if topic.starts_with(RETRY_GROUP_TOPIC_PREFIX) {
            let mut number =
                |name: &str| properties.remove(name).and_then(|text| text.parse().ok());
            reconsume_times = number(property::RECONSUME_TIME);
            max_reconsume_times = number(property::MAX_RECONSUME_TIMES);
        }
        let half = properties.get(property::TRANSACTION_PREPARED);
        let half = half.is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let properties = encode_properties(&properties);
        if properties.len() > MAX_PROPERTIES_LENGTH {
            return Err(Error::InvalidMessage {
                topic: message.topic().to_owned(),
                reason: format!(
                    "the properties have {} bytes, the most is {MAX_PROPERTIES_LENGTH}",
                    properties.len()
                ),
            });
        }
        let (body, mut sys_flag) =
            compress(message.body(), settings.compress_msg_body_over_howmuch);
        if half {
            sys_flag |= sys_flag::TRANSACTION_PREPARED;
        }
        let header = SendMessageRequestHeader {
            producer_group: settings.producer_group.clone(),
            topic: topic.clone(),
            default_topic: settings.create_topic_key.clone(),
            default_topic_queue_nums: settings.default_topic_queue_nums,
            sys_flag,
            born_timestamp: system_time_millis(),
            flag: message.flag(),
            properties: Some(properties),
            reconsume_times: Some(reconsume_times.unwrap_or(0)),
            unit_mode: Some(settings.unit_mode),
            max_reconsume_times,
            batch: Some(false),
            ..SendMessageRequestHeader::default()
        };
        Ok(Self {
            topic,
            uniq_key,
            header,
            body,
            namespace: settings.namespace.clone(),
        })
    }

    /// The topic as brokers know it.
    pub(crate) fn topic(&self) -> &str {
        &self.topic
    }
}

/// Sends to the master of a queue's broker (Java `DefaultMQProducerImpl#sendKernelImpl`).
pub(crate) fn send_kernel(
    instance: &MQClientInstance,
    message: &Prepared,
    mq: &MessageQueue,
    deadline: Deadline,
) -> Result<SendResult> {
    let find = || {
        let broker = instance.routes().broker_name(mq);
        let addr = instance.brokers().find_broker_address_in_publish(&broker)?;
        Some((broker.into_owned(), addr))
    };
    let (broker, addr) = match find() {
        Some(found) => found,
        None => {
            let asked = instance.update_topic_route_info(&message.topic, RouteOf::Topic, deadline);
            find().ok_or_else(|| Error::MQClient {
                code: Some(client_error_code::BROKER_NOT_EXIST_EXCEPTION),
                reason: format!(
                    "broker {} has no master in the route of {}",
                    mq.broker_name(),
                    message.topic
                ),
                source: asked.err().map(Box::new),
            })?
        }
    };
    let header = SendMessageRequestHeader {
        queue_id: mq.queue_id(),
        broker_name: Some(broker),
        ..message.header.clone()
    };
    let reply = instance
        .api()
        .send_message(&addr, header, message.body.clone(), deadline)
        .inspect_err(|error| {
            if error.broker_code() == Some(response_code::NOT_LEADER_FOR_QUEUE) {
                // The queue has moved, and the next attempt should know where.
                instance.refresh_routes_soon();
            }
        })?;
    let mq = message.namespace.unwrap_queue(mq);
    Ok(SendResult::new(message.uniq_key.clone(), &mq, reply))
}

/// Java `Validators#checkMessage`, of a message whose topic is called `topic` on the brokers.
fn check_message(message: &Message, topic: &str, max_message_size: usize) -> Result<()> {
    let refused = |reason: String| Error::InvalidMessage {
        topic: message.topic().to_owned(),
        reason,
    };
    validators::check_topic(topic)
        .and_then(|()| validators::check_sendable(topic))
        .map_err(|error| refused(format!("topic: {error}")))?;
    let length = message.body().len();
    if length == 0 {
        return Err(refused("the body is empty".to_owned()));
    }
    if length > max_message_size {
        return Err(refused(format!(
            "the body has {length} bytes, max_message_size is {max_message_size}"
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

fn compress(body: &Bytes, over: usize) -> (Bytes, i32) {
    if body.len() >= over {
        let kind = CompressionType::default();
        match kind.compress(body, COMPRESS_LEVEL) {
            Ok(compressed) => return (compressed, sys_flag::COMPRESSED | kind.flag()),
            Err(error) => log::warn!("sent uncompressed: {error}"),
        }
    }
    (body.clone(), 0)
}
