//! One node as a caller keeps it: its limit, what arrives for it, which requests wait, and whether it
//! answers.
//!
//! Requests differ by their rank only. `T` is the shell's data of a request that waits; `M` is the MAC of the
//! keys. Cost of a request that is not limited: the average of arrivals (one exponential) and three
//! comparisons.

use crate::caller::OfferedRate;
use crate::caller::quota::{HOLD_MAX, HOLD_PART, Quota};
use crate::caller::report::{Condition, FeedbackCounts, FeedbackOutcome, Report};
use crate::caller::silence::{Leave, Silence, SilenceState};
use crate::{FieldError, Intake, KeyRing, Limit, Mac, RATE_FLOOR, Taken};
use flashweir_admission::gapping::{self, Decision, GappedTarget, Reason, Released, Restriction};
use flashweir_core::{Duration, Instant, Rate, Rng};

/// Settings for one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointSettings {
    /// Spacing of requests, and the bounds on their number and time in the queue.
    pub gapping: gapping::Settings,
    /// True if a spent quota of the standard fields holds all requests back, and not only the one that it
    /// came with. False by default: many servers count by their own callers' callers, and then one of those
    /// would stop all others.
    pub obeys_quota: bool,
}

/// Decision on a request that arrives.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrival<T> {
    /// Send it.
    Send(T),
    /// It waits: [`Endpoint::next`] says more. Another one may have to be refused for it.
    Queued(Option<T>),
    /// Refuse it.
    Refuse(T, CallerRefusal),
}

/// Reason for which the caller refuses a request by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerRefusal {
    /// A limit is spent.
    Limit(Reason),
    /// The node answers nothing; the next trial is due after this time.
    Silent {
        /// Until the next trial.
        retry_in: Duration,
    },
}

/// Fields of an answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answer<'a> {
    /// The value of `Flashweir-Overload`.
    pub overload: Option<&'a [u8]>,
    /// True if that field has further lines.
    pub has_further_lines: bool,
    /// Quota in its head: see [`quota_of`](crate::caller::quota_of).
    pub quota: Option<Quota>,
}

/// A field that was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FeedbackError {
    /// It is not in order.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// There is more than one: which of them is the node's cannot be known.
    #[error("more than one field Flashweir-Overload")]
    Lines,
}

/// See the module.
///
/// ```
/// use flashweir_feedback::caller::{Answer, Arrival, Condition, Endpoint, EndpointSettings};
/// use flashweir_core::{Duration, Instant, Rate, Rng};
/// use flashweir_feedback::{Feedback, Field, KeyRing};
/// let key = |parts: &[&[u8]]| [parts.iter().map(|part| part.len() as u8).sum(); 32];
/// let ring = || KeyRing::new(vec![(1, key)]).unwrap();
/// let mut node = Endpoint::new(EndpointSettings::default(), ring(), b"shop>api", Rng::new(1));
/// let now = Instant::from_secs(1);
/// assert_eq!(node.arrive(now, 3, false, "first"), Arrival::Send("first"));
/// // The node asks for ten requests a second of rank 1 and above.
/// let rate = Some(Rate::from_per_second(10.0));
/// let asks = Feedback { epoch: 1, sequence: 1, from_rank: 1, severity: 1, rate, ttl: Duration::from_secs(2) };
/// let field = Field::new(&asks, &ring(), b"shop>api").unwrap();
/// node.answered(now, &Answer { overload: Some(field.as_bytes()), ..Answer::default() }).unwrap();
/// assert_eq!(node.report(now).condition, Condition::Limited);
/// assert_eq!(["a", "b"].map(|it| node.arrive(now, 3, false, it)), [Arrival::Send("a"), Arrival::Send("b")]);
/// assert_eq!(node.arrive(now, 3, false, "c"), Arrival::Queued(None));
/// assert_eq!(node.arrive(now, 0, false, "d"), Arrival::Send("d"));
/// ```
#[derive(Debug)]
pub struct Endpoint<T, M> {
    settings: EndpointSettings,
    intake: Intake<M>,
    target: GappedTarget<T>,
    offered: OfferedRate,
    silence: Silence,
    /// Until when a spent quota holds requests back, and at which rate.
    hold: Option<(Instant, Rate)>,
    condition: Condition,
    since: Instant,
    held_for: Duration,
    /// Sent as trials, past the target.
    trials: u64,
    refused_silent: u64,
    unanswered: u64,
    feedback: FeedbackCounts,
}

