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
/// gets memory of its own first, together with the properties, since whoever keeps either would keep
/// the whole reply.
pub(super) fn count(message: &mut MessageExt, reply: &Bytes) {
    let body = message.body();
    let texts = message.store_size().saturating_sub(body.len());
    let is_slice = reply.as_ptr_range().contains(&body.as_ptr());
    let is_small = body.len().saturating_mul(2) < reply.len();
    let kept = if is_slice && !is_small {
        reply.len()
    } else {
        body.len()
    };
    let counted = AROUND_A_MESSAGE
        .saturating_add(kept as u64)
        .saturating_add(texts as u64);
    RETAINED.fetch_add(counted, Ordering::Relaxed);
    let own = |memory: Bytes| Bytes::from_owner(Counted { memory, counted });
    if is_slice && is_small {
        message.detach_into(|copy| own(copy.into()));
    } else {
        if !is_slice {
            message.detach_properties();
        }
        let body = own(message.body().clone());
        message.message_mut().set_body(body);
    }
}
