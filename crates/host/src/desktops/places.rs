//! A bounded number of places, each with a number that is used once.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is kept by number, and what is on its way there.
#[derive(Debug)]
pub struct Places<T> {
    limit: usize,
    table: Mutex<Table<T>>,
}

#[derive(Debug)]
struct Table<T> {
    last: u64,
    /// `None` while it is being made: it has its place already.
    kept: BTreeMap<u64, Option<T>>,
}

/// A place for one that is being made, given back when dropped unless it is filled by then.
#[derive(Debug)]
pub struct Place<'a, T> {
    places: &'a Places<T>,
    /// Its number.
    pub number: u64,
}

impl<T> Places<T> {
    /// No more than `limit`.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            table: Mutex::new(Table {
                last: 0,
                kept: BTreeMap::new(),
            }),
        }
    }

    /// Goes on after this number.
    pub fn go_on_after(&self, last: u64) {
        let mut table = self.table();
        table.last = table.last.max(last);
    }

    /// The last number that was given.
    pub fn last(&self) -> u64 {
        self.table().last
    }

    /// A place under the next number, if there is one left.
    pub fn take(&self) -> Option<Place<'_, T>> {
        let mut table = self.table();
        if table.kept.len() >= self.limit {
            return None;
        }
        table.last += 1;
        let number = table.last;
        table.kept.insert(number, None);
        Some(Place {
            places: self,
            number,
        })
    }

    /// Fills the place of this number, taken or not.
    pub fn fill(&self, number: u64, with: T) {
        self.table().kept.insert(number, Some(with));
    }

    /// Empties the place of this number.
    pub fn empty(&self, number: u64) -> Option<T> {
        self.table().kept.remove(&number).flatten()
    }

    fn table(&self) -> MutexGuard<'_, Table<T>> {
        // Nothing panics while it holds this lock.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone> Places<T> {
    /// What fills the places, by number.
    pub fn all(&self) -> Vec<T> {
        self.table().kept.values().flatten().cloned().collect()
    }
}

impl<T> Drop for Place<'_, T> {
    fn drop(&mut self) {
        let mut table = self.places.table();
        if let Some(None) = table.kept.get(&self.number) {
            table.kept.remove(&self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_are_being_made_count() {
        let places = Places::new(2);
        let first = places.take().unwrap();
        let second = places.take().unwrap();
        assert!(places.take().is_none());
        places.fill(first.number, "made");
        assert!(places.take().is_none());
        assert_eq!(places.all(), ["made"]);
        drop(second);
        let third = places.take().unwrap();
        assert_eq!((third.number, places.last()), (3, 3), "no number twice");
    }

    #[test]
    fn a_filled_place_outlives_its_making_and_an_emptied_one_is_free() {
        let places = Places::new(1);
        let place = places.take().unwrap();
        places.fill(place.number, "made");
        drop(place);
        assert!(places.take().is_none());
        assert_eq!(places.empty(1), Some("made"));
        places.go_on_after(7);
        assert_eq!(places.take().unwrap().number, 8);
    }
}
