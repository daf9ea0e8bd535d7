//! Sending messages.

mod default_mq_producer;
mod default_mq_producer_impl;
mod message_client_id_setter;
pub(crate) mod send_kernel;
mod send_result;

pub use default_mq_producer::{DefaultMQProducer, DefaultMQProducerBuilder};
pub use send_result::{SendResult, SendStatus};
