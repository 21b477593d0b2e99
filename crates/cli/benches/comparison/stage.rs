//! One visit: a fresh origin, a fresh protection before it, and the crowd.

use crate::machine;
use crate::protection::{Kind, Tools};
use flashweir_load::LoadResult;
use flashweir_testkit::{Client, Load, Origin};
use flashweir_trials::comparison::{OriginKind, Outcome, Scene};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Requests in flight while the capacity is measured: one for each worker and one more, which waits.
const WAITING: u32 = 1;
const CAPACITY_MEASURED_FOR: Duration = Duration::from_secs(1);
/// The longer measurement at the start, of which the crowds are multiples.
const CAPACITY_FIRST_MEASURED_FOR: Duration = Duration::from_secs(3);
const MEASURED_AGAIN: u32 = 5;
/// From the start of the load generator to its first arrival: it makes its schedule in that time.
const LEAD: Duration = Duration::from_millis(500);
/// The generator's own end, after the last person has gone.
const ENDS_WITHIN: Duration = Duration::from_secs(20);
const SOURCES: &str = "4000";
/// The same crowd for everybody.
const SEED: &str = "1";

/// What all visits share.
pub(crate) struct Stage {
    pub(crate) tools: Tools,
    iterations_per_ms: String,
    capacity_rps: [f64; 2],
}

/// What a visit found.
pub(crate) struct Visit {
    pub(crate) outcome: Outcome,
    /// Of this visit's origin.
    pub(crate) capacity_rps: f64,
}

impl Stage {
    pub(crate) fn new(tools: Tools) -> Self {
        let iterations_per_ms = format!("{:.0}", flashweir_origin::calibrate());
        let mut stage = Self { tools, iterations_per_ms, capacity_rps: [0.0; 2] };
        for kind in [OriginKind::CpuBound, OriginKind::WorkerBound] {
            let origin = stage.origin(kind);
            stage.capacity_rps[kind as usize] = capacity_rps(&origin, kind, CAPACITY_FIRST_MEASURED_FOR);
        }
        stage
    }

    /// What the crowds at an origin of this kind are multiples of.
    pub(crate) fn capacity_rps(&self, kind: OriginKind) -> f64 {
        self.capacity_rps[kind as usize]
    }

    /// Whether a protection can be started and lets a first request through; why not.
    pub(crate) fn rehearse(&self, kind: &Kind) -> Result<(), String> {
        let origin = self.origin(OriginKind::CpuBound);
        let standing = kind.start(&self.tools, origin.address())?;
        match Client::get(standing.address, "/").status() {
            200 => Ok(()),
            status => Err(format!("it answered a first request with {status}")),
        }
    }

    /// Sends the crowd; why not, if the protection does not start although it did at the rehearsal.
    ///
    /// # Panics
    /// When origin or load generator fails.
    pub(crate) fn visit(&self, kind: &Kind, scene: &Scene) -> Result<Visit, String> {
        let origin = self.origin(scene.origin);
        let capacity_rps = capacity_rps(&origin, scene.origin, CAPACITY_MEASURED_FOR);
        let standing = kind.start(&self.tools, origin.address())?;
        let load = self.send(scene, &format!("http://{}/", standing.address), &origin);
        Ok(Visit { outcome: Outcome::of(&load, scene, capacity_rps), capacity_rps })
    }

    fn send(&self, scene: &Scene, url: &str, origin: &Origin) -> LoadResult {
        let directory = tempfile::tempdir().expect("a fresh directory");
        let classes = directory.path().join("classes.toml");
        std::fs::write(&classes, scene.classes(self.capacity_rps(scene.origin)))
            .expect("a writable directory");
        let begins = Instant::now() + LEAD;
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970") + LEAD;
        let start_at = format!("{:.3}", since_1970.as_secs_f64());
        let classes = classes.to_str().expect("a temporary directory with a plain name");
        let crowd = ["--classes", classes, "--start-at", &start_at, "--sources", SOURCES, "--seed", SEED];
        let load = Load::start(&self.tools.flashweir, url, &crowd);
        for change in &scene.changes {
            let moment = begins + Duration::from_secs(change.at_s);
            // The schedule of changes is the moment itself: there is nothing else to wait for.
            while let Some(left) =
                moment.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
            {
                std::thread::park_timeout(left);
            }
            origin.employ(change.workers);
        }
        let result = load.finish(Duration::from_secs(scene.length_s()) + LEAD + ENDS_WITHIN);
        serde_json::from_value(result).expect("the generator of this build writes what this build reads")
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

fn capacity_rps(origin: &Origin, kind: OriginKind, measured_for: Duration) -> f64 {
    let concurrency = (kind.workers() + WAITING) as usize;
    let measure = |time| flashweir_load::measure_capacity(&origin.url(), concurrency, time);
    // A machine that is busy with something else may complete too few to tell; once more, for longer.
    measure(measured_for).or_else(|_| measure(measured_for * MEASURED_AGAIN)).expect("the origin answers")
}
