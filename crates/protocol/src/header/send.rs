use super::{CommandCustomHeader, HeaderField, bool_text, header};
use crate::ext_fields::FieldNames;
use crate::{CodecError, ExtFields};

/// SEND_MESSAGE (10); the same fields under one-letter names are SEND_MESSAGE_V2 (310).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SendMessageRequestHeader {
    /// The sending group.
    pub producer_group: String,
    /// The topic.
    pub topic: String,
    /// The topic whose settings a new topic takes, Java `createTopicKey`, usually TBW102.
    pub default_topic: String,
    /// How many queues a new topic gets.
    pub default_topic_queue_nums: i32,
    /// The queue; a negative one lets the broker choose.
    pub queue_id: i32,
    /// See [`crate::sys_flag`], message flags.
    pub sys_flag: i32,
    /// When the message was made, in milliseconds since 1970.
    pub born_timestamp: i64,
    /// The user's flag.
    pub flag: i32,
    /// The encoded properties.
    pub properties: Option<String>,
    /// How often the message was consumed in vain, for a retry topic.
    pub reconsume_times: Option<i32>,
    /// Whether the client runs in unit mode.
    pub unit_mode: Option<bool>,
    /// How often a message of a retry topic is tried.
    pub max_reconsume_times: Option<i32>,
    /// Whether the body is a batch.
    pub batch: Option<bool>,
    /// The broker that the client believes it is talking to.
    pub broker_name: Option<String>,
}

/// [`SendMessageRequestHeader`] under the short names of SEND_MESSAGE_V2 (310).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SendMessageRequestHeaderV2(pub SendMessageRequestHeader);

type Names = FieldNames<14>;

static LONG: Names = FieldNames::new(
    "producerGroup topic defaultTopic defaultTopicQueueNums queueId sysFlag bornTimestamp flag \
     properties reconsumeTimes unitMode maxReconsumeTimes batch bname",
);
static SHORT: Names = FieldNames::new("a b c d e f g h i j k l m n");

impl SendMessageRequestHeader {
    /// Adds the fields under their short names, but for another queue and broker: what the attempts
    /// to send one message differ in.
    pub fn encode_v2_for(&self, queue_id: i32, broker_name: &str, fields: &mut ExtFields) {
        self.encode_as(&SHORT, queue_id, Some(broker_name), fields);
    }

    fn encode_as(
        &self,
        names: &Names,
        queue_id: i32,
        broker_name: Option<&str>,
        fields: &mut ExtFields,
    ) {
        let mut buffers = [itoa::Buffer::new(); 7];
        let [queue_nums, queue, sys_flag, born, flag, reconsumed, most] = &mut buffers;
        fields.set_all(
            names,
            &[
                Some(&self.producer_group),
                Some(&self.topic),
                Some(&self.default_topic),
                Some(queue_nums.format(self.default_topic_queue_nums)),
                Some(queue.format(queue_id)),
                Some(sys_flag.format(self.sys_flag)),
                Some(born.format(self.born_timestamp)),
                Some(flag.format(self.flag)),
                self.properties.as_deref(),
                self.reconsume_times.map(|times| reconsumed.format(times)),
                self.unit_mode.map(bool_text),
                self.max_reconsume_times.map(|times| most.format(times)),
                self.batch.map(bool_text),
                broker_name,
            ],
        );
    }

    fn decode_as(
        header: &'static str,
        names: &Names,
        fields: &ExtFields,
    ) -> Result<Self, CodecError> {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = names.all();
        Ok(Self {
            producer_group: HeaderField::decode(header, a, fields)?,
            topic: HeaderField::decode(header, b, fields)?,
            default_topic: HeaderField::decode(header, c, fields)?,
            default_topic_queue_nums: HeaderField::decode(header, d, fields)?,
            queue_id: HeaderField::decode(header, e, fields)?,
            sys_flag: HeaderField::decode(header, f, fields)?,
            born_timestamp: HeaderField::decode(header, g, fields)?,
            flag: HeaderField::decode(header, h, fields)?,
            properties: HeaderField::decode(header, i, fields)?,
            reconsume_times: HeaderField::decode(header, j, fields)?,
            unit_mode: HeaderField::decode(header, k, fields)?,
            max_reconsume_times: HeaderField::decode(header, l, fields)?,
            batch: HeaderField::decode(header, m, fields)?,
            broker_name: HeaderField::decode(header, n, fields)?,
        })
    }
}

impl CommandCustomHeader for SendMessageRequestHeader {
    const NAME: &'static str = "SendMessageRequestHeader";

    fn encode(&self, fields: &mut ExtFields) {
        self.encode_as(&LONG, self.queue_id, self.broker_name.as_deref(), fields);
    }

    fn decode(fields: &ExtFields) -> Result<Self, CodecError> {
        Self::decode_as(Self::NAME, &LONG, fields)
    }
}

impl CommandCustomHeader for SendMessageRequestHeaderV2 {
    const NAME: &'static str = "SendMessageRequestHeaderV2";

    fn encode(&self, fields: &mut ExtFields) {
        let Self(header) = self;
        header.encode_as(
            &SHORT,
            header.queue_id,
            header.broker_name.as_deref(),
            fields,
        );
    }

    fn decode(fields: &ExtFields) -> Result<Self, CodecError> {
        SendMessageRequestHeader::decode_as(Self::NAME, &SHORT, fields).map(Self)
    }
}

header! {
    /// The answer to a send, on the codes 0, 10, 11 and 12.
    pub struct SendMessageResponseHeader {
        /// The offset message id.
        msg_id: String => "msgId",
        /// The queue the message went to.
        queue_id: i32 => "queueId",
        /// Its offset there.
        queue_offset: i64 => "queueOffset",
        /// The transaction's id, equal to the unique key.
        transaction_id: Option<String> => "transactionId",
        /// The unique key of a batch.
        batch_uniq_id: Option<String> => "batchUniqId",
        /// What a timer message can be recalled with.
        recall_handle: Option<String> => "recallHandle",
    }

    /// CONSUMER_SEND_MSG_BACK (36): a consumer gives a message back for a later try.
    pub struct ConsumerSendMsgBackRequestHeader {
        /// The message's commit-log offset.
        offset: i64 => "offset",
        /// The consuming group.
        group: String => "group",
        /// 0 lets the broker choose the delay, a negative value means the dead-letter queue.
        delay_level: i32 => "delayLevel",
        /// The message's id.
        origin_msg_id: Option<String> => "originMsgId",
        /// The message's topic.
        origin_topic: Option<String> => "originTopic",
        /// Whether the client runs in unit mode.
        unit_mode: Option<bool> => "unitMode",
        /// How often a message is tried before it goes to the dead-letter queue.
        max_reconsume_times: Option<i32> => "maxReconsumeTimes",
        /// The broker that the client believes it is talking to.
        broker_name: Option<String> => "bname",
    }
}
