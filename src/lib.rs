//! A synchronous, thread-based Apache RocketMQ client.

#[cfg(not(loom))]
mod client;
mod consumer;
#[cfg(all(test, not(loom)))]
mod random;
#[cfg(not(loom))]
pub mod rebalance;
pub mod service;
mod sync;
