use std::borrow::Cow;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rocketmq_protocol::MessageExt;
use rocketmq_protocol::body::ProcessQueueInfo;

use super::in_work::InWork;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Clock, Mutex, system_time_millis};

/// After how long without a pull a queue's pull loop counts as lost (120 s; Java property
/// `rocketmq.client.pull.pullMaxIdleTime`). A long poll takes at most 30 s.
pub(crate) const PULL_MAX_IDLE_TIME: Duration = Duration::from_secs(120);

/// What one owned queue has in work: pulled and not yet consumed.
///
/// It keeps account of messages by their offsets and does not hold them: they move on into the
/// tasks of the consume service, which brings their offsets back. The offset to commit is that of
/// the smallest one unfinished, so a message that is stuck holds the queue's offset back.
///
/// A dropped queue stays dropped: when the queue is allocated again, a new `ProcessQueue` is made
/// for it. Whoever holds the old one finds out by [`is_dropped`](Self::is_dropped).
///
/// # Java
/// `ProcessQueue`, for concurrent consumption.
#[derive(Debug)]
pub(crate) struct ProcessQueue {
    /// Outside the lock, because it is set under the offset table's lock, which comes after this
    /// queue's in the lock order.
    dropped: AtomicBool,
    /// Set under the lock of the state, once, and before `dropped` unless nothing is waited for.
    given_up: AtomicBool,
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    entries: InWork<Entry>,
    /// Up to where the queue was pulled; not the largest one: after a step back in the queue it goes
    /// back too.
    queue_offset_max: i64,
    body_bytes: u64,
    last_pull: Instant,
    last_consume: Option<Instant>,
    /// The largest offset that the listener was ever given.
    last_begun: Option<i64>,
    /// Calls of the listener that are under way, or whose result is being worked off.
    calls: usize,
}

#[derive(Debug)]
struct Entry {
    body_bytes: u64,
    /// Since when the listener has it, if it does.
    in_hands: Option<(Instant, MessageInHands)>,
}

/// One message to be put: where it is in the queue and how long its body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CachedMessage {
    pub(crate) queue_offset: i64,
    pub(crate) body_bytes: u64,
}

/// What is needed to give a message back that the listener does not return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MessageInHands {
    pub(crate) queue_offset: i64,
    pub(crate) commit_log_offset: i64,
    msg_id: Bytes,
    pub(crate) topic: Arc<str>,
    /// The broker that stored it, in whose log it is at that offset.
    pub(crate) store_host: SocketAddr,
}

impl MessageInHands {
    pub(crate) fn msg_id(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.msg_id)
    }
}

/// What the listener can be called with.
pub(crate) trait HandedOut {
    fn queue_offset(&self) -> i64;

    fn in_hands(&self) -> MessageInHands;
}

impl HandedOut for MessageExt {
    fn queue_offset(&self) -> i64 {
        Self::queue_offset(self)
    }

    /// Shares the message's memory: every message consumed takes this way.
    fn in_hands(&self) -> MessageInHands {
        MessageInHands {
            queue_offset: self.queue_offset(),
            commit_log_offset: self.commit_log_offset(),
            msg_id: self.shared_msg_id(),
            topic: self.shared_topic(),
            store_host: self.store_host(),
        }
    }
}

impl From<&MessageExt> for CachedMessage {
    fn from(message: &MessageExt) -> Self {
        Self {
            queue_offset: message.queue_offset(),
            body_bytes: message.body().len() as u64,
        }
    }
}

/// What a queue has in work, all read at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CachedAmount {
    pub(crate) count: u64,
    /// The sum of the bodies, which `pullThresholdSizeForQueue` limits.
    pub(crate) body_bytes: u64,
    /// The smallest and the largest offset.
    pub(crate) offsets: Option<(i64, i64)>,
}

impl CachedAmount {
    /// The distance from the smallest offset to the largest, which `consumeConcurrentlyMaxSpan`
    /// limits.
    pub(crate) fn span(&self) -> u64 {
        self.offsets.map_or(0, |(min, max)| max.abs_diff(min))
    }
}

/// The queue was dropped: what was pulled is not to be consumed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dropped;

