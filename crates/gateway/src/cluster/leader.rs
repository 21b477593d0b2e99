//! The leader's part: whose reports count, and one [`ServiceLeader`] for each service. No I/O.
//!
//! A report counts when it is for this leader's term and its number is larger than any before of the same
//! gateway; so an old one, sent again, changes nothing. A gateway learns the term from the answer to its
//! first report.

use super::message::{Broadcast, OfService, Report};
use flashweir_admission::sentry::Policy;
use flashweir_core::limits::GATEWAYS;
use flashweir_core::{Duration, Instant};
use flashweir_provisioning::shares::{LeaderError, ServiceBroadcast, ServiceLeader, ServiceReport};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reason for which a report is not counted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReportError {
    #[error("a report that was counted already, or is older than one")]
    Repeated,
    #[error("more than {GATEWAYS} gateways report")]
    TooMany,
    #[error(
        "{service}: gateway {gateway} has another policy than the leader (classes, targets or policing): give all gateways the same"
    )]
    Policy { service: String, gateway: String },
    #[error("{service}: {error}")]
    Service { service: String, error: LeaderError },
}

/// Divides the limits of all services.
#[derive(Debug)]
pub(crate) struct Leader {
    term: u64,
    name: String,
    services: BTreeMap<String, Led>,
    /// The number of the last report of each gateway, and when it came.
    gateways: BTreeMap<u64, Heard>,
}

#[derive(Debug)]
struct Led {
    policy: u64,
    leader: ServiceLeader,
}

#[derive(Clone, Debug)]
struct Heard {
    sequence: u64,
    at: Instant,
    name: String,
}

/// A service as the leader is to plan it: its name, the fingerprint of its policy, and the policy.
pub(crate) type Planned = (String, u64, Arc<Policy>);

impl Leader {
    /// Begins to lead in this term.
    pub(crate) fn new(now: Instant, term: u64, name: String, services: &[Planned]) -> Self {
        let led = |(name, policy, rules): &Planned| {
            (name.clone(), Led { policy: *policy, leader: ServiceLeader::new(now, term, rules) })
        };
        Self { term, name, services: services.iter().map(led).collect(), gateways: BTreeMap::new() }
    }

    pub(crate) fn term(&self) -> u64 {
        self.term
    }

    /// Returns whether these are the services that it leads; after a reload with others a leader of the next
    /// term takes its place.
    pub(crate) fn leads(&self, services: &[Planned]) -> bool {
        let is_led =
            |(name, policy, _): &Planned| self.services.get(name).is_some_and(|led| led.policy == *policy);
        services.len() == self.services.len() && services.iter().all(is_led)
    }

    /// Names and silences of the gateways that reported, oldest gateway first.
    pub(crate) fn gateways(&self) -> impl Iterator<Item = (&str, Instant)> {
        self.gateways.values().map(|heard| (heard.name.as_str(), heard.at))
    }

    /// Takes a report whose seal is right. A report of another term says who is there, and nothing else.
    ///
    /// # Errors
    /// [`ReportError`]: what is named is not counted; the other services of the report are.
    pub(crate) fn observe(&mut self, now: Instant, report: &Report) -> Result<(), ReportError> {
        if report.term != self.term {
            return Ok(());
        }
        match self.gateways.get_mut(&report.gateway) {
            Some(heard) if heard.sequence >= report.sequence => return Err(ReportError::Repeated),
            Some(heard) => (heard.sequence, heard.at) = (report.sequence, now),
            None => self.admit(now, report)?,
        }
        let mut outcome = Ok(());
        for OfService { name, policy, value } in &report.services {
            if let Err(error) = self.observe_service(now, name, *policy, value, &report.name) {
                outcome = Err(error);
            }
        }
        outcome
    }

    fn observe_service(
        &mut self,
        now: Instant,
        name: &str,
        policy: u64,
        report: &ServiceReport,
        gateway: &str,
    ) -> Result<(), ReportError> {
        // A service that only another gateway has is not divided.
        let Some(led) = self.services.get_mut(name) else { return Ok(()) };
        if led.policy != policy {
            return Err(ReportError::Policy { service: name.to_owned(), gateway: gateway.to_owned() });
        }
        let error = |error| ReportError::Service { service: name.to_owned(), error };
        led.leader.observe(now, report).map_err(error)
    }

