//! Learner: ticks in, a limit out.
//!
//! Order of a tick: evidence, test for change, long classes, posterior, decision. A raise needs *exposure*:
//! completions, expected and seen, at or near the limit since it last moved, as many as the limit, and half
//! as many at a cold start with requests that wait. Without any queue the limit is lowered only where more
//! answers would be in time.

use crate::evidence::{Evidence, Guard};
use crate::grid::{BINS_AN_OCTAVE, CENTRE, STEP};
use crate::numbers::{LIMIT_MAX, Numbers};
use crate::policy::{Policy, round};
use crate::posterior::Posterior;
use crate::prompt::Prompt;
use crate::row::Row;
use crate::silence::{BLIND_TARGETS, Silence};

/// Measurements of one tick, in which exempt requests count in `rows` only.
#[derive(Clone, Copy, Debug)]
pub struct Tick<'a> {
    /// Length, seconds.
    pub span_s: f64,
    /// Response target, seconds.
    pub target_s: f64,
    /// Requests in flight as a request sees them: ∫ n² dt / ∫ n dt.
    pub in_flight: f64,
    /// Exempt requests in flight, at the end of the tick.
    pub exempt: u32,
    /// Completions, departures and ages by class and time, each pair once.
    pub rows: &'a [Row],
    /// A request was in the queue.
    pub is_waiting: bool,
    /// Requests that arrived, retries of refused ones left out.
    pub offered: f64,
    /// Requests refused because of the limit.
    pub refused: f64,
    /// Requests that the origin failed or refused.
    pub failed: f64,
}

/// Reason for the move of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// It stayed, and it binds.
    None,
    /// It stayed, and it does not bind.
    Quiet,
    /// More in flight are expected to do more in time.
    Raise,
    /// Fewer are expected to do as much, or more of it in time.
    Lower,
    /// The origin fails or refuses requests.
    Failures,
}

/// Results of a tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learned {
    /// Requests in flight at most, exempt ones not counted.
    pub limit: u32,
    /// Exempt requests in flight at most; `None` while the origin is not busy.
    pub exempt_limit: Option<u32>,
    /// Time in flight above which a request of any class is exempt, seconds: others come back much sooner, or
    /// none ever has.
    pub exempt_after_s: Option<f64>,
    /// Servers of the origin, once known to a factor of 1.65.
    pub servers: Option<f64>,
    /// Times at present over those of the base.
    pub stretch: f64,
    /// Requests complete as soon as from an origin that is not busy, or have other times than before by
    /// themselves, and nothing shows that it is short of anything: no reason to refuse.
    pub is_calm: bool,
    /// A much higher limit is worth more as far as known: nothing shows that the origin is short of anything.
    pub wants_more: bool,
    /// One answer in twenty is later than the target at any limit.
    pub target_infeasible: bool,
    /// Reason for the move of the limit in this tick.
    pub last_move: Move,
}

/// Evidence, posterior and policy of one service.
#[derive(Debug)]
pub struct Learner {
    evidence: Evidence,
    posterior: Posterior,
    policy: Policy,
    prompt: Prompt,
    silence: Silence,
    learned: Learned,
    /// Completions expected at or near the limit since it moved.
    exposure: f64,
    /// Completions meanwhile.
    shown: f64,
    /// Completions, and completions expected, since the posterior was last computed; and how long ago that
    /// was.
    fresh: f64,
    since_s: f64,
    /// Time since the mix of classes was last taken, seconds.
    mix_s: f64,
    /// For how long requests have waited without a break.
    waiting_s: f64,
    /// Refusals by the limit of the last second or so.
    refused: f64,
    /// Failures and completions since the limit moved.
    failed: f64,
    completed: f64,
    /// Above this the origin refuses, as far as known.
    ceiling: f64,
    /// Long requests in flight in calm, on average.
    exempt_usual: f64,
    was_known: bool,
    /// Requests offered a second: of late, and on average in calm.
    offered_rps: f64,
    offered_rps_usual: f64,
    /// Time in calm that the mean is over, seconds.
    calm_s: f64,
    /// Steps of stretch by which bases have been moved.
    moved_steps: isize,
    /// All completions.
    seen: f64,
    /// Completions since the last decision, and those while a crowd and the evidence have said that the
    /// origin is short of something.
    ended: f64,
    short_shown: f64,
    /// The origin was found short of something in this crowd.
    is_limited: bool,
    /// At present numbers in flight it is as likely short as not.
    is_short: bool,
}

