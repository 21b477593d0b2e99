//! Idle HTTP/1 connections of one thread, kept for the next request from the same address.

use super::stream::{Stream, is_quiet};
use flashweir_core::limits::LOAD_IDLE_CONNECTIONS;
use std::collections::HashMap;
use std::net::IpAddr;

/// The connections; at most [`LOAD_IDLE_CONNECTIONS`].
#[derive(Debug, Default)]
pub(super) struct Idle {
    by_source: HashMap<Option<IpAddr>, Vec<Stream>>,
    count: usize,
}

impl Idle {
    /// The connection from `source` that was used last, if one is still in order: neither closed by the
    /// server nor holding unrequested bytes. The others found on the way are closed.
    pub(super) fn take(&mut self, source: Option<IpAddr>) -> Option<Stream> {
        let connections = self.by_source.get_mut(&source)?;
        let mut found = None;
        while found.is_none()
            && let Some(mut connection) = connections.pop()
        {
            self.count -= 1;
            found = is_quiet(&mut connection).then_some(connection);
        }
        // Addresses come and go; the place of those who have none in particular is needed again at once.
        if connections.is_empty() && source.is_some() {
            self.by_source.remove(&source);
        }
        found
    }

    /// Keeps a connection; beyond the bound it is closed instead.
    pub(super) fn put(&mut self, source: Option<IpAddr>, connection: Stream) {
        if self.count < LOAD_IDLE_CONNECTIONS {
            self.count += 1;
            self.by_source.entry(source).or_default().push(connection);
        }
    }

    /// Closes one, of any address: the one from there that waited longest. Cost: linear in the bound.
    pub(super) fn close_one(&mut self) {
        let Some(connections) = self.by_source.values_mut().find(|connections| !connections.is_empty())
        else {
            return;
        };
        drop(connections.remove(0));
        self.count -= 1;
        self.by_source.retain(|source, connections| source.is_none() || !connections.is_empty());
    }

    /// Number of idle connections.
    pub(super) fn count(&self) -> usize {
        self.count
    }
}
