//! Keeps the gate's purged sources as the list of impatient ones (`crate::impatient`) is.

use super::guard::{Guard, GuardError};
use flashweir_core::Instant;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Sources in the kernel's table.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// By source, until when it is purged; none before the first time.
    purged: Option<BTreeMap<IpAddr, Instant>>,
}

/// A change to a gate's table.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    /// Removes all entries that an earlier gateway left there.
    PardonAll,
    Pardon(IpAddr),
    /// Until then.
    Purge(IpAddr, Instant),
}

impl Sources {
    /// Has the gate purge these until those moments, and no others. A system call for each that is new or
    /// gone.
    pub(super) fn follow(
        &mut self,
        now: Instant,
        in_force: &[(IpAddr, Instant)],
        guard: &mut Guard,
    ) -> Result<(), GuardError> {
        for change in self.changes(in_force) {
            let done = match change {
                Change::PardonAll => guard.pardon_all(),
                Change::Pardon(source) => guard.pardon(source),
                Change::Purge(source, until) => guard.purge(source, until.saturating_since(now)),
            };
            if let Err(error) = done {
                // What is there is not known any more.
                self.purged = None;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns whether any source is purged.
    pub(super) fn purges(&self) -> bool {
        self.purged.as_ref().is_some_and(|purged| !purged.is_empty())
    }

    fn changes(&mut self, in_force: &[(IpAddr, Instant)]) -> Vec<Change> {
        let wanted: BTreeMap<_, _> = in_force.iter().copied().collect();
        let mut changes = Vec::new();
        let before = self.purged.take().unwrap_or_else(|| {
            changes.push(Change::PardonAll);
            BTreeMap::new()
        });
        changes
            .extend(before.keys().filter(|source| !wanted.contains_key(source)).copied().map(Change::Pardon));
        let is_new = |(source, until): &(&IpAddr, &Instant)| before.get(source) != Some(until);
        changes.extend(wanted.iter().filter(is_new).map(|(source, until)| Change::Purge(*source, *until)));
        self.purged = Some(wanted);
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_told() {
        let [one, two]: [IpAddr; 2] = ["198.51.100.7", "2001:db8::"].map(|text| text.parse().unwrap());
        let [soon, late] = [10, 20].map(Instant::from_secs);
        let mut sources = Sources::default();
        assert_eq!(sources.changes(&[]), [Change::PardonAll], "of a gate that was taken over");
        assert!(sources.changes(&[]).is_empty() && !sources.purges());
        let both = [(one, soon), (two, soon)];
        assert_eq!(sources.changes(&both), [Change::Purge(one, soon), Change::Purge(two, soon)]);
        assert!(sources.changes(&both).is_empty() && sources.purges());
        assert_eq!(sources.changes(&[(two, late)]), [Change::Pardon(one), Change::Purge(two, late)]);
        assert_eq!(sources.changes(&[]), [Change::Pardon(two)]);
    }
}
