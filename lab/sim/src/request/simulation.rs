//! One run, from its beginning to its end, checked on the way.

use super::Scenario;
use super::calm::CalmCheck;
use super::checks;
use super::outcome::RunOutcome;
use super::world::{RunError, World};
use flashweir_core::Instant;

/// A run under way.
///
/// ```
/// use flashweir_core::{Duration, Instant};
/// use flashweir_sim::request::{ClassModel, Scenario, ServerModel, Simulation, Work};
/// use flashweir_workload::{ArrivalProcess, RateProfile, Schedule};
///
/// let profile = RateProfile::constant(50.0, Duration::from_secs(10))?;
/// let schedule = Schedule::one(ArrivalProcess::Poisson(profile), 7);
/// let class = ClassModel::new("all", Work::Exponential { mean: Duration::from_millis(10) });
/// let scenario = Scenario::new(schedule, class, ServerModel::first_come(1, 1));
/// let mut simulation = Simulation::new(&scenario)?;
/// while simulation.run_until(simulation.now() + Duration::from_secs(1))? {
///     // Tell the user how far it is.
/// }
/// let outcome = simulation.finish();
/// assert_eq!(outcome.totals().offered, outcome.totals().completed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Simulation<'a> {
    world: World<'a>,
    checked_at_events: u64,
}

impl<'a> Simulation<'a> {
    /// The world at time zero.
    ///
    /// # Errors
    /// A scenario that makes no run.
    pub fn new(scenario: &'a Scenario) -> Result<Self, RunError> {
        scenario.check()?;
        Ok(Self { world: World::new(scenario)?, checked_at_events: 0 })
    }

    /// Looks for requests that the sentry refuses although nothing is short: [`RunOutcome::calm`] says what
    /// was found. To be called before anything happens.
    pub fn check_calm(&mut self) {
        self.world.calm = Some(CalmCheck::of(self.world.scenario));
    }

    /// Lets everything happen that happens before `until`. Whether there is more to come.
    ///
    /// # Errors
    /// A bound is met: the run is over and has no result.
    pub fn run_until(&mut self, until: Instant) -> Result<bool, RunError> {
        loop {
            if self.world.is_over() {
                return Ok(false);
            }
            match self.world.next_at() {
                Some(at) if at < until => self.step(until)?,
                Some(_) => return Ok(true),
                None => return Ok(false),
            }
        }
    }

    /// The time of the next event: where [`run_until`](Self::run_until) stopped, or a little later.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.world.next_at().unwrap_or_else(|| self.world.now())
    }

    /// Events that have happened.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.world.events()
    }

    /// Ends the run and returns its outcome.
    #[must_use]
    pub fn finish(mut self) -> RunOutcome {
        self.check_everything();
        let now = self.world.now();
        self.world.server.advance(now);
        RunOutcome::new(self.world)
    }

    /// Lets the next thing happen, if it is before `until`. Where packets and people are due at the same
    /// time, packets are first.
    fn step(&mut self, until: Instant) -> Result<(), RunError> {
        let world = &mut self.world;
        if let Some((now, happening)) = world.next_of_packets(until)? {
            world.happened_to_packets(now, happening)?;
            world.release_held(now)?;
            self.check_step(now);
        } else if world.queue.next_at().is_some_and(|at| at < until)
            && let Some((now, event)) = world.queue.pop()
        {
            world.handle(now, event)?;
            world.release_held(now)?;
            self.check_step(now);
        }
        Ok(())
    }

    fn check_step(&mut self, now: Instant) {
        if cfg!(debug_assertions) {
            crate::engine::check_world(now, &self.world, &checks::after_every_step());
            if self.world.hash.events() >= self.checked_at_events + EVENTS_BETWEEN_FULL_CHECKS {
                self.check_everything();
            }
        }
    }

    fn check_everything(&mut self) {
        self.checked_at_events = self.world.hash.events();
        crate::engine::check_world(self.world.now(), &self.world, &checks::now_and_then());
    }
}

/// Runs a scenario from its beginning to its end.
///
/// # Errors
/// A scenario that makes no run, or one that meets a bound.
pub fn run(scenario: &Scenario) -> Result<RunOutcome, RunError> {
    let mut simulation = Simulation::new(scenario)?;
    simulation.run_until(Instant::MAX)?;
    Ok(simulation.finish())
}

/// The same with [`Simulation::check_calm`].
///
/// # Errors
/// A scenario that makes no run, or one that meets a bound.
pub fn run_checking_calm(scenario: &Scenario) -> Result<RunOutcome, RunError> {
    let mut simulation = Simulation::new(scenario)?;
    simulation.check_calm();
    simulation.run_until(Instant::MAX)?;
    Ok(simulation.finish())
}

/// A full check looks at every person and try, so it is rare.
const EVENTS_BETWEEN_FULL_CHECKS: u64 = 16_384;
