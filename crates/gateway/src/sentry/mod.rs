//! The sentry in the gateway: a learned number of requests at the origin at once, and waiting for those that do not fit.
//!
//! The rules are `flashweir_admission::sentry`; this is what surrounds them. One [`Sentry`] for each service is shared
//! by all threads: atomics, the plan in force, and a bell for each worker. Each worker has a [`Stage`] of its own: the
//! gate, and the requests that wait at it. A request asks and gets a [`Place`], a [`Wait`], or a refusal. The planner
//! (`planner_task`) rings for samples fifty times a second, less often while nobody asks (`rest`).
//!
//! A policy that is only compared with the live one has a gate of its own beside each [`Stage`] (`candidate`).
//!
//! A place is given back when the *origin* is done, which may be long before the client is (`place`, `slow_clients`), and
//! left for a while when the origin has to wait for the client (`uploading`).

mod candidate;
mod candidate_planner;
mod place;
mod planner_task;
mod rest;
mod service;
mod slow_clients;
mod stage;
pub(crate) mod told;
mod uploading;
mod wait;

pub(crate) use candidate::{Candidate, CandidateSaid, CandidateStage, Opinion};
pub(crate) use place::Place;
pub(crate) use planner_task::{SentryStation, UnattendedSentries};
pub(crate) use rest::Rest;
pub(crate) use service::{Names, Sentry};
pub(crate) use slow_clients::{SlowClients, Yielding};
pub(crate) use stage::{Answer, Basis, GateSample, Refused, Stage};
pub(crate) use uploading::Uploading;
pub(crate) use wait::Wait;
