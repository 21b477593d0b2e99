//! Time of the next request, by each rule.

use crate::token_bucket::TokenBucket;
use flashweir_core::{Duration, Instant, Rate, Rng};

/// Severity levels that have a gap or a percentage; beyond, the last one holds.
pub const SEVERITIES: usize = 4;
/// Percentages of requests refused at severities 1 to 4 (ALGORITHMS §5.6).
pub const PERCENTAGES: [u8; SEVERITIES] = [25, 50, 75, 100];
/// Gaps at severities 1 to 4; the first three are the paper's §5.3.
pub const ADDITIVE_GAPS: [Duration; SEVERITIES] = [
    Duration::from_millis(50),
    Duration::from_millis(150),
    Duration::from_millis(250),
    Duration::from_millis(500),
];
/// Requests that may go at once under a rate: one more than none would let every two that come together lose
/// one.
const BURST_MIN: u64 = 2;
/// Of a new interarrival time, this part goes into the mean: the last ten or so.
const INTERARRIVAL_PART: f64 = 0.1;

/// Method by which a restriction is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Rule {
    /// The advertised rate, with a burst of two.
    #[default]
    Rate,
    /// Refuse this percentage of requests, by severity.
    Percentage([u8; SEVERITIES]),
    /// At least this time between two requests, by severity.
    MinimumGap([Duration; SEVERITIES]),
    /// At least the usual interarrival time and this between two requests, by severity.
    AdditiveGap([Duration; SEVERITIES]),
}

/// Load reduction that an upstream asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restriction {
    /// Requests of this rank and less important ones are restricted.
    pub from_rank: u8,
    /// Onset levels that the upstream has crossed, 1 or more.
    pub severity: u8,
    /// Rate that the restricted ranks may send.
    pub rate: Rate,
}

/// The state of a rule at one upstream.
#[derive(Clone, Debug)]
pub(super) struct Spacing {
    rule: Rule,
    /// Under a rate, what is due in this time may go at once.
    burst: Duration,
    bucket: TokenBucket,
    severity: u8,
    last_sent: Option<Instant>,
    last_arrived: Option<Instant>,
    interarrival_s: Option<f64>,
    random: Rng,
}

impl Spacing {
    pub(super) fn new(rule: Rule, burst: Duration, random: Rng) -> Self {
        let bucket = TokenBucket::full(Instant::ZERO, Rate::MAX, BURST_MIN);
        let (last_sent, last_arrived, interarrival_s) = (None, None, None);
        Self { rule, burst, bucket, severity: 0, last_sent, last_arrived, interarrival_s, random }
    }

    /// Another restriction from now on.
    pub(super) fn restrict(&mut self, now: Instant, restriction: &Restriction) {
        self.severity = restriction.severity;
        let of_time = restriction.rate.per_second() * self.burst.as_secs_f64();
        self.bucket.set_rate(now, restriction.rate, BURST_MIN.max(of_time as u64));
    }

    /// A request arrives, be it restricted or not.
    pub(super) fn observe(&mut self, now: Instant) {
        if let Some(before) = self.last_arrived.replace(now) {
            let span_s = now.saturating_since(before).as_secs_f64();
            let mean_s = self.interarrival_s.get_or_insert(span_s);
            *mean_s += (span_s - *mean_s) * INTERARRIVAL_PART;
        }
    }

    /// Returns true if a request may go now. Nothing is taken, and a percentage is not drawn for: it lets the
    /// request be asked about.
    pub(super) fn has_room(&mut self, now: Instant) -> bool {
        !self.has_order() || self.ready_at(now) <= now
    }

    /// Admits a request if it may go now; then it counts as sent.
    pub(super) fn admit(&mut self, now: Instant) -> bool {
        let admits = match self.rule {
            Rule::Rate => self.bucket.admit(now),
            Rule::Percentage(refused) => {
                self.random.below(100) >= u64::from(by_severity(&refused, self.severity))
            }
            Rule::MinimumGap(_) | Rule::AdditiveGap(_) => self.ready_at(now) <= now,
        };
        if admits {
            self.last_sent = Some(now);
        }
        admits
    }

