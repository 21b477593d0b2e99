//! Keeps, on the control thread, to which hosts a crowd came (in crowds the cache is in use for those alone),
//! and publishes the cache's figures about itself.

use super::worker::follows_crowds;
use crate::flash_crowd_candidate::FlashCrowdSample;
use crate::shared::Shared;
use flashweir_admission::flash_crowd::Limit;
use flashweir_admission::pipeline::LoadCause;
use flashweir_cache::{Demand, Opening, Pressure};
use flashweir_core::{Duration, Instant};
use std::sync::Arc;

/// Interval at which the directory is tidied and its size is published.
const TIDIES_EVERY: Duration = Duration::from_secs(1);

/// If copies spare at least this many requests of the last second a refusal or a wait, and at least this part
/// (1/n) of all, more requests come than can be served, though none is refused.
const SPARED_MIN: f64 = 8.0;
const SPARED_PART: f64 = 4.0;

/// Follows the detector, the verdict and the demand of each host.
#[derive(Debug, Default)]
pub(crate) struct CacheOpening {
    opening: Opening,
    /// Requests of about the last second: those that copies spared, and all.
    spared: f64,
    requests: f64,
    evaluated_at: Instant,
    tidied_at: Instant,
}

impl CacheOpening {
    /// A round of samples has been judged.
    pub(crate) fn follow(&mut self, shared: &Shared, samples: &[FlashCrowdSample]) {
        let now = shared.clock.now();
        if follows_crowds(&shared.live.load().config) {
            self.evaluate(now, shared, samples);
        } else if !self.opening.open_hosts().is_empty() {
            self.opening = Opening::default();
            self.publish(shared);
        }
        if now.saturating_since(self.tidied_at) >= TIDIES_EVERY {
            self.tidied_at = now;
            let cache = &shared.cache;
            cache.directory.sweep();
            let (bytes, responses) = (cache.directory.gauge().bytes(), cache.directory.responses());
            shared.telemetry.control().publish_cache(bytes, responses, self.opening.open_hosts().len());
        }
    }

    fn evaluate(&mut self, now: Instant, shared: &Shared, samples: &[FlashCrowdSample]) {
        // What the pipeline saw, and what the cache answered.
        let kept = (-now.saturating_since(self.evaluated_at).as_secs_f64()).exp();
        self.evaluated_at = now;
        self.spared = self.spared * kept + samples.iter().map(|sample| sample.spared).sum::<u64>() as f64;
        self.requests *= kept;
        let seen = samples.iter().flat_map(|sample| sample.live.hosts.iter().chain(&sample.cached));
        for host in seen {
            self.requests += host.hits as f64;
            self.opening.count(Demand { key: host.key, requests: host.hits });
        }
        let is_sparing = self.spared >= SPARED_MIN && self.spared * SPARED_PART >= self.requests;
        let (plan, verdict) = (shared.plan.load(), shared.verdict.load());
        let mut hot = plan.hot_hosts.clone();
        if let Limit::HotSpots(spots) = &plan.limit {
            hot.extend(spots.iter().map(|spot| spot.key));
        }
        // Whether more came than can be served; whether it is a crowd the rates of the hosts say.
        let is_short = matches!(
            verdict.cause,
            LoadCause::Popular | LoadCause::Abusive | LoadCause::SlowBackend | LoadCause::Bound
        );
        let changed = self.opening.evaluate(now, &Pressure { hot: &hot, is_crowd: is_short || is_sparing });
        if changed {
            tracing::info!(
                event = "cache",
                hosts = self.opening.open_hosts().len(),
                verdict = verdict.cause.as_str(),
                "the hosts to which a crowd came have changed: the cache is in use for them",
            );
            let keys = self.opening.open_hosts().iter().map(|host| host.key);
            shared.cache.open.store(Arc::new(keys.collect()));
        }
        if changed || !self.opening.open_hosts().is_empty() {
            shared.cache.open_hosts.store(Arc::new(self.opening.open_hosts().to_vec()));
        }
    }

    fn publish(&self, shared: &Shared) {
        shared.cache.open.store(Arc::default());
        shared.cache.open_hosts.store(Arc::new(self.opening.open_hosts().to_vec()));
    }
}
