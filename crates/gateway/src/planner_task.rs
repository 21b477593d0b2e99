//! The slow half of admission: asks the workers for samples, lets the planner decide, publishes the plan.

use crate::recording::begin;
use crate::shared::Shared;
use crate::state_file;
use flashweir_admission::PlannerDriver;
use flashweir_admission::flash_crowd::{Baseline, FlashCrowdPlanner, Mode, Plan, Sample};
use flashweir_admission::pace::{SAMPLE_INTERVAL_MAX, TICK_INTERVAL_MIN};
use flashweir_config::FlashCrowd;
use flashweir_control::{planner, tell_change};
use flashweir_core::{Duration, Instant};
use flashweir_telemetry::Happening;
use flashweir_wire::Recorder;
use flashweir_wire::recording::Stream;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// The planner does not wait longer for a worker's sample; a late one counts at the next tick.
const SAMPLES_AWAITED: Duration = Duration::from_millis(25);
/// A crash loses at most this much learning.
const SAVE_INTERVAL: Duration = Duration::from_secs(30);

/// The planner and what it talks to. Lives on the control thread.
pub(crate) struct PlannerTask {
    shared: Arc<Shared>,
    workers: usize,
    configured: FlashCrowd,
    planner: Option<PlannerDriver<FlashCrowdPlanner>>,
    /// What this planner sees and decides is recorded there.
    recording: Option<(Arc<Recorder>, Stream)>,
    sample_wanted: watch::Sender<u64>,
    samples: mpsc::Receiver<Sample>,
    save_at: Instant,
    baseline_published_at: Instant,
    last_sample_at: Instant,
}

impl PlannerTask {
    /// A planner that starts from what an earlier run learned.
    pub(crate) fn new(
        shared: Arc<Shared>,
        workers: usize,
        (sample_wanted, samples): (watch::Sender<u64>, mpsc::Receiver<Sample>),
        learned: &Baseline,
        recorder: Option<Arc<Recorder>>,
    ) -> Self {
        let configured = shared.live.load().config.flash_crowd.clone();
        let now = shared.clock.now();
        let planner = planner(&configured, workers, learned, now);
        let recording = recorder.map(|recorder| begin(recorder, now, &configured, workers, learned));
        shared.baseline.store(Arc::new(learned.clone()));
        shared.telemetry.control().set_shadow(configured.shadow);
        Self {
            shared,
            workers,
            configured,
            planner,
            recording,
            sample_wanted,
            samples,
            save_at: Instant::ZERO + SAVE_INTERVAL,
            baseline_published_at: Instant::ZERO,
            last_sample_at: Instant::ZERO,
        }
    }

    /// Ticks until the future is dropped.
    pub(crate) async fn run(mut self) {
        loop {
            let now = self.shared.clock.now();
            let sample_due = self.last_sample_at + SAMPLE_INTERVAL_MAX;
            let plan_due = self.planner.as_ref().map_or(sample_due, |planner| planner.next_plan_at());
            let due = plan_due.min(sample_due).max(now + TICK_INTERVAL_MIN);
            tokio::time::sleep_until(self.shared.clock.timer_at(due)).await;
            self.tick().await;
        }
    }

    async fn tick(&mut self) {
        self.take_over_configuration();
        let mut samples = self.gather_samples().await;
        if let Some(sample) = samples.first_mut() {
            self.shared.turned_away.move_into(sample);
        }
        let now = self.shared.clock.now();
        self.last_sample_at = now;
        let metrics = self.shared.telemetry.control();
        metrics.samples_judged.add(samples.len() as u64);
        let Some(planner) = &mut self.planner else { return };
        for sample in &samples {
            planner.observe(now, sample);
        }
        let plan = planner.plan(now);
        if let Some((recorder, stream)) = &self.recording {
            samples.iter().for_each(|sample| recorder.record_sample(now, *stream, sample));
            recorder.record_plan(now, *stream, &plan);
        }
        metrics.planner_tick.record(self.shared.clock.now().saturating_since(now));
        metrics.publish_plan(&plan);
        self.publish(now, plan);
        self.keep_baseline(now);
    }

    /// Asks every worker, and takes what comes within a moment: normally all of it, within some 50 µs.
    async fn gather_samples(&mut self) -> Vec<Sample> {
        self.sample_wanted.send_modify(|asked| *asked += 1);
        let mut samples = Vec::with_capacity(self.workers);
        let all = async {
            while samples.len() < self.workers {
                match self.samples.recv().await {
                    Some(sample) => samples.push(sample),
                    None => return,
                }
            }
        };
        let late = tokio::time::timeout(SAMPLES_AWAITED, all).await.is_err();
        if late && !self.shared.is_draining() {
            let missing = self.workers - samples.len();
            self.shared
                .warn(Happening::PlannerLate, format_args!("{missing} workers did not report in time"));
        }
        samples
    }

    fn publish(&self, now: Instant, plan: Plan) {
        let before = self.shared.plan.load();
        if **before == plan {
            return;
        }
        let shadow = self.shared.live.load().config.flash_crowd.shadow;
        tell_change(&self.shared.warnings, now, shadow, [&before.explanation, &plan.explanation]);
        self.shared.plan.store(Arc::new(plan));
    }

    /// A reload may have changed the detector's settings: it then starts anew from the same baseline.
    fn take_over_configuration(&mut self) {
        let live = self.shared.live.load();
        let wanted = &live.config.flash_crowd;
        if *wanted == self.configured {
            return;
        }
        self.configured = wanted.clone();
        self.shared.telemetry.control().set_shadow(wanted.shadow);
        let published = || (**self.shared.baseline.load()).clone();
        let learned = self.planner.as_ref().map_or_else(published, |driver| driver.planner().baseline());
        let now = self.shared.clock.now();
        self.planner = planner(wanted, self.workers, &learned, now);
        let recording = self.recording.take();
        self.recording = recording.map(|(recorder, _)| begin(recorder, now, wanted, self.workers, &learned));
        // Whatever ceiling there was belonged to the old settings.
        self.shared.plan.store(Arc::new(Plan::open(self.workers)));
    }

    fn keep_baseline(&mut self, now: Instant) {
        if now.saturating_since(self.baseline_published_at) < Duration::from_secs(1) {
            return;
        }
        self.baseline_published_at = now;
        let Some(planner) = &self.planner else { return };
        let baseline = planner.planner().baseline();
        self.shared.baseline.store(Arc::new(baseline.clone()));
        let quiet = self.shared.plan.load().explanation.mode == Mode::Normal;
        if now < self.save_at || !quiet {
            return;
        }
        self.save_at = now + SAVE_INTERVAL;
        if let Some(file) = state_file::configured(&self.shared.live.load().config) {
            let shared = self.shared.clone();
            // Syncing to the disk blocks; plans must not wait for it.
            tokio::task::spawn_blocking(move || file.save_or_tell(now, &baseline, &shared.telemetry));
        }
    }
}
