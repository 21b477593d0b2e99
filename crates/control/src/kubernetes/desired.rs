//! Replicas that policies want, for KEDA and `/metrics`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Replicas that one policy wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DesiredReplicas {
    /// Number of replicas; none where nothing is known yet.
    pub replicas: Option<u32>,
}

/// All policies, by namespace and name. The leader writes what it plans, the others what the policies' status
/// says, so that any of them can be asked.
#[derive(Debug)]
pub struct DesiredTable {
    policies: Mutex<BTreeMap<(String, String), DesiredReplicas>>,
    changes: watch::Sender<u64>,
}

impl Default for DesiredTable {
    fn default() -> Self {
        Self { policies: Mutex::default(), changes: watch::Sender::new(0) }
    }
}

impl DesiredTable {
    /// Replaces all of them.
    pub fn replace(&self, policies: BTreeMap<(String, String), DesiredReplicas>) {
        let mut known = self.lock();
        if *known != policies {
            *known = policies;
            drop(known);
            self.changes.send_modify(|count| *count += 1);
        }
    }

    /// One of them; none if there is no such policy.
    #[must_use]
    pub fn of(&self, namespace: &str, name: &str) -> Option<DesiredReplicas> {
        self.lock().get(&(namespace.to_owned(), name.to_owned())).copied()
    }

    /// Changes from now on.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(String, String), DesiredReplicas>> {
        // It is replaced as a whole: a writer that panicked has changed nothing.
        self.policies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
