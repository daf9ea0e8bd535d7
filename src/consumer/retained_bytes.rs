//! The memory that received messages keep, whoever holds them.

use bytes::Bytes;
use rocketmq_protocol::MessageExt;

use crate::sync::atomic::{AtomicU64, Ordering};

/// What all consumers of the process have received and somebody still holds.
static RETAINED: AtomicU64 = AtomicU64::new(0);

/// What a message takes beside its body and the text of its properties: fields, tables, allocations.
const AROUND_A_MESSAGE: u64 = 1024;

/// A body's memory, counted until the last clone of the body is dropped.
struct Counted<M> {
    memory: M,
    counted: u64,
}

/// The bytes of a small message, in one piece of memory with what counts them.
struct Small<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> AsRef<[u8]> for Small<N> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl<const N: usize> Small<N> {
    fn new(body: &[u8], properties: &[u8]) -> Option<Self> {
        let mut bytes = [0; N];
        let (head, rest) = bytes.split_at_mut_checked(body.len())?;
        head.copy_from_slice(body);
        rest.get_mut(..properties.len())?
            .copy_from_slice(properties);
        Some(Self {
            bytes,
            length: body.len() + properties.len(),
        })
    }
}

/// Copies body and properties to memory of their own.
fn copied(body: &[u8], properties: &[u8], counted: u64) -> Bytes {
    fn own(memory: impl AsRef<[u8]> + Send + 'static, counted: u64) -> Bytes {
        Bytes::from_owner(Counted { memory, counted })
    }
    let length = body.len() + properties.len();
    let small = match length {
        0..=256 => Small::<256>::new(body, properties).map(|memory| own(memory, counted)),
        257..=512 => Small::<512>::new(body, properties).map(|memory| own(memory, counted)),
        _ => None,
    };
    small.unwrap_or_else(|| own([body, properties].concat(), counted))
}

impl<M: AsRef<[u8]>> AsRef<[u8]> for Counted<M> {
    fn as_ref(&self) -> &[u8] {
        self.memory.as_ref()
    }
}

impl<M> Drop for Counted<M> {
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
    if is_slice && is_small {
        message.detach_into(|body, properties| copied(body, properties, counted));
    } else {
        if !is_slice {
            message.detach_properties();
        }
        let memory = message.body().clone();
        let body = Bytes::from_owner(Counted { memory, counted });
        message.message_mut().set_body(body);
    }
}
