//! Election of the leader, on a Lease of the Kubernetes API. No I/O.
//!
//! **The rule.** A candidate that sees the Lease unchanged for the Lease's duration, by its own clock, takes
//! it over by a compare-and-swap on the object's version; clocks of different machines are never compared.
//! The holder writes it again several times within its duration and believes to lead only until a duration
//! after the request of its last successful write *began*: it stops before another may begin, independently
//! of the network. **The term** is the Lease's number of transitions; it grows with each holder and fences
//! what a former leader still wants to write. **Cost** one read and at most one write a step. **Failure:**
//! without an API server the leader stops leading after the duration, and no candidate takes over; the same
//! holder goes on when the server is back. Source: the protocol of coordination.k8s.io/v1 Lease as
//! Kubernetes' own components use it.

use flashweir_core::{Duration, Instant};

/// A Lease as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRecord {
    /// The holder; none or empty: it was given up.
    pub holder: Option<String>,
    /// For how long a write counts.
    pub duration: Duration,
    /// Number of changes of the holder.
    pub transitions: u64,
    /// The object's version (`resourceVersion`), which each write changes.
    pub version: String,
}

/// Action on the Lease that is due now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseStep {
    /// Create the Lease with this number of transitions.
    Create {
        /// The new term.
        transitions: u64,
    },
    /// Replace the version that was read.
    Replace {
        /// The version that it must still have.
        version: String,
        /// The term of the holder, new or not.
        transitions: u64,
    },
    /// Another holds it.
    Wait,
}

/// One candidate.
#[derive(Debug)]
pub struct Election {
    identity: String,
    duration: Duration,
    /// Of another holder: the version that was last seen, when it was seen first, and for how long it counts.
    seen: Option<(String, Instant, Duration)>,
    /// Terms below this are known to have been used.
    least_term: u64,
    /// Until when this candidate leads, and in which term.
    held: Option<(Instant, u64)>,
}

impl Election {
    /// A candidate that leads nothing yet. `identity` must be unique; `duration` is for its own Leases.
    #[must_use]
    pub fn new(identity: String, duration: Duration) -> Self {
        Self { identity, duration, seen: None, least_term: 1, held: None }
    }

    /// As what it stands in the Lease.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// For how long its own write counts.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// The next term is at least this, though the Lease may count fewer transitions: it was deleted, or its
    /// holder wants a new term.
    pub fn set_least_term(&mut self, least_term: u64) {
        self.least_term = least_term;
    }

    /// Time at which the Lease of another, as it was last seen, may be taken over; none: there is none.
    #[must_use]
    pub fn expires_at(&self) -> Option<Instant> {
        self.seen.as_ref().map(|(_, since, duration)| *since + *duration)
    }

    /// The action for a Lease that was read at `now`; none: there is no such object.
    pub fn step(&mut self, now: Instant, read: Option<&LeaseRecord>) -> LeaseStep {
        let Some(lease) = read else {
            (self.held, self.seen) = (None, None);
            return LeaseStep::Create { transitions: self.least_term.max(1) };
        };
        let least_term = self.least_term;
        let replace = |transitions: u64| LeaseStep::Replace {
            version: lease.version.clone(),
            transitions: transitions.max(least_term),
        };
        let holder = lease.holder.as_deref().unwrap_or_default();
        if holder == self.identity {
            self.seen = None;
            return replace(lease.transitions);
        }
        // Another has it, so this candidate has it no more, however long its own time still runs.
        self.held = None;
        if holder.is_empty() {
            self.seen = None;
            return replace(lease.transitions + 1);
        }
        let since = match &self.seen {
            Some((version, since, _)) if *version == lease.version => *since,
            _ => {
                self.seen = Some((lease.version.clone(), now, lease.duration));
                now
            }
        };
        if now.saturating_since(since) >= lease.duration {
            replace(lease.transitions + 1)
        } else {
            LeaseStep::Wait
        }
    }

    /// A write that began at `began` was taken.
    pub fn written(&mut self, began: Instant, transitions: u64) {
        self.held = Some((began + self.duration, transitions));
    }

    /// A write was refused, because another was first: who leads is known after the next read.
    pub fn refused(&mut self) {
        self.held = None;
    }

    /// The term in which this candidate leads at `now`; none if it does not.
    #[must_use]
    pub fn term(&self, now: Instant) -> Option<u64> {
        self.held.filter(|(until, _)| *until > now).map(|(_, term)| term)
    }

    /// Until when it leads, and in which term.
    #[must_use]
    pub fn held(&self) -> Option<(Instant, u64)> {
        self.held
    }

