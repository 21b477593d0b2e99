//! Arrivals that are bursty at every time scale: the requests of sessions whose lengths have a heavy tail.
//!
//! The M/G/∞ model (D. R. Cox, "Long-range dependence: a review", 1984): sessions begin as a Poisson process
//! and last a Pareto time, P(D > x) = (shortest/x)^α with 1 < α < 2; while one lasts it sends a request each
//! *gap*. The number of sessions under way, which is what comes in each gap, then is long-range dependent
//! with the Hurst parameter H = (3 − α)/2: averaging over longer times smooths it far less than it would
//! Poisson arrivals, whose H is 0.5.
//!
//! **Units.** The process has rate one in operational time (the number of arrivals due so far), and
//! [`Placement`](super::placement::Placement) carries it to the profile's. The gap is given in seconds at the
//! profile's mean rate: where the rate is twice the mean, everything happens twice as fast, gaps included.
//!
//! **Drawing.** A session is the sequence of its requests. First requests of sessions are a Poisson process,
//! and the number that follows is independent of the time (marking theorem), so neither sessions that end
//! before their first request nor an event queue is needed: every session in its course asks again exactly
//! one gap later, hence a first-in-first-out queue of the sessions to be continued is in order of time. It
//! starts stationary: during the first gap, requests that continue sessions from before the start are drawn
//! as the Poisson process they then are, with the equilibrium number still to come.

use super::ArrivalError;
use flashweir_core::Rng;
use flashweir_core::limits::{SELF_SIMILAR_ACTIVE, SELF_SIMILAR_ACTIVE_MEAN};
use std::collections::VecDeque;
use std::time::Duration;

/// Shortest session by default, in gaps. Counts are exactly long-range dependent only over long times; here
/// the nearest deviation, a share of the variance that grows as a Poisson process's does, vanishes (the line
/// is within 0.01 of its numerical root for α up to 1.7), so that H shows from a few gaps on. Half of all
/// sessions then send one request only.
fn shortest_gaps(alpha: f64) -> f64 {
    0.3 + 0.34 * (1.4 - alpha)
}

/// Behaviour of the sessions of a self-similar crowd.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SelfSimilarity {
    alpha: f64,
    gap: Duration,
    shortest: Duration,
}

impl SelfSimilarity {
    /// Sessions with the given Pareto shape (α: 1.05 to 1.95; smaller is burstier) that send one request each
    /// `gap` (1 µs to an hour at the profile's mean rate) and last at least about 0.3 gaps.
    ///
    /// A longer gap means more sessions side by side and slower, deeper waves: at a mean rate of 1000/s a gap
    /// of 100 ms keeps 100 sessions going, and the number of people who come within ten seconds varies by 5 %
    /// (standard deviation) where Poisson's varies by 1 %.
    ///
    /// # Errors
    /// A shape or a gap outside these ranges.
    pub fn new(alpha: f64, gap: Duration) -> Result<Self, ArrivalError> {
        if !(1.05..=1.95).contains(&alpha) {
            return Err(ArrivalError::Alpha(alpha));
        }
        if !(Duration::from_micros(1)..=Duration::from_secs(3600)).contains(&gap) {
            return Err(ArrivalError::Gap(gap));
        }
        Ok(Self { alpha, gap, shortest: gap.mul_f64(shortest_gaps(alpha)) })
    }

    /// The same with sessions of a given shortest length (a thousandth of the gap to a thousand gaps), again
    /// at the profile's mean rate. Longer ones make deeper waves; H then shows only at times well above them.
    ///
    /// # Errors
    /// A length outside this range.
    pub fn with_shortest(self, shortest: Duration) -> Result<Self, ArrivalError> {
        if (self.gap / 1000..=self.gap * 1000).contains(&shortest) && !shortest.is_zero() {
            Ok(Self { shortest, ..self })
        } else {
            Err(ArrivalError::Shortest { shortest, gap: self.gap })
        }
    }

    /// The Hurst parameter that counts over long times have: (3 − α)/2.
    #[must_use]
    pub fn hurst(&self) -> f64 {
        (3.0 - self.alpha) / 2.0
    }

    /// Time between two requests of a session, at the profile's mean rate; counts over bins of this width
    /// show H best.
    #[must_use]
    pub fn gap(&self) -> Duration {
        self.gap
    }

    /// Refuses a crowd of more sessions side by side than are kept.
    pub(super) fn check(&self, mean_per_s: f64) -> Result<(), ArrivalError> {
        let active = mean_per_s * self.gap.as_secs_f64();
        if active <= SELF_SIMILAR_ACTIVE_MEAN { Ok(()) } else { Err(ArrivalError::TooManySessions(active)) }
    }
}

impl Default for SelfSimilarity {
    /// α = 1.4, hence H = 0.8, as measured for web traffic (Crovella and Bestavros, 1997: 0.7 to 0.8), with a
    /// gap of 100 ms: a run of a minute then spans the times over which H shows.
    fn default() -> Self {
        let (alpha, gap) = (1.4, Duration::from_millis(100));
        Self { alpha, gap, shortest: gap.mul_f64(shortest_gaps(alpha)) }
    }
}

