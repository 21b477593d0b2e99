//! A fresh origin on its own core, a fresh gateway before it, and people who come.

use flashweir_core::measure::Useful;
use flashweir_load::trials::useful::Composition;
use flashweir_load::{ClassPlan, LoadPlan, LoadResult, LoadTarget, Progress, Sources};
use flashweir_testbed::origin::account::{OriginMeter, Ruler};
use flashweir_testbed::origin::placement::Placement;
use flashweir_testkit::{Flashweir, Gateway, GatewayBuilder, Origin};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule};
use std::net::SocketAddr;
use std::time::Duration;

/// Requests in flight while the capacity is measured: one for the worker and one that waits.
const CAPACITY_CONCURRENCY: usize = 2;
const CAPACITY_MEASURED_FOR: Duration = Duration::from_secs(2);
/// The same people for every composition.
const SEED: u64 = 1;

/// State that all runs share.
pub(crate) struct Stage {
    binary: Flashweir,
    placement: Placement,
    iterations_per_ms: String,
}

impl Stage {
    /// Moves this process off the origin's core; `None` if there is only one.
    pub(crate) fn new() -> Option<Self> {
        let placement = Placement::divide()?;
        placement.leave_the_origin_its_core().expect("a process may move itself");
        Some(Self {
            binary: binary(),
            placement,
            iterations_per_ms: format!("{:.0}", flashweir_testbed::origin::calibrate()),
        })
    }

    pub(crate) fn origin_core(&self) -> usize {
        self.placement.origin_core()
    }

    /// Pages of this kind that the origin completes now, a second.
    ///
    /// # Panics
    /// When the origin does not answer.
    pub(crate) fn capacity_rps(&self, page_ms: u32) -> f64 {
        let origin = self.origin(page_ms);
        flashweir_load::measure_capacity(&origin.url(), CAPACITY_CONCURRENCY, CAPACITY_MEASURED_FOR)
            .expect("the origin answers")
    }

    /// An origin with one worker, on its own core.
    pub(crate) fn origin(&self, page_ms: u32) -> Origin {
        let page_ms = page_ms.to_string();
        let options =
            ["--workers", "1", "--work-ms", &page_ms, "--iterations-per-ms", &self.iterations_per_ms];
        let origin = Origin::start_with(&self.binary, &options);
        self.placement.give_the_origin_its_core(origin.process().id()).expect("a child may be moved");
        origin
    }

    /// A gateway before it, with these stages.
    pub(crate) fn gateway(&self, composition: Composition, origin: &Origin) -> Gateway {
        compose(composition, GatewayBuilder::new(&self.binary).upstream(&origin.url())).start()
    }
}

/// The command as this build made it.
pub(crate) fn binary() -> Flashweir {
    Flashweir::new(env!("CARGO_BIN_EXE_flashweir"))
}

/// Turns off what a composition does without.
pub(crate) fn compose(composition: Composition, builder: GatewayBuilder) -> GatewayBuilder {
    match composition {
        Composition::NewsAlone => builder.text("sentry.policing", "off"),
        Composition::SentryAlone => builder.text("flash_crowd.mode", "off"),
        Composition::Default => builder,
    }
}

/// People who come to `url`, each from one of very many addresses and with a connection of their own: the
/// gateway takes a second request from a refused address for a retry of the first.
pub(crate) fn people(url: &str, profile: RateProfile) -> Result<LoadPlan, Box<dyn std::error::Error>> {
    let target = LoadTarget::parse(url)?;
    let class = ClassPlan::get(&target)?;
    let schedule = Schedule::one(ArrivalProcess::Poisson(profile), SEED);
    Ok(LoadPlan {
        seed: SEED,
        sources: Sources { count: flashweir_core::limits::LOAD_SOURCES, ..Sources::default() },
        ..LoadPlan::new(target, schedule, class)
    })
}

/// Sends people to a gateway, and shows `watch` the progress about five times a second; what the load
/// generator found, and what the origin did with its time between the two moments. Why not, if something
/// could not be read or sent.
pub(crate) fn send(
    gateway: &Gateway,
    origin: &Origin,
    profile: RateProfile,
    judged: [Duration; 2],
    watch: impl FnMut(&Progress),
) -> Result<(LoadResult, Useful), String> {
    send_to(gateway.address(), origin, profile, judged, watch)
}

/// The same to any address in front of the origin.
pub(crate) fn send_to(
    address: SocketAddr,
    origin: &Origin,
    profile: RateProfile,
    judged: [Duration; 2],
    mut watch: impl FnMut(&Progress),
) -> Result<(LoadResult, Useful), String> {
    let plan = people(&format!("http://{address}/work"), profile).map_err(|error| error.to_string())?;
    let mut ruler = Ruler::new(OriginMeter::new(origin.process().id(), origin.address()), judged);
    let look = |progress: &Progress| {
        ruler.look(progress.elapsed, progress.totals.goodput);
        watch(progress);
    };
    let load = flashweir_load::run(plan, look).map_err(|error| error.to_string())?;
    let useful = ruler.useful(0, 1).map_err(|error| error.to_string())?;
    Ok((load, useful))
}
