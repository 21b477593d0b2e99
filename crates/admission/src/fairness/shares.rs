//! The shares of one service's clients at one worker: what each costs, and who is over.

use super::claims::Claims;
use super::evidence::Acquaintance;
use super::level::Partition;
use super::settings::FairnessSettings;
use super::sign::{Cause, RequestSigns, SIGNS, Sign};
use alloc::boxed::Box;
use flashweir_aqm::DistinctWindow;
use flashweir_core::{Duration, Instant};

/// Fair shares among the clients of one service. Allocates its tables (250 KB) when it counts for the first
/// time.
///
/// ```
/// use flashweir_admission::fairness::{Acquaintance, Cause, Fairness, FairnessSettings, RequestSigns};
/// use flashweir_core::{Hasher64, Instant};
/// let (hasher, mut fairness) = (Hasher64::new(1, 2), Fairness::new(FairnessSettings::default()));
/// let person = Acquaintance { is_person: true, ..Acquaintance::default() };
/// let mut demoted = [0; 10];
/// // Nine people send 10 requests a second each, one sends 110, for twenty seconds; half of all is served.
/// for n in 0..4_000_u64 {
///     let now = Instant::from_millis(5 * n);
///     let client = if n % 20 < 9 { 1 + n % 20 } else { 0 };
///     let signs = RequestSigns { person_key: hasher.hash(&[&[client as u8]]), ..RequestSigns::default() };
///     let cause = fairness.offer(now, &signs, person, 10_000);
///     demoted[client as usize] += u32::from(cause == Some(Cause::Person));
///     if n % 2 == 0 {
///         fairness.admit(10_000);
///     }
/// }
/// assert!(demoted[0] > 1_500 && demoted[1..].iter().all(|&demoted| demoted == 0), "{demoted:?}");
/// ```
#[derive(Debug)]
pub struct Fairness {
    settings: FairnessSettings,
    counts: Option<Box<Counts>>,
    refuses_until: Option<Instant>,
}

/// Fairness figures for `/status` and metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FairnessStatus {
    /// Active persons.
    pub people: u32,
    /// By [`Cause::index`]: persons, or values of the sign, that are over their share.
    pub over: [u32; Cause::COUNT],
}

impl FairnessStatus {
    /// Sum of both.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        let over = core::array::from_fn(|cause| self.over[cause] + other.over[cause]);
        Self { people: self.people + other.people, over }
    }
}

#[derive(Debug)]
struct Counts {
    people: DistinctWindow,
    /// Of persons, and of what others show, by sign.
    persons: Claims,
    by_sign: [Claims; SIGNS],
    totals: Totals,
    began: Instant,
    period_began: Instant,
    /// A sign has explained the excess; until this moment what the next ones count is from before.
    settles: Option<(usize, Instant)>,
    /// At the last end of a period.
    status: FairnessStatus,
}

/// Sums, decayed as the claims are.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    requests: f64,
    offered_us: f64,
    admitted_us: f64,
    of_people_us: f64,
    page_views: f64,
    /// Clients that turned into people.
    conversions: f64,
    lately: Lately,
}

/// Sums over the last second or so: whether there is an excess now, and whose.
#[derive(Clone, Copy, Debug, Default)]
struct Lately {
    admitted_us: f64,
    of_people_us: f64,
    /// Of others, less what signs before this one explain.
    unexplained_us: [f64; SIGNS],
    /// The same after all signs.
    rest_us: f64,
}

impl Fairness {
    /// No client came yet. Allocates nothing.
    #[must_use]
    pub fn new(settings: FairnessSettings) -> Self {
        Self { settings, counts: None, refuses_until: None }
    }

    /// Counts a request expected to cost `cost_us` microseconds of service time; why it is to be served after
    /// the others, if so. To be called only while the service is short. No allocation but the first time; a
    /// pass over the entries in use once a period.
    pub fn offer(
        &mut self,
        now: Instant,
        signs: &RequestSigns,
        known: Acquaintance,
        cost_us: u32,
    ) -> Option<Cause> {
        let settings = self.settings;
        let counts = match &mut self.counts {
            Some(counts) => counts,
            none => none.insert(Box::new(Counts::new(now, &settings))),
        };
        let elapsed = now.saturating_since(counts.period_began);
        if elapsed >= settings.period.max(PERIOD_MIN) {
            if elapsed >= settings.averaging * FORGOTTEN_AFTER {
                counts.begin_again(now);
            } else {
                counts.end_period(now, elapsed, &settings);
            }
        }
        counts.offer(now, signs, known, cost_us.max(1))
    }

    /// A request that was offered is sent to the origin.
    pub fn admit(&mut self, cost_us: u32) {
        if let Some(counts) = &mut self.counts {
            counts.totals.admitted_us += f64::from(cost_us.max(1));
            counts.totals.lately.admitted_us += f64::from(cost_us.max(1));
        }
    }

    /// A request of any client is refused.
    pub fn refuse(&mut self, now: Instant) {
        self.refuses_until = Some(now + REFUSING_FOR);
    }

