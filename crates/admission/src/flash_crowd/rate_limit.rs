//! The repaired ceiling: reference tracking with probe and release (docs/algorithms/news.md).
//!
//! Raised: `max(K, min(admitted·quality, T))`, K what the service carried before the crowd (completed while
//! responses were as usual), below which the ceiling falls only in a drain and once the capacity for K is
//! lost, and T the *drain rate*: completed, less what drains the excess waiting time within a second. A
//! saturated service completes at its capacity, so T is the capacity with a margin for the backlog; a service
//! that is not yet saturated, or whose link is the limit, is cut by its quality as in the paper's plant.
//! ALARM: cut by `clamp(quality/(1−m/4), 0.7, 0.98)`, never below T, and not while responses improve or the
//! backlog drains by itself; PROBE once quality ≥ 1−m/2, from 0.9 of the most that was completed during the
//! alarm: what a service completes while its backlog lasts is its capacity. PROBE: back to ALARM with the
//! same cut when quality < 1−m; else up while the ceiling binds, 10 % a decision, at most 1.2 of what
//! completes, but 1 % near where it last failed, or up by half when it does not bind. Frozen while another
//! stage (the sentry) refuses what the ceiling would let in, so that less than 0.9 of it is used. Released
//! when offered stays under 0.8 of the ceiling for three intervals and three seconds, regardless of quality:
//! a ceiling that does not bind is not what helps.
//!
//! Where delivery is judged, the queue on the link is DRAINED: after the alarm, and when it stands at the
//! floor K, three tenths of what is completed are let in until responses are as usual or no more ends than
//! goes in; then K. A link that carried K before the crowd carries it beside a crowd's refusals, but hardly
//! more, so what came before the alarm would stand before every response. How long the queue takes to go is
//! not known: a part of the answers that clients have given up is sent all the same.
//!
//! Each decision asks for fresh evidence: responses to requests admitted after the previous one. That makes
//! the loop's pace its own dead time, so it cannot act twice on one backlog however short the interval is.
//! Only one thing goes ahead of it: when for a second much less came out than went in, capacity itself was
//! lost, and waiting for the responses of a growing queue would let it grow. And when two decisions in ALARM
//! at the floor K find the waiting time unmoved although what goes in comes out, what is left is not a queue
//! but the service's own slowness: REBASE takes the present for the usual, and probing goes on. Offered here
//! is *wire* offered: what binds a ceiling is arrivals, not people.

use super::{
    Mode, Rule,
    detector::Judgement,
    window::{FLOWS_FROM, Measurement},
};
use crate::Binding;
use flashweir_core::{Duration, Instant};

