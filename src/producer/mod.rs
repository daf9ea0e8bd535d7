//! Sending messages.

mod async_send;
mod attempts;
mod back_pressure;
mod default_mq_producer;
mod default_mq_producer_builder;
mod default_mq_producer_impl;
mod message_batch;
mod message_client_id_setter;
mod message_queue_selector;
mod produce_accumulator;
mod send_failure;
mod send_forms;
pub(crate) mod send_kernel;
mod send_outcome;
mod send_result;

pub use default_mq_producer::DefaultMQProducer;
pub use default_mq_producer_builder::DefaultMQProducerBuilder;
pub use message_batch::split_batch;
pub use message_queue_selector::{
    HashCode, MessageQueueSelector, SelectMessageQueueByHash, SelectMessageQueueByMachineRoom,
    SelectMessageQueueByRandom,
};
pub use send_failure::SendFailure;
pub use send_result::{SendResult, SendStatus};
