//! Sending messages.

mod default_mq_producer;
mod default_mq_producer_impl;
mod message_admin;
mod message_client_id_setter;
mod request_reply;
pub(crate) mod send_kernel;
mod send_result;
mod transaction_checks;
mod transaction_listener;
mod transaction_mq_producer;

pub use default_mq_producer::{DefaultMQProducer, DefaultMQProducerBuilder};
pub use request_reply::create_reply_message;
pub use send_result::{SendResult, SendStatus};
pub use transaction_listener::{LocalTransactionState, TransactionListener};
pub use transaction_mq_producer::{
    TransactionMQProducer, TransactionMQProducerBuilder, TransactionSendResult,
};
