use crate::sync::Arc;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Bounds how many calls of a kind are under way (Java's semaphores in `NettyRemotingAbstract`).
#[derive(Debug, Clone)]
pub(super) struct Permits {
    free: Arc<AtomicUsize>,
}

/// The right to have one call under way; dropping it gives it back.
#[derive(Debug)]
pub(super) struct Permit {
    free: Arc<AtomicUsize>,
}

impl Permits {
    pub(super) fn new(count: usize) -> Self {
        Self {
            free: Arc::new(AtomicUsize::new(count)),
        }
    }

    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        self.free.load(Ordering::Acquire)
    }

    /// Takes a permit; `None` when all are in use. It does not wait: the thread that pulls for all
    /// queues must not stand still because somebody else has too much under way.
    pub(super) fn try_acquire(&self) -> Option<Permit> {
        self.free
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |free| {
                free.checked_sub(1)
            })
            .ok()
            .map(|_| Permit {
                free: Arc::clone(&self.free),
            })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.free.fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_that_is_dropped_can_be_taken_again() {
        let permits = Permits::new(1);
        let permit = permits.try_acquire().unwrap();
        assert!(permits.try_acquire().is_none());
        drop(permit);
        assert!(permits.try_acquire().is_some());
    }
}