    /// Returns true if a request was refused just now: no client is demoted while others merely wait.
    #[must_use]
    pub fn is_refusing(&self, now: Instant) -> bool {
        self.refuses_until.is_some_and(|until| now < until)
    }

    /// Current figures; empty while the service is not short.
    #[must_use]
    pub fn status(&self, now: Instant) -> FairnessStatus {
        let counts = self.counts.as_ref();
        let counts = counts.filter(|counts| {
            now.saturating_since(counts.period_began) < self.settings.averaging.max(PERIOD_MIN)
        });
        counts.map_or_else(FairnessStatus::default, |counts| counts.status)
    }

    /// Bytes that its tables take.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let tables = (SIGNS + 1) * flashweir_core::limits::FAIRNESS_CLAIMS * 16;
        self.counts.as_ref().map_or(0, |counts| size_of::<Counts>() + tables + counts.people.memory_bytes())
    }
}

impl Counts {
    fn new(now: Instant, settings: &FairnessSettings) -> Self {
        Self {
            people: DistinctWindow::new(now, settings.window),
            persons: Claims::new(),
            by_sign: core::array::from_fn(|_| Claims::new()),
            totals: Totals::default(),
            began: now,
            period_began: now,
            settles: None,
            status: FairnessStatus::default(),
        }
    }

    /// Starts over: the counts are too old to say anything.
    #[cold]
    fn begin_again(&mut self, now: Instant) {
        self.persons.decay(0.0, 0.0);
        self.by_sign.iter_mut().for_each(|claims| claims.decay(0.0, 0.0));
        (self.totals, self.status, self.settles) = (Totals::default(), FairnessStatus::default(), None);
        (self.began, self.period_began) = (now, now);
    }

    fn offer(
        &mut self,
        now: Instant,
        signs: &RequestSigns,
        known: Acquaintance,
        cost_us: u32,
    ) -> Option<Cause> {
        let cost = f64::from(cost_us);
        self.totals.requests += 1.0;
        self.totals.offered_us += cost;
        let mut values = signs.values;
        values[Sign::SessionAge as usize] = known.session_step.into();
        if known.is_person {
            self.people.insert(now, signs.person_key);
            self.totals.of_people_us += cost;
            self.totals.lately.of_people_us += cost;
            self.totals.conversions += f64::from(known.is_newly_person);
            if known.is_page_view {
                self.count_view(&values);
            }
            // Entries of the table are distinguished by the low bits, those of the evidence by the high ones.
            let is_over = self.persons.record((signs.person_key as u32).max(1), cost_us);
            return is_over.then_some(Cause::Person);
        }
        for (index, sign) in Sign::ALL.into_iter().enumerate() {
            self.totals.lately.unexplained_us[index] += cost;
            if values[index] != 0 && self.by_sign[index].record(values[index], cost_us) {
                return Some(Cause::Sign(sign));
            }
        }
        self.totals.lately.rest_us += cost;
        None
    }

    /// Counts a page view of a person: clients that show the same values get a larger share.
    fn count_view(&mut self, values: &[u32; SIGNS]) {
        self.totals.page_views += 1.0;
        for (claims, &value) in self.by_sign.iter_mut().zip(values) {
            if value != 0 {
                claims.count_view(value);
            }
        }
        // A person of the last minute was a newcomer just now: newcomers who turn into people are no crawler.
        if values[Sign::SessionAge as usize] == YOUNG_STEP {
            self.by_sign[Sign::SessionAge as usize].count_view(NO_SESSION_STEP);
        }
    }

