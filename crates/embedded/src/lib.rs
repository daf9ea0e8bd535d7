//! An Apache RocketMQ name server and brokers inside one process, on real loopback sockets: a test
//! kit for programs that use RocketMQ, and for clients of it.
//!
//! A [`Cluster`] takes any RocketMQ remoting client, in any language. Messages, offsets and group
//! members live in memory and are gone with it; requests, answers, their codes and the order of a
//! broker's checks are those of Apache RocketMQ 5.5.0, except where an item says otherwise: a suite
//! of questions has been put to a real broker, and the answers are compared in every test run.
//!
//! It is no broker for production. There is no disk, no replica and no authentication; requests
//! outside the families listed below are answered with code 3.
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
//! # What it serves
//!
//! | to | requests |
//! |---|---|
//! | name server | routes 105, cluster 106, topics 206, 224, 216, write permission 205, 327, values 100, 101, 102, 219 |
//! | broker: sending | 10, 310, batches 320; delay levels; topics created by sends |
//! | broker: kinds of messages | transactions 37 with checks 39; messages with a time of their own, taken back by 370; replies 324, 325, pushed by 326 |
//! | broker: receiving | pulls 11, 361 with long polling and tag filters, messages given back 36, retry and dead-letter topics |
//! | broker: offsets | 14, 15, 29, 30, 31, 32, resets 222; messages by key 12 and by id 33 |
//! | broker: groups | heartbeats 34 of both forms, leaving 35, members 38, filters 46, locks 41, 42; notes 40 to members |
//! | broker: admin | topics 17, 215, 351, 21; groups 200, 225, 352, 201, 207; 202, 203, 204, 208; 307 and 309, handed on to the client |
//!
//! Not served: pop, SQL filters.
//!
//! # What a test does with it
//!
//! | to | use |
//! |---|---|
//! | set up topics, groups, messages, offsets | [`create_topic`](Cluster::create_topic), [`set_topic_on`](Cluster::set_topic_on), [`set_group`](Cluster::set_group), [`put_message`](Cluster::put_message), [`commit_offset`](Cluster::commit_offset), [`delete_messages_before`](Cluster::delete_messages_before) |
//! | look at what became of them | [`messages`](Cluster::messages), [`stored_count`](Cluster::stored_count), [`dead_letter_count`](Cluster::dead_letter_count), [`committed_offset`](Cluster::committed_offset), [`consumer_ids`](Cluster::consumer_ids), [`locked_queues`](Cluster::locked_queues) |
//! | wait for something instead of sleeping | [`wait_for`](Cluster::wait_for), [`wait_until`](Cluster::wait_until), [`ControlHandle::wait_for_hits`] |
//! | see what a client sends | [`record_requests`](Cluster::record_requests), [`request_count`](Cluster::request_count), [`connections`](Cluster::connections) |
//! | make time short | [`ClusterBuilder::configure`], [`Cluster::configure`], [`BrokerConfig`] |
//! | let requests and answers fail | [`control`](Cluster::control), [`control_when`](Cluster::control_when), [`ControlAction`] |
//! | let members disagree | [`set_member_view`](Cluster::set_member_view) |
//! | let servers die | [`stop_broker`](Cluster::stop_broker), [`kill_broker`](Cluster::kill_broker), [`wipe_broker`](Cluster::wipe_broker), [`stop_name_server`](Cluster::stop_name_server), [`set_registers`](Cluster::set_registers), [`add_broker`](Cluster::add_broker), [`cut_connections`](Cluster::cut_connections) |
//!
//! ## An answer that is lost
//!
//! The client cannot know that its message was stored; does it send it again?
//!
//! ```
//! use rocketmq_embedded::{Cluster, ControlAction, ControlTimes};
//!
//! # fn main() -> std::io::Result<()> {
//! let cluster = Cluster::builder().start()?;
//! cluster.create_topic("Orders", 4)?;
//! let lost = cluster.control(310, ControlAction::LoseAnswer, ControlTimes::Once);
//! // … a producer sends one message here …
//! # let _ = (lost.hits(), cluster.stored_count("Orders"));
//! # Ok(())
//! # }
//! ```
//!
//! ## A race that is held open
//!
//! Held requests wait for the test and not for a clock.
//!
//! ```
//! use std::time::Duration;
//!
//! use rocketmq_embedded::{Cluster, ControlAction, ControlTimes};
//!
//! # fn main() -> std::io::Result<()> {
//! let cluster = Cluster::builder().start()?;
//! let commits = cluster.control(15, ControlAction::Hold, ControlTimes::UntilLifted);
//! // … a consumer gives a queue up here, and its commit is under way …
//! # if false {
//! assert!(commits.wait_for_hits(1, Duration::from_secs(30)));
//! # }
//! // … and here the queue's next owner asks for the offset …
//! commits.lift();
//! # Ok(())
//! # }
//! ```
//!
//! ## A group in fast motion
//!
//! ```
//! use std::time::Duration;
//!
//! use rocketmq_embedded::{Cluster, Message, MessageQueue, SubscriptionGroupConfig};
//!
//! # fn main() -> std::io::Result<()> {
//! let cluster = Cluster::builder()
//!     .delay_levels([Duration::from_millis(20)])
//!     .configure(|config| {
//!         config.long_poll_sweep = Duration::from_millis(50);
//!         config.lock_max_live_time = Duration::from_millis(500);
//!     })
//!     .start()?;
//! cluster.create_topic("Orders", 4)?;
//! let mut group = SubscriptionGroupConfig::new("billing");
//! group.retry_max_times = 2;
//! cluster.set_group(&group)?;
//! let queue = MessageQueue::new("Orders", "broker-a", 0);
//! cluster.put_message(&queue, &Message::new("Orders", b"bad".as_slice()))?;
//! // … consumers start here and fail on it: tried three times, then dead …
//! # if false {
//! assert!(cluster.wait_until(Duration::from_secs(30), || cluster.dead_letter_count("billing") == 1));
//! # }
//! # Ok(())
//! # }
//! ```
//!
//! # Threads
//!
//! Each server has a thread that accepts, one for timers, and one for each connection; they are
//! named `embedded-…` and have ended when [`Cluster::shutdown`] returns.

mod answers;
mod broker;
mod broker_config;
mod cluster;
mod cluster_builder;
mod cluster_content;
mod cluster_watch;
mod connection;
mod consumer_manager;
mod control;
mod control_action;
mod handler;
mod heartbeat_fingerprints;
mod long_polling;
mod member_views;
mod name_server;
mod node;
mod notes;
mod offset_table;
mod producer_manager;
mod put_message;
mod queue;
mod rebalance_lock_manager;
mod registry;
mod reply;
mod request_log;
mod schedule;
mod server;
mod store;
mod subscription_group_manager;
mod timer;
mod timer_message_store;
mod topic_config;
mod transactions;

pub use broker_config::{BrokerConfig, NamesrvConfig};
pub use cluster::Cluster;
pub use cluster_builder::ClusterBuilder;
pub use cluster_watch::ConnectionInfo;
pub use control::ControlHandle;
pub use control_action::{AnswerEdit, ControlAction, ControlScope, ControlTimes};
pub use member_views::MemberListQuery;
pub use request_log::ReceivedRequest;
pub use rocketmq_protocol::body::{SubscriptionGroupConfig, TopicConfig};
pub use rocketmq_protocol::{Message, MessageExt, MessageQueue, RemotingCommand};