/// The points of the process in operational time; rate one, stationary from zero on.
#[derive(Clone, Debug)]
pub(super) struct SelfSimilarPoints {
    rng: Rng,
    lengths: Lengths,
    /// Operational time between two requests of a session.
    gap: f64,
    /// Time at which the next session enters: with its first request or, during the first gap, an old one
    /// with its next.
    entrance: f64,
    /// Sessions to be continued, in order of their next request.
    under_way: VecDeque<UnderWay>,
}

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    next: f64,
    /// Requests to come, that one included.
    left: u64,
}

impl SelfSimilarPoints {
    /// The process for a profile of the given mean rate (used to convert the gap, see the module's notes).
    pub(super) fn new(similarity: &SelfSimilarity, mean_per_s: f64, seed: u64) -> Self {
        let gap_s = similarity.gap.as_secs_f64();
        let mut points = Self {
            rng: Rng::new(seed),
            lengths: Lengths::new(similarity.alpha, similarity.shortest.as_secs_f64() / gap_s),
            gap: gap_s * mean_per_s,
            entrance: 0.0,
            under_way: VecDeque::new(),
        };
        points.entrance = points.next_entrance();
        points
    }

    /// The next point. Amortised O(1); memory is one entry for each session under way.
    pub(super) fn next_point(&mut self) -> f64 {
        if let Some(session) = self.under_way.pop_front_if(|session| session.next <= self.entrance) {
            self.continue_later(session.next, session.left);
            return session.next;
        }
        let point = self.entrance;
        let requests = self.enter(point);
        self.entrance = self.next_entrance();
        self.continue_later(point, requests);
        point
    }

    /// The requests from now on of the session that enters.
    fn enter(&mut self, at: f64) -> u64 {
        if at < self.gap && self.rng.unit_f64() >= self.lengths.first_share {
            self.lengths.requests_left(&mut self.rng)
        } else {
            self.lengths.requests(&mut self.rng)
        }
    }

    /// Entrances have rate one during the first gap and the rate of first requests afterwards. The rest of
    /// an exponential distance at that boundary is exponential again, so it is stretched to the lower rate.
    fn next_entrance(&mut self) -> f64 {
        let distance = self.rng.exponential(1.0);
        let slow = (self.entrance + distance - self.gap).clamp(0.0, distance);
        self.entrance + (distance - slow) + slow / self.lengths.first_share
    }

    /// A session beyond the bound is cut short. The bound is twice the highest mean allowed, and the number
    /// is Poisson: this does not happen in practice, it only makes memory certain.
    fn continue_later(&mut self, point: f64, requests: u64) {
        if requests > 1 && self.under_way.len() < SELF_SIMILAR_ACTIVE {
            self.under_way.push_back(UnderWay { next: point + self.gap, left: requests - 1 });
        }
    }
}

/// Number of requests that a session sends. In units of the gap; `age` is the time since the session began.
#[derive(Clone, Debug)]
struct Lengths {
    alpha: f64,
    shortest: f64,
    /// ∫₀¹ P(D > x) dx: the chance that a session sends a request at all (its first comes at a uniform age
    /// below one gap), and the share of sessions of that first gap among all time.
    reaching: f64,
    /// The share of requests that are the first of their session: one over the mean number of requests.
    first_share: f64,
    /// ∫₁^∞ P(D > x) dx.
    beyond: f64,
}

impl Lengths {
    fn new(alpha: f64, shortest: f64) -> Self {
        let mean = shortest * alpha / (alpha - 1.0);
        let beyond = if shortest >= 1.0 {
            mean - 1.0
        } else {
            shortest * libm::pow(shortest, alpha - 1.0) / (alpha - 1.0)
        };
        let reaching = mean - beyond;
        Self { alpha, shortest, reaching, first_share: reaching / mean, beyond }
    }

    /// Requests of a session that has just sent its first. That one came at an age whose density is P(D >
    /// age); given the age, the length is Pareto from there on, and one more request fits into each gap of
    /// the rest.
    fn requests(&self, rng: &mut Rng) -> u64 {
        let area = rng.unit_f64() * self.reaching;
        let age = if area <= self.shortest { area } else { self.age_beyond_shortest(area) };
        let length = age.max(self.shortest) * libm::pow(1.0 - rng.unit_f64(), -1.0 / self.alpha);
        // The cast saturates, as a length beyond any run should.
        1 + (length - age) as u64
    }

    /// Requests from now on, the present one included, of a session that began more than a gap ago: the
    /// equilibrium residual lifetime, given that it exceeds one gap.
    fn requests_left(&self, rng: &mut Rng) -> u64 {
        let tail = (1.0 - rng.unit_f64()) * self.beyond;
        let pareto_tail = self.shortest / (self.alpha - 1.0);
        let residual = if tail >= pareto_tail {
            self.shortest + pareto_tail - tail
        } else {
            self.shortest * libm::pow(tail / pareto_tail, -1.0 / (self.alpha - 1.0))
        };
        // Rounding may put a residual of one gap just below it.
        (residual as u64).max(1)
    }

