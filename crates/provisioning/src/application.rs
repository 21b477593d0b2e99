//! Need of one application, by the repaired rules.
//!
//! **Decides** how many servers it should have, before the pool says how many it gets. **From** requests
//! offered (never admitted).
//!
//! | step | rule |
//! |---|---|
//! | level | rate of the last minute, its upper confidence limit |
//! | panic | while requests are refused, or the last 10 s brought more than chance explains: the rate of the last 10 s where it is higher. Nothing is given back until a minute after |
//! | growth | of earlier days until servers ordered now are up, or a trend that rose three times, by windows of 10 s or of 30 s ([`forecast`](crate::forecast)) |
//! | servers | [`queueing`](crate::queueing) for that rate and the first target |
//! | error of the model | if requests are refused although all servers that the model asks for are up, it asks for too few: its answers are multiplied by what was missing, remembered for an hour |
//! | release | what the last start-up times needed, each with a margin, is kept (`release`) |
//! | ebb | where the pool is short, demand that has fallen by more than chance explains counts at the rate of the last 10 s or of the last start-up time, the longer of both: the minute before is a reason to keep servers, not to withhold them from an application that refuses requests |
//!
//! The answer is a number of servers, not a step: an order that is under way is not ordered again (the
//! paper's reactive step of one more server every five minutes follows no crowd that doubles faster than in
//! five minutes times its servers, and with shorter steps would order again what is starting). **Cold
//! start:** nothing is changed until a service time was measured.

use crate::demand::{ClassRates, Demand};
use crate::forecast::{SeasonalHistory, TREND_WINDOWS, trend_rps};
use crate::plan::{Explanation, Rule};
use crate::policy::{ApplicationPolicy, Mode};
use crate::release::Release;
use crate::sample::{ApplicationSample, PoolState, SentryLoad};
use crate::sentries::SentryCount;
use crate::sizing::{Sized, sized};
use flashweir_core::measure::HighLowFilter;
use flashweir_core::{Duration, Instant};

/// Demand is new when it lasts this long, or an interval between plans, refused or not: the time over which
/// counts are kept separately.
const PANIC_WINDOW: Duration = Duration::from_secs(5);
/// Level of ordinary times: at 100/s it is known to 1.3 %.
const STABLE_WINDOW: Duration = Duration::from_secs(60);
/// [`TREND_WINDOWS`] of these make a trend, and so do as many panic windows: a slow ramp shows in long
/// windows, a steep one soon.
const TREND_WINDOW: Duration = Duration::from_secs(30);
/// Standard errors by which the last seconds exceed the level: by chance once in 30,000 plans.
const SURGE_ERRORS: f64 = 4.0;
/// Standard errors of a rate that are planned for.
const CONFIDENCE: f64 = 2.0;
/// A server is given back only if the others could carry a twentieth more than there is: five standard errors
/// at 100/s.
const RELEASE_MARGIN: f64 = 1.05;
/// Start-up times for which servers are kept.
const RELEASE_START_UPS: u32 = 4;
/// They are kept at least this long, however fast they start.
const RELEASE_MIN: Duration = Duration::from_secs(60);
/// Less than this refused is chance, not an error of the model.
const REFUSED_MIN: f64 = 0.01;
/// The model is not corrected by more than this at once, nor altogether.
const CORRECTION_MAX: f64 = 4.0;
/// A correction is forgotten so slowly: an application's scaling is not.
const CORRECTION_MEMORY_S: f64 = 3_600.0;

/// Measured state of one application.
#[derive(Debug)]
pub(crate) struct Application {
    pub(crate) demand: Demand,
    season: SeasonalHistory,
    release: Release,
    start_up_s: HighLowFilter,
    pub(crate) pool: Option<PoolState>,
    pub(crate) sentries: SentryCount,
    pub(crate) sentry_load: Option<SentryLoad>,
    panic_until: Instant,
    /// Time at which its need was known for the first time: an earlier need is not known to be little.
    sized_since: Option<Instant>,
    /// Since when all planned servers are up.
    complete_since: Option<Instant>,
    /// Factor on the model's answers.
    correction: f64,
    /// The step of the ladder in force.
    pub(crate) ladder_step: usize,
}

/// Need of an application.
#[derive(Clone, Debug)]
pub(crate) struct Need {
    /// Rates of the classes that servers are planned for.
    pub(crate) rates: ClassRates,
    /// Servers that it needs for them.
    pub(crate) needed: Option<u32>,
    /// The remainder of both where demand has fallen and others need the servers.
    pub(crate) after_ebb: Option<EbbNeed>,
    /// Servers that it is to have, if the pool has them.
    pub(crate) wanted: u32,
    pub(crate) explanation: Explanation,
}