impl ProcessQueue {
    /// An empty queue that counts as just pulled.
    pub(crate) fn new(clock: Clock) -> Self {
        let now = clock.now();
        Self {
            dropped: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
            clock,
            state: Mutex::new(State {
                entries: InWork::new(),
                queue_offset_max: 0,
                body_bytes: 0,
                last_pull: now,
                last_consume: None,
                last_begun: None,
                calls: 0,
            }),
        }
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    /// Marks the queue as dropped, for good, and returns whether it was not before. Where offsets
    /// are committed, this is done by
    /// [`OffsetTable::take_for_drop`](super::offset_store::OffsetTable::take_for_drop), which lets
    /// no commit happen afterwards.
    pub(crate) fn set_dropped(&self) -> bool {
        !self.dropped.swap(true, Ordering::AcqRel)
    }

    /// Whether it is to be pulled no more: it was given up, or dropped.
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire) || self.is_dropped()
    }

    /// Begins to give the queue up: nothing is put any more, and the listener is called only for
    /// what lies before a message that it was given already, so that what is finished in the end has
    /// no gaps. Commits still count, until the drop. Returns whether nothing is in work.
    pub(crate) fn give_up(&self) -> bool {
        let state = self.state.lock();
        self.given_up.store(true, Ordering::Release);
        state.is_idle()
    }

    /// Takes pulled messages into account.
    ///
    /// An offset that is there already is not counted again. A drop that happens meanwhile may come
    /// too late to refuse them, so whoever consumes asks again.
    ///
    /// # Errors
    /// [`Dropped`], and nothing was taken.
    pub(crate) fn put_messages(
        &self,
        messages: impl IntoIterator<Item = impl Into<CachedMessage>>,
    ) -> Result<(), Dropped> {
        let mut state = self.state.lock();
        if self.is_given_up() {
            return Err(Dropped);
        }
        for message in messages {
            let message = message.into();
            let entry = Entry {
                body_bytes: message.body_bytes,
                in_hands: None,
            };
            if !state.entries.insert(message.queue_offset, entry) {
                continue;
            }
            state.queue_offset_max = message.queue_offset;
            state.body_bytes += message.body_bytes;
        }
        Ok(())
    }

    /// Notes that all before `next` was pulled, though not all of it was wanted: with the last
    /// message in work that is done too. Returns the offset to commit if nothing is in work.
    pub(crate) fn passed_to(&self, next: i64) -> Option<i64> {
        let mut state = self.state.lock();
        state.queue_offset_max = next.saturating_sub(1);
        state.entries.is_empty().then_some(next)
    }

    /// Takes consumed messages out and returns the offset to commit: the smallest one left, or the
    /// one after the last pulled if none is left. `None` if there was nothing to begin with.
    ///
    /// Offsets that are not there are passed over.
    pub(crate) fn remove_messages(&self, offsets: impl IntoIterator<Item = i64>) -> Option<i64> {
        let mut state = self.state.lock();
        if state.entries.is_empty() {
            return None;
        }
        for offset in offsets {
            state.remove(offset);
        }
        state.offset_to_commit()
    }

    /// Takes the smallest message out if it is this one, and returns the offset to commit then.
    pub(crate) fn remove_if_first(&self, offset: i64) -> Option<i64> {
        let mut state = self.state.lock();
        let (first, _) = state.entries.first()?;
        if first != offset {
            return None;
        }
        state.remove(offset);
        state.offset_to_commit()
    }

    /// Whether the message at this offset is still in work.
    pub(crate) fn contains_message(&self, offset: i64) -> bool {
        self.state.lock().entries.contains(offset)
    }

    /// Notes that the listener is called with these messages now, unless that is not to be. A call
    /// is followed by [`consume_ended`](Self::consume_ended).
    ///
    /// # Errors
    /// [`Dropped`]: the messages are another member's.
    pub(crate) fn consume_started<M: HandedOut>(&self, messages: &[M]) -> Result<(), Dropped> {
        let now = self.clock.now();
        let first = messages.iter().map(HandedOut::queue_offset).min();
        let last = messages.iter().map(HandedOut::queue_offset).max();
        let mut state = self.state.lock();
        if self.is_dropped() || (self.is_given_up() && first > state.last_begun) {
            return Err(Dropped);
        }
        state.last_begun = state.last_begun.max(last);
        state.calls += 1;
        state.last_consume = Some(now);
        for message in messages {
            if let Some(entry) = state.entries.get_mut(message.queue_offset()) {
                entry.in_hands = Some((now, message.in_hands()));
            }
        }
        Ok(())
    }

    /// Notes that a call of the listener has ended and that its result was committed. Returns
    /// whether the queue is given up and was waiting for just that.
    pub(crate) fn consume_ended(&self) -> bool {
        let mut state = self.state.lock();
        state.calls = state.calls.saturating_sub(1);
        self.is_given_up() && !self.is_dropped() && state.is_idle()
    }

    /// The smallest message in work, if the listener has had it for longer than `consume_timeout`.
    /// Later ones do not matter: they do not hold the queue's offset back.
    pub(crate) fn first_expired(&self, consume_timeout: Duration) -> Option<MessageInHands> {
        let now = self.clock.now();
        let state = self.state.lock();
        let (_, entry) = state.entries.first()?;
        let (since, message) = entry.in_hands.as_ref()?;
        let expired = now.saturating_duration_since(*since) > consume_timeout;
        expired.then(|| message.clone())
    }

    /// Forgets all messages, as at shutdown or when the queue's offset is reset.
    pub(crate) fn clear(&self) {
        let mut state = self.state.lock();
        state.entries.clear();
        state.body_bytes = 0;
        state.queue_offset_max = 0;
    }

    pub(crate) fn cached(&self) -> CachedAmount {
        let state = self.state.lock();
        CachedAmount {
            count: state.entries.len() as u64,
            body_bytes: state.body_bytes,
            offsets: state.entries.bounds(),
        }
    }

    /// What an administrator is told of the queue.
    pub(crate) fn info(&self) -> ProcessQueueInfo {
        let cached = self.cached();
        let (now, now_millis) = (self.clock.now(), system_time_millis());
        let millis_at = |instant: Instant| {
            let ago = now.saturating_duration_since(instant).as_millis();
            now_millis.saturating_sub(i64::try_from(ago).unwrap_or(i64::MAX))
        };
        let state = self.state.lock();
        let (min, max) = cached.offsets.unwrap_or((0, 0));
        ProcessQueueInfo {
            cached_msg_count: i32::try_from(cached.count).unwrap_or(i32::MAX),
            cached_msg_min_offset: min,
            cached_msg_max_offset: max,
            cached_msg_size_in_mib: i32::try_from(cached.body_bytes >> 20).unwrap_or(i32::MAX),
            dropped: self.is_dropped(),
            last_consume_timestamp: state.last_consume.map_or(0, millis_at),
            last_pull_timestamp: millis_at(state.last_pull),
            ..ProcessQueueInfo::default()
        }
    }

    /// Notes that a pull is made now.
    pub(crate) fn pulled(&self) {
        let now = self.clock.now();
        self.state.lock().last_pull = now;
    }

    /// Whether the last pull is longer ago than [`PULL_MAX_IDLE_TIME`].
    pub(crate) fn is_pull_expired(&self) -> bool {
        let now = self.clock.now();
        now.saturating_duration_since(self.state.lock().last_pull) > PULL_MAX_IDLE_TIME
    }
}

