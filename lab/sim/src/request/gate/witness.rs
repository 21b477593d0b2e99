//! Checks the sentry's gates: the order of their admissions, and the counts that they report.

use super::worker::Waiting;
use crate::request::slab::Id;
use flashweir_admission::pipeline::{Arrival, StageName};
use flashweir_admission::sentry::{ClassCounts, Policing, Policy, Position, Sample};
use flashweir_core::Rate;
use std::collections::BTreeSet;

/// Decisions of the gates, by class of the policy.
#[derive(Debug)]
pub(super) struct Witness {
    /// Rank of each class in the order of importance, 0 first. Empty where decisions do not follow it.
    ranks: Vec<u8>,
    is_guaranteed: Vec<bool>,
    /// Number of requests queued at [`Position::Usual`], by worker and class.
    waiting: Vec<Vec<u64>>,
    /// Queued requests of clients over their share: they wait for room that others leave.
    over_share: BTreeSet<Id>,
    /// Queued requests for a hot spot.
    behind: BTreeSet<Id>,
    seen: Vec<TryCounts>,
    /// Counts reported by the gates; equal to `seen` after each drain of all of them.
    reported: Vec<TryCounts>,
    broken: Option<String>,
}

/// Requests of a class, counted by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TryCounts {
    offered: u64,
    admitted: u64,
    shed: u64,
    shed_elsewhere: u64,
    left: u64,
    held: u64,
}

/// Way in which a request was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    AtOnce,
    /// Its URL class is long in the plan: it may need no place, so it overtakes no request.
    AsLong,
    AfterWaiting(Id),
}

impl Witness {
    pub(super) fn new(policy: &Policy, workers: usize) -> Self {
        let classes = policy.classes.len();
        let is_by_rank = policy.policing == Policing::Reservation;
        Self {
            ranks: if is_by_rank { policy.ranks() } else { Vec::new() },
            is_guaranteed: policy.classes.iter().map(|class| class.guaranteed_rate != Rate::ZERO).collect(),
            waiting: vec![vec![0; classes]; workers],
            over_share: BTreeSet::new(),
            behind: BTreeSet::new(),
            seen: vec![TryCounts::default(); classes],
            reported: vec![TryCounts::default(); classes],
            broken: None,
        }
    }

    /// A request arrived at a worker, and this became of it. `class_of` names the class of another that had
    /// to go for it.
    pub(super) fn arrived(
        &mut self,
        worker: usize,
        class: usize,
        who: Id,
        arrival: &Arrival<Waiting>,
        is_long: bool,
        class_of: impl Fn(&Waiting) -> usize,
    ) {
        self.seen[class].offered += 1;
        match arrival {
            Arrival::Admitted(..) => {
                self.admitted(worker, class, if is_long { How::AsLong } else { How::AtOnce });
            }
            Arrival::Refused(refusal) => self.shed(worker, class, None, refusal.stage),
            Arrival::Queued(ticket, displaced) => {
                self.held(worker, class, who, ticket.position());
                if let Some((other, refusal)) = displaced {
                    self.shed(worker, class_of(other), Some(other.attempt), refusal.stage);
                }
            }
        }
    }

    fn held(&mut self, worker: usize, class: usize, who: Id, position: Position) {
        match position {
            Position::OverShare => _ = self.over_share.insert(who),
            Position::HotSpot => _ = self.behind.insert(who),
            Position::Usual => self.waiting[worker][class] += 1,
        }
        self.seen[class].held += 1;
    }

    /// A request is admitted. Queued requests go by importance within a worker; an arriving one overtakes
    /// none that is at least as important, in the queue of any worker.
    pub(super) fn admitted(&mut self, worker: usize, class: usize, how: How) {
        self.seen[class].admitted += 1;
        if let How::AfterWaiting(who) = how {
            self.waits_no_more(worker, class, who);
        }
        let is_free = how == How::AsLong || how == How::AtOnce && self.is_guaranteed[class];
        if self.ranks.is_empty() || is_free {
            return;
        }
        let rank = self.ranks[class];
        let overtaken = |waiting: &[u64]| {
            let mut waiting = waiting.iter().zip(&self.ranks);
            waiting.any(|(&count, &other)| count > 0 && (other < rank || how == How::AtOnce && other == rank))
        };
        let is_wrong = match how {
            How::AtOnce | How::AsLong => self.waiting.iter().any(|waiting| overtaken(waiting)),
            How::AfterWaiting(_) => overtaken(&self.waiting[worker]),
        };
        if is_wrong {
            self.broken = Some(format!(
                "class {class} was let in {how:?} at worker {worker}, with {:?} waiting of the ranks {:?}",
                self.waiting, self.ranks
            ));
        }
    }