impl<T, M: Mac> Endpoint<T, M> {
    /// For a node with which this caller shares the keys and the context. `random` draws for a percentage.
    #[must_use]
    pub fn new(settings: EndpointSettings, keys: KeyRing<M>, context: &[u8], random: Rng) -> Self {
        Self {
            settings,
            intake: Intake::new(keys, context),
            target: GappedTarget::new(settings.gapping, random),
            offered: OfferedRate::default(),
            silence: Silence::default(),
            hold: None,
            condition: Condition::Open,
            since: Instant::ZERO,
            held_for: Duration::ZERO,
            trials: 0,
            refused_silent: 0,
            unanswered: 0,
            feedback: FeedbackCounts::default(),
        }
    }

    /// A request arrives. `is_continued`: its work has begun elsewhere, so it goes and takes its token on
    /// credit.
    pub fn arrive(&mut self, now: Instant, rank: u8, is_continued: bool, kept: T) -> Arrival<T> {
        self.arrive_before(now, rank, is_continued, Instant::MAX, kept)
    }

    /// The same for a request that is of no use any more from `too_late_at` on: it waits no longer than that.
    pub fn arrive_before(
        &mut self,
        now: Instant,
        rank: u8,
        is_continued: bool,
        too_late_at: Instant,
        kept: T,
    ) -> Arrival<T> {
        self.offered.arrive(now);
        match self.silence.leave(now) {
            Leave::Go => {}
            Leave::Trial => {
                self.trials += 1;
                return Arrival::Send(kept);
            }
            Leave::Stay(retry_in) => {
                self.refused_silent += 1;
                return Arrival::Refuse(kept, CallerRefusal::Silent { retry_in });
            }
        }
        self.refresh(now);
        if is_continued {
            self.target.arrive_continued(now);
            return Arrival::Send(kept);
        }
        match self.target.arrive_before(now, rank, too_late_at, kept) {
            Decision::Send(kept) => Arrival::Send(kept),
            Decision::Queued(displaced) => Arrival::Queued(displaced),
            Decision::Refuse(kept, reason) => Arrival::Refuse(kept, CallerRefusal::Limit(reason)),
        }
    }

    /// Returns whether a request of this rank would be sent at once. Takes nothing.
    pub fn is_open(&mut self, now: Instant, rank: u8) -> bool {
        if let SilenceState::Silent { .. } = self.silence.state() {
            return self.silence.is_trial_due(now);
        }
        self.refresh(now);
        self.target.is_open(now, rank)
    }

    /// Returns whether the next request would go as a trial.
    #[must_use]
    pub fn is_trial_due(&self, now: Instant) -> bool {
        self.silence.is_trial_due(now)
    }

    /// The next request that waits no longer, if there is one; to be asked until there is none.
    pub fn next(&mut self, now: Instant) -> Option<Released<T>> {
        self.refresh(now);
        self.target.next(now)
    }

    /// Time at which [`next`](Self::next) is to be asked even if nothing else happens; none while no request
    /// waits.
    pub fn next_wake(&mut self, now: Instant) -> Option<Instant> {
        self.target.next_wake(now)
    }

    /// Takes requests whose callers have given up out of the queue.
    pub fn withdraw(&mut self, is_gone: impl Fn(&T) -> bool) {
        self.target.withdraw(is_gone);
    }

    /// An exchange ended with an answer. A field that is not in order changes nothing else.
    ///
    /// # Errors
    /// [`FeedbackError`] for a field that was ignored; it is counted already.
    pub fn answered(&mut self, now: Instant, answer: &Answer<'_>) -> Result<Option<Taken>, FeedbackError> {
        let offered = self.offered.rate(now);
        self.silence.answered(now, offered);
        self.hold(now, answer.quota, offered);
        let taken = self.take(now, answer, offered);
        self.refresh(now);
        taken
    }

    /// The trailers of an answer speak of a quota: a gRPC answer with messages says at its end how it went.
    pub fn hear_quota(&mut self, now: Instant, quota: Quota) {
        let offered = self.offered.rate(now);
        self.hold(now, Some(quota), offered);
        self.refresh(now);
    }

    /// An exchange ended without an answer: no connection, a reset before the response, or no response in
    /// time.
    pub fn unanswered(&mut self, now: Instant) {
        self.unanswered += 1;
        self.silence.unanswered(now);
        self.refresh(now);
    }

    /// A message that came in a datagram, signed for this context. It says nothing of whether the node
    /// answers requests.
    ///
    /// # Errors
    /// As [`answered`](Self::answered); without keys, every message.
    pub fn hear(&mut self, now: Instant, value: &[u8], context: &[u8]) -> Result<Taken, FeedbackError> {
        let offered = self.offered.rate(now);
        let taken = self.intake.take_datagram(now, value, context, || offered);
        self.feedback.count(taken.map_or_else(FeedbackOutcome::from, FeedbackOutcome::from));
        self.refresh(now);
        Ok(taken?)
    }