impl State {
    /// Whether the listener has none, and none is left that it is to have if the queue is given up.
    /// One that waits for a later try here does not count: it is tried elsewhere.
    fn is_idle(&self) -> bool {
        let Some(last) = self.last_begun else {
            return true;
        };
        let mut before = self
            .entries
            .iter()
            .take_while(|(offset, _)| *offset <= last);
        self.calls == 0 && before.all(|(_, entry)| entry.in_hands.is_some())
    }

    fn offset_to_commit(&self) -> Option<i64> {
        let first_left = self.entries.first().map(|(offset, _)| offset);
        first_left.or_else(|| self.queue_offset_max.checked_add(1))
    }

    fn remove(&mut self, offset: i64) {
        let Some(entry) = self.entries.remove(offset) else {
            return;
        };
        self.body_bytes -= entry.body_bytes;
    }
}

#[cfg(test)]
impl MessageInHands {
    /// One at an offset, made up.
    pub(crate) fn at(queue_offset: i64) -> Self {
        Self {
            queue_offset,
            commit_log_offset: queue_offset.wrapping_mul(100),
            msg_id: format!("id{queue_offset}").into(),
            topic: "t".into(),
            store_host: ([127, 0, 0, 1], 10911).into(),
        }
    }
}

#[cfg(test)]
impl HandedOut for MessageInHands {
    fn queue_offset(&self) -> i64 {
        self.queue_offset
    }

    fn in_hands(&self) -> Self {
        self.clone()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
