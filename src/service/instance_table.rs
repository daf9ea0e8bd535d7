//! Who uses what, counted under one lock.

use std::collections::BTreeSet;
use std::fmt;

use crate::sync::{Arc, Mutex};

/// Instances and their users. An instance is in here exactly as long as somebody uses it, so who
/// finds one may use it, and who leaves last stops it. Nothing is decided by a reference count.
pub(crate) struct InstanceTable<C, I, U>(Mutex<Vec<Entry<C, I, U>>>);

pub(crate) struct Entry<C, I, U> {
    pub(crate) config: C,
    pub(crate) instance: Arc<I>,
    users: BTreeSet<U>,
}

impl<C, I, U: Ord> Entry<C, I, U> {
    pub(crate) fn has_user(&self, user: &U) -> bool {
        self.users.contains(user)
    }
}

impl<C, I, U: Ord> InstanceTable<C, I, U> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Makes `user` a user of the instance that `choose` points at, or of a new one. Both run under
    /// the lock: two members that come at once share, or do not, as if one had come after the other.
    pub(crate) fn join<E>(
        &self,
        user: U,
        choose: impl FnOnce(&[Entry<C, I, U>]) -> Result<Option<usize>, E>,
        make: impl FnOnce() -> Result<(C, Arc<I>), E>,
    ) -> Result<Arc<I>, E> {
        let mut entries = self.0.lock();
        let chosen = choose(&entries)?;
        if let Some(entry) = chosen.and_then(|at| entries.get_mut(at)) {
            entry.users.insert(user);
            return Ok(Arc::clone(&entry.instance));
        }
        let (config, instance) = make()?;
        entries.push(Entry {
            config,
            instance: Arc::clone(&instance),
            users: BTreeSet::from([user]),
        });
        Ok(instance)
    }

    /// Changes the settings of an instance; whoever comes later is compared with these.
    pub(crate) fn change_config(&self, instance: &Arc<I>, change: impl FnOnce(&mut C)) {
        let mut entries = self.0.lock();
        if let Some(entry) = entries
            .iter_mut()
            .find(|entry| Arc::ptr_eq(&entry.instance, instance))
        {
            change(&mut entry.config);
        }
    }

    /// Takes a user away. `true` when it was the last one: the instance is out of the table, a new
    /// client gets a new one, and the caller has to stop it.
    pub(crate) fn leave(&self, instance: &Arc<I>, user: &U) -> bool {
        let mut entries = self.0.lock();
        let Some(at) = entries
            .iter()
            .position(|e| Arc::ptr_eq(&e.instance, instance))
        else {
            return false;
        };
        let is_last = entries.get_mut(at).is_some_and(|entry| {
            entry.users.remove(user);
            entry.users.is_empty()
        });
        if is_last {
            entries.remove(at);
        }
        is_last
    }
}

impl<C, I: fmt::Debug, U> fmt::Debug for InstanceTable<C, I, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.0.lock();
        f.debug_list()
            .entries(entries.iter().map(|entry| &entry.instance))
            .finish()
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    #[derive(Debug)]
    struct Instance {
        stopped: AtomicBool,
    }

    fn instance() -> Arc<Instance> {
        Arc::new(Instance {
            stopped: AtomicBool::new(false),
        })
    }

    fn join(
        table: &InstanceTable<(), Instance, &'static str>,
        name: &'static str,
    ) -> Arc<Instance> {
        let first =
            |entries: &[Entry<(), Instance, &'static str>]| Ok((!entries.is_empty()).then_some(0));
        let joined: Result<_, ()> = table.join(name, first, || Ok(((), instance())));
        joined.unwrap()
    }

    /// The last user leaves while another one comes: whoever is in never holds a stopped instance.
    #[test]
    fn loom_nobody_gets_an_instance_that_its_last_user_stops() {
        loom::model(|| {
            let table = Arc::new(InstanceTable::<(), Instance, &'static str>::new());
            let of_a = join(&table, "a");
            let leaver = {
                let (table, of_a) = (Arc::clone(&table), Arc::clone(&of_a));
                loom::thread::spawn(move || {
                    if table.leave(&of_a, &"a") {
                        of_a.stopped.store(true, Ordering::SeqCst);
                    }
                })
            };
            let of_b = join(&table, "b");
            leaver.join().unwrap();
            assert!(!of_b.stopped.load(Ordering::SeqCst));
            assert!(table.leave(&of_b, &"b"), "b is the last one");
            assert_eq!(table.len(), 0);
        });
    }

    /// The mistake: deciding by a number of references, outside of the table's lock.
    #[test]
    #[should_panic(expected = "a stopped instance")]
    fn loom_counting_references_stops_an_instance_in_use() {
        loom::model(|| {
            let table = Arc::new(Mutex::new(Some(instance())));
            let references = Arc::new(AtomicUsize::new(1));
            let leaver = {
                let (table, references) = (Arc::clone(&table), Arc::clone(&references));
                loom::thread::spawn(move || {
                    if references.load(Ordering::SeqCst) == 1 {
                        if let Some(alone) = table.lock().take() {
                            alone.stopped.store(true, Ordering::SeqCst);
                        }
                    }
                })
            };
            let of_b = table.lock().clone();
            if of_b.is_some() {
                references.fetch_add(1, Ordering::SeqCst);
            }
            leaver.join().unwrap();
            if let Some(of_b) = of_b {
                assert!(!of_b.stopped.load(Ordering::SeqCst), "a stopped instance");
            }
        });
    }
}
