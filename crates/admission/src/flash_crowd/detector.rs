//! The repaired detector: are responses worse than usual, did people's demand rise, and what does that mean?
//!
//! Signals (either may alarm, each against its own baseline): the mean transfer rate of the fastest tenth of
//! large responses, and the mean latency score of the fastest tenth of all. NEWS's conditions: (1) signal <
//! baseline·(1−margin) and (2) unique offered > baseline·(1+δ), the excess also beyond four standard
//! deviations of what it does in calm, at least those of a Poisson count. Why the fastest: a server that
//! still has an idle moment now and then serves *some* requests at full speed; only when it never has one do
//! even the fastest slow down.
//!
//! | worse | risen | cause | action |
//! |---|---|---|---|
//! | no | no | calm | learn |
//! | no | yes | surge_ok | learn the demand: the service carries it |
//! | yes | no | slow_backend | none; after a minute the baseline drifts to the new normal |
//! | yes | yes | popular | alarm, after three such evaluations of the last four; two where evaluations share no counts, and one where they are four times worse |
//!
//! Before thirty responses have come two more things are worse: less than a quarter comes out of what usually
//! does, and a queue grows on the link.
//!
//! Repairs (docs/algorithms/news.md): compare before update; the signals' baselines move only at the usual
//! demand, so a crowd cannot drag them down, however slowly it comes; they are means over a minute (7.5
//! intervals if longer). A surge that is carried becomes the usual demand, and then its signals count. The
//! margin is at least δ and three standard deviations of the signal, of which the part that is chance is that
//! of the responses at hand ([`Signal`]). Cold start: the first valid evaluation seeds the baselines, and
//! nothing can alarm in the first three seconds. Cost: a few dozen operations.

use super::signal::Signal;
use super::window::{COUNT_SPAN, FLOWS_FROM, Fastest, Measurement, RESPONSES_MIN};
use super::{Baseline, Cause};
use flashweir_core::measure::DecayingMean;
use flashweir_core::{Duration, Instant};

/// Memory of the baselines, unless 7.5 intervals (NEWS's 0.875 a tick) are longer.
const BASELINE_MEMORY: Duration = Duration::from_secs(60);
const BASELINE_MEMORY_INTERVALS: f64 = 7.5;
/// Observation time before the usual is known: the first second of any traffic is a rise from
/// nothing, and the service may be slow because it, too, has just begun.
const WARM_UP: Duration = Duration::from_secs(3);
/// Demand has risen only beyond chance: at ten evaluations a second for months, three standard deviations of
/// a Poisson count are chance (a service at 0.75 of its capacity then alarmed once in five minutes). Real
/// demand is burstier than Poisson: NASA's busy hours, squeezed to minutes, alarmed until its own variance
/// was learned.
const RISEN_SIGMAS: f64 = 4.0;
/// Prior from an earlier run: demand may be off by this part of it, one standard deviation, until the
/// variance of this run is known. A service restarted into two thirds more demand alarmed.
const RESTORED_SPREAD: f64 = 0.5;
/// A lasting change without more demand is taken for the new normal after this long, or 15 intervals.
const REBASE_AFTER: Duration = Duration::from_secs(60);
const REBASE_AFTER_INTERVALS: u32 = 15;
/// Rate at which the baseline then drifts: 2 % a tick of a second or more.
const REBASE_PER_SECOND: f64 = 0.02;
/// Intervals at least this long don't overlap in their responses: one evaluation is evidence enough.
const SINGLE_EVALUATION: Duration = Duration::from_secs(5);

/// Of evaluations that share no counts one is enough when responses are so much worse.
const UNMISTAKABLE: f64 = 0.25;

/// A service that carries a surge completes what it did before, and more; below this part of the usual it
/// does not. Of thirty that are expected, chance leaves fewer than eight once in a million.
const COLLAPSED: f64 = 0.25;
/// The best of the latest few responses took twice as long as is usual.
const WAITED_BELOW: f64 = 0.5;
/// Of twelve that are expected, chance leaves none six times in a million.
const CEASED_EXPECTED: f64 = 12.0;

/// Result of one evaluation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Judgement {
    /// The worst signal over its baseline; 1 is as usual.
    pub(super) quality: f64,
    /// The margin of that signal.
    pub(super) margin: f64,
    /// Condition (1).
    pub(super) is_worse: bool,
    /// Condition (2).
    pub(super) has_risen: bool,
}

impl Judgement {
    pub(super) fn cause(self) -> Cause {
        match (self.is_worse, self.has_risen) {
            (true, true) => Cause::Popular,
            (true, false) => Cause::SlowBackend,
            (false, true) => Cause::SurgeOk,
            (false, false) => Cause::Calm,
        }
    }
}

