use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use parking_lot::Mutex;
use rocketmq_protocol::header::NotifyConsumerIdsChangedRequestHeader;
use rocketmq_protocol::{RemotingCommand, request_code};

use crate::consumer_manager::Change;

/// Tells the members of a group that it changed, and counts (Java
/// `DefaultConsumerIdsChangeListener` and `Broker2Client`). One for all brokers of a cluster.
#[derive(Debug)]
pub(crate) struct Notes {
    enabled: AtomicBool,
    next_opaque: AtomicI32,
    sent: Mutex<HashMap<String, u64>>,
}

impl Notes {
    pub(crate) fn new(enabled: bool) -> Self {
        Self {
            enabled: AtomicBool::new(enabled),
            next_opaque: AtomicI32::new(0),
            sent: Mutex::default(),
        }
    }

    pub(crate) fn set_enabled(&self, enabled: bool) {
        self.enabled.store(enabled, Ordering::SeqCst);
    }

    pub(crate) fn sent(&self, group: &str) -> u64 {
        self.sent.lock().get(group).copied().unwrap_or(0)
    }

    /// Sends the note to every member, the one that caused the change included.
    pub(crate) fn send(&self, change: &Change) {
        if !self.enabled.load(Ordering::SeqCst) {
            return;
        }
        for member in &change.members {
            let mut note = RemotingCommand::request(
                request_code::NOTIFY_CONSUMER_IDS_CHANGED,
                &NotifyConsumerIdsChangedRequestHeader {
                    consumer_group: change.group.clone(),
                },
            );
            note.opaque = self.next_opaque.fetch_add(1, Ordering::Relaxed);
            note.mark_oneway();
            // Counted before it is written, so that whoever has read it finds it counted.
            *self.sent.lock().entry(change.group.clone()).or_default() += 1;
            if !member.send(note) {
                if let Some(sent) = self.sent.lock().get_mut(&change.group) {
                    *sent -= 1;
                }
            }
        }
    }
}
