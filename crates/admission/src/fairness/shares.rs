//! The shares: what each client and each value of a sign costs, and who is over.

use super::settings::FairnessSettings;
use super::sign::{Cause, RequestSigns, SIGNS, Sign};
use alloc::boxed::Box;
use alloc::vec;
use flashweir_aqm::purge::{DEVIATIONS, TOLERANCE};
use flashweir_aqm::{DistinctWindow, HeavyFlows};
use flashweir_core::hash::mix;
use flashweir_core::{Duration, Instant};

/// When a request is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// As its class says.
    Regular,
    /// After all others, from what they leave.
    Scavenger(Cause),
}

/// Fair shares among the clients of one service.
///
/// ```
/// use flashweir_admission::fairness::{Cause, Fairness, FairnessSettings, RequestSigns, Tier};
/// use flashweir_core::{Hasher64, Instant};
/// let (hasher, mut fairness) = (Hasher64::new(1, 2), Fairness::new(FairnessSettings::default(), Instant::ZERO));
/// let mut demoted = [0; 10];
/// // Nine people send 10 requests a second each, one sends 110; each request takes 10 ms, and two processors serve them.
/// for n in 0..2_000_u64 {
///     let now = Instant::from_millis(5 * n);
///     let person = if n % 20 < 9 { 1 + n % 20 } else { 0 };
///     let signs = RequestSigns { person: Some(hasher.hash(&[&[person as u8]])), ..RequestSigns::default() };
///     let tier = fairness.offer(now, &signs, 10_000);
///     fairness.advance(now, 2e6, true);
///     demoted[person as usize] += u32::from(tier == Tier::Scavenger(Cause::Person));
/// }
/// assert!(demoted[0] > 900 && demoted[1..].iter().all(|&demoted| demoted == 0), "{demoted:?}");
/// ```
#[derive(Clone, Debug)]
pub struct Fairness {
    settings: FairnessSettings,
    people: DistinctWindow,
    /// Of requests without evidence, by sign.
    unproven: Box<[DistinctWindow]>,
    costs_of_people: HeavyFlows,
    /// Costs by value, by sign.
    costs: Box<[HeavyFlows]>,
    /// People by value, by sign, in this half of the window; a person counts once for a value.
    people_of: Box<[HeavyFlows]>,
    /// The same in the half before.
    people_before: Box<[HeavyFlows]>,
    counted: Box<[u64]>,
    counted_since: Instant,
    period_began: Instant,
    /// Of this period.
    requests: u64,
    cost_us: u64,
    share_us_per_s: f64,
    is_short: bool,
}

/// Words of the filter that knows which person was counted for which value: a million bits, of which 10,000 people with seven signs
/// set 7 %. A person whose bit is set by another is not counted.
const FILTER_WORDS: usize = 16_384;

impl Fairness {
    /// Nobody came yet. Allocates: two and a half megabytes with usual settings.
    #[must_use]
    pub fn new(settings: FairnessSettings, now: Instant) -> Self {
        let window = || DistinctWindow::new(now, settings.window);
        let table = || HeavyFlows::new(settings.cached);
        Self {
            settings,
            people: window(),
            unproven: (0..SIGNS).map(|_| window()).collect(),
            costs_of_people: table(),
            costs: (0..SIGNS).map(|_| table()).collect(),
            people_of: (0..SIGNS).map(|_| table()).collect(),
            people_before: (0..SIGNS).map(|_| table()).collect(),
            counted: vec![0; FILTER_WORDS].into_boxed_slice(),
            counted_since: now,
            period_began: now,
            requests: 0,
            cost_us: 0,
            share_us_per_s: f64::INFINITY,
            is_short: false,
        }
    }

    /// Counts a request expected to cost `cost_us` microseconds of service time, and says when it is to be served. No
    /// allocation.
    pub fn offer(&mut self, now: Instant, signs: &RequestSigns, cost_us: u32) -> Tier {
        self.requests += 1;
        self.cost_us += u64::from(cost_us);
        let mut over = None;
        for (index, sign) in Sign::ALL.into_iter().enumerate() {
            let Some(value) = signs.values[index] else { continue };
            if self.costs[index].record(value, cost_us) > 0 {
                over = over.or(Some(Cause::Sign(sign)));
            }
            match signs.person {
                Some(person) => self.count_person(index, value, person),
                None => self.unproven[index].insert(now, value),
            }
        }
        if let Some(person) = signs.person {
            self.people.insert(now, person);
            // A person is judged as a person alone.
            let is_over = self.costs_of_people.record(person, cost_us) > 0;
            over = is_over.then_some(Cause::Person);
        }
        match over {
            Some(cause) if self.is_short => Tier::Scavenger(cause),
            _ => Tier::Regular,
        }
    }

