//! One visit: a fresh origin, a fresh protection before it, and the crowd.

use crate::machine;
use crate::protection::{Kind, Tools};
use bytes::Bytes;
use flashweir_load::trials::comparison::{
    ClassRates, ComparisonOutcome, OriginKind, PATIENCE_S, Scene, TARGET_S,
};
use flashweir_load::{ClassPlan, LoadPlan, LoadResult, LoadTarget, Paths, Prepared, Sources, Template};
use flashweir_testbed::origin::account::{OriginMeter, Ruler};
use flashweir_testkit::{Client, Origin};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule, Share, Stream};
use http::{HeaderName, HeaderValue, Method};
use std::error::Error;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Requests in flight while the capacity is measured: one for each worker and one more, which waits.
const WAITING: u32 = 1;
const CAPACITY_MEASURED_FOR: Duration = Duration::from_secs(1);
/// The longer measurement at the start, of which the crowds are multiples.
const CAPACITY_FIRST_MEASURED_FOR: Duration = Duration::from_secs(3);
const MEASURED_AGAIN: u32 = 5;
/// From here to the first arrival: the generator starts its threads in that time.
const LEAD: Duration = Duration::from_millis(500);
/// The last reading comes this much before the end of the crowd: where all requests are answered at once, the
/// run ends with it.
const READ_BEFORE_END: Duration = Duration::from_millis(500);
const SOURCES: u32 = 4_000;
/// The same crowd for every protection.
const SEED: u64 = 1;

/// State that all visits share.
pub(crate) struct Stage {
    pub(crate) tools: Tools,
    iterations_per_ms: String,
    capacity_rps: [f64; 2],
}

/// Findings of a visit.
pub(crate) struct Visit {
    pub(crate) outcome: ComparisonOutcome,
    /// Of this visit's origin.
    pub(crate) capacity_rps: f64,
}

impl Stage {
    pub(crate) fn new(tools: Tools) -> Self {
        let iterations_per_ms = format!("{:.0}", flashweir_testbed::origin::calibrate());
        let mut stage = Self { tools, iterations_per_ms, capacity_rps: [0.0; 2] };
        for kind in [OriginKind::CpuBound, OriginKind::WorkerBound] {
            let origin = stage.origin(kind);
            stage.capacity_rps[kind as usize] = capacity_rps(&origin, kind, CAPACITY_FIRST_MEASURED_FOR);
        }
        stage
    }

    /// Capacity of which the crowds at an origin of this kind are multiples.
    pub(crate) fn capacity_rps(&self, kind: OriginKind) -> f64 {
        self.capacity_rps[kind as usize]
    }

    /// Checks that a protection can be started and lets a first request through; the error says why not.
    pub(crate) fn rehearse(&self, kind: &Kind) -> Result<(), String> {
        let origin = self.origin(OriginKind::CpuBound);
        let standing = kind.start(&self.tools, origin.address())?;
        match Client::get(standing.address, "/").status() {
            200 => Ok(()),
            status => Err(format!("it answered a first request with {status}")),
        }
    }

    /// Sends the crowd; why not, if the protection does not start although it did at the rehearsal, or
    /// something could not be sent or read.
    ///
    /// # Panics
    /// When the origin fails.
    pub(crate) fn visit(&self, kind: &Kind, scene: &Scene) -> Result<Visit, String> {
        let origin = self.origin(scene.origin);
        let capacity_rps = capacity_rps(&origin, scene.origin, CAPACITY_MEASURED_FOR);
        let standing = kind.start(&self.tools, origin.address())?;
        let (load, useful) =
            self.send(scene, standing.address, &origin).map_err(|error| error.to_string())?;
        Ok(Visit { outcome: ComparisonOutcome::of(&load, scene, capacity_rps, useful), capacity_rps })
    }