    /// The x above `shortest` with ∫₀ˣ P(D > y) dy = area.
    fn age_beyond_shortest(&self, area: f64) -> f64 {
        let slope = self.alpha - 1.0;
        let left = 1.0 - (area / self.shortest - 1.0) * slope;
        self.shortest * libm::pow(left, -1.0 / slope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(alpha: f64, shortest_gaps: f64, gap: f64, seed: u64) -> SelfSimilarPoints {
        let similarity = SelfSimilarity::new(alpha, Duration::from_secs(1)).unwrap();
        let similarity = similarity.with_shortest(Duration::from_secs_f64(shortest_gaps)).unwrap();
        SelfSimilarPoints::new(&similarity, gap, seed)
    }

    /// The mean of the numbers drawn is finite for a session's requests (α > 1) but converges slowly, so the
    /// chances of 1, 2, 3… requests are compared with the integrals they must equal.
    #[test]
    fn sessions_have_the_number_of_requests_their_length_gives() {
        for (alpha, shortest) in [(1.4, 0.3), (1.2, 0.05), (1.7, 2.6), (1.5, 1.0)] {
            let lengths = Lengths::new(alpha, shortest);
            let survival = |x: f64| if x <= shortest { 1.0 } else { (shortest / x).powf(alpha) };
            let integral = |from: f64| {
                (0..10_000).map(|step| survival(from + (f64::from(step) + 0.5) / 1e4)).sum::<f64>() / 1e4
            };
            assert!((lengths.reaching - integral(0.0)).abs() < 1e-4);
            let mut rng = Rng::new(9);
            let draws = 200_000;
            let (mut fresh, mut old) = ([0u32; 8], [0u32; 8]);
            for _ in 0..draws {
                let index = |requests: u64| requests.min(8) as usize - 1;
                fresh[index(lengths.requests(&mut rng))] += 1;
                old[index(lengths.requests_left(&mut rng))] += 1;
            }
            let mut after = lengths.beyond;
            for index in 0..7 {
                let more = integral(f64::from(index as u32) + 1.0);
                let check = |count: u32, chance: f64| {
                    let share = f64::from(count) / f64::from(draws);
                    let tolerance = 5.0 * (chance * (1.0 - chance) / f64::from(draws)).sqrt() + 1e-4;
                    assert!(
                        (share - chance).abs() <= tolerance,
                        "{alpha} {shortest} {index}: {share} {chance}"
                    );
                };
                check(fresh[index], (integral(index as f64) - more) / lengths.reaching);
                check(old[index], more / lengths.beyond);
                after -= more;
            }
            assert!(after > 0.0);
        }
    }

    /// Stationary: over many seeds, each early gap sees as many points as any, and they scatter as a Poisson
    /// number of sessions does, at the very start too.
    #[test]
    fn the_process_starts_stationary_and_has_rate_one() {
        let (gap, seeds) = (5.0, 4_000);
        let mut counts = [[0.0; 2]; 30];
        for seed in 0..seeds {
            let mut process = points(1.4, 0.3, gap, seed);
            let mut bins = [0.0; 30];
            while let Some(bin) = Some(process.next_point() / gap).filter(|gaps| *gaps < 30.0) {
                bins[bin as usize] += 1.0;
            }
            for (sums, count) in counts.iter_mut().zip(bins) {
                sums[0] += count;
                sums[1] += count * count;
            }
        }
        for (index, [sum, squares]) in counts.into_iter().enumerate() {
            let (mean, seeds) = (sum / seeds as f64, seeds as f64);
            let variance = squares / seeds - mean * mean;
            // Five standard errors of a Poisson mean and variance.
            assert!((mean - gap).abs() < 5.0 * (gap / seeds).sqrt(), "gap {index}: mean {mean}");
            assert!(
                (variance / gap - 1.0).abs() < 5.0 * (2.2 / seeds).sqrt(),
                "gap {index}: variance {variance}"
            );
        }
    }

    #[test]
    fn points_are_in_order_for_any_number_of_sessions() {
        for gap in [0.01, 0.7, 30.0, 2_000.0] {
            let mut process = points(1.4, 0.3, gap, 3);
            let points: Vec<f64> = (0..20_000).map(|_| process.next_point()).collect();
            assert!(points.is_sorted());
        }
    }

    #[test]
    fn shapes_and_gaps_out_of_range_are_refused() {
        let second = Duration::from_secs(1);
        assert!(matches!(SelfSimilarity::new(2.0, second), Err(ArrivalError::Alpha(_))));
        assert!(matches!(SelfSimilarity::new(f64::NAN, second), Err(ArrivalError::Alpha(_))));
        assert!(matches!(SelfSimilarity::new(1.4, Duration::ZERO), Err(ArrivalError::Gap(_))));
        let default = SelfSimilarity::default();
        assert!(matches!(default.with_shortest(Duration::ZERO), Err(ArrivalError::Shortest { .. })));
        assert!((default.hurst() - 0.8).abs() < 1e-12);
        assert!(matches!(default.check(1e9), Err(ArrivalError::TooManySessions(_))));
    }
}