/// Need of an application after its demand has fallen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EbbNeed {
    rates: ClassRates,
    forecast_rps: f64,
    servers: u32,
    /// True if chance does not explain it.
    is_certain: bool,
}

impl Need {
    /// Forgets the demand that has passed: for a pool that is short. `wanted` stays, for servers that the
    /// others leave.
    pub(crate) fn give_up_the_past(&mut self) {
        if let Some(ebb) = self.after_ebb.filter(|ebb| ebb.is_certain) {
            self.plan_for(ebb);
        }
    }

    fn plan_for(&mut self, ebb: EbbNeed) {
        let EbbNeed { rates, forecast_rps, servers, .. } = ebb;
        (self.rates, self.needed) = (rates, Some(servers));
        (self.explanation.forecast_rps, self.explanation.servers_needed) = (forecast_rps, Some(servers));
    }
}

/// Rates of the classes, and their sum.
#[derive(Clone, Copy)]
struct Mix(ClassRates, f64);

impl Mix {
    /// The classes in the same proportions at another rate.
    fn at(self, rate_rps: f64) -> ClassRates {
        let Self(rates, sum_rps) = self;
        rates.map(|rate| if sum_rps > 0.0 { rate * rate_rps / sum_rps } else { 0.0 })
    }
}

/// Windows are whole intervals between plans.
struct Windows {
    panic: Duration,
    stable: Duration,
    trend: Duration,
}

impl Windows {
    fn of(interval: Duration) -> Self {
        Self {
            panic: PANIC_WINDOW.max(interval),
            stable: STABLE_WINDOW.max(interval * 6),
            trend: TREND_WINDOW.max(interval * 3),
        }
    }
}

impl Application {
    pub(crate) fn new(policy: &ApplicationPolicy, mode: Mode) -> Self {
        Self {
            demand: Demand::new(policy.classes.len()),
            season: SeasonalHistory::new(policy.season),
            release: Release::default(),
            start_up_s: HighLowFilter::default(),
            pool: None,
            sentries: SentryCount::new(mode),
            sentry_load: None,
            panic_until: Instant::ZERO,
            sized_since: None,
            complete_since: None,
            correction: 1.0,
            ladder_step: 0,
        }
    }

    pub(crate) fn observe(&mut self, sample: &ApplicationSample) {
        /// Weight of what was known, when servers became ready.
        const MEMORY: f64 = 0.75;
        self.demand.observe(sample);
        if let Some(pool) = sample.pool {
            pool.start_ups.mean_s().into_iter().for_each(|mean_s| self.start_up_s.update(mean_s, MEMORY));
            self.pool = Some(pool);
        }
        self.sentry_load = sample.sentries.or(self.sentry_load);
    }

    /// Ends the interval since the last plan.
    pub(crate) fn close(&mut self, now: Instant) {
        let (requests, span) = self.demand.close(now);
        self.season.observe(now, requests, span);
    }

    /// Start-up time of a server.
    pub(crate) fn start_up(&self, policy: &ApplicationPolicy) -> Duration {
        const LONGEST_S: f64 = 86_400.0;
        let measured = self.start_up_s.value().filter(|seconds| *seconds > 0.0);
        measured.map_or(policy.start_up, |seconds| Duration::from_secs_f64(seconds.min(LONGEST_S)))
    }

    /// Servers that it has, starting ones included.
    pub(crate) fn current(&self, policy: &ApplicationPolicy) -> u32 {
        self.pool.map_or(policy.servers_min, |pool| pool.ready.saturating_add(pool.starting))
    }

