//! The maps that user space reads and writes.

use std::collections::HashSet;

use libbpf_rs::{MapCore as _, MapFlags, MapHandle};

use super::abi::{Plain, bytes_of, value_of};
use crate::program::{LoadError, Program};

/// All of them.
#[derive(Debug)]
pub(super) struct Maps {
    pub(super) control: Map,
    pub(super) endpoints: Map,
    pub(super) plans: Map,
    pub(super) answers: Map,
    pub(super) preferred: Map,
    pub(super) purged: Map,
    pub(super) counts: Map,
    pub(super) passes: Map,
}

impl Maps {
    pub(super) fn of(program: &Program) -> Result<Self, LoadError> {
        let map = |name| Ok::<_, LoadError>(Map { name, handle: program.map(name)? });
        Ok(Self {
            control: map("control")?,
            endpoints: map("endpoints")?,
            plans: map("plans")?,
            answers: map("answers")?,
            preferred: map("preferred")?,
            purged: map("purged")?,
            counts: map("counts")?,
            passes: map("passes")?,
        })
    }
}

/// A map whose errors say which it was.
#[derive(Debug)]
pub(super) struct Map {
    name: &'static str,
    handle: MapHandle,
}

impl Map {
    pub(super) fn write<K: Plain, V: Plain>(&self, key: &K, value: &V) -> Result<(), LoadError> {
        self.named(self.handle.update(bytes_of(key), bytes_of(value), MapFlags::ANY))
    }

    pub(super) fn of_processors<V: Plain>(&self, key: &u32) -> Result<Vec<V>, LoadError> {
        let values = self.named(self.handle.lookup_percpu(bytes_of(key), MapFlags::ANY))?;
        let values = values.ok_or(LoadError::Missing(self.name))?;
        Ok(values.iter().map(|bytes| value_of(bytes)).collect())
    }

    /// Makes it hold these and nothing else. What it held and still holds is there all the while.
    pub(super) fn replace<K: Plain, V: Plain>(&self, entries: &[(K, V)]) -> Result<(), LoadError> {
        let new: HashSet<_> = entries.iter().map(|(key, _)| bytes_of(key)).collect();
        let held: Vec<_> = self.handle.keys().collect();
        let mut stale = held.iter().filter(|key| !new.contains(key.as_slice()));
        stale.try_for_each(|key| self.named(self.handle.delete(key)))?;
        entries.iter().try_for_each(|(key, value)| self.write(key, value))
    }

    fn named<T>(&self, result: libbpf_rs::Result<T>) -> Result<T, LoadError> {
        result.map_err(|error| LoadError::Map { map: self.name, error })
    }
}
