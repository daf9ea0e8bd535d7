//! An Apache RocketMQ name server and brokers inside one process, on real loopback sockets.
//!
//! *What it is*: a [`Cluster`] that any RocketMQ remoting client can talk to, for tests, examples
//! and for trying things with nothing installed. Messages, offsets and group members live in memory
//! and are gone with the cluster; requests, answers, their codes and the order of a broker's checks
//! are those of Apache RocketMQ 5.5.0, except where an item says otherwise.
//!
//! *What it is not*: a broker for production. There is no disk, no replica, no authentication, and
//! requests outside the families that clients need for sending, pulling, groups and topics are
//! answered with code 3.
//!
//! ```
//! # fn main() -> std::io::Result<()> {
//! use rocketmq_embedded::Cluster;
//!
//! let cluster = Cluster::builder().brokers(2).start()?;
//! cluster.create_topic("Orders", 4)?;
//! println!("point a client at {}", cluster.namesrv_addr());
//! cluster.shutdown();
//! # Ok(())
//! # }
//! ```
//!
//! Faults are scripted with [`Cluster::control`]; every request of every client passes there.

mod broker;
mod cluster;
mod cluster_builder;
mod connection;
mod consumer_manager;
mod control;
mod handler;
mod long_polling;
mod name_server;
mod notes;
mod offset_table;
mod schedule;
mod server;
mod store;
mod timer;
mod topic_config;

pub use cluster::Cluster;
pub use cluster_builder::ClusterBuilder;
pub use control::{ControlAction, ControlHandle, ControlScope, ControlTimes};
pub use rocketmq_protocol::{MessageExt, MessageQueue};