/// A backlog is meant to drain within this long.
const DRAIN_S: f64 = 1.0;
/// A backlog that drains within this long by itself is left to it.
const DRAIN_PATIENCE_S: f64 = 2.0;
/// The deepest and the shallowest single cut.
const CUT_DEEPEST: f64 = 0.7;
const CUT_SHALLOWEST: f64 = 0.98;
/// While responses waited longer than a second, nothing admitted is in time and the service stays busy
/// anyway: admission may fall to this part of throughput without losing any.
const DRAIN_LEAST: f64 = 0.3;
/// A queue this long that does not go is drained: a client that has to connect first meets it two or three
/// times.
const STANDING_S: f64 = 0.2;
/// Time without a completed response after which all clients are taken to leave before theirs has come.
const STARVED_AFTER: Duration = Duration::from_secs(3);
/// A drain ends after this long in any case: one that has not helped by then does not help.
const DRAIN_LONGEST: Duration = Duration::from_secs(30);
/// Factor by which the floor falls where a queue stands at it.
const FLOOR_STEP: f64 = 0.95;
/// Probe steps: while it binds, near the last failure, and when it does not bind.
const PROBE_STEP: f64 = 0.10;
/// Probing stays within this multiple of what was completed lately: further up it would be blind, since the
/// responses that come back first are the quick ones.
const PROBE_AHEAD: f64 = 1.2;
const PROBE_NEAR_FAILURE: f64 = 0.01;
const RELAX: f64 = 0.5;
/// "Near" the ceiling that last failed starts at this part of it.
const NEAR_FAILURE: f64 = 0.93;
/// Probing starts from this part of the throughput seen during the alarm.
const RESUME_AT: f64 = 0.9;
/// The ceiling binds when offered exceeds it by this much.
const BINDS: f64 = 1.02;
/// Released below this part of the ceiling, for this long (or three intervals).
const RELEASE_BELOW: f64 = 0.8;
const RELEASE_AFTER: Duration = Duration::from_secs(3);
/// Capacity was lost when what ends falls short of admitted by this part and by four standard deviations of a
/// Poisson count, over a span that began after the last decision.
const SHORTFALL: f64 = 0.1;
const SHORTFALL_SIGMAS: f64 = 4.0;
/// Never below one request a second, nor, once capacity was lost, below a tenth of what was carried: some
/// must pass to measure by.
const FLOOR_RPS: f64 = 1.0;
const FLOOR_OF_LOST: f64 = 0.1;
/// Quality counts as improving when it gained this much since the last decision.
const IMPROVEMENT: f64 = 0.02;
/// The waiting time is unmoved when it changed by less than this part between two decisions.
const UNMOVED: f64 = 0.1;
/// A wait below this is no wait: a worse *rate* without one is the network's, which limiting does move.
const NO_WAIT_S: f64 = 0.001;
/// After this many such decisions the crowd is not what makes the service slow.
const UNMOVED_DECISIONS: u8 = 2;

/// The ceiling while there is one.
#[derive(Debug)]
pub(super) struct RateLimit {
    interval: Duration,
    acts: bool,
    mode: Mode,
    ceiling_rps: f64,
    failed_at_rps: f64,
    completed_most_rps: f64,
    alarm_since: Instant,
    carried_rps: f64,
    /// Minimum of the ceiling outside a drain: the carried rate, until the capacity for it is lost.
    floor_rps: f64,
    last_quality: f64,
    last_excess_s: f64,
    unmoved: u8,
    evidence_from: Instant,
    slack_since: Option<Instant>,
    /// A standing queue is being drained.
    drains: bool,
}

impl RateLimit {
    /// A ceiling that is recorded but, unless `acts`, not obeyed (shadow), and then is left as raised.
    pub(super) fn new(interval: Duration, acts: bool) -> Self {
        Self {
            interval,
            acts,
            mode: Mode::Normal,
            ceiling_rps: f64::INFINITY,
            failed_at_rps: f64::INFINITY,
            completed_most_rps: 0.0,
            alarm_since: Instant::ZERO,
            carried_rps: 0.0,
            floor_rps: FLOOR_RPS,
            last_quality: 1.0,
            last_excess_s: 0.0,
            unmoved: 0,
            evidence_from: Instant::ZERO,
            slack_since: None,
            drains: false,
        }
    }

    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    pub(super) fn ceiling_rps(&self) -> Option<f64> {
        (self.mode != Mode::Normal).then_some(self.ceiling_rps)
    }

    /// Responses to requests admitted before this say nothing about the ceiling in force.
    pub(super) fn evidence_from(&self) -> Instant {
        self.evidence_from
    }

    /// Sets the ceiling at an alarm; before the crowd `carried_rps` were completed.
    pub(super) fn raise(
        &mut self,
        now: Instant,
        measured: &Measurement,
        quality: f64,
        carried_rps: f64,
    ) -> Rule {
        self.enter_alarm(now);
        self.carried_rps = carried_rps;
        self.floor_rps = FLOOR_RPS.max(carried_rps);
        self.failed_at_rps = f64::INFINITY;
        self.slack_since = None;
        self.drains = false;
        self.last_quality = quality;
        let by_quality_rps = measured.entered_rps * quality;
        self.set(now, by_quality_rps.min(drain_rate_rps(measured)).max(carried_rps));
        if self.acts && measured.judges_delivery && backlog_s(measured) >= DRAIN_S {
            self.drain(now, measured);
        }
        Rule::Raise
    }

