//! Sans-IO codec of the Apache RocketMQ remoting protocol.
//!
//! *In scope*: bytes to values and back. Frames, remoting commands in both header forms, the
//! custom headers and JSON bodies of the requests that clients and brokers exchange, the stored
//! message format and batches, properties, message ids, receipts, tag subscriptions, signatures, and the
//! name rules both sides check.
//!
//! *Out of scope*: sockets, threads, locks, clocks, logging. A caller brings the bytes and the time.
//! The client and the embedded broker both build on this crate without knowing each other.
//!
//! Everything decoded here may come from a hostile or broken peer: lengths are checked against the
//! bytes that are really there before anything is allocated, arithmetic is checked, and a bad input
//! is a [`CodecError`], never a panic.
#![cfg_attr(
    not(test),
    warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)
)]

pub mod acl;
mod base64_text;
mod batch;
pub mod body;
mod codes;
pub mod compression;
mod error;
mod ext_fields;
mod filter;
mod frame;
pub mod header;
mod header_json;
mod header_rocketmq;
pub mod json;
mod language_code;
mod message;
mod message_codec;
mod message_id;
mod message_properties;
mod message_queue;
mod message_settings;
pub mod mix_all;
pub mod pop;
mod properties;
mod recall_handle;
mod remoting_command;
pub mod request_code;
pub mod response_code;
pub mod sys_flag;
mod utf16_order;
pub mod validators;

pub use batch::{BatchElement, BatchElements, BatchEncoder, encode_batch};
pub use error::CodecError;
pub use ext_fields::ExtFields;
pub use filter::{ExpressionType, SubscriptionData, java_string_hash};
pub use frame::{FrameDecoder, MAX_FRAME_LENGTH};
pub use language_code::LanguageCode;
pub use message::{Message, MessageExt, property};
pub use message_codec::{StoredMessage, StoredMessages};
pub use message_id::{OffsetMessageId, UniqKeyParts};
pub use message_queue::MessageQueue;
pub use properties::{Properties, decode_properties, encode_properties};
pub use recall_handle::RecallHandle;
pub use remoting_command::{RemotingCommand, SerializeType, VERSION_5_5_0};
pub use utf16_order::{compare_utf16, sort_utf16};