/// Baselines and the evidence of the last evaluations.
#[derive(Debug)]
pub(super) struct Detector {
    interval: Duration,
    delta: f64,
    fast_rate: Signal,
    fast_score: Signal,
    unique_offered: DecayingMean,
    unique_offered_variance: DecayingMean,
    /// Completed while responses were not worse than usual.
    carried: DecayingMean,
    /// Time of the evaluation of the last whole span, and unique offered in it, requests per second.
    previous_span: Option<(Instant, f64)>,
    /// Conditions (1) and (2) at the last four evaluations, newest in bit 0.
    evidence: u8,
    worse_since: Option<Instant>,
    last_learned: Option<Instant>,
}

impl Detector {
    pub(super) fn new(interval: Duration, delta: f64, known: &Baseline) -> Self {
        let memory = BASELINE_MEMORY.max(interval.mul_f64(BASELINE_MEMORY_INTERVALS));
        let signal = |known, is_restored| Signal::new(known, memory, interval, delta, is_restored);
        let demand = || {
            let known = known.unique_offered_rps;
            known.map_or_else(|| DecayingMean::new(memory), |rps| DecayingMean::seeded(memory, rps))
        };
        let spread =
            |rps: f64| DecayingMean::seeded(memory, (RESTORED_SPREAD * rps) * (RESTORED_SPREAD * rps));
        let spread = known.unique_offered_rps.map_or_else(|| DecayingMean::new(memory), spread);
        Self {
            interval,
            delta,
            fast_rate: signal(known.fast_rate_bytes_per_s, true),
            // A class's own median is what scores are relative to, so the usual score is 1 until learned
            // otherwise.
            fast_score: signal(known.fast_score.or(Some(1.0)), known.fast_score.is_some()),
            unique_offered: demand(),
            unique_offered_variance: spread,
            carried: demand(),
            previous_span: None,
            evidence: 0,
            worse_since: None,
            last_learned: None,
        }
    }

    /// Compares a measurement with the baselines; `None` when there is nothing to compare (yet).
    pub(super) fn judge(&self, measured: &Measurement) -> Option<Judgement> {
        let (quality, margin) = if measured.is_valid() {
            let of_rate = measured.fast_rate.and_then(|rate| self.fast_rate.compare(rate));
            let of_score = measured.fast_score.and_then(|score| self.fast_score.compare(score));
            // The worse one, each by its own margin.
            let shortfall = |&(quality, margin): &(f64, f64)| (1.0 - quality) / margin;
            let signals = [of_rate, of_score].into_iter().flatten();
            signals.max_by(|one, other| shortfall(one).total_cmp(&shortfall(other)))?
        } else if measured.is_stalled() {
            (0.0, self.delta)
        } else {
            return None;
        };
        Some(Judgement {
            quality,
            margin,
            is_worse: quality < 1.0 - margin,
            has_risen: self.has_risen(measured),
        })
    }

    /// At least the usual demand is let in, and far less than usual comes out: no client is served in time
    /// any more. The responses at hand are then the last ones from before, and say that all is well.
    pub(super) fn judge_collapse(&self, measured: &Measurement) -> Option<Judgement> {
        let usual_rps = self.unique_offered.value().filter(|_| self.unique_offered.covers() >= WARM_UP)?;
        let part = measured.completed_rps / usual_rps;
        let expected = usual_rps * measured.span_s;
        let is_told = expected >= RESPONSES_MIN as f64 && part < COLLAPSED;
        let has_ceased = expected >= CEASED_EXPECTED && measured.completed_rps == 0.0;
        let has_collapsed = measured.entered_rps >= usual_rps && (is_told || has_ceased);
        has_collapsed.then(|| Judgement {
            quality: part,
            margin: self.delta,
            is_worse: true,
            has_risen: self.has_risen(measured),
        })
    }

    /// A queue grows on the link: of what is handed over less than half comes out, and what comes out has
    /// waited. The fastest tenth of the last thirty responses would know it when thirty have come over the
    /// narrow link, and all the crowd stands on it by then. Downloads that take long leave the quick
    /// responses beside them as they were.
    pub(super) fn judge_queue(&self, measured: &Measurement) -> Option<Judgement> {
        let is_held = measured.judges_delivery
            && measured.entered_rps * measured.span_s >= RESPONSES_MIN as f64
            && measured.completed_rps + measured.unfinished_rps < FLOWS_FROM * measured.entered_rps;
        let quality = measured.latest_score.filter(|score| is_held && *score < WAITED_BELOW)?;
        Some(Judgement { quality, margin: self.delta, is_worse: true, has_risen: self.has_risen(measured) })
    }

    fn has_risen(&self, measured: &Measurement) -> bool {
        let usual = self.unique_offered.value().filter(|_| self.unique_offered.covers() >= WARM_UP);
        usual.is_some_and(|usual_rps| {
            let excess_rps = measured.unique_offered_rps - usual_rps;
            let poisson = usual_rps / measured.span_s.max(1e-9);
            let variance = self.unique_offered_variance.value().unwrap_or(0.0).max(poisson);
            // The baseline is a mean of such spans itself, of few at first.
            let of_difference =
                variance * (1.0 + measured.span_s / self.unique_offered.covers().as_secs_f64());
            excess_rps > usual_rps * self.delta && excess_rps > RISEN_SIGMAS * libm::sqrt(of_difference)
        })
    }

