//! The loop: read, plan, obey.

use crate::config::{Actuator, Config, ControlError, Service};
use crate::fetch::{self, FetchError};
use crate::metrics;
use crate::reading::{Reading, Readings};
use crate::supervisor::{Supervisor, command};
use flashweir_admission::PlannerDriver;
use flashweir_config::AdminToken;
use flashweir_core::{Duration, Instant};
use flashweir_provisioning::{ApplicationPlan, ApplicationSample, PoolState, ProvisioningPlanner, Sample};
use flashweir_runtime::{ReadyFile, outlive_user_signals};
use flashweir_telemetry::{Outcome, ProvisioningMetrics};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::LocalSet;
use tracing::{info, warn};

/// Interval between two checks of the processes.
const STEP: Duration = Duration::from_millis(250);

/// Controls until SIGTERM or SIGINT; then stops its copies and ends.
///
/// # Errors
/// [`ControlError`] when it cannot begin. Later failures are logged, and tried again.
pub fn run(config: Config, ready_file: Option<ReadyFile>) -> Result<(), ControlError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, Control::new(config)?.serve(ready_file))
}

struct Control {
    config: Config,
    planner: PlannerDriver<ProvisioningPlanner>,
    services: Vec<Controlled>,
    began: tokio::time::Instant,
    planned_at: Instant,
    plan_at: Instant,
}

