//! Limits that the upstreams of one service ask of this gateway, and the part of them that each worker may
//! send.
//!
//! Several upstreams are several nodes. While one of them asks for nothing, requests can go there, so nothing
//! is restricted; when all that were heard of ask, their rates add up. Workers divide the rate by what each
//! of them is offered, since a connection belongs to one worker for its life.

use super::keys::HmacKey;
use flashweir_admission::gapping::Restriction;
use flashweir_core::{Duration, Instant, Rate};
use flashweir_feedback::caller::{HOLD_MAX, HOLD_PART};
use flashweir_feedback::{FieldError, Intake, KeyRing, Limit, RATE_FLOOR, Taken};

/// The time over which what a worker is offered is averaged.
const AVERAGED_OVER_S: f64 = 1.0;
/// A worker to which nothing came has this part of an equal part: the next request may be its.
const PART_MIN: f64 = 0.1;

/// The limits of one service's upstreams.
#[derive(Debug)]
pub(super) struct UpstreamLimits {
    /// By upstream, as far as one was heard of.
    intakes: Vec<Option<Intake<HmacKey>>>,
    /// Requests per second that each worker is offered, and since when nothing was added.
    offered_rps: Vec<f64>,
    offered: Vec<u64>,
    measured_at: Instant,
    /// Until when a spent quota holds requests back, and at which rate.
    quota: Option<(Instant, Rate)>,
}

/// One upstream in `/status`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpstreamFeedback {
    pub(crate) upstream: usize,
    pub(crate) limit: Option<Limit>,
    pub(crate) age: Option<Duration>,
}

impl UpstreamLimits {
    pub(super) fn new(workers: usize) -> Self {
        let (offered_rps, offered) = (vec![0.0; workers], vec![0; workers]);
        Self { intakes: Vec::new(), offered_rps, offered, measured_at: Instant::ZERO, quota: None }
    }

    /// A field came with a response of this upstream. `ring` makes its keys where it is heard of for the
    /// first time.
    pub(super) fn hear(
        &mut self,
        now: Instant,
        upstream: usize,
        field: &[u8],
        new: impl FnOnce() -> (KeyRing<HmacKey>, Vec<u8>),
    ) -> Result<Taken, FieldError> {
        let offered = Rate::from_per_second(self.offered_rps.iter().sum());
        self.intake(upstream, new).take(now, field, || offered)
    }

    /// An answer said that the quota of this gateway is spent for this long. As a caller does
    /// ([`flashweir_feedback::caller`]): no quota holds for longer than a minute, and a hundredth of the
    /// requests goes on.
    pub(super) fn hear_quota(&mut self, now: Instant, reset: Duration) {
        let until = now + reset.min(HOLD_MAX);
        let offered = Rate::from_per_second(self.offered_rps.iter().sum());
        let rate = Rate::from_milli(offered.as_milli() / HOLD_PART).max(RATE_FLOOR);
        self.quota = self.quota.filter(|(held, _)| *held >= until).or(Some((until, rate)));
    }

    /// For how long a quota holds requests back.
    pub(super) fn quota(&self, now: Instant) -> Option<Duration> {
        self.quota.filter(|(until, _)| now < *until).map(|(until, _)| until.saturating_since(now))
    }

    /// A datagram came, of the server of this upstream that was signed for `context`.
    pub(super) fn hear_datagram(
        &mut self,
        now: Instant,
        upstream: usize,
        (field, context): (&[u8], &[u8]),
        new: impl FnOnce() -> (KeyRing<HmacKey>, Vec<u8>),
    ) -> Result<Taken, FieldError> {
        let offered = Rate::from_per_second(self.offered_rps.iter().sum());
        self.intake(upstream, new).take_datagram(now, field, context, || offered)
    }

