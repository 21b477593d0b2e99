//! Costs of requests, by URL class: the service times that the gates saw, averaged.
//!
//! Service times reported by the origin count; else those by even sharing (`in_flight`). A URL class of which
//! nothing is known costs what its class of the policy does, then what all do. URL classes are hashes into a
//! bounded table: a flood of distinct URLs moves what it shares slots with towards its own cost, and nothing
//! grows.

use super::plan::Costs;
use super::sample::Sample;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use flashweir_core::limits::URL_CLASSES;
use flashweir_core::{Duration, Instant};

/// Running means.
#[derive(Debug)]
pub(super) struct CostTable {
    by_url_class: Vec<Mean>,
    by_class: Vec<Mean>,
    usual: Mean,
    published: Arc<Costs>,
    next_at: Instant,
}

/// Running mean, and the number of recent requests that it rests on.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    us: f64,
    count: f64,
}

impl CostTable {
    pub(super) fn new(classes: usize) -> Self {
        let unknown =
            Costs { by_url_class_us: vec![0; URL_CLASSES], by_class_us: vec![0; classes], usual_us: 0 };
        Self {
            by_url_class: vec![Mean::default(); URL_CLASSES],
            by_class: vec![Mean::default(); classes],
            usual: Mean::default(),
            published: Arc::new(unknown),
            next_at: Instant::ZERO,
        }
    }

    pub(super) fn observe(&mut self, sample: &Sample) {
        for url in &sample.urls {
            let Some(mean) = self.by_url_class.get_mut(usize::from(url.url_class)) else { continue };
            match url.measured_count {
                0 => mean.add(url.shared_us as f64, url.count.into()),
                measured => mean.add(url.measured_us as f64, measured.into()),
            }
        }
        for (mean, counts) in self.by_class.iter_mut().zip(&sample.classes) {
            mean.add(counts.service_us as f64, counts.completed as f64);
            self.usual.add(counts.service_us as f64, counts.completed as f64);
        }
    }

    /// Mean service time of a class, or of all if nothing is known of it, seconds; 0 if nothing is known at
    /// all.
    pub(super) fn of_class_s(&self, class: usize) -> f64 {
        let known = [self.by_class[class], self.usual].into_iter().find(|mean| mean.count > 0.0);
        known.map_or(0.0, |mean| mean.us / 1e6)
    }

    /// Table for the gates, rebuilt a few times a second.
    pub(super) fn table(&mut self, now: Instant) -> Arc<Costs> {
        if now >= self.next_at {
            self.next_at = now + REFRESH;
            self.published = Arc::new(Costs {
                by_url_class_us: self.by_url_class.iter().map(Mean::published_us).collect(),
                by_class_us: self.by_class.iter().map(Mean::published_us).collect(),
                usual_us: self.usual.published_us(),
            });
        }
        self.published.clone()
    }
}

impl Mean {
    fn add(&mut self, sum_us: f64, count: f64) {
        if count > 0.0 {
            self.count = (self.count + count).min(MEMORY);
            self.us += (sum_us / count - self.us) * (count / self.count).min(1.0);
        }
    }

    /// A request costs at least a microsecond, once it is known what it costs.
    fn published_us(&self) -> u32 {
        if self.count > 0.0 { (self.us as u32).max(1) } else { 0 }
    }
}

/// Requests over which costs are averaged: enough that a slow one does not make its class dear, few enough
/// that a page which becomes slow is known to be within some seconds.
const MEMORY: f64 = 100.0;
/// Service times do not change faster than that, and a table is 4 kB.
const REFRESH: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::super::sample::{ClassCounts, UrlSum};
    use super::*;

    #[test]
    fn the_best_that_is_known_counts() {
        let mut table = CostTable::new(2);
        assert_eq!((table.table(Instant::ZERO).of(5, 1), table.of_class_s(1)), (0, 0.0));
        let url = |url_class, shared_us, measured_us: Option<u64>| UrlSum {
            url_class,
            count: 10,
            shared_us,
            measured_count: measured_us.map_or(0, |_| 2),
            measured_us: measured_us.unwrap_or(0),
            ..UrlSum::default()
        };
        let gold = ClassCounts { completed: 20, service_us: 40_000, ..ClassCounts::default() };
        table.observe(&Sample {
            urls: vec![url(7, 30_000, None), url(8, 90_000, Some(600))],
            classes: vec![gold, ClassCounts::default()],
            ..Sample::default()
        });
        let costs = table.table(Instant::from_secs(1));
        assert_eq!(
            [costs.of(7, 0), costs.of(8, 0), costs.of(9, 0), costs.of(9, 1)],
            [3_000, 300, 2_000, 2_000]
        );
        assert_eq!(costs.of(7 + URL_CLASSES as u32, 1), 3_000, "hashes share a slot");
        assert!((table.of_class_s(1) - 0.002).abs() < 1e-9);
    }
}
