//! User requests that need three calls each to an overloaded service (DAGOR's problem, SoCC 2018 §3).
//!
//! ```text
//! people ─► front end ─► (sidecar) ─► gateway "edge" ─► gateway "node" ─► origin
//! ```
//!
//! The origin is one that waits, as for a database: four programs work on each call before it, and would take
//! its time on a small machine.
//!
//! Without coordination each call is judged by itself and most user requests fail at one of theirs, after
//! work was done for them. With it, the sidecar of the front end refuses at the first call or not at all.
//! Each call has the gateways' target and a user request that of all its calls: they are made one after the
//! other.

use super::{NODE, Options, front_end, gateway};
use crate::demo::children::{Family, Origin, Sidecar};
use crate::demo::{PATIENCE, TARGET, origin_capacity_rps};
use anyhow::Context;
use flashweir_load::{ClassPlan, LoadPlan, LoadTarget};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule};
use serde::Serialize;
use std::time::Duration;

/// Calls of each user request.
pub(super) const CALLS: u32 = 3;
/// Calls that are offered, over what the origin can do.
pub(super) const OVERLOAD: f64 = 2.0;
const EDGE: &str = "edge";
/// Of the origin's capacity, before the overload.
const QUIET_LOAD: f64 = 0.4;
const QUIET: Duration = Duration::from_secs(3);
const CROWD: Duration = Duration::from_secs(12);
/// From here on it is judged, and until this much before its end: what is asked last is answered after the
/// end.
const JUDGED_AFTER: Duration = Duration::from_secs(3);
const JUDGED_BEFORE_END: Duration = CHAIN_TARGET;
const CHAIN_TARGET: Duration = TARGET.saturating_mul(CALLS);
const CHAIN_PATIENCE: Duration = PATIENCE.saturating_mul(CALLS);

/// Outcome of the user requests.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Chain {
    /// That people wanted, per second.
    pub(crate) offered_rps: f64,
    /// That were completed in time, per second.
    pub(crate) completed_rps: f64,
    /// The same relative to an oracle, which begins only what it can finish: the origin's capacity divided by
    /// the calls.
    pub(crate) of_oracle: f64,
}

/// Calls per second that such an origin serves; measured once, so that both crowds are the same.
pub(super) fn capacity_rps(options: &Options, family: &Family) -> anyhow::Result<f64> {
    origin_capacity_rps(&Origin::start_waiting(family, options.origin_ms, &options.out)?)
}

/// A crowd of twice what the origin can do.
pub(super) fn visit(
    options: &Options,
    family: &Family,
    capacity_rps: f64,
    coordinates: bool,
) -> anyhow::Result<Chain> {
    let origin = Origin::start_waiting(family, options.origin_ms, &options.out)?;
    let how = if coordinates { "with" } else { "without" };
    eprintln!("Twice what the origin can do, in user requests of {CALLS} calls, {how} feedback ...");
    let node = gateway(family, NODE, &origin.base_url(), coordinates, options)?;
    let edge = gateway(family, EDGE, &node.base_url(), coordinates, options)?;
    let sidecar =
        if coordinates { Some(Sidecar::start(family, EDGE, &edge.base_url(), &options.out)?) } else { None };
    let to = match &sidecar {
        Some(sidecar) => sidecar.address,
        None => edge.address().parse().context("the gateway's address")?,
    };
    let front_end = front_end::start(CALLS, to).context("the front end cannot listen")?;

    let oracle_rps = capacity_rps / f64::from(CALLS);
    let profile = RateProfile::constant(QUIET_LOAD * oracle_rps, QUIET)?
        .then(RateProfile::constant(OVERLOAD * oracle_rps, CROWD)?);
    let target = LoadTarget::parse(&format!("http://{front_end}/"))?;
    let class = ClassPlan { timeout: CHAIN_PATIENCE, good_within: CHAIN_TARGET, ..ClassPlan::get(&target)? };
    let schedule = Schedule::one(ArrivalProcess::Poisson(profile), options.seed);
    let plan = LoadPlan { seed: options.seed, ..LoadPlan::new(target, schedule, class) };
    let load = flashweir_load::run(plan, |_| ())?;
    let judged = (QUIET + JUDGED_AFTER).as_secs()..(QUIET + CROWD - JUDGED_BEFORE_END).as_secs();
    let seconds = load.totals.series.iter().filter(|second| judged.contains(&second.second));
    let (offered, good) =
        seconds.fold((0, 0), |(offered, good), second| (offered + second.offered, good + second.goodput));
    let length_s = (judged.end - judged.start) as f64;
    let completed_rps = good as f64 / length_s;
    Ok(Chain { offered_rps: offered as f64 / length_s, completed_rps, of_oracle: completed_rps / oracle_rps })
}
