//! The life of a client in four states.

use std::fmt;

use crate::sync::atomic::{AtomicU32, Ordering};

/// Where a producer, a consumer or a client instance is in its life.
///
/// It is started once and shut down once; a new life takes a new object.
///
/// # Java
///
/// `ServiceState`; [`Display`](fmt::Display) writes Java's names (`CREATE_JUST`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServiceState {
    /// Created, and not started yet.
    CreateJust,
    /// Started; the only state in which it can be used.
    Running,
    /// Shut down, for good.
    ShutdownAlready,
    /// Being started, or failed to start.
    StartFailed,
}

impl fmt::Display for ServiceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CreateJust => "CREATE_JUST",
            Self::Running => "RUNNING",
            Self::ShutdownAlready => "SHUTDOWN_ALREADY",
            Self::StartFailed => "START_FAILED",
        })
    }
}

/// A [`ServiceState`] that several threads may want to change; each change is one compare-and-set.
///
/// A start is two steps, as in Java: the state is `StartFailed` while the start is under way, so
/// one that is left half-way needs no undoing here. A shutdown that comes in between wins, and
/// [`finish_start`](Self::finish_start) tells the starter, who then has to take down what it built.
#[derive(Debug)]
pub(crate) struct AtomicServiceState(AtomicU32);

impl AtomicServiceState {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(encode(ServiceState::CreateJust)))
    }

    pub(crate) fn get(&self) -> ServiceState {
        decode(self.0.load(Ordering::Acquire))
    }

    pub(crate) fn is_running(&self) -> bool {
        self.get() == ServiceState::Running
    }

    /// `CreateJust` → `StartFailed`; exactly one caller gets `Ok`, the others the state in the way.
    pub(crate) fn begin_start(&self) -> Result<(), ServiceState> {
        self.transition(ServiceState::CreateJust, ServiceState::StartFailed)
    }

    /// `StartFailed` → `Running`, for the one whose `begin_start` succeeded; an `Err` means that a
    /// shutdown came first.
    pub(crate) fn finish_start(&self) -> Result<(), ServiceState> {
        self.transition(ServiceState::StartFailed, ServiceState::Running)
    }

    /// Anything → `ShutdownAlready`, and returns what was before; exactly one caller sees another
    /// state than `ShutdownAlready`, and has to do the shutting down.
    pub(crate) fn begin_shutdown(&self) -> ServiceState {
        decode(
            self.0
                .swap(encode(ServiceState::ShutdownAlready), Ordering::AcqRel),
        )
    }

    /// `from` → `to`, or the state that was found instead of `from`.
    pub(crate) fn transition(
        &self,
        from: ServiceState,
        to: ServiceState,
    ) -> Result<(), ServiceState> {
        self.0
            .compare_exchange(
                encode(from),
                encode(to),
                Ordering::AcqRel,
                Ordering::Acquire,
            )
            .map(|_| ())
            .map_err(decode)
    }
}

impl Default for AtomicServiceState {
    fn default() -> Self {
        Self::new()
    }
}

fn encode(state: ServiceState) -> u32 {
    match state {
        ServiceState::CreateJust => 0,
        ServiceState::Running => 1,
        ServiceState::ShutdownAlready => 2,
        ServiceState::StartFailed => 3,
    }
}

fn decode(code: u32) -> ServiceState {
    match code {
        0 => ServiceState::CreateJust,
        1 => ServiceState::Running,
        2 => ServiceState::ShutdownAlready,
        3 => ServiceState::StartFailed,
        _ => unreachable!("only encode() writes the cell"),
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn display_writes_the_java_names() {
        let names = [
            ServiceState::CreateJust,
            ServiceState::Running,
            ServiceState::ShutdownAlready,
            ServiceState::StartFailed,
        ]
        .map(|state| state.to_string());
        assert_eq!(
            names,
            ["CREATE_JUST", "RUNNING", "SHUTDOWN_ALREADY", "START_FAILED"]
        );
    }

    #[test]
    fn a_start_takes_two_steps() {
        let state = AtomicServiceState::new();
        assert_eq!(state.begin_start(), Ok(()));
        assert_eq!(state.get(), ServiceState::StartFailed);
        assert_eq!(state.finish_start(), Ok(()));
        assert!(state.is_running());
    }

    #[test]
    fn a_second_start_learns_what_is_in_the_way() {
        let state = AtomicServiceState::new();
        state.begin_start().unwrap();
        assert_eq!(state.begin_start(), Err(ServiceState::StartFailed));
        state.finish_start().unwrap();
        assert_eq!(state.begin_start(), Err(ServiceState::Running));
    }

    #[test]
    fn a_shutdown_during_the_start_wins() {
        let state = AtomicServiceState::new();
        state.begin_start().unwrap();
        assert_eq!(state.begin_shutdown(), ServiceState::StartFailed);
        assert_eq!(state.finish_start(), Err(ServiceState::ShutdownAlready));
        assert_eq!(state.begin_shutdown(), ServiceState::ShutdownAlready);
    }
}

#[cfg(test)]
#[cfg(loom)]
mod loom_tests {
    use loom::thread;

    use super::*;
    use crate::sync::Arc;
    use crate::sync::atomic::AtomicU32 as Counter;

    /// Two starts and a shutdown: what one start built is taken down exactly once, by the starter
    /// if the shutdown came in between, else by the shutdown.
    #[test]
    fn loom_start_start_shutdown_leaves_nothing_behind() {
        loom::model(|| {
            let state = Arc::new(AtomicServiceState::new());
            let built = Arc::new(Counter::new(0));
            let taken_down = Arc::new(Counter::new(0));
            let starters = [(); 2].map(|()| {
                let (state, built) = (Arc::clone(&state), Arc::clone(&built));
                let taken_down = Arc::clone(&taken_down);
                thread::spawn(move || {
                    if state.begin_start().is_ok() {
                        built.fetch_add(1, Ordering::Relaxed);
                        if state.finish_start().is_err() {
                            taken_down.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                })
            });
            if state.begin_shutdown() == ServiceState::Running {
                assert_eq!(
                    built.load(Ordering::Relaxed),
                    1,
                    "seen by who takes it down"
                );
                taken_down.fetch_add(1, Ordering::Relaxed);
            }
            starters
                .into_iter()
                .for_each(|starter| starter.join().unwrap());
            assert_eq!(state.get(), ServiceState::ShutdownAlready);
            assert!(built.load(Ordering::Relaxed) <= 1);
            assert_eq!(
                built.load(Ordering::Relaxed),
                taken_down.load(Ordering::Relaxed)
            );
        });
    }

    /// The seeded mistake: a start that writes `Running` without looking runs after the shutdown.
    #[test]
    #[should_panic(expected = "shut down")]
    fn loom_a_start_that_does_not_compare_outlives_the_shutdown() {
        loom::model(|| {
            let state = Arc::new(AtomicServiceState::new());
            let starting = Arc::clone(&state);
            let starter = thread::spawn(move || {
                if starting.begin_start().is_ok() {
                    starting
                        .0
                        .store(encode(ServiceState::Running), Ordering::Release);
                }
            });
            state.begin_shutdown();
            starter.join().unwrap();
            assert_eq!(state.get(), ServiceState::ShutdownAlready, "shut down");
        });
    }
}
