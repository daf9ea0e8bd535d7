//! A synchronous, thread-based Apache RocketMQ client.
