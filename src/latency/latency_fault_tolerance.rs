use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use super::fault_detector::{Resolver, ServiceDetector};
use crate::client::random_u32;
use crate::sync::{Clock, RwLock, add};

/// What is remembered of names, which are brokers here, by how calls to them went.
///
/// # Java
/// `LatencyFaultTolerance`. The two ports of a round are handed to it; Java's constructor keeps them.
pub(crate) trait LatencyFaultTolerance: Send + Sync + fmt::Debug {
    /// Remembers a call: how long it took, for how long the name is not to be used from now on, and
    /// whether the next calls may reach it. A wait that is longer already is not shortened.
    fn update_fault_item(
        &self,
        name: &str,
        current_latency: Duration,
        not_available_duration: Duration,
        reachable: bool,
    );

    /// Whether the time for which a name is not to be used is over; that of an unknown one is.
    fn is_available(&self, name: &str) -> bool;

    /// Whether the last call reached a name, or a probe did since; an unknown one is reachable.
    fn is_reachable(&self, name: &str) -> bool;

    /// Forgets a name.
    fn remove(&self, name: &str);

    /// Any name that is remembered and reachable.
    #[cfg_attr(
        not(test),
        expect(
            dead_code,
            reason = "in Java's interface, and no selection asks it there either"
        )
    )]
    fn pick_one_at_least(&self) -> Option<String>;

    /// What is remembered, the best first.
    fn items(&self) -> Vec<FaultItem>;

    /// Probes each name that was not probed within `detect_interval`: one that is served is
    /// reachable again, and one that has no address any more is forgotten. Stops when `go_on` says
    /// so. Holds no lock while it probes.
    fn detect_by_one_round(&self, round: &DetectRound<'_>);
}

/// What a round of probes needs.
pub(crate) struct DetectRound<'a> {
    pub(crate) resolver: &'a dyn Resolver,
    pub(crate) service_detector: &'a dyn ServiceDetector,
    pub(crate) detect_interval: Duration,
    pub(crate) detect_timeout: Duration,
    pub(crate) go_on: &'a dyn Fn() -> bool,
}

/// What a producer remembers of a broker (Java `LatencyFaultToleranceImpl.FaultItem`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultItem {
    /// The broker.
    pub broker_name: String,
    /// How long the last send to it took.
    pub current_latency: Duration,
    /// For how long it is not to be used from now on; zero when it is available.
    pub not_available_for: Duration,
    /// Whether the last send reached it, or a probe did since.
    pub reachable: bool,
}

/// Java `LatencyFaultToleranceImpl`.
#[derive(Debug)]
pub(crate) struct LatencyFaultToleranceImpl {
    clock: Clock,
    fault_item_table: RwLock<HashMap<String, Item>>,
}

#[derive(Debug, Clone, Copy)]
struct Item {
    current_latency: Duration,
    /// Not available before; `None` if it never was isolated.
    start: Option<Instant>,
    /// Not probed before.
    check: Instant,
    reachable: bool,
}

impl Item {
    fn is_available(&self, now: Instant) -> bool {
        self.start.is_none_or(|start| now >= start)
    }

    /// Java `FaultItem#compareTo`: the smaller is the better one.
    fn compare(&self, other: &Self, now: Instant) -> Ordering {
        (other.is_available(now).cmp(&self.is_available(now)))
            .then(self.current_latency.cmp(&other.current_latency))
            .then(self.start.cmp(&other.start))
    }
}

impl LatencyFaultToleranceImpl {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            fault_item_table: RwLock::new(HashMap::new()),
        }
    }

    /// The names that are due, which are not again before `interval` has passed.
    fn due(&self, interval: Duration) -> Vec<String> {
        let now = self.clock.now();
        let mut table = self.fault_item_table.write();
        let due = table.iter_mut().filter(|(_, item)| now >= item.check);
        due.map(|(name, item)| {
            item.check = add(now, interval);
            name.clone()
        })
        .collect()
    }
}

impl LatencyFaultTolerance for LatencyFaultToleranceImpl {
    fn update_fault_item(
        &self,
        name: &str,
        current_latency: Duration,
        not_available_duration: Duration,
        reachable: bool,
    ) {
        let now = self.clock.now();
        let mut table = self.fault_item_table.write();
        if !table.contains_key(name) {
            let unknown = Item {
                current_latency,
                start: None,
                check: now,
                reachable,
            };
            table.insert(name.to_owned(), unknown);
        }
        let Some(item) = table.get_mut(name) else {
            return;
        };
        item.current_latency = current_latency;
        item.reachable = reachable;
        let until = add(now, not_available_duration);
        if !not_available_duration.is_zero() && item.start.is_none_or(|start| until > start) {
            item.start = Some(until);
            log::info!("{name} is not used for {not_available_duration:?}");
        }
    }

