//! Tests of `flashweir-admission` through its public interface, one theme in each file or folder.

mod beside_another_stage;
mod candidate;
mod common;
mod crowd;
mod downloads;
mod drained_link;
mod fairness;
mod fairness_keys;
mod impatience;
mod invariants;
mod long_requests;
mod noisy_rates;
mod phase_sweep;
mod pipeline;
mod sentry;
mod sentry_classes;
mod sentry_crowd;
mod sentry_plans;