    /// One is refused, at once or (of whom waited) later.
    pub(super) fn shed(&mut self, worker: usize, class: usize, was_held: Option<Id>, stage: StageName) {
        match stage {
            StageName::Sentry => self.seen[class].shed += 1,
            _ => self.seen[class].shed_elsewhere += 1,
        }
        if let Some(who) = was_held {
            self.waits_no_more(worker, class, who);
        }
    }

    pub(super) fn left(&mut self, worker: usize, class: usize, who: Id) {
        self.seen[class].left += 1;
        self.waits_no_more(worker, class, who);
    }

    /// Adds up a gate's sample.
    pub(super) fn add_report(&mut self, sample: &Sample) {
        for (reported, class) in self.reported.iter_mut().zip(&sample.classes) {
            let ClassCounts { offered, admitted, shed, shed_elsewhere, left, held, .. } = *class;
            reported.offered += offered;
            reported.admitted += admitted;
            reported.shed += shed;
            reported.shed_elsewhere += shed_elsewhere;
            reported.left += left;
            reported.held += u64::from(held);
        }
    }

    /// Compares the counts, once all gates have reported.
    pub(super) fn compare(&mut self) {
        if self.reported != self.seen {
            self.broken = Some(format!("the gates tell {:?}, but {:?} was seen", self.reported, self.seen));
        }
        self.reported.iter_mut().for_each(|reported| reported.held = 0);
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.broken.clone().map_or(Ok(()), Err)
    }

    /// Number of queued requests that wait for room that others leave.
    pub(super) fn over_share(&self) -> u64 {
        self.over_share.len() as u64
    }

    fn waits_no_more(&mut self, worker: usize, class: usize, who: Id) {
        if !self.over_share.remove(&who) && !self.behind.remove(&who) {
            self.waiting[worker][class] -= 1;
        }
        self.seen[class].held -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_admission::sentry::ClassPolicy;
    use flashweir_core::Duration;

    fn witness() -> Witness {
        let class = |revenue| ClassPolicy { revenue, ..ClassPolicy::default() };
        let mut policy = Policy::single(Duration::from_secs(1));
        policy.classes = vec![class(2.0), class(1.0), class(1.0)];
        Witness::new(&policy, 2)
    }

    fn ids() -> [Id; 2] {
        [1, 2].map(Id::of_number)
    }

    #[test]
    fn whoever_waits_goes_by_importance_and_whoever_comes_overtakes_nobody() {
        use How::{AfterWaiting, AtOnce};
        let [first, second] = ids();
        let after_waiting = AfterWaiting(second);
        let check = |waits: usize, worker: usize, class: usize, how: How| {
            let mut witness = witness();
            witness.held(0, waits, first, Position::Usual);
            if how == after_waiting {
                witness.held(worker, class, second, Position::Usual);
            }
            witness.admitted(worker, class, how);
            witness.check().is_ok()
        };
        assert!(
            !check(0, 0, 1, after_waiting) && check(1, 0, 0, after_waiting) && check(1, 0, 2, after_waiting)
        );
        // Another worker's may have gone first.
        assert!(check(0, 1, 1, after_waiting));
        // Requests over their share wait until no other request does.
        let mut witness = witness();
        witness.held(0, 1, first, Position::OverShare);
        witness.admitted(0, 1, AtOnce);
        assert_eq!((witness.check(), witness.over_share()), (Ok(()), 1));
        assert!(!check(0, 1, 1, AtOnce) && !check(1, 1, 2, AtOnce) && check(1, 1, 0, AtOnce));
    }

    #[test]
    fn what_gates_tell_has_to_be_what_was_seen() {
        let mut witness = witness();
        witness.seen[1].offered += 1;
        let [who, _] = ids();
        witness.held(0, 1, who, Position::Usual);
        let mut sample = Sample { classes: vec![ClassCounts::default(); 3], ..Sample::default() };
        sample.classes[1].offered = 1;
        sample.classes[1].held = 1;
        witness.add_report(&sample);
        witness.compare();
        assert_eq!(witness.check(), Ok(()));
        witness.left(0, 1, who);
        witness.add_report(&Sample { classes: vec![ClassCounts::default(); 3], ..Sample::default() });
        witness.compare();
        assert!(witness.check().unwrap_err().starts_with("the gates tell "));
    }
}