    /// Other keys from now on. The limit in force stays.
    pub fn set_keys(&mut self, keys: KeyRing<M>) {
        self.intake.set_keys(keys);
    }

    /// The condition that holds requests back now. Changes with time alone; see [`refresh`](Self::refresh).
    #[must_use]
    pub fn condition(&self) -> Condition {
        self.condition
    }

    /// Brings the limit up to date: the tightest of what the node asked for, the quota and the ramp. Every
    /// other method does it first; a shell calls it where no request comes for a while, so that an ended
    /// limit is seen.
    pub fn refresh(&mut self, now: Instant) {
        let limit = self.intake.limit().limit(now);
        let ramp = self.silence.ramp(now);
        self.hold = self.hold.filter(|(until, _)| now < *until);
        let of_all = |rate| Restriction { from_rank: 0, severity: 0, rate };
        let asked =
            limit.map(|Limit { from_rank, severity, rate, .. }| Restriction { from_rank, severity, rate });
        let restriction = [asked, self.hold.map(|(_, rate)| of_all(rate)), ramp.map(of_all)]
            .into_iter()
            .flatten()
            .reduce(|one, other| Restriction {
                from_rank: one.from_rank.min(other.from_rank),
                severity: one.severity.max(other.severity),
                rate: one.rate.min(other.rate),
            });
        if restriction.as_ref() != self.target.restriction() {
            self.target.restrict(now, restriction);
        }
        let condition = match (self.silence.state(), limit) {
            (SilenceState::Silent { .. }, _) => Condition::Silent,
            (SilenceState::Returning { .. }, _) => Condition::Returning,
            (_, Some(limit)) if limit.is_expired => Condition::Expired,
            (_, Some(_)) => Condition::Limited,
            (_, None) if self.hold.is_some() => Condition::Quota,
            (_, None) => Condition::Open,
        };
        if condition != self.condition {
            if self.condition != Condition::Open {
                self.held_for += now.saturating_since(self.since);
            }
            (self.condition, self.since) = (condition, now);
        }
    }

    /// A snapshot.
    pub fn report(&mut self, now: Instant) -> Report {
        self.refresh(now);
        let counts = self.target.counts();
        let since = now.saturating_since(self.since);
        let is_held = self.condition != Condition::Open;
        Report {
            condition: self.condition,
            since,
            limit: self.intake.limit().limit(now),
            rate: self.target.restriction().map(|restriction| restriction.rate),
            feedback_age: self.intake.limit().age(now),
            offered: self.offered.rate(now),
            arrived: counts.offered + self.trials + self.refused_silent,
            sent: counts.sent + self.trials,
            refused_limit: counts.refused,
            withdrawn: counts.withdrawn,
            refused_silent: self.refused_silent,
            waiting: self.target.waiting(),
            held_for: if is_held { self.held_for + since } else { self.held_for },
            unanswered: self.unanswered,
            feedback: self.feedback,
        }
    }

    fn hold(&mut self, now: Instant, quota: Option<Quota>, offered: Rate) {
        if let Some(quota) = quota.filter(|quota| self.settings.obeys_quota && quota.remaining == 0) {
            let until = now + quota.reset.min(HOLD_MAX);
            let rate = Rate::from_milli(offered.as_milli() / HOLD_PART).max(RATE_FLOOR);
            self.hold = self.hold.filter(|(held, _)| *held >= until).or(Some((until, rate)));
        }
    }

    fn take(
        &mut self,
        now: Instant,
        answer: &Answer<'_>,
        offered: Rate,
    ) -> Result<Option<Taken>, FeedbackError> {
        if answer.has_further_lines {
            self.feedback.count(FeedbackOutcome::Lines);
            return Err(FeedbackError::Lines);
        }
        match answer.overload {
            Some(value) => self.take_field(now, value, offered).map(Some),
            None => {
                if self.intake.limit().limit(now).is_some() {
                    self.feedback.count(FeedbackOutcome::Missing);
                }
                Ok(None)
            }
        }
    }

    fn take_field(&mut self, now: Instant, value: &[u8], offered: Rate) -> Result<Taken, FeedbackError> {
        let taken = self.intake.take(now, value, || offered);
        self.feedback.count(taken.map_or_else(FeedbackOutcome::from, FeedbackOutcome::from));
        Ok(taken?)
    }
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