    #[cold]
    fn end_period(&mut self, now: Instant, elapsed: Duration, settings: &FairnessSettings) {
        self.period_began = now;
        let averaging_s = settings.averaging.as_secs_f64().max(1e-3);
        let active = self.people.distinct(now);
        // The load before counting began is unknown and taken as the mean since then.
        let counted_s = now.saturating_since(self.began).as_secs_f64();
        let rate_of_one = 1.0 / (averaging_s * (1.0 - libm::exp(-counted_s / averaging_s))).max(1e-6);
        let Totals { requests, offered_us, admitted_us, of_people_us, page_views, .. } = self.totals;
        let lately = self.totals.lately;
        let lately_of_one = 1.0 / (LATELY_S * (1.0 - libm::exp(-counted_s / LATELY_S))).max(1e-6);
        let request_us = (offered_us / requests.max(1.0)).max(1.0);
        let served = lately.admitted_us * lately_of_one;
        let partition = Partition {
            offered: 0.0,
            served,
            people: active,
            burst: (served / SMALL_PART).min(BURST_REQUESTS * request_us / averaging_s),
            spread: USUAL_SPREAD,
            has_weights: true,
            rate_of_one,
            request_us,
            views_of_a_person: (page_views / active.max(1.0)).max(1.0),
        };
        // Of a crowd of newcomers, those who are served turn into people; of a crawler's requests none do.
        let of_newcomers = (admitted_us - of_people_us).max(0.0) / request_us;
        let turns_into_people = self.totals.conversions * UNPROVEN_REQUESTS
            >= CONVERTED_MIN * of_newcomers.max(UNPROVEN_REQUESTS);
        for (index, sign) in Sign::ALL.into_iter().enumerate() {
            let offered = (lately.of_people_us + lately.unexplained_us[index]) * lately_of_one;
            let has_weights = sign.is_place() || turns_into_people;
            let spread = if !sign.is_place() && turns_into_people { CROWD_SPREAD } else { USUAL_SPREAD };
            let claims = &mut self.by_sign[index];
            // Without people there is no telling which kind of software theirs is.
            let is_settled = self.settles.is_none_or(|(by, until)| index <= by || now >= until);
            let judged = match is_settled && (sign.is_place() || active >= PEOPLE_MIN) {
                true => Partition { offered, spread, has_weights, ..partition }.judge(claims),
                false => claims.forgive(),
            };
            // Where many values and most of them are over or nearly so, the sign does not distinguish
            // clients; a later one says what they have in common.
            let tells_apart = judged.nearly_over <= FEW_VALUES || 2 * judged.nearly_over <= judged.claimants;
            let judged = match tells_apart || sign.is_place() || sign == Sign::SessionAge {
                true => judged,
                false => claims.forgive(),
            };
            self.status.over[Cause::Sign(sign).index()] = judged.over;
            if judged.newly_over_us * rate_of_one > EXPLAINED_MIN * (offered - served).max(0.0) {
                self.settles = Some((index, now + SETTLES_IN));
            }
        }
        // The claims of the table are the people; the others count as one.
        let offered = (lately.of_people_us + lately.rest_us) * lately_of_one;
        let judged = match self.settles.is_none_or(|(_, until)| now >= until) {
            true => Partition { offered, people: f64::from(lately.rest_us > 0.0), ..partition }
                .judge(&mut self.persons),
            false => self.persons.forgive(),
        };
        self.status.over[Cause::Person.index()] = judged.over;
        // At most as many as there are hashes of 32 bits.
        self.status.people = active as u32;
        let elapsed_s = elapsed.as_secs_f64();
        let (keep, views_keep) = (libm::exp(-elapsed_s / averaging_s), libm::exp(-elapsed_s / VIEWS_S));
        let lately_keep = libm::exp(-elapsed_s / LATELY_S);
        self.persons.decay(keep, views_keep);
        self.by_sign.iter_mut().for_each(|claims| claims.decay(keep, views_keep));
        self.totals.decay(keep, views_keep, lately_keep);
    }
}

impl Totals {
    fn decay(&mut self, keep: f64, views_keep: f64, lately_keep: f64) {
        let Self { requests, offered_us, admitted_us, of_people_us, conversions, page_views, lately } = self;
        for total in [requests, offered_us, admitted_us, of_people_us, conversions] {
            *total *= keep;
        }
        *page_views *= views_keep;
        let Lately { admitted_us, of_people_us, unexplained_us, rest_us } = lately;
        let lately = [admitted_us, of_people_us, rest_us].into_iter().chain(unexplained_us);
        lately.for_each(|total| *total *= lately_keep);
    }
}

/// Minimum period, regardless of the settings.
const PERIOD_MIN: Duration = Duration::from_millis(1);
/// Averaging times without a request after which the counts are too old to judge by.
const FORGOTTEN_AFTER: u32 = 4;
/// A refusal keeps demotions in force for this long: demoted clients would come back at once otherwise, and
/// fill the queue before a request is refused again.
const REFUSING_FOR: Duration = Duration::from_secs(5);
/// A claimant with less than this part of what is served is not over its share: cutting it would make no
/// room.
const SMALL_PART: f64 = 20.0;
/// Two pages with a dozen assets each within an averaging time.
const BURST_REQUESTS: f64 = 24.0;
/// One and a half times the mean is more than a share.
const USUAL_SPREAD: f64 = 1.5;
/// In a crowd of newcomers one kind of software, or of pages, has many people who have no evidence yet.
const CROWD_SPREAD: f64 = 4.0;
/// Fewer active persons than this do not show that people come here.
const PEOPLE_MIN: f64 = 3.0;
/// Requests of a newcomer until it has evidence: a page and two assets.
const UNPROVEN_REQUESTS: f64 = 3.0;
/// Least part of the served requests without evidence that end in evidence if people send them. Below it they
/// are mostly not people's: of a crowd of newcomers nearly all do.
const CONVERTED_MIN: f64 = 0.3;
/// Memory by which it is judged whether there is an excess now, seconds.
const LATELY_S: f64 = 1.0;
/// In this time what one sign explains is mostly gone from what the next ones counted.
const SETTLES_IN: Duration = Duration::from_millis(1_500);
/// A sign that explains less than this part of an excess leaves it to the next ones.
const EXPLAINED_MIN: f64 = 0.5;
/// This many values of a sign can be over although hardly any other is in use: a crawler's TLS stacks beside
/// one browser's.
const FEW_VALUES: u32 = 4;
/// Steps of a session's age: none, and younger than a minute.
const NO_SESSION_STEP: u32 = 1;
const YOUNG_STEP: u32 = 2;
/// Memory of page views, seconds: the time for which people read a page.
const VIEWS_S: f64 = 60.0;
