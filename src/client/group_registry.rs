//! Groups of this process by name. The tables hold weak references: an owner that is gone is
//! dropped from them when it is met.

use std::collections::BTreeMap;
use std::fmt;

use super::{MQConsumerInner, MQProducerInner};
use crate::sync::{Arc, Mutex, Weak};

/// Group → its member in this instance.
pub(crate) struct GroupTable<T: ?Sized>(Mutex<BTreeMap<String, Weak<T>>>);

pub(crate) type ProducerTable = GroupTable<dyn MQProducerInner>;
pub(crate) type ConsumerTable = GroupTable<dyn MQConsumerInner>;

impl<T: ?Sized> GroupTable<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Adds a member. `false` when the group has a living one already.
    pub(crate) fn register(&self, group: &str, member: Weak<T>) -> bool {
        let mut table = self.0.lock();
        if table
            .get(group)
            .is_some_and(|present| present.strong_count() > 0)
        {
            return false;
        }
        table.insert(group.to_owned(), member);
        true
    }

    pub(crate) fn unregister(&self, group: &str) {
        self.0.lock().remove(group);
    }

    pub(crate) fn get(&self, group: &str) -> Option<Arc<T>> {
        self.0.lock().get(group).and_then(Weak::upgrade)
    }

    /// The living members with their groups. The lock is released before anybody is called.
    pub(crate) fn snapshot(&self) -> Vec<(String, Arc<T>)> {
        let mut table = self.0.lock();
        let mut living = Vec::with_capacity(table.len());
        table.retain(|group, member| match member.upgrade() {
            Some(member) => {
                living.push((group.clone(), member));
                true
            }
            None => {
                log::debug!("the owner of group {group} is gone");
                false
            }
        });
        living
    }

    pub(crate) fn groups(&self) -> Vec<String> {
        self.0.lock().keys().cloned().collect()
    }
}

impl<T: ?Sized> fmt::Debug for GroupTable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.groups()).finish()
    }
}
