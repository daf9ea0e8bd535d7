//! Named snapshots that are replaced as a whole.

use std::collections::HashMap;
use std::fmt;

use crate::sync::{Arc, RwLock};

/// Name → snapshot. A reader gets one whole snapshot and keeps it as long as it likes; a writer never
/// changes one, it puts another in its place.
pub(crate) struct SnapshotTable<T>(RwLock<HashMap<String, Arc<T>>>);

impl<T> SnapshotTable<T> {
    pub(crate) fn new() -> Self {
        Self(RwLock::new(HashMap::new()))
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<T>> {
        self.0.read().get(name).cloned()
    }

    /// Makes a name known, with a first snapshot unless it has one.
    pub(crate) fn ensure(&self, name: &str, first: impl FnOnce() -> T) {
        self.0
            .write()
            .entry(name.to_owned())
            .or_insert_with(|| Arc::new(first()));
    }

    /// Gives a known name another snapshot; an unknown one stays unknown.
    pub(crate) fn replace(&self, name: &str, snapshot: &Arc<T>) {
        if let Some(known) = self.0.write().get_mut(name) {
            *known = Arc::clone(snapshot);
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.read().keys().cloned().collect()
    }

    pub(crate) fn clear(&self) {
        self.0.write().clear();
    }
}

impl<T> fmt::Debug for SnapshotTable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::sync::Mutex;

    /// A route with two queues is replaced by one with one queue while somebody chooses.
    #[test]
    fn loom_a_reader_sees_one_whole_snapshot() {
        loom::model(|| {
            let table = Arc::new(SnapshotTable::new());
            table.ensure("T", || vec![0, 1]);
            let writer = {
                let table = Arc::clone(&table);
                loom::thread::spawn(move || table.replace("T", &Arc::new(vec![7])))
            };
            let seen = table.get("T").unwrap();
            let last = seen[seen.len() - 1];
            assert!(matches!((seen.len(), last), (2, 1) | (1, 7)));
            writer.join().unwrap();
            assert_eq!(*table.get("T").unwrap(), [7]);
        });
    }

    /// The mistake: a list that is changed in place, read in two steps.
    #[test]
    #[should_panic(expected = "two different lists")]
    fn loom_a_list_changed_in_place_is_seen_half() {
        loom::model(|| {
            let list = Arc::new(Mutex::new(vec![0, 1]));
            let writer = {
                let list = Arc::clone(&list);
                loom::thread::spawn(move || *list.lock() = vec![7])
            };
            let length = list.lock().len();
            let seen = list.lock().get(length - 1).copied();
            writer.join().unwrap();
            assert!(seen.is_some(), "two different lists");
        });
    }
}