    /// One evaluation while limiting. `judged` is `None` when too little fresh evidence has come in.
    pub(super) fn step(
        &mut self,
        now: Instant,
        measured: &Measurement,
        judged: Option<Judgement>,
        binding: &Binding,
    ) -> Rule {
        if self.is_slack(now, measured) {
            self.mode = Mode::Normal;
            self.ceiling_rps = f64::INFINITY;
            self.evidence_from = now;
            return Rule::Release;
        }
        if binding.is_frozen() {
            self.hold(now);
            return Rule::Yield;
        }
        if self.drains {
            return self.go_on_draining(now, measured, judged);
        }
        // Only counts that lie wholly within the alarm are those of a saturated service.
        if self.mode == Mode::Alarm && spans_only_since(now, measured, self.alarm_since) {
            self.completed_most_rps = self.completed_most_rps.max(measured.completed_rps);
        }
        let Some(judged) = judged else {
            if self.is_starved(now, measured) {
                return self.drain_at_floor(now, measured);
            }
            return self.guard_capacity(now, measured);
        };
        let margin = judged.margin;
        let improves = judged.quality > self.last_quality + IMPROVEMENT;
        self.notice_lost_capacity(measured);
        let unmoved = self.is_unmoved(measured, judged.quality);
        (self.last_quality, self.last_excess_s) = (judged.quality, measured.excess_s);
        match self.mode {
            Mode::Alarm if judged.quality >= 1.0 - margin / 2.0 => self.resume(now, measured),
            // At what was carried before there is no crowd left to blame.
            Mode::Alarm if unmoved && self.is_within(self.carried_rps) => {
                self.hold(now);
                Rule::Rebase
            }
            Mode::Alarm if self.acts && self.is_within(self.floor_rps) && is_standing(measured) => {
                // Refusals, too, are on their way to clients; where they take more room than answers nothing
                // helps.
                self.drain_at_floor(now, measured)
            }
            Mode::Alarm if improves || drains_by_itself(measured) => self.hold(now),
            Mode::Alarm => self.cut(now, measured, judged.quality / (1.0 - margin / 4.0)),
            Mode::Probe | Mode::Normal if judged.quality < 1.0 - margin => {
                self.failed_at_rps = self.ceiling_rps;
                self.enter_alarm(now);
                self.cut(now, measured, judged.quality / (1.0 - margin / 2.0))
            }
            Mode::Probe | Mode::Normal => self.probe(now, measured),
        }
    }

    /// Without fresh responses: cuts when for a whole span much less was completed than admitted.
    fn guard_capacity(&mut self, now: Instant, measured: &Measurement) -> Rule {
        if !falls_behind(measured) || !spans_only_since(now, measured, self.evidence_from) {
            return Rule::None;
        }
        self.enter_alarm(now);
        self.last_quality = 0.0;
        self.cut_to(now, measured.completed_rps * CUT_DEEPEST)
    }

    /// Lowers the floor once the rate before the crowd is not carried: no more is let in, less comes out, and
    /// the wait is long. Work done for clients that have left shows nothing.
    fn notice_lost_capacity(&mut self, measured: &Measurement) {
        let is_short = measured.completed_rps < (1.0 - SHORTFALL) * self.floor_rps
            && measured.unfinished_rps <= SHORTFALL * measured.entered_rps;
        if self.is_within(self.floor_rps) && is_short && measured.excess_s >= DRAIN_S {
            self.floor_rps = FLOOR_RPS.max(FLOOR_OF_LOST * self.carried_rps);
        }
    }

    /// Until the queue on the link is gone less is let in than was carried before, then as much.
    fn drain(&mut self, now: Instant, measured: &Measurement) -> Rule {
        self.drains = true;
        self.ceiling_rps = FLOOR_RPS.max(DRAIN_LEAST * measured.completed_rps.max(self.carried_rps));
        self.evidence_from = now;
        Rule::Cut
    }

    /// The link does not carry the floor beside the refusals of this crowd.
    fn drain_at_floor(&mut self, now: Instant, measured: &Measurement) -> Rule {
        self.floor_rps = FLOOR_RPS.max(self.floor_rps * FLOOR_STEP);
        self.drain(now, measured)
    }