    /// A gateway that was not heard in this term. Those that left are remembered, so that their reports
    /// cannot be sent again, as long as there is room.
    fn admit(&mut self, now: Instant, report: &Report) -> Result<(), ReportError> {
        if self.gateways.len() >= 2 * GATEWAYS {
            let oldest = self
                .gateways
                .iter()
                .min_by_key(|(_, heard)| heard.at)
                .map(|(&gateway, heard)| (gateway, heard.at));
            match oldest.filter(|(_, at)| now.saturating_since(*at) > FORGET_AFTER) {
                Some((gateway, _)) => self.gateways.remove(&gateway),
                None => return Err(ReportError::TooMany),
            };
        }
        let heard = Heard { sequence: report.sequence, at: now, name: report.name.clone() };
        self.gateways.insert(report.gateway, heard);
        Ok(())
    }

    /// Ends the rounds that are over; whether there is anything new to say. Call it often.
    pub(crate) fn step(&mut self, now: Instant) -> bool {
        let mut is_new = false;
        for led in self.services.values_mut() {
            is_new |= led.leader.step(now).is_some();
        }
        is_new
    }

    /// The present broadcast for all gateways. `answers` names the report that it answers: its sender gets
    /// its own share alone, so that answers do not grow with the number of gateways.
    pub(crate) fn broadcast(&self, answers: (u64, u64)) -> Broadcast {
        let service = |(name, led): (&String, &Led)| {
            let ServiceBroadcast { shares, plan, in_flight } = led.leader.last()?;
            let shares = if answers.1 == 0 { shares.clone() } else { shares.for_one(answers.0) };
            let value = ServiceBroadcast { shares, plan: plan.clone(), in_flight: *in_flight };
            Some(OfService { name: name.clone(), policy: led.policy, value })
        };
        Broadcast {
            term: self.term,
            answers,
            leader: self.name.clone(),
            services: self.services.iter().filter_map(service).collect(),
        }
    }
}

