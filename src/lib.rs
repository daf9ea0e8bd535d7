//! A synchronous, thread-based Apache RocketMQ client.

pub mod service;
mod sync;
