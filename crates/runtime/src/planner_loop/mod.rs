//! The loop that runs every planner in every shell: gather, observe, plan, publish, watchdog, baseline,
//! recorder.
//!
//! [`PlannerLoop`] is a value that holds the order of the steps and the decisions of the watchdog. It reads
//! no clock and does no I/O; its surroundings are an [`Outlet`]. [`run`] is the thin asynchronous part: it
//! waits until a round is due, asks the gates for samples, awaits them within a bound and has the loops of
//! its [`Station`] evaluated. A station may hold one loop (NEWS) or one for each service (sentries), which
//! then share one timer. The router, whose samples are read from maps without waiting, drives its loop from
//! its own select.
//!
//! **Watchdog.** A planner that panics, needs longer than [`PLAN_TIME_MAX`] for a plan, or gives no new plan
//! although it is asked ([`ASKS_UNANSWERED_MAX`]) is dropped and built again from its configuration and its
//! last baseline: at once the first time, with growing delays if it fails again. From the fault on, its
//! last plan decays by the law of [`LimitPlan::decayed`]: the limit doubles each second until nothing is
//! limited. The first plans of the new planner are held to the decaying limit ([`LimitPlan::held_to`])
//! until they are as tight by themselves or the old limit is open. A stall of the thread that runs the loop
//! is seen by another one ([`StallWatch`]), and the plans decay by the same law; the router needs none, for
//! the kernel opens its gate after three seconds without a sign of life.
//!
//! **Epochs.** Plans are numbered by the loop, each one above the plan in force, for any planner that made
//! it. Gates may ignore a plan whose number is not larger than that of the plan they follow.
//!
//! **Clock.** A clock that goes back restarts the planner, whose memory would lie in the future. One that
//! jumps ahead is reported and harms nothing: spans only become long.

mod run;
mod slots;
mod stall_watch;
mod timeline;
mod watchdog;

pub use run::{Station, run};
pub use slots::{SlotDecay, put_in_force};
pub use stall_watch::{Beat, StallWatch, Unattended};
pub use timeline::Jump;
pub use watchdog::{ASKS_UNANSWERED_MAX, Fault, PLAN_TIME_MAX};

use flashweir_admission::{LimitPlan, Planner, PlannerDriver};
use flashweir_core::{Duration, Instant};
use flashweir_telemetry::{Happening, Warnings};
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use timeline::Timeline;
use watchdog::Watchdog;

/// Environment of one loop: where its samples come from and its plans go.
pub trait Outlet<P: Planner> {
    /// Error of publishing a plan.
    type Error;

    /// The time.
    fn now(&self) -> Instant;
    /// The time between two plans.
    fn interval(&self) -> Duration;
    /// A planner by the configuration in force, from the last known baseline; `None` where it is switched
    /// off.
    fn planner(&mut self) -> Option<P>;
    /// Hands the planner what is not in a sample, right before a plan is due.
    fn prepare(&mut self, _now: Instant, _planner: &mut P) {}
    /// The number of the plan in force.
    fn epoch_in_force(&self) -> u64;
    /// Puts a plan into force. `planner` is the one that made it; `None` for a plan that decays.
    ///
    /// # Errors
    /// When the gates cannot be reached and the shell is to end.
    fn publish(&mut self, now: Instant, plan: P::Plan, planner: Option<&P>) -> Result<(), Self::Error>;
    /// Keeps what the planner learned, where it learns what outlives it. Called after each round.
    fn keep_baseline(&mut self, _now: Instant, _planner: &P) {}
    /// Counts and logs an event.
    fn report(&mut self, now: Instant, event: &LoopEvent);
}

/// Takes what goes into a planner and what comes out, as it happens: the same inputs in a planner built alike
/// give the same plans.
pub trait Recorder<P: Planner>: Send {
    /// A planner was built; everything before concerns another one.
    fn started(&mut self, now: Instant);
    /// The planner is handed this sample.
    fn sample(&mut self, now: Instant, sample: &P::Sample);
    /// The planner made this plan, numbered by itself.
    fn plan(&mut self, now: Instant, plan: &P::Plan);
}

/// Event of a loop that an operator is notified of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoopEvent {
    /// The planner failed and starts again after `delay`.
    Restart {
        /// Fault of the planner.
        fault: Fault,
        /// Zero at the first fault of a series.
        delay: Duration,
    },
    /// The clock jumped ahead by this much.
    ClockJumpedAhead(Duration),
}

impl LoopEvent {
    /// Counts the event and logs it in one line; `whose` names the planner, as in "the planner of NEWS".
    pub fn tell(&self, warnings: &Warnings, now: Instant, whose: &str) {
        match self {
            Self::Restart { fault: fault @ Fault::ClockWentBack(_), .. } => {
                let message = format_args!("{whose} {fault}: it starts again from its baseline");
                warnings.warn(now, Happening::ClockJumped, message);
            }
            Self::Restart { fault, delay } => {
                let message = format_args!(
                    "{whose} {fault}: it starts again from its baseline in {} s, and its last limit doubles each second until \
                     everything is admitted",
                    delay.as_secs()
                );
                warnings.warn(now, Happening::PlannerRestarted, message);
            }
            Self::ClockJumpedAhead(by) => {
                let message = format_args!(
                    "{whose} was not asked for {:.0} s: the clock jumped ahead",
                    by.as_secs_f64()
                );
                warnings.warn(now, Happening::ClockJumped, message);
            }
        }
    }
}

