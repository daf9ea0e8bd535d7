use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use rocketmq_protocol::{RemotingCommand, SubscriptionData};

use crate::connection::Connection;
use crate::queue::matches_tags_code;
use crate::reply::Reply;

/// Pulls that wait for a message (Java `PullRequestHoldService`).
#[derive(Debug, Default)]
pub(crate) struct LongPolling {
    parked: Mutex<HashMap<(String, i32), Vec<ParkedPull>>>,
}

#[derive(Debug)]
pub(crate) struct ParkedPull {
    pub(crate) reply: Reply,
    pub(crate) request: RemotingCommand,
    pub(crate) subscription: Arc<SubscriptionData>,
    pub(crate) from_offset: i64,
    /// When it is answered although nothing came. `None` is for ever.
    pub(crate) until: Option<Instant>,
}

impl LongPolling {
    pub(crate) fn park(&self, topic: &str, queue_id: i32, pull: ParkedPull) {
        let mut parked = self.parked.lock();
        let key = (topic.to_owned(), queue_id);
        parked.entry(key).or_default().push(pull);
    }

    /// Takes the pulls of a queue that a new message is for. Without a tag code every pull that
    /// the queue has grown for is taken.
    pub(crate) fn take_arrived(
        &self,
        topic: &str,
        queue_id: i32,
        max_offset: i64,
        tags_code: Option<i32>,
    ) -> Vec<ParkedPull> {
        let mut parked = self.parked.lock();
        // Most messages come when nobody waits.
        if parked.is_empty() {
            return Vec::new();
        }
        let Some(pulls) = parked.get_mut(&(topic.to_owned(), queue_id)) else {
            return Vec::new();
        };
        extract(pulls, |pull| {
            max_offset > pull.from_offset
                && tags_code.is_none_or(|code| matches_tags_code(&pull.subscription, code))
        })
    }

    /// Takes the pulls whose time is over and those whose queue has grown, be it by messages that
    /// are not for them, which then need not be looked at again.
    pub(crate) fn take_due(&self, max_offset: impl Fn(&str, i32) -> i64) -> Vec<ParkedPull> {
        let now = Instant::now();
        let mut parked = self.parked.lock();
        let mut due = Vec::new();
        for ((topic, queue_id), pulls) in parked.iter_mut() {
            let end = max_offset(topic, *queue_id);
            due.append(&mut extract(pulls, |pull| {
                end > pull.from_offset || pull.until.is_some_and(|until| now >= until)
            }));
        }
        parked.retain(|_, pulls| !pulls.is_empty());
        due
    }

    /// Forgets the pulls of a connection that has ended.
    pub(crate) fn forget(&self, connection: &Connection) {
        let mut parked = self.parked.lock();
        for pulls in parked.values_mut() {
            pulls.retain(|pull| pull.reply.connection().id() != connection.id());
        }
        parked.retain(|_, pulls| !pulls.is_empty());
    }
}

fn extract(
    pulls: &mut Vec<ParkedPull>,
    mut wanted: impl FnMut(&ParkedPull) -> bool,
) -> Vec<ParkedPull> {
    let (taken, kept) = std::mem::take(pulls)
        .into_iter()
        .partition(|pull| wanted(pull));
    *pulls = kept;
    taken
}
