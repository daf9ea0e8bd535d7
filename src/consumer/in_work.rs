//! What a queue has in work, by offset.

use std::collections::VecDeque;

/// Values by ascending offsets.
///
/// Messages come in the order of their offsets and end nearly in that order, so this is a queue in
/// which a place is found by halving: adding at the end, and taking out at the front, cost the same
/// however many there are. One that is taken out of the middle leaves its place empty until all
/// before or all behind it are gone.
#[derive(Debug)]
pub(super) struct InWork<T> {
    /// Sorted by offset; neither the first nor the last place is empty.
    places: VecDeque<(i64, Option<T>)>,
    count: usize,
}

impl<T> InWork<T> {
    pub(super) const fn new() -> Self {
        Self {
            places: VecDeque::new(),
            count: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.count
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds one, unless its offset has one already. Returns whether it was added.
    pub(super) fn insert(&mut self, offset: i64, value: T) -> bool {
        let place = match self.places.back() {
            Some((last, _)) if *last >= offset => self.find(offset),
            _ => Err(self.places.len()),
        };
        match place {
            Ok(at) => match self.places.get_mut(at) {
                Some((_, place @ None)) => *place = Some(value),
                _ => return false,
            },
            Err(at) => self.places.insert(at, (offset, Some(value))),
        }
        self.count += 1;
        true
    }

    pub(super) fn remove(&mut self, offset: i64) -> Option<T> {
        let at = self.find(offset).ok()?;
        let value = self.places.get_mut(at)?.1.take()?;
        self.count -= 1;
        while self
            .places
            .front()
            .is_some_and(|(_, place)| place.is_none())
        {
            self.places.pop_front();
        }
        while self.places.back().is_some_and(|(_, place)| place.is_none()) {
            self.places.pop_back();
        }
        Some(value)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new();
    }

    pub(super) fn contains(&self, offset: i64) -> bool {
        let place = self.find(offset).ok().and_then(|at| self.places.get(at));
        place.is_some_and(|(_, place)| place.is_some())
    }

    pub(super) fn get_mut(&mut self, offset: i64) -> Option<&mut T> {
        let at = self.find(offset).ok()?;
        self.places.get_mut(at)?.1.as_mut()
    }

    /// The one with the smallest offset.
    pub(super) fn first(&self) -> Option<(i64, &T)> {
        self.iter().next()
    }

    /// The smallest and the largest offset.
    pub(super) fn bounds(&self) -> Option<(i64, i64)> {
        let (first, last) = (self.places.front()?, self.places.back()?);
        Some((first.0, last.0))
    }

    /// All, by ascending offsets.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, &T)> {
        self.places
            .iter()
            .filter_map(|(offset, place)| Some((*offset, place.as_ref()?)))
    }

    fn find(&self, offset: i64) -> Result<usize, usize> {
        // The next one to end is the first one, as a rule.
        match self.places.front() {
            Some((first, _)) if *first == offset => Ok(0),
            _ => self
                .places
                .binary_search_by_key(&offset, |(known, _)| *known),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::random::SplitMix64;

    #[test]
    fn it_is_a_sorted_map_whatever_is_put_and_taken() {
        for seed in 0..200 {
            let mut random = SplitMix64::new(seed);
            let (mut in_work, mut map) = (InWork::new(), BTreeMap::new());
            for step in 0..300_u64 {
                let offset = random.below(40) as i64;
                if random.below(2) == 0 {
                    assert_eq!(in_work.insert(offset, step), !map.contains_key(&offset));
                    map.entry(offset).or_insert(step);
                } else {
                    assert_eq!(in_work.remove(offset), map.remove(&offset));
                }
                assert_eq!(in_work.get_mut(offset), map.get_mut(&offset));
                assert_eq!(in_work.contains(offset), map.contains_key(&offset));
                assert_eq!(
                    (in_work.len(), in_work.is_empty()),
                    (map.len(), map.is_empty())
                );
                assert!(
                    in_work
                        .iter()
                        .eq(map.iter().map(|(at, value)| (*at, value)))
                );
                let first = map.first_key_value().map(|(at, value)| (*at, value));
                assert_eq!(in_work.first(), first);
                let bounds = map.keys().next().zip(map.keys().next_back());
                assert_eq!(
                    in_work.bounds(),
                    bounds.map(|(first, last)| (*first, *last))
                );
            }
        }
    }
}
