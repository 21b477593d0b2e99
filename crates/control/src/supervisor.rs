//! Processes of copies: started, asked, killed, awaited.

use crate::config::CopySettings;
use crate::copies::{Action, Copies, CopyState};
use crate::fetch;
use flashweir_core::Instant;
use flashweir_provisioning::{Moments, PoolState};
use flashweir_telemetry::ProvisioningMetrics;
use rustix::process::{Pid, Signal, kill_process};
use std::sync::Arc;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tracing::{info, warn};

/// Copies with their processes.
#[derive(Debug)]
pub(crate) struct Supervisor {
    settings: CopySettings,
    copies: Copies,
    children: Vec<Option<Child>>,
    start_ups: Moments,
    metrics: Arc<ProvisioningMetrics>,
}

impl Supervisor {
    pub(crate) fn new(settings: CopySettings, metrics: Arc<ProvisioningMetrics>) -> Self {
        let copies = Copies::new(&settings);
        let children = settings.ports.iter().map(|_| None).collect();
        Self { settings, copies, children, start_ups: Moments::default(), metrics }
    }

    pub(crate) fn want(&mut self, copies: u32) {
        self.copies.want(copies);
    }

    pub(crate) fn are_gone(&self) -> bool {
        self.copies.are_gone()
    }

    /// The present state of the pool.
    pub(crate) fn state(&self) -> PoolState {
        PoolState { ready: self.copies.ready(), starting: self.copies.starting(), ..PoolState::default() }
    }

    /// The present state of the pool, for the planner, with the start-up times since the last call.
    pub(crate) fn pool_state(&mut self) -> PoolState {
        PoolState { start_ups: std::mem::take(&mut self.start_ups), ..self.state() }
    }

    /// Sees who has ended and who serves, and does what is to be done. Takes as long as the slowest health
    /// check.
    pub(crate) async fn step(&mut self, now: Instant) {
        self.reap(now);
        for place in self.answering().await {
            if let Some(took) = self.copies.healthy(place, now) {
                self.start_ups.push(took.as_secs_f64());
                info!(port = self.settings.ports[place], after_s = took.as_secs_f64(), "copy serves");
            }
        }
        for action in self.copies.step(now) {
            match action {
                Action::Start(place) => self.start(place, now),
                Action::Stop(place) => self.signal(place, Signal::TERM),
                Action::Kill(place) => self.signal(place, Signal::KILL),
            }
        }
    }

    fn reap(&mut self, now: Instant) {
        for place in 0..self.children.len() {
            let Some(child) = &mut self.children[place] else { continue };
            // An error means that there is nothing to wait for.
            let status = match child.try_wait() {
                Ok(None) => continue,
                Ok(Some(status)) => status.to_string(),
                Err(error) => error.to_string(),
            };
            self.children[place] = None;
            self.report_end(place, now, &status);
        }
    }

    fn report_end(&mut self, place: usize, now: Instant, how: &str) {
        let port = self.settings.ports[place];
        match self.copies.ended(place, now) {
            Some(wait) => {
                self.metrics.crashes.increment();
                warn!(port, how, again_in_s = wait.as_secs(), "copy ended by itself");
            }
            None => info!(port, how, "copy stopped"),
        }
    }

    /// Starting copies whose health check is answered.
    async fn answering(&self) -> Vec<usize> {
        let mut checks = JoinSet::new();
        let is_starting = |place: &usize| matches!(self.copies.state(*place), CopyState::Starting { .. });
        for place in (0..self.children.len()).filter(is_starting) {
            let (port, path) = (self.settings.ports[place], self.settings.health.clone());
            checks.spawn(async move {
                let answer = fetch::get(&format!("127.0.0.1:{port}"), &path).await;
                answer.is_ok().then_some(place)
            });
        }
        checks.join_all().await.into_iter().flatten().collect()
    }

    fn start(&mut self, place: usize, now: Instant) {
        let port = self.settings.ports[place];
        let words = self.settings.command.iter().map(|word| word.replace("{port}", &port.to_string()));
        match command(words).spawn() {
            Ok(child) => {
                info!(port, "copy started");
                self.children[place] = Some(child);
            }
            Err(error) => self.report_end(place, now, &error.to_string()),
        }
    }

    fn signal(&self, place: usize, signal: Signal) {
        let id = self.children[place].as_ref().and_then(Child::id);
        let Some(pid) = id.and_then(|id| Pid::from_raw(id.cast_signed())) else { return };
        // It may have ended by itself a moment ago; then it is reaped at the next step.
        let _gone = kill_process(pid, signal);
    }
}

/// A program and its arguments, killed when it is dropped.
pub(crate) fn command(mut words: impl Iterator<Item = String>) -> Command {
    // The configuration has checked that there is a program.
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).stdin(std::process::Stdio::null()).kill_on_drop(true);
    command
}