    fn is_available(&self, name: &str) -> bool {
        let table = self.fault_item_table.read();
        let item = table.get(name);
        item.is_none_or(|item| item.is_available(self.clock.now()))
    }

    fn is_reachable(&self, name: &str) -> bool {
        let table = self.fault_item_table.read();
        table.get(name).is_none_or(|item| item.reachable)
    }

    fn remove(&self, name: &str) {
        self.fault_item_table.write().remove(name);
    }

    fn pick_one_at_least(&self) -> Option<String> {
        let table = self.fault_item_table.read();
        let mut names: Vec<&String> = table
            .iter()
            .filter(|(_, item)| item.reachable)
            .map(|(name, _)| name)
            .collect();
        if names.is_empty() {
            return None;
        }
        let index = random_u32() as usize % names.len();
        Some(names.swap_remove(index).clone())
    }

    fn items(&self) -> Vec<FaultItem> {
        let now = self.clock.now();
        let table = self.fault_item_table.read();
        let mut items: Vec<(&String, &Item)> = table.iter().collect();
        items.sort_by(|(a, x), (b, y)| x.compare(y, now).then(a.cmp(b)));
        let shown = items.into_iter().map(|(name, item)| FaultItem {
            broker_name: name.clone(),
            current_latency: item.current_latency,
            not_available_for: item
                .start
                .map_or(Duration::ZERO, |start| start.saturating_duration_since(now)),
            reachable: item.reachable,
        });
        shown.collect()
    }

