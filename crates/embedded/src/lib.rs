//! An Apache RocketMQ name server and brokers inside one process.
