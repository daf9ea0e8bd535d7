use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use parking_lot::Mutex;
use rocketmq_protocol::header::NotifyConsumerIdsChangedRequestHeader;
use rocketmq_protocol::{RemotingCommand, request_code};

use crate::connection::Connection;
use crate::consumer_manager::Change;
use crate::control::Decision;
use crate::control_action::{ControlAction, ServerName};
use crate::request_log::ReceivedRequest;
use crate::server::Watch;
use crate::timer::Timer;

const NOTE: i32 = request_code::NOTIFY_CONSUMER_IDS_CHANGED;

/// Tells the members of a group that it changed, and counts (Java
/// `DefaultConsumerIdsChangeListener` and `Broker2Client`). One for all brokers of a cluster.
#[derive(Debug)]
pub(crate) struct Notes {
    next_opaque: AtomicI32,
    sent: Mutex<HashMap<String, u64>>,
    watch: Watch,
}

impl Notes {
    pub(crate) fn new(watch: Watch) -> Self {
        Self {
            next_opaque: AtomicI32::new(0),
            sent: Mutex::default(),
            watch,
        }
    }

    /// Numbers the requests of all brokers to their clients.
    pub(crate) fn next_opaque(&self) -> i32 {
        self.next_opaque.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn sent(&self, group: &str) -> u64 {
        self.sent.lock().get(group).copied().unwrap_or(0)
    }

    /// Sends the note to every member, the one that caused the change included. Controls may drop
    /// some, or let them go twice or later.
    pub(crate) fn send(self: &Arc<Self>, broker: &Arc<str>, timer: &Timer, change: &Change) {
        for member in &change.members {
            let mut note = RemotingCommand::request(
                NOTE,
                &NotifyConsumerIdsChangedRequestHeader {
                    consumer_group: change.group.clone(),
                },
            );
            note.opaque = self.next_opaque();
            note.mark_oneway();
            let describe = || ReceivedRequest {
                server: Arc::clone(broker),
                connection_id: member.id(),
                peer: member.peer(),
                client_id: member.client_id(),
                command: note.clone(),
            };
            let server = ServerName::Broker(broker);
            let controls = &self.watch.controls;
            let go_on = || {
                let (notes, member) = (Arc::clone(self), Arc::clone(member));
                let (group, note) = (change.group.clone(), note.clone());
                move || notes.write(&member, &group, note)
            };
            match controls.decide(server, NOTE, describe) {
                None => self.write(member, &change.group, note),
                Some(Decision { action, id }) => match action {
                    ControlAction::Delay(time) => timer.schedule(time, go_on()),
                    ControlAction::Hold => controls.hold(id, Box::new(go_on())),
                    ControlAction::Twice => {
                        self.write(member, &change.group, note.clone());
                        self.write(member, &change.group, note);
                    }
                    ControlAction::Close => member.close(),
                    _ => {}
                },
            }
        }
        self.watch.log.event();
    }

    fn write(&self, member: &Connection, group: &str, note: RemotingCommand) {
        // Counted before it is written, so that whoever has read it finds it counted.
        *self.sent.lock().entry(group.to_owned()).or_default() += 1;
        if !member.send(note) {
            if let Some(sent) = self.sent.lock().get_mut(group) {
                *sent -= 1;
            }
        }
    }
}
