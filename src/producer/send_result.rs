use rocketmq_protocol::{MessageQueue, response_code};

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
}
