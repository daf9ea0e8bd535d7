use std::fmt;
use std::time::Duration;

use super::latency_fault_tolerance::DetectRound;
use super::mq_fault_strategy::MQFaultStrategy;
use crate::service::{ServiceContext, ServiceThread};
use crate::sync::Arc;

/// Where a broker of a name is.
///
/// # Java
/// `Resolver`
pub(crate) trait Resolver: Send + Sync {
    /// The address to probe; `None` if the name means nothing any more.
    fn resolve(&self, name: &str) -> Option<String>;
}

/// Asks an address whether it is served.
///
/// # Java
/// `ServiceDetector`
pub(crate) trait ServiceDetector: Send + Sync {
    /// Waits for an answer, at most for the time given, and returns whether one came.
    fn detect(&self, endpoint: &str, timeout: Duration) -> bool;
}

/// The thread that probes the brokers of which something is remembered, so that those that a send did
/// not reach count as reachable again once they answer.
///
/// It is there from the first time that the detector is on. While it is off the thread waits; a
/// wake-up tells it of a change.
pub(crate) struct FaultDetector<P> {
    pub(crate) strategy: Arc<MQFaultStrategy>,
    pub(crate) ports: P,
}

/// Java `LatencyFaultToleranceImpl#startDetector`.
const TICK: Duration = Duration::from_secs(3);

impl<P: Resolver + ServiceDetector + 'static> ServiceThread for FaultDetector<P> {
    fn service_name(&self) -> String {
        "LatencyFaultToleranceScheduledThread".to_owned()
    }

    fn run(&self, context: &ServiceContext) {
        while !context.is_stopped() {
            if !self.strategy.is_start_detector_enable() {
                context.wait_for_running(Duration::MAX);
            } else if !context.wait_for_running(TICK) {
                self.round(&|| !context.is_stopped());
            }
        }
    }
}

impl<P: Resolver + ServiceDetector> FaultDetector<P> {
    fn round(&self, go_on: &dyn Fn() -> bool) {
        let (detect_interval, detect_timeout) = self.strategy.detect_times();
        let round = DetectRound {
            resolver: &self.ports,
            service_detector: &self.ports,
            detect_interval,
            detect_timeout,
            go_on,
        };
        self.strategy.tolerance().detect_by_one_round(&round);
    }
}

impl<P> fmt::Debug for FaultDetector<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultDetector").finish_non_exhaustive()
    }
}