    /// Returns true if a link that gets no more than the floor has brought hardly any response to its client
    /// for long: all leave before.
    fn is_starved(&self, now: Instant, measured: &Measurement) -> bool {
        self.acts
            && self.mode == Mode::Alarm
            && measured.judges_delivery
            && self.is_within(self.floor_rps)
            && now.saturating_since(self.evidence_from) >= STARVED_AFTER
            && brings_nothing(measured)
    }

    fn go_on_draining(&mut self, now: Instant, measured: &Measurement, judged: Option<Judgement>) -> Rule {
        let is_as_usual = judged.is_some_and(|judged| judged.quality >= 1.0 - judged.margin / 2.0);
        let is_gone = spans_only_since(now, measured, self.evidence_from) && flows_through(measured);
        let is_long = now.saturating_since(self.evidence_from) >= DRAIN_LONGEST;
        // Quick responses of a moment ago don't count while hardly anything comes out.
        if !(is_long || (is_as_usual || is_gone) && !brings_nothing(measured)) {
            return Rule::None;
        }
        self.drains = false;
        self.set(now, self.floor_rps);
        Rule::ProbeUp
    }

    fn enter_alarm(&mut self, now: Instant) {
        self.mode = Mode::Alarm;
        self.alarm_since = now;
        self.completed_most_rps = 0.0;
        self.unmoved = 0;
    }

    /// Returns true if limiting no longer has any effect on the waiting time, with no backlog growing.
    fn is_unmoved(&mut self, measured: &Measurement, quality: f64) -> bool {
        let change_s = (measured.excess_s - self.last_excess_s).abs();
        let still = measured.excess_s > NO_WAIT_S
            && change_s <= UNMOVED * measured.excess_s
            && (quality - self.last_quality).abs() <= IMPROVEMENT
            && measured.completed_rps >= (1.0 - SHORTFALL) * measured.entered_rps
            && measured.completed_rps <= (1.0 + SHORTFALL) * measured.entered_rps;
        self.unmoved = if still && self.acts { self.unmoved + 1 } else { 0 };
        self.unmoved >= UNMOVED_DECISIONS
    }

    fn is_within(&self, rps: f64) -> bool {
        self.ceiling_rps <= rps * BINDS
    }

    fn resume(&mut self, now: Instant, measured: &Measurement) -> Rule {
        self.mode = Mode::Probe;
        let resumed_rps = RESUME_AT * self.completed_most_rps;
        if self.acts && resumed_rps > self.ceiling_rps {
            self.set(now, resumed_rps);
            return Rule::ProbeUp;
        }
        self.probe(now, measured)
    }

    fn probe(&mut self, now: Instant, measured: &Measurement) -> Rule {
        if !self.acts {
            return self.hold(now);
        }
        if measured.offered_rps <= BINDS * self.ceiling_rps {
            self.set(now, self.ceiling_rps * (1.0 + RELAX));
            return Rule::Relax;
        }
        if self.ceiling_rps > self.failed_at_rps {
            self.failed_at_rps = f64::INFINITY;
        }
        let near_rps = NEAR_FAILURE * self.failed_at_rps;
        let target_rps = if self.ceiling_rps >= near_rps {
            self.ceiling_rps * (1.0 + PROBE_NEAR_FAILURE)
        } else {
            (self.ceiling_rps * (1.0 + PROBE_STEP))
                .min(near_rps.max(self.ceiling_rps * (1.0 + PROBE_NEAR_FAILURE)))
        };
        let ahead_rps = PROBE_AHEAD * measured.completed_rps;
        self.set(now, target_rps.min(ahead_rps).max(self.ceiling_rps));
        Rule::ProbeUp
    }

