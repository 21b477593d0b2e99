//! A map of a loaded program, whose keys and values have types.

use std::collections::HashSet;
use std::os::fd::AsFd as _;

use libbpf_rs::{MapCore as _, MapFlags, MapHandle};

use crate::account::map_bytes;
use crate::plain::{Plain, bytes_of, value_of};
use crate::program::{LoadError, Program};

/// Entries of an array that are read in one system call.
const BATCH: u32 = 1_024;

/// A map whose errors say which it was.
#[derive(Debug)]
pub(crate) struct Map {
    name: &'static str,
    handle: MapHandle,
}

impl Map {
    pub(crate) fn of(program: &Program, name: &'static str) -> Result<Self, LoadError> {
        Ok(Self { name, handle: program.map(name)? })
    }

    pub(crate) fn write<K: Plain, V: Plain>(&self, key: &K, value: &V) -> Result<(), LoadError> {
        self.named(self.handle.update(bytes_of(key), bytes_of(value), MapFlags::ANY))
    }

    pub(crate) fn read<K: Plain, V: Plain>(&self, key: &K) -> Result<V, LoadError> {
        let value = self.named(self.handle.lookup(bytes_of(key), MapFlags::ANY))?;
        Ok(value_of(&value.ok_or(LoadError::Missing(self.name))?))
    }

    /// Takes an entry out, if it is there.
    pub(crate) fn remove<K: Plain>(&self, key: &K) -> Result<(), LoadError> {
        match self.handle.delete(bytes_of(key)) {
            Err(error) if error.kind() == libbpf_rs::ErrorKind::NotFound => Ok(()),
            result => self.named(result),
        }
    }

    pub(crate) fn of_processors<V: Plain>(&self, key: &u32) -> Result<Vec<V>, LoadError> {
        let values = self.named(self.handle.lookup_percpu(bytes_of(key), MapFlags::ANY))?;
        let values = values.ok_or(LoadError::Missing(self.name))?;
        Ok(values.iter().map(|bytes| value_of(bytes)).collect())
    }

    /// Takes everything out, at most `most` entries; a few system calls.
    pub(crate) fn drain<K: Plain, V: Plain>(&self, most: u32) -> Result<Vec<(K, V)>, LoadError> {
        let entries = self.handle.lookup_and_delete_batch(most, MapFlags::ANY, MapFlags::ANY);
        Ok(self.named(entries)?.map(|(key, value)| (value_of(&key), value_of(&value))).collect())
    }

    /// All entries of an array, in the order of their indices; one system call for each `BATCH` of them.
    pub(crate) fn read_array<V: Plain>(&self) -> Result<Vec<V>, LoadError> {
        let entries = self.named(self.handle.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY))?;
        Ok(entries.map(|(_, value)| value_of(&value)).collect())
    }

    /// Writes the default value to these entries of an array; a system call.
    pub(crate) fn clear_range<V: Plain>(&self, first: u32, count: u32) -> Result<(), LoadError> {
        let keys: Vec<u8> = (first..first + count).flat_map(u32::to_ne_bytes).collect();
        let values: Vec<u8> = bytes_of(&V::default()).repeat(count as usize);
        self.named(self.handle.update_batch(&keys, &values, count, MapFlags::ANY, MapFlags::ANY))
    }

    /// Bytes of kernel memory that it takes.
    pub(crate) fn memory_bytes(&self) -> std::io::Result<u64> {
        map_bytes(self.handle.as_fd())
    }

    /// Makes it hold these and nothing else. What it held and still holds is there all the while.
    pub(crate) fn replace<K: Plain, V: Plain>(&self, entries: &[(K, V)]) -> Result<(), LoadError> {
        let new: HashSet<_> = entries.iter().map(|(key, _)| bytes_of(key)).collect();
        let held: Vec<_> = self.handle.keys().collect();
        let mut stale = held.iter().filter(|key| !new.contains(key.as_slice()));
        stale.try_for_each(|key| self.named(self.handle.delete(key)))?;
        entries.iter().try_for_each(|(key, value)| self.write(key, value))
    }

    /// Returns whether it holds these and nothing else.
    pub(crate) fn holds<K: Plain, V: Plain>(&self, entries: &[(K, V)]) -> Result<bool, LoadError> {
        let value = |key: &[u8]| self.named(self.handle.lookup(key, MapFlags::ANY));
        for (key, expected) in entries {
            if value(bytes_of(key))?.is_none_or(|value| value != bytes_of(expected)) {
                return Ok(false);
            }
        }
        let distinct: HashSet<_> = entries.iter().map(|(key, _)| bytes_of(key)).collect();
        Ok(self.handle.keys().count() == distinct.len())
    }

    fn named<T>(&self, result: libbpf_rs::Result<T>) -> Result<T, LoadError> {
        result.map_err(|error| LoadError::Map { map: self.name, error })
    }
}