    /// A request that the rule does not stop; under a rate it takes its token on credit.
    pub(super) fn send_on_credit(&mut self, now: Instant) {
        let _ = self.bucket.admit_on_credit(now, u64::MAX);
        self.last_sent = Some(now);
    }

    /// Earliest time of the next request, if none goes before. A percentage lets one go at any time.
    pub(super) fn ready_at(&mut self, now: Instant) -> Instant {
        let interarrival = Duration::from_secs_f64(self.interarrival_s.unwrap_or(0.0));
        let gap = match self.rule {
            Rule::Rate => return self.bucket.ready_at(now),
            Rule::Percentage(_) => return now,
            Rule::MinimumGap(gaps) => by_severity(&gaps, self.severity),
            Rule::AdditiveGap(gaps) => interarrival + by_severity(&gaps, self.severity),
        };
        self.last_sent.map_or(now, |sent| (sent + gap).max(now))
    }

    /// Returns true if requests that find no room may wait for it.
    pub(super) fn has_order(&self) -> bool {
        !matches!(self.rule, Rule::Percentage(_))
    }

    /// Wait of a request that has `ahead` others before it.
    pub(super) fn wait(&mut self, now: Instant, ahead: usize) -> Duration {
        let first = self.ready_at(now).saturating_since(now);
        let each = match self.rule {
            Rule::Rate => self.bucket.interval(),
            Rule::Percentage(_) => Duration::ZERO,
            Rule::MinimumGap(gaps) => by_severity(&gaps, self.severity),
            Rule::AdditiveGap(gaps) => {
                Duration::from_secs_f64(self.interarrival_s.unwrap_or(0.0))
                    + by_severity(&gaps, self.severity)
            }
        };
        first.saturating_add(each.saturating_mul(ahead as u32))
    }
}

/// The entry of a severity: nothing below 1, the last one beyond the last.
fn by_severity<T: Copy + Default>(table: &[T; SEVERITIES], severity: u8) -> T {
    match usize::from(severity) {
        0 => T::default(),
        level => table[level.min(SEVERITIES) - 1],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests a second that go of `offered_per_s` evenly spaced ones.
    fn sent_per_s(rule: Rule, severity: u8, rate: f64, offered_per_s: u64) -> f64 {
        let mut spacing = Spacing::new(rule, Duration::ZERO, Rng::new(1));
        let rate = Rate::from_per_second(rate);
        spacing.restrict(Instant::ZERO, &Restriction { from_rank: 0, severity, rate });
        let mut sent = 0;
        for number in 0..offered_per_s * 100 {
            let now = Instant::from_nanos(number * (1_000_000_000 / offered_per_s));
            spacing.observe(now);
            sent += u32::from(spacing.admit(now));
        }
        f64::from(sent) / 100.0
    }

    /// The paper's arithmetic (§5.3): 20 requests a second with 150 ms more between them are 5 a second; a
    /// minimum gap of 150 ms makes 6.67 of it.
    #[test]
    fn the_two_meanings_of_a_gap_differ_as_the_papers_numbers_do() {
        let additive = |severity| sent_per_s(Rule::AdditiveGap(ADDITIVE_GAPS), severity, 0.0, 20);
        assert_eq!([1, 2, 3].map(additive), [10.0, 5.0, 3.34]);
        assert_eq!(additive(0), 20.0);
        let minimum = sent_per_s(Rule::MinimumGap(ADDITIVE_GAPS), 2, 0.0, 20);
        assert!((minimum - 6.67).abs() < 0.01, "{minimum}");
    }

    #[test]
    fn a_percentage_follows_what_is_offered_and_a_rate_does_not() {
        for (offered, expected) in [(20, 10.0), (80, 40.0)] {
            let sent = sent_per_s(Rule::Percentage(PERCENTAGES), 2, 0.0, offered);
            assert!((sent - expected).abs() < 0.05 * expected, "{sent}");
            assert!((sent_per_s(Rule::Rate, 2, 12.5, offered) - 12.5).abs() < 0.1);
        }
        assert_eq!(
            sent_per_s(Rule::Percentage(PERCENTAGES), 9, 0.0, 20),
            0.0,
            "beyond the last level the last holds"
        );
    }
}