    /// Computes its need from the previous plan.
    pub(crate) fn need(
        &mut self,
        now: Instant,
        policy: &ApplicationPolicy,
        interval: Duration,
        planned: u32,
    ) -> Need {
        let windows = Windows::of(interval);
        let start_up = self.start_up(policy);
        let class_rates = |window| self.demand.class_rates(now, window, Duration::ZERO);
        let (stable, panic) = (class_rates(windows.stable), class_rates(windows.panic));
        let [offered_rps, panic_rps] = [stable, panic].map(|rates| rates.iter().sum::<f64>());
        let refused_share = self.demand.refused_share(now, windows.panic);
        if refused_share > 0.0 || self.is_surge(now, &windows, panic_rps) {
            self.panic_until = now + windows.stable;
        }
        let is_panic = now < self.panic_until;
        let level_rps = self.level_rps(&windows, offered_rps, is_panic.then_some(panic_rps));
        let horizon = start_up + interval;
        let trend_rps = self.steepest_trend_rps(now, &windows, horizon);
        let growth = self.season.growth(now, horizon);
        let forecast = |level_rps: f64| (level_rps * growth).max(trend_rps);
        let forecast_rps = forecast(level_rps);
        let mix = if is_panic && panic_rps > 0.0 { Mix(panic, panic_rps) } else { Mix(stable, offered_rps) };
        let rates = mix.at(forecast_rps);
        let target = policy.ladder[0].target;
        let found = sized(policy, &self.demand, &rates, target);
        let with_margin = sized(policy, &self.demand, &mix.at(forecast_rps * RELEASE_MARGIN), target);
        let explanation = Explanation {
            rule: Rule::Unknown,
            offered_rps,
            panic_rps,
            forecast_rps,
            refused_share,
            servers_needed: None,
            model: found.and_then(|found| found.model),
            service_s: self.service_s(&rates),
            start_up,
        };
        let (Some(found), Some(with_margin)) = (found, with_margin) else {
            return Need { rates, needed: None, after_ebb: None, wanted: planned, explanation };
        };
        self.correct(now, &windows, interval, found.servers, planned, refused_share);
        let [needed, kept] = [found, with_margin].map(|sized| self.corrected(sized));
        // While requests are refused, no demand has passed.
        let ebb = if refused_share > 0.0 { None } else { self.ebb_rps(now, &windows, start_up) };
        let ebb = ebb.map(|(rate_rps, is_certain)| (forecast(rate_rps), is_certain));
        let ebb = ebb.filter(|(rate_rps, _)| *rate_rps < forecast_rps);
        let after_ebb = ebb.and_then(|(forecast_rps, is_certain)| {
            // In an ebb without refusals more servers are ordered for a rate between two numbers of servers,
            // at most.
            let servers_max = if is_certain { needed.min(planned) } else { needed };
            self.ebb_need(policy, mix, (forecast_rps, is_certain), servers_max)
        });
        // The window begins when demand has fallen, not when the level of a minute has followed.
        let present = after_ebb.filter(|ebb| ebb.is_certain).map_or(kept, |ebb| ebb.servers);
        // Demand that has passed keeps servers, and orders none.
        let is_past = after_ebb.filter(|_| needed > planned);
        let needed = is_past.map_or(needed, |ebb| ebb.servers);
        let (wanted, rule) = self.wanted(now, start_up, present, needed, planned);
        let rule = if found.model.is_none() { Rule::TargetInfeasible } else { rule };
        let explanation = Explanation { rule, servers_needed: Some(needed), ..explanation };
        // Servers that it has are needed with the margin: else one would move to and fro between applications
        // at an edge.
        let needed = needed.max(kept.min(planned));
        let mut need = Need { rates, needed: Some(needed), after_ebb, wanted, explanation };
        if let Some(ebb) = is_past {
            need.plan_for(ebb);
        }
        need
    }

    /// Level of demand by which servers are ordered: of the panic window, too, in a panic.
    fn level_rps(&self, windows: &Windows, offered_rps: f64, panic_rps: Option<f64>) -> f64 {
        let level_rps = self.upper_rps(offered_rps, windows.stable);
        panic_rps.map_or(level_rps, |rps| level_rps.max(self.upper_rps(rps, windows.panic)))
    }

    /// Servers that it is to have, with what was needed within the release window; `present` is what is
    /// needed now, with a margin.
    fn wanted(
        &mut self,
        now: Instant,
        start_up: Duration,
        present: u32,
        needed: u32,
        planned: u32,
    ) -> (u32, Rule) {
        let is_panic = now < self.panic_until;
        let release = RELEASE_MIN.max(start_up * RELEASE_START_UPS);
        self.release.observe(now, present, release);
        let is_known = now.saturating_since(*self.sized_since.get_or_insert(now)) >= release;
        let most = self.release.most().max(needed);
        match () {
            () if needed > planned && is_panic => (needed, Rule::Panic),
            () if needed > planned => (needed, Rule::Predict),
            () if most < planned && (is_panic || !is_known) => (planned, Rule::Hold),
            () if most < planned => (most, Rule::Release),
            () => (planned, Rule::Keep),
        }
    }

    /// Its need after demand has fallen to a rate; none where no number of servers meets the target.
    fn ebb_need(
        &self,
        policy: &ApplicationPolicy,
        mix: Mix,
        (forecast_rps, is_certain): (f64, bool),
        servers_max: u32,
    ) -> Option<EbbNeed> {
        let with_margin = mix.at(forecast_rps * RELEASE_MARGIN);
        let found = sized(policy, &self.demand, &with_margin, policy.ladder[0].target)?;
        let servers = self.corrected(found).min(servers_max);
        Some(EbbNeed { rates: mix.at(forecast_rps), forecast_rps, servers, is_certain })
    }

