//! Which broker to send to, judged by what became of earlier sends: policy, no I/O.
//!
//! It asks brokers nothing by itself; who resolves names and probes addresses is handed in.

mod back_off_table;
mod fault_detector;
mod latency_fault_tolerance;
mod mq_fault_strategy;

pub(crate) use back_off_table::BackOffTable;
pub(crate) use fault_detector::{FaultDetector, Resolver, ServiceDetector};
pub use latency_fault_tolerance::FaultItem;
pub(crate) use mq_fault_strategy::{FaultUpdate, LatencyConfig, MQFaultStrategy};

#[cfg(test)]
mod vectors;
