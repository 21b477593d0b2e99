//! One run: a fresh origin on its own core, a fresh gateway before it, and the crowd.

use flashweir_load::{ClassPlan, LoadPlan, Sources, Target};
use flashweir_origin::account::{Meter, Ruler};
use flashweir_origin::placement::Placement;
use flashweir_testkit::{Flashweir, Gateway, GatewayBuilder, Origin};
use flashweir_trials::useful::{Case, Composition, Run};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule};
use std::time::Duration;

/// Calm before the crowd, in which the gateway learns what is usual.
const CALM_FOR: Duration = Duration::from_secs(2);
const CALM_LOAD: f64 = 0.3;
/// The first second of the crowd is not measured.
const NOTICED_WITHIN: Duration = Duration::from_secs(1);
/// The crowd stays a little longer than it is measured: the last reading comes up to 0.2 s late.
const LONGER: Duration = Duration::from_millis(300);
/// Requests in flight while the capacity is measured: one for the worker and one that waits.
const CAPACITY_CONCURRENCY: usize = 2;
const CAPACITY_MEASURED_FOR: Duration = Duration::from_secs(2);
/// The same crowd for every composition.
const SEED: u64 = 1;

/// What all runs share.
pub(crate) struct Stage {
    binary: Flashweir,
    placement: Placement,
    iterations_per_ms: String,
    length: Duration,
}

impl Stage {
    /// For runs of `length`; `None` if there is only one core.
    pub(crate) fn new(length: Duration) -> Option<Self> {
        let placement = Placement::divide()?;
        placement.leave_the_origin_its_core().expect("a process may move itself");
        Some(Self {
            binary: Flashweir::new(env!("CARGO_BIN_EXE_flashweir")),
            placement,
            iterations_per_ms: format!("{:.0}", flashweir_origin::calibrate()),
            length,
        })
    }

    pub(crate) fn description(&self) -> String {
        let core = self.placement.origin_core();
        let judged_s = (self.length - CALM_FOR - NOTICED_WITHIN - LONGER).as_secs_f64();
        format!("the origin has core {core} to itself; the last {judged_s:.1} s of each crowd are measured")
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

    /// Sends the crowd; why not, if something could not be read or sent.
    pub(crate) fn run(&self, case: Case, round: usize, capacity_rps: f64) -> Result<Run, String> {
        let origin = self.origin(case.page_ms);
        let gateway = self.gateway(case.composition, &origin);
        let plan = self.plan(&gateway, case.load, capacity_rps).map_err(|error| error.to_string())?;
        let meter = Meter::new(origin.process().id(), origin.address());
        let mut ruler = Ruler::new(meter, [CALM_FOR + NOTICED_WITHIN, self.length - LONGER]);
        let load =
            flashweir_load::run(plan, |progress| ruler.look(progress.elapsed, progress.totals.goodput))
                .map_err(|error| error.to_string())?;
        let useful = ruler.useful(0, 1).map_err(|error| error.to_string())?;
        Ok(Run { case, round, useful, is_saturated: load.saturated })
    }

    fn plan(
        &self,
        gateway: &Gateway,
        load: f64,
        capacity_rps: f64,
    ) -> Result<LoadPlan, Box<dyn std::error::Error>> {
        let profile = RateProfile::constant(CALM_LOAD * capacity_rps, CALM_FOR)?
            .then(RateProfile::constant(load * capacity_rps, self.length - CALM_FOR)?);
        let target = Target::parse(&format!("http://{}/work", gateway.address()))?;
        let class = ClassPlan::get(&target)?;
        let schedule = Schedule::one(ArrivalProcess::Poisson(profile), SEED);
        Ok(LoadPlan {
            seed: SEED,
            // The gateway takes a second request from a refused address for a retry of the first.
            sources: Sources { count: flashweir_core::limits::LOAD_SOURCES, ..Sources::default() },
            ..LoadPlan::new(target, schedule, class)
        })
    }

    fn gateway(&self, composition: Composition, origin: &Origin) -> Gateway {
        let builder = GatewayBuilder::new(&self.binary).upstream(&origin.url());
        match composition {
            Composition::NewsAlone => builder.text("sentry.policing", "off"),
            Composition::SentryAlone => builder.text("flash_crowd.mode", "off"),
            Composition::Default => builder,
        }
        .start()
    }

    fn origin(&self, page_ms: u32) -> Origin {
        let page_ms = page_ms.to_string();
        let options =
            ["--workers", "1", "--work-ms", &page_ms, "--iterations-per-ms", &self.iterations_per_ms];
        let origin = Origin::start_with(&self.binary, &options);
        self.placement.give_the_origin_its_core(origin.process().id()).expect("a child may be moved");
        origin
    }
}
