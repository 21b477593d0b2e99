//! Values that come and go by the million, each found by an id that is never mistaken for a successor's.

/// Names a value for as long as it is there. An id that outlives its value finds nothing. (Ordered only so
/// that it can be part of what is.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    index: u32,
    /// Wraps after four thousand million values in one place; an id would have to be kept over all of them.
    generation: u32,
}

/// A bounded collection with reuse: all operations are O(1), and places used last are used first again, so
/// that what is in use stays in the processor's cache.
///
/// Generations are stored separately from the values: validity of an id is looked up far more often than its
/// value.
#[derive(Debug)]
pub(super) struct Slab<T> {
    generations: Vec<u32>,
    values: Vec<Option<T>>,
    free: Vec<u32>,
    bound: usize,
}

impl Id {
    /// Finds nothing: no slab has a place of this index.
    pub(super) const NONE: Self = Self { index: u32::MAX, generation: 0 };

    /// Identifies the id in an event hash.
    pub(super) fn number(self) -> u64 {
        (u64::from(self.generation) << 32) | u64::from(self.index)
    }

    /// The id of which [`number`](Self::number) made this.
    pub(in crate::request) fn of_number(number: u64) -> Self {
        // Both halves, on purpose.
        Self { index: number as u32, generation: (number >> 32) as u32 }
    }
}

impl<T> Slab<T> {
    pub(super) fn with_bound(bound: usize) -> Self {
        Self { generations: Vec::new(), values: Vec::new(), free: Vec::new(), bound }
    }

    /// Number of values.
    pub(super) fn len(&self) -> usize {
        self.values.len() - self.free.len()
    }

    /// Takes a value in; `None` when the bound is met.
    pub(super) fn insert(&mut self, value: T) -> Option<Id> {
        if let Some(index) = self.free.pop() {
            self.values[index as usize] = Some(value);
            return Some(Id { index, generation: self.generations[index as usize] });
        }
        if self.values.len() >= self.bound {
            return None;
        }
        // Bounds are far below 2³².
        let index = self.values.len() as u32;
        self.values.push(Some(value));
        self.generations.push(0);
        Some(Id { index, generation: 0 })
    }

    /// Returns true if the id's value is there.
    pub(super) fn contains(&self, id: Id) -> bool {
        // A place that was left has another generation already.
        self.generations.get(id.index as usize) == Some(&id.generation)
    }

    pub(super) fn get(&self, id: Id) -> Option<&T> {
        if !self.contains(id) {
            return None;
        }
        self.values[id.index as usize].as_ref()
    }

    pub(super) fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        if !self.contains(id) {
            return None;
        }
        self.values[id.index as usize].as_mut()
    }

    /// Takes a value out.
    pub(super) fn remove(&mut self, id: Id) -> Option<T> {
        self.renew(id)?;
        self.free.push(id.index);
        self.values[id.index as usize].take()
    }

    /// The same value under a new id; the old one finds nothing from now on.
    pub(super) fn renew(&mut self, id: Id) -> Option<Id> {
        if !self.contains(id) {
            return None;
        }
        let generation = &mut self.generations[id.index as usize];
        *generation = generation.wrapping_add(1);
        Some(Id { index: id.index, generation: *generation })
    }

    /// All values. O(places ever used at once).
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.values.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_finds_its_value_and_no_later_one() {
        let mut slab = Slab::with_bound(2);
        let first = slab.insert('a').unwrap();
        let second = slab.insert('b').unwrap();
        assert_eq!(slab.insert('c'), None);
        assert_eq!((slab.remove(first), slab.remove(first), slab.len()), (Some('a'), None, 1));
        let third = slab.insert('c').unwrap();
        assert_eq!((slab.get(first), slab.get(third), slab.get(second)), (None, Some(&'c'), Some(&'b')));
        let renewed = slab.renew(second).unwrap();
        assert_eq!((slab.get(second), slab.get(renewed)), (None, Some(&'b')));
        assert_eq!(slab.renew(second), None);
        assert_eq!(slab.iter().collect::<String>(), "cb");
        assert_ne!(first.number(), third.number());
        assert_eq!(Id::of_number(third.number()), third);
    }
}
