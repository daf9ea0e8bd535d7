//! The memory that received messages keep, whoever holds them.

use bytes::Bytes;
use rocketmq_protocol::MessageExt;

use crate::sync::atomic::{AtomicU64, Ordering};

/// What all consumers of the process have received and somebody still holds.
static RETAINED: AtomicU64 = AtomicU64::new(0);

/// What a message takes beside its body and the text of its properties: fields, tables, allocations.
const AROUND_A_MESSAGE: u64 = 1024;

/// A body's memory, counted until the last clone of the body is dropped.
struct Counted {
    memory: Bytes,
    counted: u64,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.memory
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        RETAINED.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

/// How many bytes received messages keep at the moment.
pub(super) fn retained_bytes() -> u64 {
    RETAINED.load(Ordering::Relaxed)
}

/// Counts a message from here on. A body that is less than half of the reply that it is a slice of
/// gets memory of its own first, since whoever keeps it would keep the whole reply.
pub(super) fn count(message: &mut MessageExt, reply: &Bytes) {
    let body = message.body();
    let is_slice = reply.as_ptr_range().contains(&body.as_ptr());
    let (memory, kept) = match body.len() {
        length if !is_slice => (body.clone(), length),
        length if length.saturating_mul(2) < reply.len() => (Bytes::copy_from_slice(body), length),
        _ => (body.clone(), reply.len()),
    };
    let texts = message.store_size().saturating_sub(body.len());
    let counted = AROUND_A_MESSAGE
        .saturating_add(kept as u64)
        .saturating_add(texts as u64);
    RETAINED.fetch_add(counted, Ordering::Relaxed);
    let owner = Counted { memory, counted };
    message.message_mut().set_body(Bytes::from_owner(owner));
}
