//! Consuming messages.

#[cfg(not(loom))]
mod admin_requests;
#[cfg(not(loom))]
mod consume_message_concurrently_service;
#[cfg(not(loom))]
mod consume_message_hook;
#[cfg(not(loom))]
mod consume_message_trace_hook;
#[cfg(not(loom))]
mod consume_requests;
#[cfg(not(loom))]
mod consumer_hooks;
#[cfg(not(loom))]
mod default_mq_push_consumer;
#[cfg(not(loom))]
mod default_mq_push_consumer_builder;
#[cfg(not(loom))]
mod default_mq_push_consumer_impl;
#[cfg(not(loom))]
mod expired_messages;
#[cfg(not(loom))]
mod filter_message_hook;
#[cfg(not(loom))]
mod hand_over;
#[cfg(not(loom))]
mod held_pulls;
mod in_work;
#[cfg(not(loom))]
mod listener;
mod offset_store;
mod process_queue;
#[cfg(not(loom))]
mod pull_api_wrapper;
#[cfg(not(loom))]
mod pull_loop;
#[cfg(not(loom))]
mod pull_request;
#[cfg(not(loom))]
mod push_consumer_config;
#[cfg(not(loom))]
mod queue_change_caller;
#[cfg(not(loom))]
mod rebalance_push_impl;
#[cfg(not(loom))]
mod retained_bytes;
#[cfg(not(loom))]
mod run_time_subscription;
#[cfg(not(loom))]
mod send_back;
#[cfg(not(loom))]
mod start_offset;
#[cfg(not(loom))]
mod subscription_table;
#[cfg(not(loom))]
mod unreachable_brokers;

#[cfg(not(loom))]
pub(crate) use process_queue::ProcessQueue;

#[cfg(not(loom))]
pub use consume_message_hook::{ConsumeMessageContext, ConsumeMessageHook, ConsumeReturnType};
#[cfg(not(loom))]
pub use default_mq_push_consumer::DefaultMQPushConsumer;
#[cfg(not(loom))]
pub use default_mq_push_consumer_builder::DefaultMQPushConsumerBuilder;
#[cfg(not(loom))]
pub use filter_message_hook::{FilterMessageContext, FilterMessageHook};
#[cfg(not(loom))]
pub use listener::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, MessageListenerConcurrently,
    MessageQueueListener,
};
