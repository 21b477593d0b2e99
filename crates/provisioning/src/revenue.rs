//! Revenue of an application by number of servers.
//!
//! **The rule.** With n servers of which a part ρ may be busy, admission can spend n·ρ server-seconds a
//! second. It spends them first on what is guaranteed, then on classes in descending order of revenue per
//! server-second (v/s), as far as each class's demand goes: a fractional knapsack, Cataclysm §4.1 with the
//! details that the paper leaves out. **So** the revenue is piecewise linear in n, and concave from the
//! servers on that the guarantees need; [`partition`](crate::partition) relies on it. **Cost** O(classes) for
//! an evaluation, classes at most [`CLASSES`](flashweir_core::limits::CLASSES) as everywhere.

use alloc::vec::Vec;

/// A class of requests, as revenue sees it. Negative and undefined numbers count as zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClassDemand {
    /// Earned with one request (v).
    pub revenue: f64,
    /// Requests a second that are expected (λ̂).
    pub rate_rps: f64,
    /// Requests a second that are promised (λ_min); more than the rate counts as the rate.
    pub guaranteed_rps: f64,
    /// Time of a server for one request (s), seconds.
    pub service_s: f64,
}

/// Revenue per second by number of servers.
///
/// ```
/// use flashweir_provisioning::revenue::{ClassDemand, RevenueCurve};
/// let gold = ClassDemand { revenue: 2.0, rate_rps: 100.0, service_s: 0.01, ..ClassDemand::default() };
/// let bronze = ClassDemand { revenue: 1.0, rate_rps: 1_000.0, ..gold };
/// let curve = RevenueCurve::new(&[bronze, gold], 1.0);
/// assert_eq!([0, 1, 2, 11, 12].map(|servers| curve.revenue_per_s(servers)), [0.0, 200.0, 300.0, 1_200.0, 1_200.0]);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RevenueCurve {
    /// The guaranteed rate, then classes by descending revenue per server.
    segments: Vec<Segment>,
    guaranteed_servers: f64,
    servers: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Segment {
    servers: f64,
    revenue_per_server_s: f64,
}

impl RevenueCurve {
    /// Of these classes, where a server may be busy for `utilisation` of its time. O(classes log classes).
    #[must_use]
    pub fn new(classes: &[ClassDemand], utilisation: f64) -> Self {
        let utilisation = if utilisation > 0.0 { utilisation.min(1.0) } else { 1.0 };
        let mut guaranteed = Segment { servers: 0.0, revenue_per_server_s: 0.0 };
        let mut segments = Vec::with_capacity(classes.len() + 1);
        let mut guaranteed_per_s = 0.0;
        for class in classes {
            let [revenue, rate, promised, service_s] =
                [class.revenue, class.rate_rps, class.guaranteed_rps, class.service_s].map(positive);
            let promised = promised.min(rate);
            guaranteed.servers += promised * service_s / utilisation;
            guaranteed_per_s += promised * revenue;
            let servers = (rate - promised) * service_s / utilisation;
            if servers > 0.0 {
                segments.push(Segment { servers, revenue_per_server_s: revenue * utilisation / service_s });
            }
        }
        segments.sort_by(|one, other| other.revenue_per_server_s.total_cmp(&one.revenue_per_server_s));
        if guaranteed.servers > 0.0 {
            guaranteed.revenue_per_server_s = guaranteed_per_s / guaranteed.servers;
            segments.insert(0, guaranteed);
        }
        let servers = segments.iter().map(|segment| segment.servers).sum();
        Self { segments, guaranteed_servers: guaranteed.servers, servers }
    }

    /// Revenue per second with `servers` servers. Never falls with their number.
    #[must_use]
    pub fn revenue_per_s(&self, servers: u32) -> f64 {
        let mut left = f64::from(servers);
        let mut revenue = 0.0;
        for segment in &self.segments {
            let used = segment.servers.min(left);
            revenue += used * segment.revenue_per_server_s;
            left -= used;
            if left <= 0.0 {
                break;
            }
        }
        revenue
    }

    /// Revenue per second that the server after `servers` adds.
    #[must_use]
    pub fn marginal_per_s(&self, servers: u32) -> f64 {
        (self.revenue_per_s(servers + 1) - self.revenue_per_s(servers)).max(0.0)
    }

    /// Whole servers that the guarantees need: below it the curve need not be concave.
    #[must_use]
    pub fn guaranteed_servers(&self) -> u32 {
        whole(self.guaranteed_servers)
    }

    /// Whole servers with which all demand is served.
    #[must_use]
    pub fn saturating_servers(&self) -> u32 {
        whole(self.servers)
    }
}

fn positive(value: f64) -> f64 {
    if value > 0.0 && value.is_finite() { value } else { 0.0 }
}

/// Rounded up; what floating point adds to a whole number is not another server.
fn whole(servers: f64) -> u32 {
    const ROUNDING: f64 = 1e-9;
    libm::ceil(servers * (1.0 - ROUNDING)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_guaranteed_goes_before_what_earns_more() {
        let gold = ClassDemand { revenue: 3.0, rate_rps: 100.0, guaranteed_rps: 0.0, service_s: 0.01 };
        let promised = ClassDemand { revenue: 1.0, rate_rps: 150.0, guaranteed_rps: 100.0, ..gold };
        let curve = RevenueCurve::new(&[promised, gold], 1.0);
        assert_eq!([1, 2, 3].map(|servers| curve.revenue_per_s(servers)), [100.0, 400.0, 450.0]);
        assert_eq!((curve.guaranteed_servers(), curve.saturating_servers()), (1, 3));
        let half = RevenueCurve::new(&[promised, gold], 0.5);
        assert_eq!((half.revenue_per_s(4), half.saturating_servers()), (400.0, 5));
    }

    #[test]
    fn nonsense_is_worth_nothing() {
        let odd =
            ClassDemand { revenue: f64::NAN, rate_rps: f64::INFINITY, guaranteed_rps: -1.0, service_s: -0.1 };
        let curve = RevenueCurve::new(&[odd, ClassDemand::default()], f64::NAN);
        assert_eq!((curve.revenue_per_s(u32::MAX - 1), curve.saturating_servers()), (0.0, 0));
    }
}