    /// Returns whether it still leads when something that takes `within` has ended.
    #[must_use]
    pub fn leads_for(&self, now: Instant, within: Duration) -> bool {
        self.term(now + within).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DURATION: Duration = Duration::from_secs(2);

    fn record(holder: &str, transitions: u64, version: u64) -> LeaseRecord {
        LeaseRecord {
            holder: Some(holder.to_owned()),
            duration: DURATION,
            transitions,
            version: version.to_string(),
        }
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn a_silent_holder_is_replaced_after_the_duration_by_the_candidates_own_clock() {
        let mut candidate = Election::new("b".to_owned(), DURATION);
        assert_eq!(candidate.step(at(0), Some(&record("a", 3, 1))), LeaseStep::Wait);
        assert_eq!(candidate.step(at(1_900), Some(&record("a", 3, 2))), LeaseStep::Wait, "it was renewed");
        assert_eq!(candidate.step(at(3_899), Some(&record("a", 3, 2))), LeaseStep::Wait);
        let expected = LeaseStep::Replace { version: "2".to_owned(), transitions: 4 };
        assert_eq!(candidate.step(at(3_900), Some(&record("a", 3, 2))), expected);
        candidate.written(at(3_900), 4);
        assert_eq!((candidate.term(at(5_899)), candidate.term(at(5_900))), (Some(4), None));
        assert!(candidate.leads_for(at(4_000), Duration::from_secs(1)));
        assert!(!candidate.leads_for(at(5_000), Duration::from_secs(1)));
    }

    #[test]
    fn a_lease_that_was_given_up_is_taken_at_once() {
        let mut candidate = Election::new("b".to_owned(), DURATION);
        assert_eq!(candidate.step(at(0), None), LeaseStep::Create { transitions: 1 });
        let expected = LeaseStep::Replace { version: "9".to_owned(), transitions: 6 };
        assert_eq!(candidate.step(at(0), Some(&record("", 5, 9))), expected);
    }

    #[test]
    fn a_term_is_never_one_that_was_used() {
        let mut candidate = Election::new("b".to_owned(), DURATION);
        candidate.set_least_term(9);
        assert_eq!(
            candidate.step(at(0), None),
            LeaseStep::Create { transitions: 9 },
            "a Lease that was deleted"
        );
        let replace = |transitions| LeaseStep::Replace { version: "5".to_owned(), transitions };
        assert_eq!(candidate.step(at(0), Some(&record("", 3, 5))), replace(9));
        assert_eq!(candidate.step(at(0), Some(&record("", 20, 5))), replace(21));
        candidate.written(at(0), 21);
        candidate.set_least_term(21);
        assert_eq!(candidate.step(at(1), Some(&record("b", 21, 5))), replace(21), "renewed in the same term");
        candidate.set_least_term(22);
        assert_eq!(
            candidate.step(at(1), Some(&record("b", 21, 5))),
            replace(22),
            "a new term of the same holder"
        );
    }

    #[test]
    fn the_end_of_anothers_lease_is_known_and_a_version_seen_again_does_not_move_it() {
        let mut candidate = Election::new("b".to_owned(), DURATION);
        assert_eq!(candidate.expires_at(), None);
        candidate.step(at(100), Some(&record("a", 1, 1)));
        candidate.step(at(900), Some(&record("a", 1, 1)));
        assert_eq!(candidate.expires_at(), Some(at(2_100)));
        candidate.step(at(1_000), Some(&record("a", 1, 2)));
        assert_eq!(candidate.expires_at(), Some(at(3_000)));
        candidate.step(at(1_100), Some(&record("", 1, 3)));
        assert_eq!(candidate.expires_at(), None, "given up");
    }

    #[test]
    fn who_reads_another_holder_leads_no_more() {
        let mut former = Election::new("a".to_owned(), DURATION);
        former.written(at(0), 1);
        assert_eq!(former.term(at(1_000)), Some(1));
        former.step(at(1_000), Some(&record("b", 2, 7)));
        assert_eq!(former.term(at(1_000)), None);
    }

    /// A server with one Lease that takes a write only for the version that it has.
    #[derive(Default)]
    struct Server(Option<LeaseRecord>, u64);

    impl Server {
        fn write(&mut self, step: &LeaseStep, identity: &str) -> Option<u64> {
            let (is_current, transitions) = match (step, &self.0) {
                (LeaseStep::Create { transitions }, None) => (true, *transitions),
                (LeaseStep::Replace { version, transitions }, Some(lease)) => {
                    (*version == lease.version, *transitions)
                }
                _ => (false, 0),
            };
            self.1 += u64::from(is_current);
            is_current.then(|| {
                self.0 = Some(record(identity, transitions, self.1));
                transitions
            })
        }
    }

    proptest! {
        /// Goal: never two leaders, and terms that only grow. Method: candidates whose reads and writes are
        /// delayed at random, some of them lost, against a server that compares and swaps.
        #[test]
        fn there_are_never_two_leaders(
            steps in proptest::collection::vec((0_usize..3, 0_u64..900, 0_u64..400, prop::bool::weighted(0.8)), 1..200)
        ) {
            let mut server = Server::default();
            let mut candidates: Vec<_> =
                ["a", "b", "c"].iter().map(|name| Election::new((*name).to_owned(), DURATION)).collect();
            let (mut now_ms, mut term_before) = (0, 0);
            for (who, pause_ms, delay_ms, is_answered) in steps {
                now_ms += pause_ms;
                let read = server.0.clone();
                let identity = candidates[who].identity().to_owned();
                let step = candidates[who].step(at(now_ms), read.as_ref());
                let began = at(now_ms);
                now_ms += delay_ms;
                if step != LeaseStep::Wait {
                    match server.write(&step, &identity) {
                        Some(transitions) if is_answered => candidates[who].written(began, transitions),
                        Some(_) => {}
                        None => candidates[who].refused(),
                    }
                }
                let leaders: Vec<_> = candidates.iter().filter_map(|it| it.term(at(now_ms))).collect();
                prop_assert!(leaders.len() <= 1, "{leaders:?}");
                if let [term] = leaders[..] {
                    prop_assert!(term >= term_before);
                    term_before = term;
                }
            }
        }
    }
}
