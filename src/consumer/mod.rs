//! Consuming messages.

#[cfg(not(loom))]
mod consume_message_concurrently_service;
#[cfg(not(loom))]
mod default_mq_push_consumer;
#[cfg(not(loom))]
mod default_mq_push_consumer_impl;
#[cfg(not(loom))]
mod listener;
mod offset_store;
mod process_queue;
#[cfg(not(loom))]
mod pull_api_wrapper;
#[cfg(not(loom))]
mod pull_request;
#[cfg(not(loom))]
mod rebalance_push_impl;

#[cfg(not(loom))]
pub use default_mq_push_consumer::{DefaultMQPushConsumer, DefaultMQPushConsumerBuilder};
#[cfg(not(loom))]
pub use listener::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, MessageListenerConcurrently,
    MessageQueueListener,
};