/// One service.
struct Controlled {
    service: Service,
    readings: Readings,
    /// The last sample: while its gateway is silent, demand is taken to go on.
    last: ApplicationSample,
    metrics: Arc<ProvisioningMetrics>,
    obeying: Obeying,
    /// True if the gateway answered last time.
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
        let (began, now) = (tokio::time::Instant::now(), Instant::ZERO);
        let planner = PlannerDriver::new(planner, now);
        let services = config.services.iter().map(Controlled::new).collect();
        Ok(Self { config, planner, services, began, planned_at: now, plan_at: now })
    }

    async fn serve(mut self, ready_file: Option<ReadyFile>) -> Result<(), ControlError> {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        outlive_user_signals()?;
        let mut address = None;
        if let Some(listen) = self.config.listen {
            let services = self.services.iter().map(|it| (it.service.name.clone(), it.metrics.clone()));
            address = Some(metrics::serve(listen, services.collect())?);
        }
        if let Some(file) = ready_file {
            file.write(&[("listen", address.as_slice())])?;
        }
        for (service, application) in self.services.iter_mut().zip(&self.config.policy.applications) {
            service.order(application.servers_min, None, 0).await;
        }
        let mut steps = tokio::time::interval(STEP);
        loop {
            tokio::select! {
                _ = steps.tick() => {}
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
            }
            let now = self.now();
            for service in &mut self.services {
                service.step(now).await;
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
        let mut supervisors: Vec<&mut Supervisor> =
            self.services.iter_mut().filter_map(Controlled::supervisor).collect();
        supervisors.iter_mut().for_each(|supervisor| supervisor.want(0));
        while !supervisors.iter().all(|supervisor| supervisor.are_gone()) {
            for supervisor in &mut supervisors {
                supervisor.step(Instant::from_duration(self.began.elapsed())).await;
            }
            steps.tick().await;
        }
    }

    async fn plan(&mut self, now: Instant) {
        let span = now.saturating_since(self.planned_at);
        self.planned_at = now;
        let mut applications = Vec::with_capacity(self.services.len());
        for service in &mut self.services {
            applications.push(service.read(self.config.admin_token.as_ref(), now, span).await);
        }
        // Without samples demand would seem to be nothing: what there is stays.
        if self.services.iter().all(|service| !service.is_heard) || span.is_zero() {
            return;
        }
        self.planner.observe(now, &Sample { from: now - span, to: now, applications });
        let plan = self.planner.plan(now);
        for (service, application) in self.services.iter_mut().zip(&plan.applications) {
            service.obey(application, plan.epoch).await;
        }
    }
}

impl Controlled {
    fn new(service: &Service) -> Self {
        let metrics = Arc::<ProvisioningMetrics>::default();
        let obeying = match &service.actuator {
            Actuator::Copies(settings) => Obeying::Copies(Supervisor::new(settings.clone(), metrics.clone())),
            Actuator::Exec(words) => Obeying::Exec(words.clone()),
            Actuator::Webhook(uri) => Obeying::Webhook(uri.clone()),
        };
        Self {
            service: service.clone(),
            readings: Readings::default(),
            last: ApplicationSample::default(),
            metrics,
            obeying,
            is_heard: true,
            ordered: None,
        }
    }

    fn supervisor(&mut self) -> Option<&mut Supervisor> {
        match &mut self.obeying {
            Obeying::Copies(supervisor) => Some(supervisor),
            _ => None,
        }
    }

    /// Looks after its copies.
    async fn step(&mut self, now: Instant) {
        let ordered = self.ordered.map(|(servers, _)| servers);
        let metrics = self.metrics.clone();
        if let Some(supervisor) = self.supervisor() {
            supervisor.step(now).await;
            metrics::publish_pool(&metrics, ordered, supervisor.state());
        }
    }

    /// Its sample for the planner.
    async fn read(&mut self, token: Option<&AdminToken>, now: Instant, span: Duration) -> ApplicationSample {
        let Service { name, admin, is_by_name, .. } = &self.service;
        let reading = read(admin, token, is_by_name.then_some(name)).await;
        let pool = self.pool_state();
        match reading {
            Ok(reading) => {
                if !self.is_heard {
                    info!(service = self.service.name, admin = self.service.admin, "gateway heard again");
                }
                self.is_heard = true;
                self.metrics.readings.increment(Outcome::Ok);
                if let Some(sample) = self.readings.sample(now, span, reading, pool) {
                    self.last = sample;
                }
            }
            Err(error) => {
                self.metrics.readings.increment(Outcome::Failed);
                if self.is_heard {
                    let Service { name, admin, .. } = &self.service;
                    warn!(service = name, admin, %error, "gateway not heard; servers stay as they are");
                }
                self.is_heard = false;
            }
        }
        ApplicationSample { pool: Some(pool), ..self.last.clone() }
    }

    fn pool_state(&mut self) -> PoolState {
        match &mut self.obeying {
            Obeying::Copies(supervisor) => supervisor.pool_state(),
            // How far an order is carried out is not known here: it is taken as done.
            _ => PoolState { ready: self.ordered.map_or(0, |(servers, _)| servers), ..PoolState::default() },
        }
    }

    async fn obey(&mut self, plan: &ApplicationPlan, epoch: u64) {
        // A service that is not heard keeps what it has.
        if !self.is_heard {
            return;
        }
        metrics::publish_plan(&self.metrics, plan);
        if self.ordered != Some((plan.servers, true)) {
            self.order(plan.servers, Some(plan), epoch).await;
        }
    }

    async fn order(&mut self, servers: u32, plan: Option<&ApplicationPlan>, epoch: u64) {
        let service = &self.service.name;
        let is_news = self.ordered.is_none_or(|(before, _)| before != servers);
        if let Some(plan) = plan.filter(|_| is_news) {
            let why = &plan.explanation;
            info!(
                service,
                servers,
                rule = ?why.rule,
                offered_rps = why.offered_rps,
                refused_share = why.refused_share,
                "servers ordered"
            );
        }
        let taken = match &mut self.obeying {
            Obeying::Copies(supervisor) => {
                supervisor.want(servers);
                Ok(())
            }
            Obeying::Exec(words) => execute(words, servers).await,
            Obeying::Webhook(uri) => {
                let body = json!({ "service": service, "servers": servers, "epoch": epoch }).to_string();
                fetch::post(uri, body).await.map(drop)
            }
        };
        if let Err(error) = &taken {
            warn!(service, servers, %error, "order not taken; it is given again with the next plan");
        }
        self.metrics.orders.increment(if taken.is_ok() { Outcome::Ok } else { Outcome::Failed });
        self.metrics.update(|figures| figures.ordered = Some(servers));
        self.ordered = Some((servers, taken.is_ok()));
    }
}

async fn read(
    admin: &str,
    token: Option<&AdminToken>,
    service: Option<&String>,
) -> Result<Reading, FetchError> {
    let answer = fetch::get_with(admin, "/status", token).await?;
    let status: Value = serde_json::from_slice(&answer)?;
    Reading::of(&status, service.map(String::as_str)).ok_or_else(|| match service {
        Some(name) => format!("its /status has no service `{name}` with counts of requests").into(),
        None => "its /status has no counts of requests".into(),
    })
}

/// Runs the actuator's command; it has as long as a plan lasts at least.
async fn execute(words: &[String], servers: u32) -> Result<(), FetchError> {
    const WITHIN: Duration = Duration::from_secs(10);
    let words = words.iter().map(|word| word.replace("{servers}", &servers.to_string()));
    let status = tokio::time::timeout(WITHIN, command(words).status()).await??;
    if status.success() { Ok(()) } else { Err(status.to_string().into()) }
}
