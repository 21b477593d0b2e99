//! Surroundings of the planner of NEWS: the workers' samples, the plan in force, the metrics, the state file.

use crate::cache::CacheOpening;
use crate::flash_crowd_candidate::{FlashCrowdCandidate, FlashCrowdSample, PlannedCandidate};
use crate::recording::{self, MadeFrom};
use crate::shared::Shared;
use crate::state_file;
use crate::verdict::VerdictTask;
use flashweir_admission::flash_crowd::{Baseline, FlashCrowdPlanner, Plan};
use flashweir_admission::pace::{SAMPLE_INTERVAL_MAX, TICK_INTERVAL_MIN};
use flashweir_config::FlashCrowd;
use flashweir_core::{Duration, Instant};
use flashweir_runtime::planner_loop::{
    LoopEvent, Outlet, PlannerLoop, SlotDecay, Station, Unattended, put_in_force,
};
use flashweir_runtime::{BaselineKeeper, Clock, StateFile, planner, tell_change};
use flashweir_telemetry::Happening;
use flashweir_wire::Recorder;
use flashweir_wire::recording::Planned;
use std::convert::Infallible;
use std::mem;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// The planner's name in the log.
const WHOSE: &str = "the planner of NEWS";

/// The loop of NEWS and its gates. Lives on the control thread.
pub(crate) struct NewsStation {
    planner_loop: PlannerLoop<FlashCrowdPlanner>,
    outlet: NewsOutlet,
    sample_wanted: watch::Sender<u64>,
    samples: mpsc::Receiver<FlashCrowdSample>,
    /// Samples of the present round, at most one for each worker.
    gathered: Vec<FlashCrowdSample>,
    last_sample_at: Instant,
    verdict: VerdictTask,
    /// For which hosts the cache is in use.
    cache: CacheOpening,
    /// A policy that is compared with this one.
    candidate: Option<PlannedCandidate>,
    recorder: Option<Arc<Recorder>>,
}

/// Publishes plans and builds planners.
struct NewsOutlet {
    shared: Arc<Shared>,
    workers: usize,
    configured: FlashCrowd,
    keeper: BaselineKeeper,
    /// Inputs of the present planner, for a recording.
    made_from: MadeFrom,
}

impl NewsStation {
    /// A planner that starts from what an earlier run learned.
    pub(crate) fn new(
        shared: Arc<Shared>,
        workers: usize,
        (sample_wanted, samples): (watch::Sender<u64>, mpsc::Receiver<FlashCrowdSample>),
        learned: Baseline,
        recorder: Option<&Arc<Recorder>>,
    ) -> Self {
        let configured = shared.live.load().config.flash_crowd.clone();
        shared.baseline.store(Arc::new(learned.clone()));
        shared.telemetry.control().set_shadow(configured.shadow);
        let keeper = BaselineKeeper::new(learned, shared.clock.now());
        let in_force = Plan::clone(&shared.plan.load());
        let made_from = MadeFrom::default();
        let mut outlet = NewsOutlet { shared, workers, configured, keeper, made_from };
        let mut planner_loop = PlannerLoop::new(&mut outlet, in_force);
        recording::record(&mut planner_loop, recorder, recording::FLASH_CROWD, &outlet.made_from);
        Self {
            planner_loop,
            outlet,
            sample_wanted,
            samples,
            gathered: Vec::with_capacity(workers),
            last_sample_at: Instant::ZERO,
            verdict: VerdictTask::default(),
            cache: CacheOpening::default(),
            candidate: None,
            recorder: recorder.cloned(),
        }
    }

    /// A reload may have changed the detector's settings: it then starts again from the same baseline.
    fn follow_configuration(&mut self) {
        let live = self.outlet.shared.live.load();
        let wanted = &live.config.flash_crowd;
        if *wanted == self.outlet.configured {
            return;
        }
        self.outlet.configured = wanted.clone();
        self.outlet.shared.telemetry.control().set_shadow(wanted.shadow);
        if let Some(planner) = self.planner_loop.planner() {
            self.outlet.keeper.replace(planner.baseline());
        }
        // A ceiling in force belongs to the old settings.
        let open = Plan::open(self.outlet.workers);
        let Ok(()) = self.planner_loop.reconfigure(&mut self.outlet, open);
    }

    /// A reload may have brought another candidate, or taken it away.
    fn follow_candidate(&mut self) {
        let shared = &self.outlet.shared;
        let live = shared.live.load();
        let wanted = live.flash_crowd_candidate.as_ref();
        if PlannedCandidate::is(self.candidate.as_ref(), wanted) {
            return;
        }
        shared.telemetry.control().publish_flash_crowd_candidate(None);
        let learned = self.planner_loop.planner().map(FlashCrowdPlanner::baseline);
        let learned = learned.unwrap_or_else(|| self.outlet.keeper.latest().clone());
        let new = |candidate: &Arc<FlashCrowdCandidate>| {
            let recorder = self.recorder.as_ref();
            PlannedCandidate::new(shared, self.outlet.workers, candidate.clone(), learned, recorder)
        };
        self.candidate = wanted.map(new);
    }
}

