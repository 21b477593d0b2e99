//! The people: who comes when, from which client, for how large a page, and how long they wait.

use super::Scenario;
use flashweir_core::{Duration, Instant, Rng};
use flashweir_workload::people::Habits;
use flashweir_workload::{ArrivalProcess, Schedule};

/// Everything about the people that the seed decides: the same crowd for every controller.
pub(super) struct Crowd {
    schedule: Schedule,
    seed: u64,
    habits: Habits,
    clients: Rng,
    client_count: u64,
}

impl Crowd {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let arrivals = ArrivalProcess::Poisson(scenario.arrivals.clone());
        Self {
            schedule: Schedule::one(arrivals, scenario.seed),
            seed: scenario.seed,
            habits: Habits { patience: scenario.patience, ..Habits::default() },
            clients: Rng::new(scenario.seed).fork(CLIENTS),
            client_count: u64::from(scenario.links.clients),
        }
    }

    /// When each person comes, with their number.
    pub(super) fn arrivals(&self) -> impl Iterator<Item = (Instant, u64)> + '_ {
        self.schedule.arrivals().map(|arrival| (Instant::from_duration(arrival.moment), arrival.person))
    }

    /// The client that a person sits at.
    pub(super) fn client(&self, person: u64) -> usize {
        self.clients.fork(person).below(self.client_count) as usize
    }

    pub(super) fn page_bytes(&self, scenario: &Scenario, person: u64) -> u64 {
        // Pages repeat after four billion people, more than a run can have.
        scenario.pages.bytes(self.seed, person as u32)
    }

    pub(super) fn patience(&self, person: u64) -> Option<Duration> {
        self.habits.person(self.seed, 0, person).patience()
    }
}

/// Names the fork that people's clients are drawn from: "clie" in ASCII.
const CLIENTS: u64 = 0x636C_6965;