/// One planner, from samples to plans in force.
pub struct PlannerLoop<P: Planner> {
    /// None while it is switched off or waits for its restart.
    driver: Option<PlannerDriver<P>>,
    restart_at: Option<Instant>,
    started_at: Instant,
    watchdog: Watchdog,
    timeline: Timeline,
    /// The plan last published from a planner, and the number that the present planner gave last.
    latest: P::Plan,
    planner_epoch: Option<u64>,
    epoch: u64,
    decay: Option<Decay<P::Plan>>,
    recorder: Option<Box<dyn Recorder<P>>>,
}

/// A plan whose planner failed.
struct Decay<Plan> {
    from: Instant,
    plan: Plan,
    /// The decayed plan that was published last.
    published: Option<Plan>,
}

impl<P: Planner<Plan: LimitPlan>> PlannerLoop<P> {
    /// A loop that begins with `in_force`, the plan that the gates follow so far.
    #[must_use]
    pub fn new<O: Outlet<P>>(outlet: &mut O, in_force: P::Plan) -> Self {
        let now = outlet.now();
        let mut new = Self {
            driver: None,
            restart_at: None,
            started_at: now,
            watchdog: Watchdog::new(now),
            timeline: Timeline::new(now),
            epoch: in_force.epoch(),
            latest: in_force,
            planner_epoch: None,
            decay: None,
            recorder: None,
        };
        new.start(now, outlet);
        new
    }

    /// Time at which the present planner was built, or the last one if there is none.
    #[must_use]
    pub fn started_at(&self) -> Instant {
        self.started_at
    }

    /// From now on everything that goes in and comes out is recorded. To record all of the present planner,
    /// hand over [`started_at`](Self::started_at) before its first sample.
    pub fn record_to(&mut self, now: Instant, mut recorder: Box<dyn Recorder<P>>) {
        recorder.started(now);
        self.recorder = Some(recorder);
    }

    /// Takes over another configuration: a planner built by it, and `plan` in force until it has one.
    ///
    /// # Errors
    /// As [`Outlet::publish`].
    pub fn reconfigure<O: Outlet<P>>(&mut self, outlet: &mut O, plan: P::Plan) -> Result<(), O::Error> {
        self.rebuild(outlet, plan.clone());
        self.publish(outlet.now(), plan, outlet, false)
    }

    /// Takes over another configuration: a planner built by it. The gates already follow `in_force`.
    pub fn rebuild<O: Outlet<P>>(&mut self, outlet: &mut O, in_force: P::Plan) {
        self.drop_planner();
        self.decay = None;
        self.latest = in_force;
        self.start(outlet.now(), outlet);
    }

    /// The planner; `None` while there is none.
    #[must_use]
    pub fn planner(&self) -> Option<&P> {
        self.driver.as_ref().map(PlannerDriver::planner)
    }

    /// Time of the next evaluation of the planner, or of the limit that decays without one; `None` if never.
    #[must_use]
    pub fn next_plan_at(&self) -> Option<Instant> {
        self.driver.as_ref().map(PlannerDriver::next_plan_at).or(self.restart_at)
    }

    /// Hands the planner one gate's sample.
    pub fn observe<O: Outlet<P>>(&mut self, outlet: &mut O, now: Instant, sample: &P::Sample) {
        let Some(driver) = &mut self.driver else { return };
        if let Some(recorder) = &mut self.recorder {
            recorder.sample(now, sample);
        }
        if let Err(message) = caught(|| driver.observe(now, sample)) {
            self.fail(now, Fault::Panicked(message), outlet);
        }
    }

    /// One round: restarts the planner if that is due, asks it, and publishes its plan or one that decays.
    /// Calling early is harmless.
    ///
    /// # Errors
    /// As [`Outlet::publish`].
    pub fn evaluate<O: Outlet<P>>(&mut self, outlet: &mut O) -> Result<(), O::Error> {
        let now = outlet.now();
        self.check_clock(now, outlet);
        if self.restart_at.is_some_and(|at| now >= at) {
            self.start(now, outlet);
        }
        match self.ask(now, outlet) {
            Some(plan) => {
                let plan = self.hold(now, plan);
                self.publish(now, plan, outlet, true)?;
            }
            None => self.publish_decayed(now, outlet)?,
        }
        if let Some(driver) = &self.driver {
            outlet.keep_baseline(now, driver.planner());
        }
        Ok(())
    }

