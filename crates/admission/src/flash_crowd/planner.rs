//! The planner of one service: measurement, detector, ceiling, hot-spots and shares, tick by tick.
//!
//! Cost: observing is O(cells of the sample), a plan O(n log n) in the cells of the last interval, for any
//! number of responses; 131,072 cells are kept at most (32 bytes each). Calling [`plan`](Planner::plan)
//! early returns the previous plan.

use super::detector::{Detector, Judgement};
use super::hot_spot::HotSpots;
use super::latency_reference::LatencyReference;
use super::published::{Form, Published};
use super::rate_limit::RateLimit;
use super::shares::gate_shares_milli;
use super::window::{Counts, Measurement, ResponseValue, Window};
use super::{Baseline, Cause, Explanation, Limit, Mode, Plan, PlannerMode, Rule, Sample, Settings};
use crate::{Binding, Flow, Planner};
use alloc::{boxed::Box, vec, vec::Vec};
use flashweir_core::measure::log_buckets::middle_of;
use flashweir_core::{Duration, Instant, Rate};

/// The longest a refused client is asked to wait before jitter: beyond it people have gone elsewhere.
const RETRY_AFTER_MAX_S: f64 = 30.0;

/// Time for which plans name hot hosts after another stage refused: a queue that empties for a moment does
/// not make a host usual.
const SHORT_FOR: Duration = Duration::from_secs(10);

/// Detector, ceiling and hot-spots of one service.
#[derive(Debug)]
pub struct FlashCrowdPlanner {
    settings: Settings,
    plan: Plan,
    planned_at: Option<Instant>,
    next_plan_at: Instant,
    latency: LatencyReference,
    window: Window,
    gate_offered: Vec<u64>,
    hot_spots: HotSpots,
    rules: Rules,
    learning: bool,
    /// Another stage refused lately: until then plans name hot hosts.
    short_until: Instant,
}

#[derive(Debug)]
enum Rules {
    Published(Published),
    Repaired(Box<(Detector, RateLimit)>),
}

/// Decision of a tick, before it is narrowed to hot-spots and written down.
struct Decision {
    rule: Rule,
    cause: Cause,
    mode: Mode,
    ceiling_rps: Option<f64>,
    judged: Option<Judgement>,
}

impl FlashCrowdPlanner {
    /// A planner that starts from `baseline` (of an earlier run) or, where empty, learns it.
    #[must_use]
    pub fn new(settings: Settings, baseline: &Baseline) -> Self {
        let published = |form| Rules::Published(Published::new(form, settings.margin, baseline));
        let rules = match settings.mode {
            PlannerMode::Paper => published(Form::Paper),
            PlannerMode::Scoreboard => published(Form::Code),
            PlannerMode::Repaired => Rules::Repaired(Box::new((
                Detector::new(settings.interval, settings.margin, baseline),
                RateLimit::new(settings.interval, !settings.shadow),
            ))),
        };
        Self {
            settings,
            plan: Plan::open(settings.gates),
            planned_at: None,
            next_plan_at: Instant::ZERO,
            latency: LatencyReference::new(&baseline.latency_by_class_s, settings.interval),
            window: Window::new(settings.interval),
            gate_offered: vec![0; settings.gates.max(1)],
            hot_spots: HotSpots::default(),
            rules,
            learning: true,
            short_until: Instant::ZERO,
        }
    }

    /// Baseline to keep across a restart.
    #[must_use]
    pub fn baseline(&self) -> Baseline {
        let explained = &self.plan.explanation;
        Baseline {
            unique_offered_rps: explained.unique_offered_reference_rps,
            fast_rate_bytes_per_s: explained.fast_rate_reference,
            fast_score: explained.fast_score_reference,
            latency_by_class_s: self.latency.known(),
        }
    }

