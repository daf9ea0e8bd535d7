//! What happened to messages, gathered and written to a topic (Java `org.apache.rocketmq.client.trace`).
//!
//! Knows neither producers nor consumers: they hand in what happened, and one of them carries it away.

mod async_trace_dispatcher;
mod trace_batch;
mod trace_config;
mod trace_context;
mod trace_data_encoder;

#[cfg(test)]
pub(crate) use async_trace_dispatcher::not_started;
pub(crate) use async_trace_dispatcher::{AsyncTraceDispatcher, TraceFlight, TraceSender};
pub(crate) use trace_batch::MAX_MSG_SIZE;
pub use trace_config::AccessChannel;
pub(crate) use trace_config::{TraceConfig, trace_setters};
pub(crate) use trace_context::{TraceBean, TraceContext, TraceType};
#[cfg(test)]
pub(crate) use trace_data_encoder::encode;
#[cfg(test)]
pub(crate) mod vectors;
