//! A synchronous, thread-based Apache RocketMQ client without any async runtime.
//!
//! It mirrors the Java client's design and names. A [`DefaultMQProducer`] sends from any thread; a
//! [`DefaultMQPushConsumer`] calls a listener, and shares the queues of its topics with the other
//! members of its group, Java members among them. See the two types for examples that run.
//!
//! The page of [`DefaultMQPushConsumer`] has a whole program that runs without anything installed, on
//! the brokers of the crate `rocketmq-embedded`.
//!
//! # Threads
//! All threads of the library have names (`RebalanceService`, `ConsumeMessageThread_<group>_<n>`, …) and
//! are joined at shutdown; [`service::ThreadOptions`] sets their stack size and a hook that runs first
//! on each. A panic in a listener or hook is caught, logged, and stalls nothing else; with
//! `panic = "abort"` it ends the process, like any panic. No signal handler is installed, and no write
//! raises SIGPIPE, so a host that leaves that signal at its default lives. After a `fork` only the
//! forking thread exists in the child: a client made before is of no use there, make one anew.
//!
//! # Systems
//! Linux is where the suites run. For macOS (aarch64) and Windows (x86_64, GNU) each check compiles the library
//! and the embedded broker, and no test has run there: times of thread wake-up, SIGPIPE and what
//! happens when a network goes away have been looked at on Linux only. The scripts that start a real
//! cluster and the conversations with the Java client need Linux.
//!
//! # Logging
//! Through the crate `log`. A consumer starts although servers are down and tries again: what it cannot
//! reach is in the log only.
//!
//! Every wait has a deadline, threads are named and joined at shutdown, and an [`Error`] says what
//! failed, where, and whether trying again helps.
#![cfg_attr(
    loom,
    allow(
        dead_code,
        unused_imports,
        reason = "models see only parts of the crate"
    )
)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(not(loom))]
mod client;
#[cfg(not(loom))]
mod client_config;
mod consumer;
mod error;
#[cfg(not(loom))]
#[doc(hidden)]
pub mod internals;
#[cfg(not(loom))]
mod latency;
#[cfg(not(loom))]
mod producer;
#[cfg(all(test, not(loom)))]
mod random;
#[cfg(not(loom))]
pub mod rebalance;
mod remoting;
pub mod service;
mod sync;
#[cfg(not(loom))]
mod trace;

#[cfg(not(loom))]
pub use client::{MQClientManager, QueryResult, ShutdownReport};
#[cfg(not(loom))]
pub use consumer::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeMessageContext,
    ConsumeMessageHook, ConsumeReturnType, DefaultMQPushConsumer, DefaultMQPushConsumerBuilder,
    FilterMessageContext, FilterMessageHook, MessageListenerConcurrently, MessageQueueListener,
};
pub use error::{Error, Result, client_error_code};
#[cfg(not(loom))]
pub use latency::FaultItem;
#[cfg(not(loom))]
pub use producer::{
    CheckForbiddenContext, CheckForbiddenHook, CommunicationMode, DefaultMQProducer,
    DefaultMQProducerBuilder, EndTransactionContext, EndTransactionHook, HashCode,
    LocalTransactionState, MessageQueueSelector, MessageType, SelectMessageQueueByHash,
    SelectMessageQueueByMachineRoom, SelectMessageQueueByRandom, SendFailure, SendMessageContext,
    SendMessageHook, SendResult, SendStatus, TransactionListener, TransactionMQProducer,
    TransactionMQProducerBuilder, TransactionSendResult, create_reply_message, split_batch,
};
#[cfg(not(loom))]
pub use remoting::AclClientRPCHook;
#[cfg(not(loom))]
pub use remoting::rpc_hook::RPCHook;
pub use rocketmq_protocol::acl::SessionCredentials;
pub use rocketmq_protocol::body::ConsumeFromWhere;
pub use rocketmq_protocol::compression::CompressionType;
pub use rocketmq_protocol::{
    CodecError, ExpressionType, ExtFields, LanguageCode, Message, MessageExt, MessageQueue,
    Properties, RemotingCommand, SerializeType, SubscriptionData, property, request_code,
    response_code,
};
#[cfg(not(loom))]
pub use trace::AccessChannel;