    fn decide(&mut self, now: Instant, measured: &Measurement, binding: &Binding) -> Decision {
        match &mut self.rules {
            Rules::Published(published) => {
                let (rule, cause) = published.step(measured);
                let mode = if published.is_alarmed() { Mode::Alarm } else { Mode::Normal };
                Decision { rule, cause, mode, ceiling_rps: published.ceiling_rps(), judged: None }
            }
            Rules::Repaired(repaired) => {
                let (detector, limit) = &mut **repaired;
                decide_repaired(detector, limit, now, measured, binding)
            }
        }
    }

    /// Responses to requests received before this are not judged.
    fn evidence_from(&self) -> Instant {
        match &self.rules {
            Rules::Repaired(repaired) => repaired.1.evidence_from(),
            Rules::Published(_) => Instant::ZERO,
        }
    }

    fn explain(&self, decision: &Decision, measured: &Measurement) -> Explanation {
        let mut explanation = Explanation {
            mode: decision.mode,
            cause: decision.cause,
            rule: decision.rule,
            ceiling_rps: decision.ceiling_rps,
            quality: decision.judged.map(|judged| judged.quality),
            fast_rate_bytes_per_s: measured.fast_rate.map(|fastest| fastest.mean),
            fast_rate_reference: None,
            fast_score: measured.fast_score.map(|fastest| fastest.mean),
            fast_score_reference: None,
            margin: decision.judged.map_or(self.settings.margin, |judged| judged.margin),
            offered_rps: measured.offered_rps,
            unique_offered_rps: measured.unique_offered_rps,
            unique_offered_reference_rps: None,
            admitted_rps: measured.admitted_rps,
            completed_rps: measured.completed_rps,
            responses: measured.responses,
        };
        match &self.rules {
            Rules::Published(published) => {
                explanation.fast_rate_reference = published.fast_rate_usual();
                explanation.fast_score_reference = published.fast_score_usual();
                explanation.unique_offered_reference_rps = published.requests_usual_rps();
            }
            Rules::Repaired(repaired) => {
                let (detector, _) = &**repaired;
                explanation.fast_rate_reference = detector.fast_rate_usual();
                explanation.fast_score_reference = detector.fast_score_usual();
                explanation.unique_offered_reference_rps = detector.unique_offered_usual_rps();
            }
        }
        explanation
    }
}

fn decide_repaired(
    detector: &mut Detector,
    limit: &mut RateLimit,
    now: Instant,
    measured: &Measurement,
    binding: &Binding,
) -> Decision {
    let is_normal = limit.mode() == Mode::Normal;
    let early = || detector.judge_collapse(measured).or_else(|| detector.judge_queue(measured));
    let judged = is_normal.then(early).flatten().or_else(|| detector.judge(measured));
    let (rule, cause) = if is_normal {
        match judged {
            Some(judgement) if detector.alarms(judgement) => {
                (limit.raise(now, measured, judgement.quality, detector.carried_rps()), Cause::Popular)
            }
            _ => {
                let seeding = judged.is_none() && measured.is_valid();
                let rebased = detector.learn(now, measured, judged, binding.flow.refused() > 0);
                let cause = judged.map_or(Cause::TooFewSamples, Judgement::cause);
                let rule = match (cause, seeding, rebased) {
                    (_, true, _) => Rule::Seed,
                    (_, _, true) => Rule::Rebase,
                    (Cause::Popular, ..) => Rule::Suspect,
                    (Cause::Calm | Cause::SurgeOk, ..) => Rule::Learn,
                    _ => Rule::None,
                };
                (rule, if seeding { Cause::Calm } else { cause })
            }
        }
    } else {
        let rule = limit.step(now, measured, judged, binding);
        match rule {
            Rule::Release => detector.clear_evidence(),
            Rule::Rebase => detector.adopt(measured),
            _ => {}
        }
        (rule, if rule == Rule::Release { Cause::Calm } else { Cause::Popular })
    };
    Decision { rule, cause, mode: limit.mode(), ceiling_rps: limit.ceiling_rps(), judged }
}