    /// The load, and the useful share of the time of an origin whose work is all on the processor.
    fn send(
        &self,
        scene: &Scene,
        address: SocketAddr,
        origin: &Origin,
    ) -> Result<(LoadResult, Option<f64>), Box<dyn Error>> {
        let begins = Instant::now() + LEAD;
        let plan = LoadPlan { start_at: Some(SystemTime::now() + LEAD), ..self.plan(scene, address)? };
        let judged = [
            Duration::from_secs(scene.crowd_from_s() + 1),
            Duration::from_secs(scene.length_s()) - READ_BEFORE_END,
        ];
        let mut ruler = Ruler::new(OriginMeter::new(origin.process().id(), origin.address()), judged);
        let load = thread::scope(|scope| {
            scope.spawn(|| {
                for change in &scene.changes {
                    let moment = begins + Duration::from_secs(change.at_s);
                    // The schedule of changes is the moment itself: there is nothing else to wait for.
                    while let Some(left) =
                        moment.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
                    {
                        thread::park_timeout(left);
                    }
                    origin.employ(change.workers);
                }
            });
            flashweir_load::run(plan, |progress| ruler.look(progress.elapsed, progress.totals.goodput))
        })?;
        let useful = match scene.origin {
            OriginKind::CpuBound => Some(ruler.useful(0, 1)?.useful()),
            OriginKind::WorkerBound => None,
        };
        Ok((load, useful))
    }

    fn plan(&self, scene: &Scene, address: SocketAddr) -> Result<LoadPlan, Box<dyn Error>> {
        let target = LoadTarget::parse(&format!("http://{address}/"))?;
        let classes = scene.classes(self.capacity_rps(scene.origin));
        let streams = classes.iter().zip(0..).map(|(class, number)| stream(class, number, scene));
        let schedule = Schedule::new(streams.collect::<Result<_, _>>()?, SEED)?;
        let people: Vec<ClassPlan> =
            classes.iter().map(|class| class_plan(class, &target)).collect::<Result<_, _>>()?;
        let first = people.first().cloned().ok_or("a crowd has classes")?;
        let sources = Sources { count: SOURCES, ..Sources::default() };
        Ok(LoadPlan { classes: people.into(), sources, seed: SEED, ..LoadPlan::new(target, schedule, first) })
    }

    fn origin(&self, kind: OriginKind) -> Origin {
        let (workers, work_ms, wait_ms) =
            (kind.workers().to_string(), kind.work_ms().to_string(), kind.wait_ms().to_string());
        let work = ["--workers", &workers, "--work-ms", &work_ms, "--wait-ms", &wait_ms];
        let same = ["--iterations-per-ms", &self.iterations_per_ms];
        let origin = Origin::start_with(&self.tools.flashweir, &[&work[..], &same].concat());
        machine::give_core_0(origin.process().id());
        origin
    }
}

fn stream(class: &ClassRates, number: u16, scene: &Scene) -> Result<Stream, Box<dyn Error>> {
    let quiet = RateProfile::constant(class.quiet_rps, Duration::from_secs(scene.crowd_from_s()))?;
    let profile = quiet.then(RateProfile::constant(class.crowd_rps, Duration::from_secs(scene.crowd_s))?);
    let share = Share { class: number, weight: 1.0 };
    Ok(Stream { arrivals: ArrivalProcess::Poisson(profile), classes: vec![share] })
}

fn class_plan(class: &ClassRates, target: &LoadTarget) -> Result<ClassPlan, Box<dyn Error>> {
    let field = (HeaderName::from_static("x-class"), HeaderValue::from_static(class.name));
    let request = Prepared::new(target, Method::GET, &[field], Bytes::new())?;
    Ok(ClassPlan {
        timeout: Duration::from_secs_f64(PATIENCE_S),
        good_within: Duration::from_secs_f64(TARGET_S),
        ..ClassPlan::new(class.name, request, Paths::Template(Template::new(&target.path, None, 0)?))
    })
}

fn capacity_rps(origin: &Origin, kind: OriginKind, measured_for: Duration) -> f64 {
    let concurrency = (kind.workers() + WAITING) as usize;
    let measure = |time| flashweir_load::measure_capacity(&origin.url(), concurrency, time);
    // A machine that is busy with something else may complete too few to tell; once more, for longer.
    measure(measured_for).or_else(|_| measure(measured_for * MEASURED_AGAIN)).expect("the origin answers")
}
