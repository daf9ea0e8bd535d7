use std::collections::{BTreeMap, btree_map};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{MessageQueue, json};

/// A table whose keys are queues.
///
/// Java writes such a table with whole objects as keys, `{{"brokerName":"b","queueId":0,"topic":
/// "t"}:5}`, and brokers take no other form. [`JsonBody::to_json`](super::JsonBody::to_json) writes
/// it; read are this form and keys that are the text of the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueMap<V>(BTreeMap<MessageQueue, V>);

impl<V> QueueMap<V> {
    /// An empty table.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }
}

impl<V> Default for QueueMap<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> Deref for QueueMap<V> {
    type Target = BTreeMap<MessageQueue, V>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<V> DerefMut for QueueMap<V> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl<V> From<BTreeMap<MessageQueue, V>> for QueueMap<V> {
    fn from(map: BTreeMap<MessageQueue, V>) -> Self {
        Self(map)
    }
}

impl<V> FromIterator<(MessageQueue, V)> for QueueMap<V> {
    fn from_iter<I: IntoIterator<Item = (MessageQueue, V)>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl<V> IntoIterator for QueueMap<V> {
    type Item = (MessageQueue, V);
    type IntoIter = btree_map::IntoIter<MessageQueue, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, V> IntoIterator for &'a QueueMap<V> {
    type Item = (&'a MessageQueue, &'a V);
    type IntoIter = btree_map::Iter<'a, MessageQueue, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// The form that brokers use for clients that are not written in Java.
#[derive(Deserialize)]
struct Element<V> {
    #[serde(flatten)]
    queue: MessageQueue,
    offset: V,
}

impl<V: Serialize> Serialize for QueueMap<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json::serialize_object_keys(self.0.iter(), serializer)
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for QueueMap<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TableVisitor<V>(PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for TableVisitor<V> {
            type Value = QueueMap<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object whose keys are queues, or a list of queues with offsets")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<QueueMap<V>, A::Error> {
                let mut table = QueueMap::new();
                while let Some(key) = map.next_key::<String>()? {
                    let queue = json::from_slice("MessageQueue", key.as_bytes())
                        .map_err(A::Error::custom)?;
                    table.insert(queue, map.next_value()?);
                }
                Ok(table)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<QueueMap<V>, A::Error> {
                let mut table = QueueMap::new();
                while let Some(Element { queue, offset }) = list.next_element()? {
                    table.insert(queue, offset);
                }
                Ok(table)
            }
        }

        deserializer.deserialize_any(TableVisitor(PhantomData))
    }
}