impl Learner {
    /// Nothing is known.
    #[must_use]
    pub fn new(numbers: Numbers) -> Self {
        Self {
            evidence: Evidence::new(numbers),
            posterior: Posterior::new(numbers),
            policy: Policy::new(numbers),
            prompt: Prompt::default(),
            silence: Silence::default(),
            learned: Learned {
                limit: numbers.start as u32,
                exempt_limit: None,
                exempt_after_s: None,
                servers: None,
                stretch: 1.0,
                is_calm: false,
                wants_more: true,
                target_infeasible: false,
                last_move: Move::None,
            },
            exposure: 0.0,
            shown: 0.0,
            fresh: 0.0,
            since_s: 0.0,
            mix_s: 0.0,
            waiting_s: 0.0,
            refused: 0.0,
            failed: 0.0,
            completed: 0.0,
            ceiling: f64::from(LIMIT_MAX),
            exempt_usual: 0.0,
            was_known: false,
            offered_rps: 0.0,
            offered_rps_usual: 0.0,
            calm_s: 0.0,
            moved_steps: 0,
            seen: 0.0,
            ended: 0.0,
            short_shown: 0.0,
            is_limited: false,
            is_short: false,
        }
    }

    /// Goes on from a limit that another learner of the same origin found.
    pub fn resume(&mut self, limit: u32) {
        self.learned.limit = limit.clamp(1, LIMIT_MAX);
        self.was_known = true;
    }

    /// Takes over a limit that another rule has set meanwhile.
    pub fn follow(&mut self, limit: u32) {
        if limit != self.learned.limit {
            self.move_to(limit, self.learned.last_move);
        }
    }

    /// Results of the last tick.
    #[must_use]
    pub fn learned(&self) -> Learned {
        self.learned
    }

    /// The posterior over origins.
    #[must_use]
    pub fn posterior(&self) -> &Posterior {
        &self.posterior
    }