impl Planner for FlashCrowdPlanner {
    type Sample = Sample;
    type Plan = Plan;

    fn observe(&mut self, now: Instant, sample: &Sample) {
        self.window.count(Counts {
            from: sample.from,
            to: sample.to,
            offered: sample.flow.offered,
            unique_offered: sample.unique_offered,
            admitted: sample.flow.admitted,
            entered: sample.entered,
            handed_over: sample.handed_over,
            completed: sample.completed,
            unfinished: sample.unfinished,
        });
        if let Some(offered) = self.gate_offered.get_mut(sample.gate) {
            *offered += sample.flow.offered;
        }
        self.hot_spots.count(&sample.hosts);
        let (window, evidence_from) = (&mut self.window, sample.evidence_from);
        self.latency.score(&sample.latencies, self.learning, |cell, score| {
            window.push(now, evidence_from, cell.count, ResponseValue::Latency(score));
        });
        for cell in &sample.rates {
            // Below 2³⁴ to 33 significant bits; the rounding is far within a bucket.
            let rate_bytes_per_s = middle_of(cell.bucket) as f32;
            window.push(now, evidence_from, cell.count, ResponseValue::Rate(rate_bytes_per_s));
        }
    }

    fn plan(&mut self, now: Instant, binding: &Binding) -> Plan {
        if now < self.next_plan_at {
            return self.plan.clone();
        }
        let span = self.planned_at.map_or(self.settings.interval, |last| now.saturating_since(last));
        self.planned_at = Some(now);
        // Late ticks don't pile up: the next one is a whole interval away.
        self.next_plan_at = now + self.settings.interval;
        let measured = self.window.close(now, self.evidence_from());
        self.latency.begin_tick();
        let decision = self.decide(now, &measured, binding);
        // References are learned in quiet times only: a response under suspicion must not define the usual.
        self.learning = decision.mode == Mode::Normal
            && (matches!(decision.cause, Cause::Calm | Cause::SurgeOk | Cause::TooFewSamples)
                || decision.rule == Rule::Rebase);
        // Demand while requests are refused is not the usual.
        let is_refusing = binding.flow.refused() > 0;
        let is_usual = decision.mode == Mode::Normal && decision.cause != Cause::Popular && !is_refusing;
        self.hot_spots.close(span, is_usual);
        if binding.flow.refused_by_later > 0 {
            self.short_until = now + SHORT_FOR;
        }
        let limit = match decision.ceiling_rps {
            None => Limit::Open,
            Some(ceiling) if self.settings.hot_spots => self.hot_spots.narrow(ceiling),
            Some(ceiling) => Limit::All(Rate::from_per_second(ceiling)),
        };
        let wait_s = decision.ceiling_rps.map_or(1.0, |ceiling| measured.offered_rps / ceiling);
        self.plan = Plan {
            epoch: self.plan.epoch + 1,
            limit,
            hot_hosts: if self.settings.hot_spots && now < self.short_until {
                self.hot_spots.hot()
            } else {
                Vec::new()
            },
            gate_shares_milli: gate_shares_milli(&self.gate_offered, &self.plan.gate_shares_milli),
            evidence_from: self.evidence_from(),
            retry_after: Duration::from_secs_f64(wait_s.clamp(1.0, RETRY_AFTER_MAX_S)),
            explanation: self.explain(&decision, &measured),
        };
        self.gate_offered.fill(0);
        self.plan.clone()
    }

    fn next_plan_at(&self) -> Instant {
        self.next_plan_at
    }

    fn limit_used(&self, flow: &Flow, span_s: f64) -> f64 {
        match self.plan.explanation.ceiling_rps {
            Some(ceiling_rps) if span_s > 0.0 => flow.admitted as f64 / span_s / ceiling_rps,
            _ => 0.0,
        }
    }
}