    fn check_clock<O: Outlet<P>>(&mut self, now: Instant, outlet: &mut O) {
        match self.timeline.advance(now, outlet.interval()) {
            Some(Jump::Back(by)) => {
                if let Some(decay) = &mut self.decay {
                    decay.from = decay.from.min(now);
                }
                if self.driver.is_none() && self.restart_at.is_none() {
                    return;
                }
                self.fail(now, Fault::ClockWentBack(by), outlet);
                // The planner is not to blame.
                self.watchdog = Watchdog::new(now);
                self.restart_at = Some(now);
            }
            Some(Jump::Ahead(by)) => outlet.report(now, &LoopEvent::ClockJumpedAhead(by)),
            None => {}
        }
    }

    /// Builds a planner, unless it is switched off.
    fn start<O: Outlet<P>>(&mut self, now: Instant, outlet: &mut O) {
        self.restart_at = None;
        self.started_at = now;
        self.planner_epoch = None;
        self.watchdog.restart(now);
        match caught(|| outlet.planner()) {
            Ok(planner) => {
                self.driver = planner.map(|planner| PlannerDriver::new(planner, now));
                if let (Some(_), Some(recorder)) = (&self.driver, &mut self.recorder) {
                    recorder.started(now);
                }
            }
            Err(message) => self.fail(now, Fault::Panicked(message), outlet),
        }
    }

    /// A new plan, if there is one and the planner is well.
    fn ask<O: Outlet<P>>(&mut self, now: Instant, outlet: &mut O) -> Option<P::Plan> {
        let driver = self.driver.as_mut()?;
        let is_due = now >= driver.next_plan_at();
        let plan = caught(|| {
            if is_due {
                outlet.prepare(now, driver.planner_mut());
            }
            driver.plan(now)
        });
        let plan = match plan {
            Ok(plan) => plan,
            Err(message) => {
                self.fail(now, Fault::Panicked(message), outlet);
                return None;
            }
        };
        let is_new = is_due && self.planner_epoch != Some(plan.epoch());
        let took = outlet.now().saturating_since(now);
        if let Some(fault) = self.watchdog.asked(now, took, is_new, outlet.interval()) {
            self.fail(outlet.now(), fault, outlet);
            return None;
        }
        if !is_new {
            return None;
        }
        self.planner_epoch = Some(plan.epoch());
        if let Some(recorder) = &mut self.recorder {
            recorder.plan(now, &plan);
        }
        Some(plan)
    }

    /// A plan, made no wider than the limit that still decays. Ends the decay once the planner decides by
    /// itself.
    fn hold(&mut self, now: Instant, plan: P::Plan) -> P::Plan {
        let Some(decay) = &self.decay else { return plan };
        let decaying = decay.plan.decayed(now.saturating_since(decay.from));
        let held = plan.clone().held_to(&decaying);
        if held == plan {
            self.decay = None;
        }
        held
    }

    /// Publishes the decayed form of the last plan, unless it was published already.
    fn publish_decayed<O: Outlet<P>>(&mut self, now: Instant, outlet: &mut O) -> Result<(), O::Error> {
        let Some(decay) = &mut self.decay else { return Ok(()) };
        let plan = decay.plan.decayed(now.saturating_since(decay.from));
        if decay.published.as_ref().unwrap_or(&decay.plan) == &plan {
            return Ok(());
        }
        decay.published = Some(plan.clone());
        if plan.is_open() {
            self.decay = None;
        }
        self.publish(now, plan, outlet, false)
    }

    fn publish<O: Outlet<P>>(
        &mut self,
        now: Instant,
        mut plan: P::Plan,
        outlet: &mut O,
        by_planner: bool,
    ) -> Result<(), O::Error> {
        self.epoch = self.epoch.max(outlet.epoch_in_force()) + 1;
        plan.set_epoch(self.epoch);
        if self.decay.is_none() {
            self.latest = plan.clone();
        }
        let planner = self.driver.as_ref().filter(|_| by_planner).map(PlannerDriver::planner);
        outlet.publish(now, plan, planner)
    }

    fn fail<O: Outlet<P>>(&mut self, now: Instant, fault: Fault, outlet: &mut O) {
        self.drop_planner();
        let restart_at = self.watchdog.failed(now);
        self.restart_at = Some(restart_at);
        // A planner that fails again while its predecessor's limit decays does not begin the decay again.
        if self.decay.is_none() && !self.latest.is_open() {
            self.decay = Some(Decay { from: now, plan: self.latest.clone(), published: None });
        }
        outlet.report(now, &LoopEvent::Restart { fault, delay: restart_at.saturating_since(now) });
    }

    fn drop_planner(&mut self) {
        let driver = self.driver.take();
        // A planner that panicked may panic once more while it is dropped; that changes nothing.
        let _ = caught(|| drop(driver));
    }
}

impl<P: Planner> fmt::Debug for PlannerLoop<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlannerLoop").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

/// The result of `work`, or the message of its panic. The state that a panic leaves is to be dropped or
/// replaced.
///
/// # Errors
/// The message, where `work` panicked.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| message_of(&*panic))
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message").to_owned()
}

#[cfg(test)]
mod real_planner_tests;
#[cfg(test)]
mod tests;
