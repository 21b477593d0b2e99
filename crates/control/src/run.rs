//! The loop: read, plan, obey.

use crate::config::{Actuator, Config, ControlError};
use crate::fetch::{self, FetchError};
use crate::metrics;
use crate::reading::{Reading, Readings};
use crate::supervisor::{Supervisor, command};
use flashweir_admission::PlannerDriver;
use flashweir_core::{Duration, Instant};
use flashweir_provisioning::{Plan, PoolState, ProvisioningPlanner};
use flashweir_telemetry::{Outcome, ProvisioningMetrics};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::LocalSet;
use tracing::{info, warn};

/// How often processes are looked after.
const STEP: Duration = Duration::from_millis(250);

/// Controls until SIGTERM or SIGINT; then stops its copies and ends.
///
/// # Errors
/// [`ControlError`] when it cannot begin. Later failures are logged, and tried again.
pub fn run(config: Config) -> Result<(), ControlError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, Control::new(config)?.serve())
}

struct Control {
    config: Config,
    planner: PlannerDriver<ProvisioningPlanner>,
    readings: Readings,
    metrics: Arc<ProvisioningMetrics>,
    obeying: Obeying,
    began: tokio::time::Instant,
    plan_at: Instant,
    /// Whether the gateway answered last time.
    is_heard: bool,
    /// Servers that were ordered last, and whether the order was taken.
    ordered: Option<(u32, bool)>,
}

enum Obeying {
    Copies(Supervisor),
    Exec(Vec<String>),
    Webhook(http::Uri),
}

impl Control {
    fn new(config: Config) -> Result<Self, ControlError> {
        let policy = config.policy.clone();
        let planner = ProvisioningPlanner::new(policy).map_err(|error| ControlError::Config {
            file: "policy".to_owned(),
            problem: error.to_string(),
        })?;
        let metrics = Arc::<ProvisioningMetrics>::default();
        let obeying = match &config.actuator {
            Actuator::Copies(settings) => Obeying::Copies(Supervisor::new(settings.clone(), metrics.clone())),
            Actuator::Exec(words) => Obeying::Exec(words.clone()),
            Actuator::Webhook(uri) => Obeying::Webhook(uri.clone()),
        };
        let (began, now) = (tokio::time::Instant::now(), Instant::ZERO);
        let planner = PlannerDriver::new(planner, now);
        Ok(Self {
            config,
            planner,
            readings: Readings::default(),
            metrics,
            obeying,
            began,
            plan_at: now,
            is_heard: true,
            ordered: None,
        })
    }

    async fn serve(mut self) -> Result<(), ControlError> {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        if let Some(listen) = self.config.listen {
            metrics::serve(listen, self.metrics.clone())?;
        }
        let min = self.config.policy.applications[0].servers_min;
        self.order(min, None).await;
        let mut steps = tokio::time::interval(STEP);
        loop {
            tokio::select! {
                _ = steps.tick() => {}
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
            }
            let now = self.now();
            if let Obeying::Copies(supervisor) = &mut self.obeying {
                supervisor.step(now).await;
                let ordered = self.ordered.map(|(servers, _)| servers);
                metrics::publish_pool(&self.metrics, ordered, supervisor.state());
            }
            if now >= self.plan_at {
                self.plan_at = now + self.config.policy.interval;
                self.plan(now).await;
            }
        }
        self.stop(steps).await;
        Ok(())
    }

    fn now(&self) -> Instant {
        Instant::from_duration(self.began.elapsed())
    }

    /// Copies end with their supervisor; other actuators keep their last order.
    async fn stop(&mut self, mut steps: tokio::time::Interval) {
        info!("stopping");
        let began = self.began;
        let Obeying::Copies(supervisor) = &mut self.obeying else { return };
        supervisor.want(0);
        loop {
            supervisor.step(Instant::from_duration(began.elapsed())).await;
            if supervisor.are_gone() {
                return;
            }
            steps.tick().await;
        }
    }

    async fn plan(&mut self, now: Instant) {
        let reading = match read(&self.config.admin).await {
            Ok(reading) => reading,
            Err(error) => {
                self.metrics.readings.increment(Outcome::Failed);
                // Without samples demand would seem to be nothing: what there is stays.
                if self.is_heard {
                    warn!(admin = self.config.admin, %error, "gateway not heard; servers stay as they are");
                }
                self.is_heard = false;
                return;
            }
        };
        if !self.is_heard {
            info!(admin = self.config.admin, "gateway heard again");
        }
        self.is_heard = true;
        self.metrics.readings.increment(Outcome::Ok);
        let pool = self.pool_state();
        let Some(sample) = self.readings.sample(now, reading, pool) else { return };
        self.planner.observe(now, &sample);
        let plan = self.planner.plan(now);
        metrics::publish_plan(&self.metrics, &plan);
        let servers = plan.applications[0].servers;
        if self.ordered != Some((servers, true)) {
            self.order(servers, Some(&plan)).await;
        }
    }

    fn pool_state(&mut self) -> PoolState {
        match &mut self.obeying {
            Obeying::Copies(supervisor) => supervisor.pool_state(),
            // How far an order is carried out is not known here: it is taken as done.
            _ => PoolState { ready: self.ordered.map_or(0, |(servers, _)| servers), ..PoolState::default() },
        }
    }

    async fn order(&mut self, servers: u32, plan: Option<&Plan>) {
        let is_news = self.ordered.is_none_or(|(before, _)| before != servers);
        if let Some(plan) = plan.filter(|_| is_news) {
            let why = &plan.applications[0].explanation;
            info!(
                servers,
                rule = ?why.rule,
                offered_rps = why.offered_rps,
                refused_share = why.refused_share,
                "servers ordered"
            );
        }
        let epoch = plan.map_or(0, |plan| plan.epoch);
        let taken = match &mut self.obeying {
            Obeying::Copies(supervisor) => {
                supervisor.want(servers);
                Ok(())
            }
            Obeying::Exec(words) => execute(words, servers).await,
            Obeying::Webhook(uri) => {
                let body = json!({ "servers": servers, "epoch": epoch }).to_string();
                fetch::post(uri, body).await.map(drop)
            }
        };
        if let Err(error) = &taken {
            warn!(servers, %error, "order not taken; it is given again with the next plan");
        }
        self.metrics.orders.increment(if taken.is_ok() { Outcome::Ok } else { Outcome::Failed });
        self.metrics.update(|figures| figures.ordered = Some(servers));
        self.ordered = Some((servers, taken.is_ok()));
    }
}

async fn read(admin: &str) -> Result<Reading, FetchError> {
    let answer = fetch::get(admin, "/status").await?;
    let status: Value = serde_json::from_slice(&answer)?;
    Reading::of(&status).ok_or_else(|| "its /status has no counts of requests".into())
}

/// Runs the actuator's command; it has as long as a plan lasts at least.
async fn execute(words: &[String], servers: u32) -> Result<(), FetchError> {
    const WITHIN: Duration = Duration::from_secs(10);
    let words = words.iter().map(|word| word.replace("{servers}", &servers.to_string()));
    let status = tokio::time::timeout(WITHIN, command(words).status()).await??;
    if status.success() { Ok(()) } else { Err(status.to_string().into()) }
}
