//! Relative times of requests at the origin, and its present speed: together they estimate how long a request
//! that never ran would have taken.
//!
//! A request's *cost* is its latency over the *pace*, and the pace is by how much requests of late took
//! longer than their costs: latencies added up over costs added up, at a mean number in flight (level). The
//! unit of costs has no meaning, and so cannot drift: a class that has not run for an hour has its cost in
//! the unit of those that run. That is why the service times of the gates (`costs`) would not do: their unit
//! follows the knee, which is relearned in every crowd. Above the knee the pace goes with the level.
//!
//! Cold start: nothing is known of a URL class before it ran, nor of any class before something did.

use super::sample::Sample;
use alloc::vec;
use alloc::vec::Vec;
use flashweir_core::limits::URL_CLASSES;

/// Costs by URL class, and the pace.
#[derive(Debug)]
pub(super) struct Pace {
    costs: Vec<Cost>,
    /// Over all URL classes: the number of requests that costs rest on, and their mean cost.
    known: Cost,
    /// One over the cost here of a request of a usual mix: scaled by this it is 1, and stays so while all
    /// costs drift.
    scale: f64,
    /// Of what completed of late: its latencies and its costs, added up.
    latency_s: f64,
    cost: f64,
    /// Duration of that, and requests in flight meanwhile, integrated.
    span_s: f64,
    in_flight_s: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    mean: f64,
    count: f64,
}

impl Pace {
    /// Nothing ran yet.
    pub(super) fn new() -> Self {
        Self {
            costs: vec![Cost::default(); URL_CLASSES],
            known: Cost::default(),
            scale: 1.0,
            latency_s: 0.0,
            cost: 0.0,
            span_s: 0.0,
            in_flight_s: 0.0,
        }
    }

    /// Learns from what really ran, all gates together. O(URL classes that completed).
    pub(super) fn observe(&mut self, sample: &Sample) {
        let fade = libm::exp(-(sample.completed as f64) / PACE_MEMORY);
        for sum in [&mut self.latency_s, &mut self.cost, &mut self.span_s, &mut self.in_flight_s] {
            *sum *= fade;
        }
        self.span_s += sample.to.saturating_since(sample.from).as_secs_f64();
        self.in_flight_s += sample.in_flight_nanos as f64 / 1e9;
        if self.known.count > 0.0 {
            for url in &sample.urls {
                let weight = self.weight(url.url_class);
                self.latency_s += weight * url.latency_us as f64 / 1e6;
                self.cost += weight * self.mean(url.url_class) * f64::from(url.count);
            }
        }
        let stretch = self.stretch();
        let mut drift = 0.0;
        let (count_before, sum_before) = (self.known.count, self.known.mean * self.known.count);
        let (mut all_count, mut all_sum) = (count_before, sum_before);
        for url in &sample.urls {
            let Some(cost) = self.costs.get_mut(usize::from(url.url_class)) else { continue };
            let count = f64::from(url.count);
            let before = *cost;
            cost.count = (cost.count + count).min(COST_MEMORY);
            let seen = url.latency_us as f64 / 1e6 / count / stretch;
            cost.mean += (seen - cost.mean) * (count / cost.count).min(1.0);
            drift += before.count * (cost.mean - before.mean);
            all_count += cost.count - before.count;
            all_sum += cost.count * cost.mean - before.count * before.mean;
        }
        if count_before > 0.0 {
            self.scale *= sum_before / (sum_before + drift).max(1e-3 * sum_before);
        } else if all_sum > 0.0 {
            self.scale = all_count / all_sum;
        }
        if all_count > 0.0 {
            self.known = Cost { mean: all_sum / all_count, count: all_count };
        }
    }

    /// Mean cost of a URL class, in requests of the usual mix; while little is known of it, that of the mix.
    pub(super) fn cost(&self, url_class: u16) -> f64 {
        if self.known.count > 0.0 { self.scale * self.mean(url_class) } else { 1.0 }
    }

    /// The same in the unit of [`costs`](Self::costs).
    fn mean(&self, url_class: u16) -> f64 {
        let cost = self.costs.get(usize::from(url_class)).copied().unwrap_or_default();
        (cost.mean * cost.count + self.known.mean * PRIOR) / (cost.count + PRIOR)
    }

    /// Weight of a class's times as evidence of the pace: where most classes are new, they give it together.
    fn weight(&self, url_class: u16) -> f64 {
        let count = self.costs.get(usize::from(url_class)).map_or(0.0, |cost| cost.count);
        (count / (count + PRIOR)).max(UNKNOWN)
    }