    fn intake(
        &mut self,
        upstream: usize,
        new: impl FnOnce() -> (KeyRing<HmacKey>, Vec<u8>),
    ) -> &mut Intake<HmacKey> {
        if self.intakes.len() <= upstream {
            // There are at most `limits::UPSTREAM_ADDRESSES`.
            self.intakes.resize_with(upstream + 1, || None);
        }
        self.intakes[upstream].get_or_insert_with(|| {
            let (keys, context) = new();
            Intake::new(keys, &context)
        })
    }

    /// Other keys from now on.
    pub(super) fn set_keys(&mut self, ring: impl Fn() -> KeyRing<HmacKey>) {
        self.intakes.iter_mut().flatten().for_each(|intake| intake.set_keys(ring()));
    }

    /// Counts requests that arrived at this worker.
    pub(super) fn observe_offered(&mut self, worker: usize, count: u64) {
        if let Some(offered) = self.offered.get_mut(worker) {
            *offered += count;
        }
    }

    /// By worker: what it may send. All none where nothing is asked.
    pub(super) fn restrictions(&mut self, now: Instant) -> Box<[Option<Restriction>]> {
        self.measure(now);
        let asked = self.asked(now);
        let workers = self.offered_rps.len();
        let all_rps: f64 = self.offered_rps.iter().sum();
        let least_rps = (PART_MIN * all_rps / workers as f64).max(f64::MIN_POSITIVE);
        let parts_rps: f64 = self.offered_rps.iter().map(|rps| rps.max(least_rps)).sum();
        let part = |rps: &f64| rps.max(least_rps) / parts_rps;
        let of_worker = |rps| {
            let asked = asked?;
            Some(Restriction { rate: Rate::from_per_second(asked.rate.per_second() * part(rps)), ..asked })
        };
        self.offered_rps.iter().map(of_worker).collect()
    }

    /// The limit that all upstreams together ask for; less where a quota is spent.
    pub(super) fn asked(&self, now: Instant) -> Option<Restriction> {
        let asked = self.asked_in_fields(now);
        let Some((_, rate)) = self.quota.filter(|(until, _)| now < *until) else { return asked };
        // A quota knows no classes.
        let severity = asked.map_or(0, |asked| asked.severity);
        let rate = asked.map_or(rate, |asked| asked.rate.min(rate));
        Some(Restriction { from_rank: 0, severity, rate })
    }

    /// Returns whether a limit of this upstream's is in force.
    pub(super) fn is_limited(&self, now: Instant, upstream: usize) -> bool {
        let intake = self.intakes.get(upstream).and_then(Option::as_ref);
        intake.is_some_and(|intake| intake.limit().limit(now).is_some())
    }

    fn asked_in_fields(&self, now: Instant) -> Option<Restriction> {
        let mut all: Option<Restriction> = None;
        for intake in self.intakes.iter().flatten() {
            let Limit { from_rank, severity, rate, .. } = intake.limit().limit(now)?;
            all = Some(match all {
                None => Restriction { from_rank, severity, rate },
                Some(before) => Restriction {
                    from_rank: before.from_rank.min(from_rank),
                    severity: before.severity.max(severity),
                    rate: Rate::from_milli(before.rate.as_milli().saturating_add(rate.as_milli())),
                },
            });
        }
        all
    }

    pub(super) fn reports(&self, now: Instant) -> Vec<UpstreamFeedback> {
        let known = self
            .intakes
            .iter()
            .enumerate()
            .filter_map(|(upstream, intake)| Some((upstream, intake.as_ref()?)));
        let reports = known.map(|(upstream, intake)| {
            let limit = intake.limit();
            UpstreamFeedback { upstream, limit: limit.limit(now), age: limit.age(now) }
        });
        reports.collect()
    }

