use rocketmq_protocol::body::{JsonBody, SendResultText};
use rocketmq_protocol::{CodecError, MessageQueue, response_code};

use crate::client::SendReply;

/// How safely a broker has stored a message (Java `SendStatus`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SendStatus {
    /// As safely as the broker is configured to.
    SendOk,
    /// Stored, but not on disk in time.
    FlushDiskTimeout,
    /// Stored, but not on a replica in time.
    FlushSlaveTimeout,
    /// Stored, but no replica is there.
    SlaveNotAvailable,
}

impl SendStatus {
    const ALL: [Self; 4] = [
        Self::SendOk,
        Self::FlushDiskTimeout,
        Self::FlushSlaveTimeout,
        Self::SlaveNotAvailable,
    ];

    /// Java's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SendOk => "SEND_OK",
            Self::FlushDiskTimeout => "FLUSH_DISK_TIMEOUT",
            Self::FlushSlaveTimeout => "FLUSH_SLAVE_TIMEOUT",
            Self::SlaveNotAvailable => "SLAVE_NOT_AVAILABLE",
        }
    }
}

/// What became of a message that was sent (Java `SendResult`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendResult {
    /// How safely it is stored.
    pub send_status: SendStatus,
    /// The message's unique key, made by the producer: what a consumer sees as its id.
    pub msg_id: String,
    /// The id that tells broker address and commit-log offset.
    pub offset_msg_id: String,
    /// The queue it went to.
    pub message_queue: MessageQueue,
    /// Its offset there.
    pub queue_offset: i64,
    /// The id of the transaction that a half message is part of: its unique key.
    pub transaction_id: Option<String>,
    /// What a message with a time of its own can be taken back with, see
    /// [`recall_message`](crate::DefaultMQProducer::recall_message).
    pub recall_handle: Option<String>,
    /// The broker's region; `DefaultRegion` when it names none.
    pub region_id: String,
    /// Whether the broker wants traces.
    pub trace_on: bool,
}

/// Of a broker that names no region (Java `MixAll.DEFAULT_TRACE_REGION_ID`).
pub(super) const DEFAULT_REGION: &str = "DefaultRegion";

impl SendResult {
    pub(super) fn new(msg_id: String, mq: &MessageQueue, reply: SendReply) -> Self {
        let send_status = match reply.code {
            response_code::FLUSH_DISK_TIMEOUT => SendStatus::FlushDiskTimeout,
            response_code::FLUSH_SLAVE_TIMEOUT => SendStatus::FlushSlaveTimeout,
            response_code::SLAVE_NOT_AVAILABLE => SendStatus::SlaveNotAvailable,
            _ => SendStatus::SendOk,
        };
        let queue_id = reply.header.queue_id;
        let message_queue = if queue_id == mq.queue_id() {
            mq.clone()
        } else {
            MessageQueue::new(mq.topic(), mq.broker_name(), queue_id)
        };
        Self {
            send_status,
            msg_id,
            offset_msg_id: reply.header.msg_id,
            message_queue,
            queue_offset: reply.header.queue_offset,
            transaction_id: reply.header.transaction_id,
            recall_handle: reply.header.recall_handle,
            region_id: reply.region_id.unwrap_or_else(|| DEFAULT_REGION.to_owned()),
            trace_on: reply.trace_on,
        }
    }

    /// The result as JSON text, as Java programs write and read it.
    ///
    /// # Errors
    /// None that can come: a result has a form in JSON.
    ///
    /// # Java
    /// `SendResult#encoderSendResultToJson`
    pub fn to_json(&self) -> Result<String, CodecError> {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let text = SendResultText {
            message_queue: self.message_queue.clone(),
            msg_id: self.msg_id.clone(),
            offset_msg_id: some(&self.offset_msg_id),
            queue_offset: self.queue_offset,
            recall_handle: self.recall_handle.clone(),
            region_id: some(&self.region_id),
            send_status: self.send_status.name().to_owned(),
            trace_on: self.trace_on,
            transaction_id: self.transaction_id.clone(),
        };
        let text = text.to_json()?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Reads JSON text, of this library or of a Java program.
    ///
    /// # Errors
    /// [`CodecError::BadJson`] for other text: status, message id and queue are needed.
    ///
    /// # Java
    /// `SendResult#decoderSendResultFromJson`
    pub fn from_json(text: &str) -> Result<Self, CodecError> {
        let text = SendResultText::from_json(text.as_bytes())?;
        let status = SendStatus::ALL.into_iter();
        let mut status = status.filter(|status| status.name() == text.send_status);
        let send_status = status.next().ok_or_else(|| CodecError::BadJson {
            what: SendResultText::NAME,
            detail: format!("{:?} is no sendStatus", text.send_status),
        })?;
        Ok(Self {
            send_status,
            msg_id: text.msg_id,
            offset_msg_id: text.offset_msg_id.unwrap_or_default(),
            message_queue: text.message_queue,
            queue_offset: text.queue_offset,
            transaction_id: text.transaction_id,
            recall_handle: text.recall_handle,
            region_id: text.region_id.unwrap_or_else(|| DEFAULT_REGION.to_owned()),
            trace_on: text.trace_on,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Java 5.5.0 writes.
    const JAVA: &str = r#"{"messageQueue":{"brokerName":"broker-a","queueId":3,"topic":"T"},"msgId":"id1","offsetMsgId":"off1","queueOffset":42,"recallHandle":"h","regionId":"R","sendStatus":"FLUSH_SLAVE_TIMEOUT","traceOn":false,"transactionId":"tx"}"#;
    const JAVA_WITHOUT: &str = r#"{"messageQueue":{"brokerName":"broker-a","queueId":3,"topic":"T"},"msgId":"id1","offsetMsgId":"off1","queueOffset":42,"sendStatus":"FLUSH_SLAVE_TIMEOUT","traceOn":true}"#;

    #[test]
    fn results_are_written_and_read_as_java_does() {
        let full = SendResult::from_json(JAVA).unwrap();
        let expected = SendResult {
            send_status: SendStatus::FlushSlaveTimeout,
            msg_id: "id1".to_owned(),
            offset_msg_id: "off1".to_owned(),
            message_queue: MessageQueue::new("T", "broker-a", 3),
            queue_offset: 42,
            transaction_id: Some("tx".to_owned()),
            recall_handle: Some("h".to_owned()),
            region_id: "R".to_owned(),
            trace_on: false,
        };
        assert_eq!(full, expected);
        assert_eq!(full.to_json().unwrap(), JAVA);

        let short = SendResult::from_json(JAVA_WITHOUT).unwrap();
        let expected = SendResult {
            transaction_id: None,
            recall_handle: None,
            region_id: "DefaultRegion".to_owned(),
            trace_on: true,
            ..expected
        };
        assert_eq!(short, expected);
        for status in SendStatus::ALL {
            let result = SendResult {
                send_status: status,
                ..short.clone()
            };
            let text = result.to_json().unwrap();
            assert!(text.contains(status.name()), "{text}");
            assert_eq!(SendResult::from_json(&text).unwrap(), result);
        }
    }

    #[test]
    fn other_text_is_no_result() {
        let other = JAVA.replace("FLUSH_SLAVE_TIMEOUT", "MAYBE");
        for text in ["", "{}", r#"{"msgId":"x"}"#, &other] {
            SendResult::from_json(text).unwrap_err();
        }
    }
}