    /// Takes an evaluation outside alarm into account: whether to alarm now.
    pub(super) fn alarms(&mut self, judgement: Judgement) -> bool {
        let both = judgement.is_worse && judgement.has_risen;
        self.evidence = (self.evidence << 1 | u8::from(both)) & 0b1111;
        let needed = match self.interval {
            long if long >= SINGLE_EVALUATION => 1,
            interval if interval >= COUNT_SPAN && judgement.quality < UNMISTAKABLE => 1,
            interval if interval >= COUNT_SPAN => 2,
            _ => 3,
        };
        both && self.evidence.count_ones() >= needed
    }

    /// Learns from a calm evaluation; while some stage `is_refusing`, nothing of demand. Returns whether a
    /// lasting change is being taken over.
    pub(super) fn learn(
        &mut self,
        now: Instant,
        measured: &Measurement,
        judgement: Option<Judgement>,
        is_refusing: bool,
    ) -> bool {
        let span = self.last_learned.map_or(self.interval, |last| now.saturating_since(last));
        self.last_learned = Some(now);
        let is_worse = judgement.is_some_and(|judgement| judgement.is_worse);
        let has_risen = judgement.is_some_and(|judgement| judgement.has_risen);
        self.worse_since = if is_worse { self.worse_since.or(Some(now)) } else { None };
        // Unique offered is learned whenever anything arrives, so that the morning's crowd meets the night's
        // baseline even if the night was too quiet to judge responses by. Demand of which a part is refused,
        // by any stage, is not what the service usually carries.
        if measured.offered_rps > 0.0 && !(is_worse && has_risen) && !is_refusing {
            self.learn_variance(now, measured);
            self.unique_offered.update(measured.unique_offered_rps, span);
            if !is_worse {
                self.carried.update(measured.completed_rps, span);
            }
        }
        if !has_risen {
            self.each_signal(measured, |signal, measured| signal.learn_noise(measured, span));
        }
        if !is_worse {
            // The usual value is that at the usual demand: learned from a surge, it would follow a crowd that
            // grows slowly enough, and count it as carried.
            if !has_risen {
                self.each_signal(measured, |signal, measured| signal.learn(measured, span));
            }
            return false;
        }
        let patience = REBASE_AFTER.max(self.interval * REBASE_AFTER_INTERVALS);
        let lasting =
            !has_risen && self.worse_since.is_some_and(|since| now.saturating_since(since) > patience);
        if lasting {
            self.rebase(span, measured);
        }
        lasting
    }

    /// Takes what is measured for the usual at once: limiting has shown that no queue is behind it.
    pub(super) fn adopt(&mut self, measured: &Measurement) {
        self.drift(1.0, measured);
    }

    /// The variance of unique offered from one span to the next (half the mean square of differences): bursts
    /// count, a slow rise does not, or the crowd's own approach would excuse it. Only what is within the
    /// usual widens the usual; burstier demand gets there in a few steps.
    fn learn_variance(&mut self, now: Instant, measured: &Measurement) {
        let previous = self.previous_span.get_or_insert((now, measured.unique_offered_rps));
        if now.saturating_since(previous.0).as_secs_f64() < measured.span_s {
            return;
        }
        let (since, before_rps) = core::mem::replace(previous, (now, measured.unique_offered_rps));
        if !self.has_risen(measured) {
            let change_rps = measured.unique_offered_rps - before_rps;
            self.unique_offered_variance.update(change_rps * change_rps / 2.0, now.saturating_since(since));
        }
    }

    /// Moves the baselines a little toward what is measured: the service itself has changed.
    fn rebase(&mut self, span: Duration, measured: &Measurement) {
        self.drift((REBASE_PER_SECOND * span.as_secs_f64()).min(REBASE_PER_SECOND), measured);
    }

    fn drift(&mut self, fraction: f64, measured: &Measurement) {
        self.each_signal(measured, |signal, measured| signal.drift(measured, fraction));
    }

    fn each_signal(&mut self, measured: &Measurement, mut tell: impl FnMut(&mut Signal, Fastest)) {
        let signals =
            [(&mut self.fast_rate, measured.fast_rate), (&mut self.fast_score, measured.fast_score)];
        for (signal, measured) in signals {
            if let Some(measured) = measured {
                tell(signal, measured);
            }
        }
    }

    /// Forgets the evidence that led to the last alarm.
    pub(super) fn clear_evidence(&mut self) {
        self.evidence = 0;
        self.worse_since = None;
        self.last_learned = None;
        self.previous_span = None;
    }

    pub(super) fn fast_rate_usual(&self) -> Option<f64> {
        self.fast_rate.usual()
    }

    pub(super) fn fast_score_usual(&self) -> Option<f64> {
        self.fast_score.usual()
    }

    /// Rate that the service has carried: completed per second while its responses were as usual.
    pub(super) fn carried_rps(&self) -> f64 {
        self.carried.value().unwrap_or(0.0)
    }

    pub(super) fn unique_offered_usual_rps(&self) -> Option<f64> {
        self.unique_offered.value()
    }
}
