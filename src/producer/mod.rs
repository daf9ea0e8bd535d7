//! Sending messages.

mod async_send;
mod attempts;
mod back_pressure;
mod back_pressure_settings;
mod broker_probe;
mod check_forbidden_hook;
mod default_mq_producer;
mod default_mq_producer_builder;
mod default_mq_producer_impl;
mod end_transaction_hook;
mod gathered_send;
mod hooked_send;
mod in_flight;
mod message_admin;
mod message_batch;
pub(crate) mod message_client_id_setter;
mod message_queue_selector;
mod produce_accumulator;
mod producer_config;
mod producer_hooks;
mod request_reply;
mod send_failure;
mod send_forms;
pub(crate) mod send_kernel;
mod send_message_hook;
mod send_outcome;
mod send_result;
mod trace_hooks;
pub(crate) mod trace_producer;
mod transaction_checks;
mod transaction_listener;
mod transaction_mq_producer;

pub use check_forbidden_hook::{CheckForbiddenContext, CheckForbiddenHook};
pub use default_mq_producer::DefaultMQProducer;
pub use default_mq_producer_builder::DefaultMQProducerBuilder;
pub use end_transaction_hook::{EndTransactionContext, EndTransactionHook};
pub use message_batch::split_batch;
pub use message_queue_selector::{
    HashCode, MessageQueueSelector, SelectMessageQueueByHash, SelectMessageQueueByMachineRoom,
    SelectMessageQueueByRandom,
};
pub use request_reply::create_reply_message;
pub use send_failure::SendFailure;
pub use send_message_hook::{CommunicationMode, MessageType, SendMessageContext, SendMessageHook};
pub use send_result::{SendResult, SendStatus};
pub use transaction_listener::{LocalTransactionState, TransactionListener};
pub use transaction_mq_producer::{
    TransactionMQProducer, TransactionMQProducerBuilder, TransactionSendResult,
};
