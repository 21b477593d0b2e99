//! The sentry in the gateway: a learned number of requests at the origin at once, and waiting for those that
//! do not fit.
//!
//! The rules are `flashweir_admission::sentry`; each worker's stage is in its pipeline (`crate::pipeline`).
//! Here is what all threads share: one [`Sentry`] for each service (atomics, the plan in force, and a bell
//! for each worker), one [`Candidate`] where a policy is compared with it, and the slow half
//! (`planner_task`), which rings for samples fifty times a second, less often while no request comes
//! (`rest`).

mod candidate;
mod candidate_planner;
mod planner_task;
mod refused;
pub(crate) mod report;
mod rest;
mod sample;
mod service;

pub(crate) use candidate::{Candidate, CandidateSample};
pub(crate) use planner_task::{SentryStation, UnattendedSentries};
pub(crate) use refused::{Basis, CandidateExplanation, Refused};
pub(crate) use rest::Rest;
pub(crate) use sample::GateSample;
pub(crate) use service::{Names, Sentry};
