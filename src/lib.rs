//! A synchronous, thread-based Apache RocketMQ client.

#[cfg(test)]
mod random;
#[cfg(not(loom))]
pub mod rebalance;
pub mod service;
mod sync;