    fn cut(&mut self, now: Instant, measured: &Measurement, factor: f64) -> Rule {
        // Never above what is completed: while responses are worse, that is all there is.
        let by_factor_rps = (self.ceiling_rps * factor.clamp(CUT_DEEPEST, CUT_SHALLOWEST))
            .min(measured.completed_rps * CUT_SHALLOWEST);
        let drain_rps = drain_rate_rps(measured);
        // A long wait is drained at once; otherwise one decision takes off no more than its factor.
        let deep = measured.excess_s >= DRAIN_S;
        self.cut_to(now, if deep { drain_rps } else { by_factor_rps.max(drain_rps) })
    }

    fn cut_to(&mut self, now: Instant, target_rps: f64) -> Rule {
        if !self.acts || target_rps >= self.ceiling_rps {
            return self.hold(now);
        }
        self.set(now, target_rps);
        Rule::Cut
    }

    fn hold(&mut self, now: Instant) -> Rule {
        self.evidence_from = now;
        Rule::Hold
    }

    fn set(&mut self, now: Instant, ceiling_rps: f64) {
        self.ceiling_rps = ceiling_rps.max(self.floor_rps);
        self.evidence_from = now;
    }

    /// Returns true if offered has stayed well under the ceiling for long enough to remove it.
    fn is_slack(&mut self, now: Instant, measured: &Measurement) -> bool {
        if measured.offered_rps >= RELEASE_BELOW * self.ceiling_rps {
            self.slack_since = None;
            return false;
        }
        let since = *self.slack_since.get_or_insert(now);
        now.saturating_since(since) >= RELEASE_AFTER.max(self.interval * 3)
    }
}

/// Completion rate of the service, less what works off the waiting time of its fastest responses, or the
/// backlog if that is longer.
fn drain_rate_rps(measured: &Measurement) -> f64 {
    let part = 1.0 - measured.excess_s.max(backlog_s(measured)) / DRAIN_S;
    measured.completed_rps * part.clamp(DRAIN_LEAST, CUT_SHALLOWEST)
}

/// Time that the requests which went in during the span and have not come out take to come out (Little's
/// law): where a queue grows quickly, those that have left it met a shorter one.
fn backlog_s(measured: &Measurement) -> f64 {
    let grows_rps = measured.entered_rps - measured.completed_rps - measured.unfinished_rps;
    grows_rps.max(0.0) * measured.span_s / measured.completed_rps.max(FLOOR_RPS)
}

/// Returns true if much less comes out than goes in. Requests whose clients have left are not missing: they
/// no longer wait.
fn falls_behind(measured: &Measurement) -> bool {
    let admitted = measured.entered_rps * measured.span_s;
    let missing = admitted - (measured.completed_rps + measured.unfinished_rps) * measured.span_s;
    missing > SHORTFALL * admitted && missing > SHORTFALL_SIGMAS * libm::sqrt(admitted)
}

/// Returns true if so much more comes out than goes in that the wait is gone soon: then a deeper cut gains
/// nothing, and the time it takes to find the way up again is lost.
fn drains_by_itself(measured: &Measurement) -> bool {
    let spare_rps = measured.completed_rps - measured.entered_rps;
    spare_rps > 0.0 && measured.excess_s * measured.completed_rps <= DRAIN_PATIENCE_S * spare_rps
}

/// Returns true if no more ends than goes in, and not because all that goes in waits: nothing is left of what
/// stood there.
fn flows_through(measured: &Measurement) -> bool {
    let ended_rps = measured.completed_rps + measured.unfinished_rps;
    ended_rps <= measured.entered_rps && measured.completed_rps >= FLOWS_FROM * measured.entered_rps
}

/// Returns true if hardly anything of what goes in reaches its client.
fn brings_nothing(measured: &Measurement) -> bool {
    measured.completed_rps <= SHORTFALL * measured.entered_rps
}

/// Returns true if there is a wait that will not be gone soon. Only for a link: a client that leaves an
/// origin leaves its work there.
fn is_standing(measured: &Measurement) -> bool {
    measured.judges_delivery && measured.excess_s >= STANDING_S && !drains_by_itself(measured)
}

/// Returns true if the measured counts lie wholly after `since`.
fn spans_only_since(now: Instant, measured: &Measurement, since: Instant) -> bool {
    now.saturating_since(since).as_secs_f64() >= measured.span_s
}