impl Station for NewsStation {
    const SAMPLES_AWAITED: Duration = Duration::from_millis(25);

    fn clock(&self) -> Clock {
        self.outlet.shared.clock
    }

    fn due(&self, now: Instant) -> Instant {
        let sample_due = self.last_sample_at + SAMPLE_INTERVAL_MAX;
        let of_candidate = self.candidate.as_ref().and_then(PlannedCandidate::next_plan_at);
        let plans_due = self.planner_loop.next_plan_at().into_iter().chain(of_candidate);
        let due = plans_due.fold(sample_due, Instant::min);
        due.max(now + TICK_INTERVAL_MIN)
    }

    fn ask(&mut self) -> usize {
        self.follow_configuration();
        self.follow_candidate();
        self.sample_wanted.send_modify(|asked| *asked += 1);
        self.outlet.workers
    }

    async fn receive(&mut self) -> Option<bool> {
        let sample = self.samples.recv().await?;
        self.gathered.push(sample);
        Some(true)
    }

    fn evaluate(&mut self, missing: usize) {
        let shared = self.outlet.shared.clone();
        if missing > 0 && !shared.is_draining() {
            let message = format_args!("{missing} reports of workers to the flash-crowd planner are late");
            shared.warn(Happening::PlannerLate, message);
        }
        let mut samples = mem::take(&mut self.gathered);
        if let Some(first) = samples.first_mut() {
            let turned_away = shared.turned_away.take();
            turned_away.add_to(&mut first.live);
            first.candidate.iter_mut().for_each(|candidate| turned_away.add_to(&mut candidate.sample));
        }
        let now = shared.clock.now();
        self.last_sample_at = now;
        let metrics = shared.telemetry.control();
        metrics.samples_judged.add(samples.len() as u64);
        for sample in &samples {
            self.planner_loop.observe(&mut self.outlet, now, &sample.live);
        }
        let Ok(()) = self.planner_loop.evaluate(&mut self.outlet);
        if self.planner_loop.planner().is_some() {
            metrics.planner_tick.record(shared.clock.now().saturating_since(now));
        }
        self.verdict.look(&shared);
        self.cache.follow(&shared, &samples);
        if let Some(candidate) = &mut self.candidate {
            samples.iter().filter_map(|sample| sample.candidate.as_deref()).for_each(|sample| {
                candidate.observe(now, sample);
            });
            candidate.evaluate();
        }
        samples.clear();
        self.gathered = samples;
    }
}

impl Outlet<FlashCrowdPlanner> for NewsOutlet {
    type Error = Infallible;

    fn now(&self) -> Instant {
        self.shared.clock.now()
    }

    fn interval(&self) -> Duration {
        self.configured.interval
    }

    fn planner(&mut self) -> Option<FlashCrowdPlanner> {
        let settings = self.configured.settings(self.workers);
        let learned = self.keeper.latest();
        self.made_from.set(settings.map(|settings| Planned::FlashCrowd(settings, learned.clone())));
        planner(&self.configured, self.workers, learned)
    }

    fn epoch_in_force(&self) -> u64 {
        self.shared.plan.load().epoch
    }

    fn publish(&mut self, _: Instant, plan: Plan, _: Option<&FlashCrowdPlanner>) -> Result<(), Infallible> {
        let before = self.shared.plan.load();
        let reasons = [&before.explanation, &plan.explanation];
        tell_change(self.configured.shadow, reasons);
        put_in_force(&self.shared.plan, &plan);
        self.shared.telemetry.control().publish_plan(&plan);
        Ok(())
    }

    fn keep_baseline(&mut self, now: Instant, planner: &FlashCrowdPlanner) {
        if !self.keeper.refresh(now, || planner.baseline()) {
            return;
        }
        self.shared.baseline.store(Arc::new(self.keeper.latest().clone()));
        let mode = self.shared.plan.load().explanation.mode;
        if let Some(file) = self.keeper.is_save_due(now, mode).then(|| self.file()).flatten() {
            self.keeper.save_soon(now, file, self.shared.clone(), |shared| &shared.telemetry);
        }
    }

    fn report(&mut self, now: Instant, event: &LoopEvent) {
        event.tell(&self.shared.warnings, now, WHOSE);
    }
}

impl NewsOutlet {
    fn file(&self) -> Option<StateFile> {
        state_file::in_force(&self.shared)
    }
}

/// The plan of NEWS, and its candidate's, while the control thread stalls.
pub(crate) struct UnattendedNews {
    shared: Arc<Shared>,
    decay: SlotDecay<Plan>,
}

impl UnattendedNews {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, decay: SlotDecay::default() }
    }
}

impl Unattended for UnattendedNews {
    fn whose(&self) -> &'static str {
        WHOSE
    }

    fn decay(&mut self, age: Duration) {
        self.decay.decay(&self.shared.plan, age);
        if let Some(candidate) = &self.shared.live.load().flash_crowd_candidate {
            self.decay.decay(&candidate.plan, age);
        }
    }

    fn attended(&mut self) {
        self.decay.end();
    }
}