    fn detect_by_one_round(&self, round: &DetectRound<'_>) {
        for name in self.due(round.detect_interval) {
            if !(round.go_on)() {
                return;
            }
            let Some(endpoint) = round.resolver.resolve(&name) else {
                self.remove(&name);
                continue;
            };
            if round
                .service_detector
                .detect(&endpoint, round.detect_timeout)
            {
                // A send that failed meanwhile is overruled, as in Java; the next one tells.
                if let Some(item) = self.fault_item_table.write().get_mut(&name) {
                    if !item.reachable {
                        log::info!("{name} is reachable again");
                    }
                    item.reachable = true;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Mutex;

    const SECOND: Duration = Duration::from_secs(1);

    fn tolerance() -> (LatencyFaultToleranceImpl, Clock) {
        let clock = Clock::manual();
        (LatencyFaultToleranceImpl::new(clock.clone()), clock)
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn order(tolerance: &LatencyFaultToleranceImpl) -> Vec<String> {
        let items = tolerance.items();
        items.into_iter().map(|item| item.broker_name).collect()
    }

    #[test]
    fn an_unknown_broker_is_available_and_reachable() {
        let (tolerance, _) = tolerance();
        assert!(tolerance.is_available("a") && tolerance.is_reachable("a"));
        assert!(tolerance.items().is_empty());
    }

    #[test]
    fn a_broker_is_not_available_until_its_time_has_passed() {
        let (tolerance, clock) = tolerance();
        tolerance.update_fault_item("a", ms(600), ms(2000), true);
        assert!(!tolerance.is_available("a"));
        assert!(tolerance.is_reachable("a"));
        clock.advance(ms(1999));
        assert!(!tolerance.is_available("a"));
        assert_eq!(tolerance.items()[0].not_available_for, ms(1));
        clock.advance(ms(1));
        assert!(tolerance.is_available("a"));
        assert_eq!(tolerance.items()[0].not_available_for, Duration::ZERO);
    }

    #[test]
    fn a_wait_is_made_longer_and_never_shorter() {
        let (tolerance, clock) = tolerance();
        tolerance.update_fault_item("a", ms(9000), ms(10_000), true);
        tolerance.update_fault_item("a", ms(600), ms(2000), true);
        tolerance.update_fault_item("a", ms(1), Duration::ZERO, true);
        clock.advance(ms(9999));
        assert!(!tolerance.is_available("a"));
        assert_eq!(tolerance.items()[0].current_latency, ms(1));
        tolerance.update_fault_item("a", ms(600), ms(2000), true);
        clock.advance(ms(1999));
        assert!(!tolerance.is_available("a"));
        clock.advance(ms(1));
        assert!(tolerance.is_available("a"));
    }

    #[test]
    fn the_last_call_says_whether_a_broker_is_reachable() {
        let (tolerance, _) = tolerance();
        tolerance.update_fault_item("a", ms(1), Duration::ZERO, false);
        assert!(!tolerance.is_reachable("a") && tolerance.is_available("a"));
        tolerance.update_fault_item("a", ms(1), Duration::ZERO, true);
        assert!(tolerance.is_reachable("a"));
        tolerance.update_fault_item("a", ms(1), SECOND, false);
        tolerance.remove("a");
        assert!(tolerance.is_reachable("a") && tolerance.is_available("a"));
    }

    #[test]
    fn available_ones_come_first_then_the_quick_then_those_that_are_free_sooner() {
        let (tolerance, _) = tolerance();
        tolerance.update_fault_item("late", ms(1), ms(3000), true);
        tolerance.update_fault_item("soon", ms(1), ms(2000), true);
        tolerance.update_fault_item("slow", ms(9), ms(1000), true);
        tolerance.update_fault_item("free and slow", ms(500), Duration::ZERO, false);
        tolerance.update_fault_item("free and quick", ms(20), Duration::ZERO, false);
        assert_eq!(
            order(&tolerance),
            ["free and quick", "free and slow", "soon", "late", "slow"]
        );
    }

    #[test]
    fn one_of_the_reachable_ones_is_picked_and_each_of_them_is_at_times() {
        let (tolerance, _) = tolerance();
        assert_eq!(tolerance.pick_one_at_least(), None);
        tolerance.update_fault_item("gone", ms(1), SECOND, false);
        assert_eq!(tolerance.pick_one_at_least(), None);
        tolerance.update_fault_item("a", ms(1), SECOND, true);
        tolerance.update_fault_item("b", ms(1), SECOND, true);
        let picked: std::collections::BTreeSet<_> = (0..200)
            .filter_map(|_| tolerance.pick_one_at_least())
            .collect();
        assert_eq!(picked.into_iter().collect::<Vec<_>>(), ["a", "b"]);
    }

    /// Knows all but the gone; serves those that it is told to.
    #[derive(Default)]
    struct Probes {
        served: Mutex<Vec<&'static str>>,
        probed: Mutex<Vec<(String, Duration)>>,
    }

    impl Resolver for Probes {
        fn resolve(&self, name: &str) -> Option<String> {
            (name != "gone").then(|| format!("at {name}"))
        }
    }

    impl ServiceDetector for Probes {
        fn detect(&self, endpoint: &str, timeout: Duration) -> bool {
            self.probed.lock().push((endpoint.to_owned(), timeout));
            self.served
                .lock()
                .iter()
                .any(|name| endpoint.ends_with(name))
        }
    }

    fn round(tolerance: &LatencyFaultToleranceImpl, probes: &Probes) -> Vec<String> {
        tolerance.detect_by_one_round(&DetectRound {
            resolver: probes,
            service_detector: probes,
            detect_interval: 2 * SECOND,
            detect_timeout: ms(200),
            go_on: &|| true,
        });
        let mut probed = std::mem::take(&mut *probes.probed.lock());
        assert!(probed.iter().all(|(_, timeout)| *timeout == ms(200)));
        probed.sort();
        probed.into_iter().map(|(endpoint, _)| endpoint).collect()
    }

    #[test]
    fn a_probe_that_is_served_makes_a_broker_reachable_and_none_makes_it_unreachable() {
        let (tolerance, clock) = tolerance();
        let probes = Probes::default();
        tolerance.update_fault_item("down", ms(1), 10 * SECOND, false);
        tolerance.update_fault_item("up", ms(1), Duration::ZERO, true);
        tolerance.update_fault_item("gone", ms(1), 10 * SECOND, false);
        assert_eq!(round(&tolerance, &probes), ["at down", "at up"]);
        assert!(!tolerance.is_reachable("down"));
        assert!(
            tolerance.is_reachable("up"),
            "a failed probe changes nothing"
        );
        assert!(
            tolerance.is_available("gone"),
            "what has no address is forgotten"
        );
        assert_eq!(tolerance.items().len(), 2);

        clock.advance(ms(1999));
        assert!(round(&tolerance, &probes).is_empty(), "not due yet");
        clock.advance(ms(1));
        probes.served.lock().push("down");
        assert_eq!(round(&tolerance, &probes), ["at down", "at up"]);
        assert!(tolerance.is_reachable("down"));
        assert!(
            !tolerance.is_available("down"),
            "a probe does not end a back-off"
        );
    }

    #[test]
    fn a_round_that_is_to_stop_probes_nobody() {
        let (tolerance, _) = tolerance();
        let probes = Probes::default();
        tolerance.update_fault_item("a", ms(1), SECOND, false);
        tolerance.detect_by_one_round(&DetectRound {
            resolver: &probes,
            service_detector: &probes,
            detect_interval: SECOND,
            detect_timeout: SECOND,
            go_on: &|| false,
        });
        assert!(probes.probed.lock().is_empty());
    }
}