    fn measure(&mut self, now: Instant) {
        let span_s = now.saturating_since(self.measured_at).as_secs_f64();
        if span_s <= 0.0 {
            return;
        }
        self.measured_at = now;
        let part = 1.0 - (-span_s / AVERAGED_OVER_S).exp();
        for (rps, offered) in self.offered_rps.iter_mut().zip(&mut self.offered) {
            *rps += (std::mem::take(offered) as f64 / span_s - *rps) * part;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_feedback::{Feedback, Field};

    fn field(sequence: u32, rate: Option<f64>) -> Field {
        let ttl = Duration::from_secs(2);
        let rate = rate.map(Rate::from_per_second);
        let feedback = Feedback { epoch: 1, sequence, from_rank: 1, severity: 1, rate, ttl };
        Field::new(&feedback, &KeyRing::<HmacKey>::empty(), b"").expect("in range")
    }

    fn no_keys() -> (KeyRing<HmacKey>, Vec<u8>) {
        (KeyRing::empty(), Vec::new())
    }

    #[test]
    fn rates_of_upstreams_add_up_and_workers_divide_them_by_what_they_are_offered() {
        let mut limits = UpstreamLimits::new(2);
        let at = Instant::from_millis;
        for tick in 1..=50 {
            limits.observe_offered(0, 30);
            limits.observe_offered(1, 10);
            limits.restrictions(at(100 * tick));
        }
        limits.hear(at(5_000), 0, field(1, Some(60.0)).as_bytes(), no_keys).expect("a message");
        let rates = |limits: &mut UpstreamLimits, now| {
            let rates = limits.restrictions(now);
            rates.iter().map(|it| it.map(|it| it.rate.per_second().round())).collect::<Vec<_>>()
        };
        assert_eq!(rates(&mut limits, at(5_000)), [Some(45.0), Some(15.0)]);
        limits.hear(at(5_000), 2, field(1, Some(20.0)).as_bytes(), no_keys).expect("a message");
        assert_eq!(rates(&mut limits, at(5_000)), [Some(60.0), Some(20.0)]);
        // One that is released takes everything, so nothing is restricted.
        limits.hear(at(5_001), 2, field(2, None).as_bytes(), no_keys).expect("a message");
        assert_eq!(rates(&mut limits, at(5_001)), [None, None]);
        assert!(limits.hear(at(5_002), 0, b":zz:", no_keys).is_err());
        assert_eq!(limits.reports(at(5_002)).len(), 2);
    }

    #[test]
    fn a_spent_quota_holds_for_its_time_and_leaves_a_probe() {
        let mut limits = UpstreamLimits::new(1);
        let at = Instant::from_secs;
        limits.observe_offered(0, 400);
        limits.restrictions(at(1));
        limits.hear_quota(at(1), Duration::from_secs(3));
        limits.hear_quota(at(1), Duration::from_secs(2));
        let of =
            |limits: &UpstreamLimits, now| limits.asked(now).map(|it| (it.from_rank, it.rate.as_milli()));
        let hundredth = (400.0 * (1.0 - (-1.0f64).exp()) / 100.0 * 1e3) as u64;
        assert_eq!(of(&limits, at(3)), Some((0, hundredth)));
        assert_eq!((of(&limits, at(4)), limits.quota(at(4))), (None, None));
        limits.hear_quota(at(5), Duration::from_secs(86_400));
        assert_eq!(limits.quota(at(5)), Some(HOLD_MAX), "a wrong number holds for a minute");
        // The tighter one counts, and of a quota all ranks.
        limits.hear(at(5), 0, field(1, Some(50.0)).as_bytes(), no_keys).expect("a message");
        assert_eq!(of(&limits, at(5)), Some((0, hundredth)));
    }

    #[test]
    fn a_worker_to_which_nothing_came_may_send_something() {
        let mut limits = UpstreamLimits::new(2);
        limits.hear(Instant::ZERO, 0, field(1, Some(10.0)).as_bytes(), no_keys).expect("a message");
        let rates = limits.restrictions(Instant::ZERO);
        assert_eq!(rates[0].map(|it| it.rate.per_second()), Some(5.0));
    }
}
