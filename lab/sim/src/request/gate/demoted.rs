//! Keeps which classes' requests fairness has demoted, and for how long one person's.

use super::simulated_request::SimulatedRequest;
use crate::request::Demotions;
use flashweir_admission::fairness::Cause;
use flashweir_core::Instant;
use std::collections::BTreeMap;

/// By class of the scenario.
#[derive(Debug)]
pub(super) struct Demoted {
    classes: Vec<Demotions>,
    /// Persons, by class and session, whose last request was demoted, and since when without a break.
    since: BTreeMap<(u16, u64), Instant>,
}

impl Demoted {
    pub(super) fn new(classes: usize) -> Self {
        Self { classes: vec![Demotions::default(); classes], since: BTreeMap::new() }
    }

    pub(super) fn record(&mut self, now: Instant, asked: &SimulatedRequest, demoted: Option<Cause>) {
        let key = (asked.class, asked.signs.person_key);
        let Some(cause) = demoted else {
            self.since.remove(&key);
            return;
        };
        // The scenario was checked: every request is of one of its classes.
        let class = &mut self.classes[usize::from(asked.class)];
        let second = (now.as_nanos() / 1_000_000_000) as usize;
        if class.by_second.len() <= second {
            class.by_second.resize(second + 1, 0);
        }
        class.by_second[second] += 1;
        class.by_cause[cause.index()] += 1;
        // Without a session, persons are not distinguished.
        if asked.signs.conduct.has_session {
            let since = *self.since.entry(key).or_insert(now);
            class.longest = class.longest.max(now.saturating_since(since));
        }
    }

    pub(super) fn take(&mut self) -> Vec<Demotions> {
        std::mem::take(&mut self.classes)
    }
}