    /// The upper limit of the rate after demand has fallen, and whether chance does not explain the fall: the
    /// highest rate of all windows of the last start-up time, because a server that is given away in a
    /// shorter lull comes back too late.
    fn ebb_rps(&self, now: Instant, windows: &Windows, start_up: Duration) -> Option<(f64, bool)> {
        let count = start_up.min(windows.stable).as_nanos().div_ceil(windows.panic.as_nanos().max(1)).max(1);
        let each = (0..count as u32).map(|place| windows.panic * place);
        let rate = |newest| self.demand.rate_rps(now, newest + windows.panic, newest);
        let rate_rps = each.map(rate).fold(0.0, f64::max);
        let before = windows.panic * count as u32;
        let expected = self.expected(now, before, windows)?;
        let is_certain = rate_rps * windows.panic.as_secs_f64() < expected - self.chance(expected);
        Some((self.upper_rps(rate_rps, windows.panic), is_certain))
    }

    /// Requests that the level of the time until `before` ago lets expect in a panic window; none while that
    /// time is too short to say.
    fn expected(&self, now: Instant, before: Duration, windows: &Windows) -> Option<f64> {
        if self.demand.covers(now) < before + windows.panic {
            return None;
        }
        let before_rps = self.demand.rate_rps(now, before + windows.stable, before);
        Some(before_rps * windows.panic.as_secs_f64())
    }

    /// By how much a count may differ from what is expected.
    fn chance(&self, expected: f64) -> f64 {
        // Of few requests the variance is that of one more.
        SURGE_ERRORS * libm::sqrt(self.dispersion() * (expected + 1.0))
    }

    /// Returns whether the last seconds brought more than the level before explains.
    fn is_surge(&self, now: Instant, windows: &Windows, panic_rps: f64) -> bool {
        let Some(expected) = self.expected(now, windows.panic, windows) else { return false };
        panic_rps * windows.panic.as_secs_f64() > expected + self.chance(expected)
    }

    fn steepest_trend_rps(&self, now: Instant, windows: &Windows, horizon: Duration) -> f64 {
        let trends = [windows.panic, windows.trend].map(|window| self.trend_rps(now, window, horizon));
        trends.into_iter().flatten().fold(0.0, f64::max)
    }

    fn trend_rps(&self, now: Instant, window: Duration, horizon: Duration) -> Option<f64> {
        const COUNT: u32 = TREND_WINDOWS as u32;
        if self.demand.covers(now) < window * COUNT {
            return None;
        }
        let rates = core::array::from_fn(|place| {
            let newest = COUNT - 1 - place as u32;
            self.demand.rate_rps(now, window * (newest + 1), window * newest)
        });
        trend_rps(rates, window.as_secs_f64(), self.dispersion(), horizon.as_secs_f64())
    }

    fn upper_rps(&self, rate_rps: f64, window: Duration) -> f64 {
        rate_rps + CONFIDENCE * libm::sqrt(self.dispersion() * rate_rps / window.as_secs_f64())
    }

    /// Variance of counts over their mean; that of Poisson arrivals at least.
    fn dispersion(&self) -> f64 {
        self.demand.gap_variation().max(1.0)
    }

    fn service_s(&self, rates: &ClassRates) -> Option<f64> {
        let total: f64 = rates.iter().sum();
        let work = |(class, rate): (usize, &f64)| Some(rate * self.demand.service(class)?.0);
        let work: f64 = rates.iter().enumerate().filter_map(work).sum();
        if total > 0.0 { Some(work / total) } else { self.demand.service(0).map(|(mean_s, _)| mean_s) }
    }

    /// Learns by how much the model asks for too few servers.
    fn correct(
        &mut self,
        now: Instant,
        windows: &Windows,
        interval: Duration,
        asked: u32,
        planned: u32,
        refused_share: f64,
    ) {
        let forgotten = libm::exp(-interval.as_secs_f64() / CORRECTION_MEMORY_S);
        self.correction = 1.0 + (self.correction - 1.0) * forgotten;
        let is_complete = self.pool.is_some_and(|pool| pool.starting == 0 && pool.ready >= planned);
        self.complete_since = is_complete.then(|| self.complete_since.unwrap_or(now));
        // The panic window must lie wholly in the time in which all servers were up.
        let is_judged =
            self.complete_since.is_some_and(|since| now.saturating_since(since) > windows.panic + interval);
        let needed = f64::from(asked) * self.correction;
        if is_judged && refused_share > REFUSED_MIN && f64::from(planned) >= needed && asked > 0 {
            let missing =
                f64::from(planned) / f64::from(asked) / (1.0 - refused_share).max(1.0 / CORRECTION_MAX);
            self.correction = missing.clamp(1.0, CORRECTION_MAX);
        }
    }

    fn corrected(&self, sized: Sized) -> u32 {
        libm::ceil(f64::from(sized.servers) * self.correction * (1.0 - f64::EPSILON)) as u32
    }
}