    /// Classes whose requests are exempt: long ones, and prompt ones.
    pub fn exempt_classes(&self) -> impl Iterator<Item = u32> + '_ {
        self.evidence.classes.iter().filter(|class| !class.holds_place()).map(|class| class.id)
    }

    /// Returns true if requests of a class are exempt.
    #[must_use]
    pub fn is_exempt(&self, class: u32) -> bool {
        self.exempt_classes().any(|id| id == class)
    }

    /// Takes a tick and decides. O(rows · stretches), and O(origins · levels · stretches) where enough is
    /// new.
    pub fn tick(&mut self, tick: &Tick<'_>) -> Learned {
        let k = self.policy.numbers;
        self.learned.last_move = Move::None;
        let guard = self.guard(tick);
        self.evidence.take(tick.rows, tick.in_flight, tick.span_s, guard);
        let is_bound = tick.is_waiting || tick.refused > 0.0;
        let had_prompt = self.prompt.limit().is_some();
        let is_prompt_new = self.prompt.find(&mut self.evidence, self.learned.limit, is_bound);
        if had_prompt && self.prompt.limit().is_none() {
            // No class is late any more: times are those of before.
            self.move_bases(0);
        }
        let is_known = self.evidence.learned() >= FIRST_COMPLETIONS;
        let is_changed = is_known && self.posterior.is_changed(&mut self.evidence);
        self.count(tick);
        let is_busy = self.learned.stretch > k.much || !self.evidence.is_usual() && is_known;
        let (bound_s, scale) = (k.target_share * tick.target_s, self.posterior.scale().min(1.0));
        let is_long_new = self.since_s >= REFRESH_S && self.evidence.find_long(bound_s, scale, is_busy);
        let is_regrouped = is_prompt_new || is_long_new;
        self.count_exempt(tick, (bound_s, scale), is_busy);
        // Where the limit binds and nothing shows that it should, soon.
        let is_bound = self.waiting_s > 0.0 || self.refused > 0.1;
        let refresh_s = if is_bound && !self.is_limited { REFRESH_S } else { SLOW_REFRESH_S };
        let is_due = self.since_s >= 0.5 * refresh_s && self.fresh >= k.enough
            || self.since_s >= refresh_s && self.fresh > 0.1;
        let is_blind = self.since_s >= REFRESH_S && !self.evidence.is_informed();
        if is_changed || is_due || is_blind || is_regrouped {
            (self.fresh, self.since_s) = (0.0, 0.0);
            self.mix_s += refresh_s;
            let is_mix_new = core::mem::take(&mut self.evidence.is_mix_new) || is_regrouped;
            if is_mix_new || self.mix_s > MIX_S || self.policy.target_s != tick.target_s {
                self.mix_s = 0.0;
                self.policy.set_mix(self.evidence.survivals(), tick.target_s);
            }
            self.posterior.observe(&self.evidence);
            self.rebase();
            self.decide(tick);
        }
        self.learned.is_calm = self.evidence.is_informed()
            && !self.is_limited
            && !self.is_short
            && (self.evidence.is_usual() || self.posterior.has_changed() && self.evidence.are_alike());
        self.learned
    }

    /// Finds from what age on requests hold no place, and how many of them there may be.
    fn count_exempt(&mut self, tick: &Tick<'_>, (bound_s, scale): (f64, f64), is_busy: bool) {
        let counts = (tick.in_flight, self.evidence.completed(), tick.exempt);
        let is_silent = self.silence.take(counts, tick.span_s, tick.target_s);
        // All that hold places: there may be more of them than the limit by now.
        let places = (libm::ceil(tick.in_flight) as u32).max(self.learned.limit);
        let released_max = self.silence.exempt_max(places);
        let is_silent = is_silent && tick.exempt < released_max;
        let is_held_up = self.is_held_up(tick.target_s);
        // Where the base was measured under load, times alone are shorter, and a late request may be as late
        // as it was then. Outside of a crowd that counts for little where others come back soon by the base
        // itself, as at an origin whose compiler was cold.
        let are_soon = self.evidence.has_short(bound_s, 1.0);
        let is_cold = self.seen <= COLD_COMPLETIONS;
        let scale = if are_soon && (is_cold || !is_held_up) { scale.max(SOON_SCALE) } else { scale };
        self.learned.exempt_after_s = match self.evidence.is_informed() && !is_silent {
            true => self.evidence.has_short(bound_s, scale).then_some(tick.target_s / scale),
            false => Some(BLIND_TARGETS * tick.target_s),
        };
        // In calm any number; in a crowd about as many as there were before it.
        let is_crowd = self.evidence.is_informed() && !self.learned.is_calm && (is_busy || is_held_up);
        let prompt_max = self.prompt.limit();
        if !is_crowd && !tick.is_waiting && prompt_max.is_none() {
            let part = 1.0 - libm::exp(-tick.span_s / EXEMPT_S);
            self.exempt_usual += (f64::from(tick.exempt) - self.exempt_usual) * part;
            // The mean of all calm so far, until that is as long.
            self.calm_s = (self.calm_s + tick.span_s).min(LATELY_S);
            let part = tick.span_s / self.calm_s.max(1e-3);
            self.offered_rps_usual += (tick.offered / tick.span_s.max(1e-3) - self.offered_rps_usual) * part;
        }
        // The number of exempt requests in calm, and two standard deviations of such a number.
        let exempt_most = self.exempt_usual + 2.0 * libm::sqrt(self.exempt_usual);
        let mut exempt_most = (exempt_most + 0.5) as u32;
        if is_cold && are_soon && self.evidence.is_usual() {
            // The calm was too short to count them.
            exempt_most = exempt_most.max(COLD_EXEMPT * self.learned.limit);
        }
        self.learned.exempt_limit =
            prompt_max.map(|prompt| prompt + exempt_most).or(is_crowd.then_some(exempt_most));
        if is_silent {
            self.learned.exempt_limit = self.learned.exempt_limit.map(|limit| limit.max(released_max));
        }
        // Late requests must not take the places of prompt ones.
        self.learned.exempt_after_s = self.learned.exempt_after_s.filter(|_| prompt_max.is_none());
    }

    /// Requests are refused, or have waited for half of the target without a break.
    fn is_held_up(&self, target_s: f64) -> bool {
        self.refused > 0.5 || self.waiting_s > 0.5 * target_s
    }

    /// Conditions under which bases learn from the coming tick: see [`Evidence`].
    fn guard(&self, tick: &Tick<'_>) -> Guard {
        let log = self.posterior.log_stretch(self.evidence.aged_at);
        let calm_max = || IDLE_SHARE * self.posterior.servers_quantile(IDLE_QUANTILE);
        let is_idle = !tick.is_waiting
            && log.abs() <= STEP
            && self.evidence.is_usual()
            && self.evidence.aged_at <= calm_max().max(IDLE_MIN);
        let shift = (log.max(0.0) * BINS_AN_OCTAVE / core::f64::consts::LN_2 + 0.5) as usize;
        Guard { is_idle, has_room: !tick.is_waiting, shift }
    }

    /// Moves bases where the stretch comes near the end of the grid: beyond it ages would speak for any
    /// stretch.
    fn rebase(&mut self) {
        let log = self.posterior.log_stretch(self.evidence.aged_at);
        if log.abs() > FAR_STEPS * STEP && self.posterior.has_changed() {
            self.move_bases(self.moved_steps + if log > 0.0 { MOVE_STEPS } else { -MOVE_STEPS });
            self.posterior.observe(&self.evidence);
        }
    }

    /// Makes times of the bases this many steps of stretch longer than at first.
    fn move_bases(&mut self, steps: isize) {
        if steps != self.moved_steps {
            self.moved_steps = steps;
            self.evidence.rebase(steps);
            self.posterior.rebase();
        }
    }

    fn count(&mut self, tick: &Tick<'_>) {
        let k = self.policy.numbers;
        let expected = f64::from(self.evidence.tick.expected[CENTRE]);
        let ended: f64 = tick.rows.iter().map(|row| f64::from(row.completed)).sum();
        let part = 1.0 - libm::exp(-tick.span_s / DEMAND_S);
        self.offered_rps += (tick.offered / tick.span_s.max(1e-3) - self.offered_rps) * part;
        self.fresh += ended + expected;
        self.since_s += tick.span_s;
        if tick.in_flight > f64::from(self.learned.limit) / k.much {
            self.exposure += if self.evidence.is_informed() { expected } else { ended };
            self.shown += ended;
        }
        self.waiting_s = if tick.is_waiting { self.waiting_s + tick.span_s } else { 0.0 };
        self.refused = self.refused * libm::exp(-tick.span_s) + tick.refused;
        self.failed += tick.failed;
        self.completed += ended;
        self.ended += ended;
        self.seen += ended;
        self.ceiling =
            (self.ceiling * (1.0 + 0.01 * ended / f64::from(self.learned.limit))).min(f64::from(LIMIT_MAX));
    }

    fn decide(&mut self, tick: &Tick<'_>) {
        let k = self.policy.numbers;
        let limit = self.learned.limit;
        if self.failed > FAILED_MAX * self.completed.max(2.0 * k.enough)
            && tick.in_flight > 0.5 * f64::from(limit)
        {
            self.ceiling = tick.in_flight.min(f64::from(limit)) / k.much;
            return self.move_to(round(self.ceiling), Move::Failures);
        }
        let (servers, spread) = self.posterior.servers();
        self.learned.servers = (spread < SPREAD_KNOWN).then_some(servers);
        self.was_known |= self.learned.servers.is_some();
        self.learned.stretch = self.posterior.stretch(self.evidence.aged_at);
        let is_crowd = self.is_held_up(tick.target_s);
        // At a cold start, while requests wait and none is refused, twice as many at a time: nothing else
        // finds a wide origin soon.
        let is_cold = self.evidence.learned() <= COLD_COMPLETIONS && tick.is_waiting;
        let times_max = if is_cold && self.refused <= 0.5 && !self.was_known { 2.0 } else { k.much };
        // Nothing is taken away while the origin is as likely short of nothing.
        let shortage = self.posterior.shortage(self.evidence.aged_at, k.much);
        let is_short = shortage >= 0.5;
        let wanted = self.policy.choose(&self.posterior, limit, times_max, is_short);
        // A crowd that has found the origin short of something stays one until no request waits, or until it
        // was none.
        let is_over = self.refused < 0.1 && self.waiting_s <= 0.0 && !is_short
            || wanted.best > limit && wanted.is_better && self.is_slow_by_itself(shortage);
        // While few are known: requests that began together are late together, until they end.
        let is_short_now = is_crowd && (is_short || !wanted.is_better);
        self.short_shown = if is_short_now { self.short_shown + self.ended } else { 0.0 };
        self.ended = 0.0;
        let is_found = is_short_now
            && (self.evidence.learned() > COLD_COMPLETIONS || self.short_shown >= FOUND * f64::from(limit));
        self.is_limited = !is_over && (self.is_limited || is_found);
        self.is_short = is_short;
        self.learned.wants_more = !self.is_limited && wanted.best > limit && wanted.is_better;
        self.judge_target(servers, wanted.best >= limit);
        if !wanted.is_better {
            self.learned.last_move = if is_crowd { Move::None } else { Move::Quiet };
            return;
        }
        if wanted.best > limit {
            // Where guarantees fill more than the limit, a higher one shows nothing.
            let used = tick.in_flight / f64::from(limit);
            let is_reached = used > 1.0 / k.much && used < k.much;
            // A turnover of what is in flight, half of it where that presses; and it showed no stretch. At a
            // cold start the base is of few requests, and while requests are refused to know is worth more
            // than to wait.
            let turnover = f64::from(limit) * if is_cold { 0.5 } else { 1.0 };
            let is_shown = is_reached
                && self.exposure.min(self.shown) >= turnover.max(k.enough)
                && (is_cold || self.refused > 0.5 || self.shown >= SHOWN_SHARE * self.exposure);
            let best = if is_shown { wanted.best } else { limit }.min(round(self.ceiling));
            if best > limit {
                self.move_to(best, Move::Raise);
            }
            return;
        }
        // Without a queue a shorter line at the origin brings nothing; answers in time do.
        let in_time = |limit: u32| self.policy.in_part(&self.posterior, limit.into());
        if is_crowd || in_time(wanted.best) > in_time(limit) + IN_TIME_MORE {
            self.move_to(wanted.best, Move::Lower);
        }
    }

    /// Returns true if requests of all classes take several times as long as before although the origin is
    /// short of nothing and no more of them come: they wait for another service, for example.
    fn is_slow_by_itself(&self, shortage: f64) -> bool {
        let log_scale = libm::log(self.posterior.scale()) + self.moved_steps as f64 * STEP;
        log_scale > SLOW_STEPS * STEP
            && shortage < SHORTAGE_MIN
            && self.offered_rps < DEMAND_MAX * self.offered_rps_usual
            && self.evidence.are_alike()
            && self.evidence.are_known()
    }

    /// With as many in flight as there are servers: fewer would leave some idle.
    fn judge_target(&mut self, servers: f64, is_lowest: bool) {
        let in_flight = servers.min(self.learned.limit.into());
        let has_evidence = self.evidence.learned() > 2.0 * self.policy.numbers.enough;
        self.learned.target_infeasible = (self.learned.target_infeasible || is_lowest && has_evidence)
            && self.policy.in_target(&self.posterior, in_flight) < 0.95;
    }

    fn move_to(&mut self, limit: u32, why: Move) {
        self.learned.limit = limit.clamp(1, LIMIT_MAX);
        self.learned.last_move = why;
        (self.exposure, self.shown) = (0.0, 0.0);
        (self.failed, self.completed) = (0.0, 0.0);
    }
}