/// A gateway that was silent for this long has left for good.
const FORGET_AFTER: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_admission::sentry::{ClassCounts, Sample};
    use flashweir_provisioning::shares::ShareReport;

    fn report(gateway: u64, sequence: u64, term: u64, policy: u64) -> Report {
        let share = ShareReport {
            gateway,
            share: 1.0,
            offered: 10,
            admitted: 10,
            in_flight: 1,
            ..ShareReport::default()
        };
        let value = ServiceReport { share, ..ServiceReport::default() };
        let services = vec![OfService { name: "shop".to_owned(), policy, value }];
        Report { gateway, name: format!("gw-{gateway}"), sequence, term, services }
    }

    fn leader() -> Leader {
        let policy = Arc::new(Policy::single(Duration::from_secs(1)));
        Leader::new(Instant::ZERO, 5, "gw-0".to_owned(), &[("shop".to_owned(), 1, policy)])
    }

    #[test]
    fn a_report_counts_once_and_only_in_its_term() {
        let mut leader = leader();
        let at = Instant::from_millis;
        leader.observe(at(10), &report(7, 1, 0, 1)).expect("no error");
        assert_eq!(leader.gateways().count(), 0, "it does not know the term yet");
        leader.observe(at(20), &report(7, 2, 5, 1)).expect("counted");
        assert!(matches!(leader.observe(at(30), &report(7, 2, 5, 1)), Err(ReportError::Repeated)));
        assert!(matches!(leader.observe(at(40), &report(7, 1, 5, 1)), Err(ReportError::Repeated)));
        leader.observe(at(50), &report(7, 3, 5, 1)).expect("counted");
        assert_eq!(leader.gateways().collect::<Vec<_>>(), [("gw-7", at(50))]);
    }

    #[test]
    fn a_gateway_with_another_policy_gets_no_share_and_the_error_names_it() {
        let mut leader = leader();
        let error = leader.observe(Instant::from_millis(1), &report(8, 1, 5, 2)).expect_err("another policy");
        assert!(error.to_string().starts_with("shop: gateway gw-8 has another policy"), "{error}");
        leader.observe(Instant::from_millis(2), &report(7, 1, 5, 1)).expect("counted");
        for now_ms in [600, 800, 1_000] {
            leader.observe(Instant::from_millis(now_ms), &report(7, now_ms, 5, 1)).expect("counted");
            leader.step(Instant::from_millis(now_ms));
        }
        let broadcast = leader.broadcast((0, 0));
        let shares = &broadcast.services[0].value.shares.shares;
        assert_eq!(shares.iter().map(|(gateway, _)| *gateway).collect::<Vec<_>>(), [7]);
    }

    /// Goal: what a gateway is answered does not grow with the number of gateways, and says what it needs:
    /// its share, and how many there are.
    #[test]
    fn an_answer_has_the_share_of_who_asked_alone() {
        let mut leader = leader();
        for now_ms in [600, 700] {
            let now = Instant::from_millis(now_ms);
            (1..=9).for_each(|gateway| leader.observe(now, &report(gateway, now_ms, 5, 1)).expect("counted"));
            leader.step(now);
        }
        let of = |answers| leader.broadcast(answers).services[0].value.shares.clone();
        let (all, one) = (of((0, 0)), of((7, 700)));
        assert_eq!((all.shares.len(), all.gateways), (9, 9));
        assert_eq!((one.shares, one.gateways, one.limit), (vec![(7, all.shares[6].1)], 9, all.limit));
    }

    /// Processor time of this thread: what others do beside it does not count.
    fn processor_s() -> f64 {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a kernel that counts");
        let nanos: f64 = text.split(' ').next().and_then(|first| first.parse().ok()).expect("a number");
        nanos / 1e9
    }

    /// A measurement, by `make bench-leader`: a leader takes a report of each of 1,000 gateways ten times a
    /// second and answers each. Counted are the seal of each report, its decoding, the rounds with their
    /// plans, and the sealed answers; HTTP and the kernel are not.
    #[test]
    #[ignore = "a measurement of the optimised build: make bench-leader"]
    fn what_a_thousand_gateways_cost_their_leader() {
        const GATEWAYS: u64 = 1_000;
        const SECONDS: u64 = 10;
        let keys = super::super::seal::Keys::new([(1, b"correct-horse-battery-staple".as_slice())]);
        let mut leader = leader();
        let (mut spent_s, mut settled, mut bytes) = (0.0, 0, 0);
        let mut shares = vec![(Default::default(), 1.0); GATEWAYS as usize];
        // The first second is not counted: the leader listens.
        for tenth in 1..=10 * (SECONDS + 1) {
            let now = Instant::from_millis(100 * tenth);
            let report = |gateway: u64| {
                let (applied, share) = shares[gateway as usize];
                let class = ClassCounts {
                    offered: 40,
                    admitted: 10,
                    completed: 10,
                    in_flight: 1,
                    ..ClassCounts::default()
                };
                let sample = Sample {
                    from: Instant::from_millis(100 * (tenth - 1)),
                    to: now,
                    offered: 40,
                    admitted: 10,
                    completed: 10,
                    shed: 30,
                    in_flight: 1,
                    in_flight_nanos: 100_000_000,
                    waiting_nanos: 100_000_000,
                    classes: vec![class],
                    ..Sample::default()
                };
                let of_shares =
                    ShareReport { gateway, applied, share, offered: 40, admitted: 10, in_flight: 1 };
                let value = ServiceReport { share: of_shares, sample, limit: 1_000, knee_milli: 0 };
                let services = vec![OfService { name: "shop".to_owned(), policy: 1, value }];
                Report { gateway, name: format!("gw-{gateway}"), sequence: tenth, term: 5, services }
                    .seal(&keys)
            };
            let reports: Vec<Vec<u8>> = (0..GATEWAYS).map(report).collect();
            let before_s = processor_s();
            for (place, sealed) in reports.iter().enumerate() {
                let report = Report::open(&keys, sealed).expect("its own seal");
                leader.observe(now, &report).expect("counted");
                bytes += leader.broadcast((report.gateway, report.sequence)).seal(&keys).len();
                if place % 200 == 199 {
                    leader.step(now);
                }
            }
            if tenth > 10 {
                spent_s += processor_s() - before_s;
                settled += 1;
            }
            if let Some(of) = leader.broadcast((0, 0)).services.first() {
                let shares_now = &of.value.shares;
                for (gateway, share) in (0..).zip(&mut shares) {
                    *share = shares_now.share_of(gateway).map_or(*share, |now| (shares_now.epoch, now));
                }
            }
        }
        let part = spent_s / (0.1 * f64::from(settled));
        println!(
            "a leader of {GATEWAYS} gateways: {:.1} % of a core, answers of {} bytes",
            part * 100.0,
            bytes as u64 / GATEWAYS / 10 / (SECONDS + 1)
        );
        assert_eq!(leader.gateways().count() as u64, GATEWAYS);
    }
}