    /// Ends the period if it is over. `capacity_us_per_s` is what the service can do, microseconds of service time a second; `is_short`
    /// whether it is short now. Call it as often as convenient.
    pub fn advance(&mut self, now: Instant, capacity_us_per_s: f64, is_short: bool) {
        self.is_short = is_short;
        let elapsed = now.saturating_since(self.period_began);
        if elapsed >= self.settings.period.max(Duration::from_millis(1)) {
            self.end_period(now, elapsed, capacity_us_per_s);
        }
    }

    /// The fair share of a client (f), microseconds of service time a second; infinite before the first period.
    #[must_use]
    pub fn share_us_per_s(&self) -> f64 {
        self.share_us_per_s
    }

    fn count_person(&mut self, index: usize, value: u64, person: u64) {
        let pair = mix(value ^ person.rotate_left(17).wrapping_add(index as u64));
        let (word, bit) = (pair as usize % FILTER_WORDS, 1 << (pair >> 58));
        if self.counted[word] & bit == 0 {
            self.counted[word] |= bit;
            self.people_of[index].record(value, 1);
        }
    }

    #[cold]
    fn end_period(&mut self, now: Instant, elapsed: Duration, capacity_us_per_s: f64) {
        self.period_began = now;
        let elapsed_s = elapsed.as_secs_f64();
        let people = self.people.distinct(now);
        // Whoever splits into many values of one sign still has few of another.
        let unproven = self.unproven.iter_mut().map(|window| window.distinct(now));
        let unproven = unproven.filter(|distinct| *distinct > 0.0).fold(f64::INFINITY, f64::min);
        let clients = people + if unproven.is_finite() { unproven } else { 0.0 };
        self.share_us_per_s = capacity_us_per_s / clients.max(1.0);
        let judge = Judge {
            share: self.share_us_per_s,
            rate_of_one: (1.0 - self.keep(elapsed_s)) / elapsed_s,
            request_us: self.cost_us as f64 / self.requests.max(1) as f64,
            // With one client or none there is no other to be fair to.
            is_shared: clients >= 2.0,
        };
        let keep = self.keep(elapsed_s);
        self.costs_of_people.end_period(keep, |_, cost_us| judge.over(cost_us, 1.0));
        let people = self.people_of.iter().zip(&self.people_before);
        for (costs, (people_of, before)) in self.costs.iter_mut().zip(people) {
            costs.end_period(keep, |value, cost_us| {
                let people = people_of.bytes(value).max(before.bytes(value));
                judge.over(cost_us, (people as f64).max(1.0))
            });
        }
        (self.requests, self.cost_us) = (0, 0);
        self.forget_people(now);
    }

    /// The part of a count that is left after this time.
    fn keep(&self, elapsed_s: f64) -> f64 {
        libm::exp(-elapsed_s / self.settings.averaging.as_secs_f64().max(1e-3))
    }

    /// Each half window people are counted again; until that count is larger, the one before holds.
    fn forget_people(&mut self, now: Instant) {
        if now.saturating_since(self.counted_since) < self.settings.window / 2 {
            return;
        }
        self.counted_since = now;
        self.counted.fill(0);
        core::mem::swap(&mut self.people_of, &mut self.people_before);
        self.people_of.iter_mut().for_each(|people_of| people_of.end_period(0.0, |_, _| 0.0));
    }
}

/// What decides at the end of a period.
struct Judge {
    share: f64,
    /// Cost rate of a count of one.
    rate_of_one: f64,
    /// Mean cost of a request.
    request_us: f64,
    is_shared: bool,
}

impl Judge {
    /// 1 for what has proven a cost rate over 1.15 of so many shares (P-1), else 0.
    fn over(&self, cost_us: f64, shares: f64) -> f64 {
        if !self.is_shared || self.request_us <= 0.0 {
            return 0.0;
        }
        let requests = cost_us / self.request_us;
        let proven = (requests - DEVIATIONS * libm::sqrt(requests)) * self.request_us * self.rate_of_one;
        if proven > TOLERANCE * shares * self.share { 1.0 } else { 0.0 }
    }
}
