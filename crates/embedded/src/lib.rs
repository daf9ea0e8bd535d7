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
mod broker_config;
mod cluster;
mod cluster_builder;
mod cluster_content;
mod cluster_watch;
mod connection;
mod consumer_manager;
mod control;
mod handler;
mod long_polling;
mod member_views;
mod name_server;
mod node;
mod notes;
mod offset_table;
mod producer_manager;
mod rebalance_lock_manager;
mod registry;
mod reply;
mod request_log;
mod schedule;
mod server;
mod store;
mod subscription_group_manager;
mod timer;
mod topic_config;

pub use broker_config::{BrokerConfig, NamesrvConfig};
pub use cluster::Cluster;
pub use cluster_builder::ClusterBuilder;
pub use cluster_watch::ConnectionInfo;
pub use control::{AnswerEdit, ControlAction, ControlHandle, ControlScope, ControlTimes};
pub use member_views::MemberListQuery;
pub use request_log::ReceivedRequest;
pub use rocketmq_protocol::body::{SubscriptionGroupConfig, TopicConfig};
pub use rocketmq_protocol::{Message, MessageExt, MessageQueue, RemotingCommand};
