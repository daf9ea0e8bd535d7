//! What all clients of a process share: instances, routes, heartbeats, registries, service threads.
//!
//! Knows topics, brokers and groups; sees producers and consumers only through two traits.

mod broker_address_table;
mod client_remoting_processor;
mod group_registry;
mod heartbeat;
mod member;
mod member_lists;
mod mq_admin;
mod mq_client_api;
mod mq_client_instance;
mod mq_client_manager;
mod mq_consumer_inner;
mod mq_producer_inner;
mod name_server_address_service;
mod offset_persist_service;
mod pull_message_service;
mod rebalance_pace;
mod rebalance_service;
mod request_future_holder;
mod shutdown;
mod static_topic;
mod subscription_version;
mod topic_publish_info;
mod topic_route;

pub(crate) use broker_address_table::{FindBrokerResult, OnlyThisBroker};
pub(crate) use member::{Client, Handle, Member};
pub use mq_admin::QueryResult;
pub(crate) use mq_client_api::{
    MQClientApi, PullReply, QueueAt, RecallReply, SearchFor, SendReply, SendRequest,
};
pub(crate) use mq_client_instance::MQClientInstance;
pub use mq_client_manager::MQClientManager;
pub(crate) use mq_client_manager::{Membership, Role};
pub(crate) use mq_consumer_inner::{MQConsumerInner, Members, TopicBalance};
pub(crate) use mq_producer_inner::{MQProducerInner, TransactionCheck};
pub(crate) use pull_message_service::MessageRequest;
pub(crate) use request_future_holder::{RequestEnd, RequestFutureHolder, RequestOf, no_reply};
pub use shutdown::ShutdownReport;
pub(crate) use shutdown::Termination;
pub(crate) use static_topic::MOCK_BROKER_PREFIX;
pub(crate) use subscription_version::next_sub_version;
pub(crate) use topic_publish_info::{TopicPublishInfo, random_u32};
pub(crate) use topic_route::RouteOf;