    /// Times that requests of each URL class would take alone, microseconds, if the origin serves this number
    /// at once; 0 where nothing is known.
    pub(super) fn alone_us(&self, knee: Option<f64>) -> Vec<u32> {
        let level = self.in_flight_s / self.span_s.max(1e-9);
        let shared_by = knee.map_or(1.0, |knee| (level / knee.max(1e-9)).max(1.0));
        let unit_us = self.stretch() / shared_by * 1e6;
        let alone_us = |class: u16| ((self.mean(class) * unit_us) as u32).max(1);
        let has_run = |class: u16| self.costs.get(usize::from(class)).is_some_and(|cost| cost.count > 0.0);
        (0..URL_CLASSES as u16).map(|class| if has_run(class) { alone_us(class) } else { 0 }).collect()
    }

    /// By how much requests of late took longer than they cost; 1 while nothing is known.
    fn stretch(&self) -> f64 {
        if self.cost > 0.0 { (self.latency_s / self.cost).max(1e-6) } else { 1.0 }
    }
}

/// Requests over which the pace is averaged, and over which a cost is: when the level changes, it is the pace
/// that is to follow and not the costs of those that run.
const PACE_MEMORY: f64 = 30.0;
const COST_MEMORY: f64 = 2_000.0;
/// Requests of the usual mix that a URL class begins with, as its prior.
const PRIOR: f64 = 1.0;
/// Weight on the pace of a request of a class of which nothing is known, in requests of known ones.
const UNKNOWN: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::super::sample::UrlSum;
    use super::*;
    use flashweir_core::Instant;

    /// A tenth of a second in which one request of a URL class takes `latency_us`, with `in_flight` in
    /// flight.
    fn observe(pace: &mut Pace, tenth: u64, url_class: u16, latency_us: u64, in_flight: u64) {
        let url = UrlSum { url_class, count: 1, latency_us, ..UrlSum::default() };
        pace.observe(&Sample {
            from: Instant::from_millis(100 * tenth),
            to: Instant::from_millis(100 * (tenth + 1)),
            completed: 1,
            in_flight_nanos: in_flight * 100_000_000,
            urls: vec![url],
            ..Sample::default()
        });
    }

    #[test]
    fn what_has_not_run_for_long_is_told_at_the_pace_of_what_runs() {
        let mut pace = Pace::new();
        assert_eq!(pace.alone_us(None)[7], 0);
        for tenth in 0..2_000 {
            observe(&mut pace, tenth, 7 + (tenth % 2) as u16, 10_000 + 30_000 * (tenth % 2), 1);
        }
        let near = |us: u32, expected: u32| us.abs_diff(expected) < expected / 10;
        let alone_us = pace.alone_us(Some(2.0));
        assert!(near(alone_us[7], 10_000) && near(alone_us[8], 40_000), "{:?}", &alone_us[7..9]);
        // A crowd that only asks for the cheap ones: eight share what serves two.
        for tenth in 2_000..3_000 {
            observe(&mut pace, tenth, 7, 40_000, 8);
        }
        let alone_us = pace.alone_us(Some(2.0));
        assert!(near(alone_us[7], 10_000) && near(alone_us[8], 40_000), "{:?}", &alone_us[7..9]);
        // The origin has become half as fast.
        for tenth in 3_000..4_000 {
            observe(&mut pace, tenth, 7, 80_000, 8);
        }
        let alone_us = pace.alone_us(Some(2.0));
        assert!(near(alone_us[7], 20_000) && near(alone_us[8], 80_000), "{:?}", &alone_us[7..9]);
        assert_eq!(alone_us[9], 0);
    }

    /// Goal: costs are relative to other requests of the same time, not to how long requests took before.
    /// Method: a crawler that asks for another page each time, and times that grow from 10 ms to 1 s within
    /// 100 requests, twenty times, each time ending at once.
    #[test]
    fn costs_stay_while_times_rise_and_fall() {
        let mut pace = Pace::new();
        let mut costs = Vec::new();
        for tenth in 0..2_000 {
            costs.push(pace.cost((tenth % 500) as u16));
            observe(&mut pace, tenth, (tenth % 500) as u16, 10_000 * (1 + tenth % 100), 1 + tenth % 100);
        }
        let means: Vec<f64> =
            costs.chunks(100).map(|costs| costs.iter().sum::<f64>() / costs.len() as f64).collect();
        assert!(means.iter().all(|mean| (0.8..1.25).contains(&(mean / means[1]))), "{means:.2?}");
    }

    #[test]
    fn what_never_ran_costs_what_others_do() {
        let mut pace = Pace::new();
        assert_eq!(pace.cost(7), 1.0);
        (0..100).for_each(|tenth| observe(&mut pace, tenth, 7 + (tenth % 2) as u16, 10_000, 1));
        assert!((0.99..1.01).contains(&pace.cost(9)), "{}", pace.cost(9));
    }
}