/// Completions from which on the base is known well enough to look for changes.
const FIRST_COMPLETIONS: f64 = 16.0;
/// Completions up to which a start is cold.
const COLD_COMPLETIONS: f64 = 64.0;
/// Exempt requests that there may be at a cold start in a crowd, over the limit.
const COLD_EXEMPT: u32 = 2;
/// Scale of a base down to which requests are taken for as late as those of the base, where others come back
/// soon by it.
const SOON_SCALE: f64 = 0.75;
/// Completions over those expected, since the limit last moved, from which on it may rise: less is a stretch,
/// or the chance of a small count.
const SHOWN_SHARE: f64 = 0.85;
/// Part of a turnover of completions at which the evidence says at a cold start that the origin is short,
/// from which on it is found to be.
const FOUND: f64 = 0.25;
/// Steps of stretch from which on bases are moved, and by how many: five of the grid's six octaves, and four.
const FAR_STEPS: f64 = 20.0;
const MOVE_STEPS: isize = 16;
/// Steps of stretch by which requests are slow by themselves, a factor of 4, and the probability of a
/// shortage below which no shortage is.
const SLOW_STEPS: f64 = 8.0;
const SHORTAGE_MIN: f64 = 0.05;
/// Demand over the usual one below which there is no crowd.
const DEMAND_MAX: f64 = 2.0;
/// Time over which demand is averaged, seconds.
const DEMAND_S: f64 = 2.0;
/// Time constant of the mix of classes, which changes slowly, seconds.
const MIX_S: f64 = 1.0;
/// The posterior is renewed this often while little is new, seconds.
const REFRESH_S: f64 = 0.1;
/// The same while no request waits, or the origin was found short of something; a change of the origin renews
/// it at once.
const SLOW_REFRESH_S: f64 = 0.5;
/// A base learns below this part of the servers that there are with a probability of 1 − [`IDLE_QUANTILE`].
const IDLE_SHARE: f64 = 0.75;
const IDLE_QUANTILE: f64 = 0.2;
/// One request alone is never slowed by others.
const IDLE_MIN: f64 = 1.1;
/// Time over which exempt requests in flight are averaged in calm, seconds: less than many of them take, or
/// their number is known too late.
const EXEMPT_S: f64 = 5.0;
/// Time over which demand is averaged in calm, seconds.
const LATELY_S: f64 = 20.0;
/// Failures over completions that make the limit fall. Some requests always fail.
const FAILED_MAX: f64 = 0.25;
/// Standard deviation of ln c at which c counts as known.
const SPREAD_KNOWN: f64 = 0.5;
/// A limit is lowered without a crowd if this share more would be in time.
const IN_TIME_MORE: f64 = 0.05;
