use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, MessageExt, MessageListenerConcurrently,
};

use super::GENEROUS;

/// Keeps what a listener received. Clones are the same inbox.
#[derive(Clone, Default)]
pub(crate) struct Inbox {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    calls: Mutex<Vec<Vec<MessageExt>>>,
    arrived: Condvar,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A listener that keeps all messages and says that they are done.
    pub(crate) fn listener(&self) -> impl MessageListenerConcurrently + 'static {
        let inbox = self.clone();
        move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            inbox.put(messages);
            ConsumeConcurrentlyStatus::ConsumeSuccess
        }
    }

    pub(crate) fn put(&self, messages: &[MessageExt]) {
        self.shared.calls.lock().unwrap().push(messages.to_vec());
        self.shared.arrived.notify_all();
    }

    /// All messages in the order of the calls.
    pub(crate) fn messages(&self) -> Vec<MessageExt> {
        self.shared.calls.lock().unwrap().concat()
    }

    /// How many messages each call of the listener had.
    pub(crate) fn call_sizes(&self) -> Vec<usize> {
        let calls = self.shared.calls.lock().unwrap();
        calls.iter().map(Vec::len).collect()
    }

    pub(crate) fn len(&self) -> usize {
        let calls = self.shared.calls.lock().unwrap();
        calls.iter().map(Vec::len).sum()
    }

    /// How often each body came.
    pub(crate) fn bodies(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for message in self.messages() {
            let body = String::from_utf8_lossy(message.body()).into_owned();
            *counts.entry(body).or_insert(0) += 1;
        }
        counts
    }

    /// Waits until there are so many messages.
    #[track_caller]
    pub(crate) fn wait_for(&self, count: usize) -> Vec<MessageExt> {
        assert!(
            self.wait(GENEROUS, |calls| calls.iter().map(Vec::len).sum::<usize>()
                >= count),
            "{} of {count} messages came within {GENEROUS:?}",
            self.len()
        );
        self.messages()
    }

    /// Waits until there are so many different bodies.
    #[track_caller]
    pub(crate) fn wait_for_bodies(&self, count: usize) {
        let different = |calls: &[Vec<MessageExt>]| {
            let bodies: std::collections::BTreeSet<_> = calls
                .iter()
                .flatten()
                .map(|message| &message.body()[..])
                .collect();
            bodies.len() >= count
        };
        assert!(
            self.wait(GENEROUS, different),
            "{} of {count} bodies came within {GENEROUS:?}",
            self.bodies().len()
        );
    }

    fn wait(&self, limit: Duration, enough: impl Fn(&[Vec<MessageExt>]) -> bool) -> bool {
        let deadline = Instant::now() + limit;
        let mut calls = self.shared.calls.lock().unwrap();
        while !enough(&calls) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            calls = self.shared.arrived.wait_timeout(calls, left).unwrap().0;
        }
        true
    }
}
