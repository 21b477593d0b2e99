//! The crowd, and how the origin changes meanwhile.

/// An answer within this time is goodput, seconds.
pub const TARGET_S: f64 = 1.0;
/// People give up after this time, seconds.
pub const PATIENCE_S: f64 = 2.0;
/// Load of the most important class, at all times, over the origin's capacity: it alone fits.
pub const GOLD_SHARE: f64 = 0.3;
/// The class whose admission is counted separately.
pub(super) const GOLD: &str = "gold";
/// Of the others, the part that is silver; the rest is bronze.
const SILVER_PART: f64 = 1.0 / 3.0;
/// All classes together before the crowd, over the origin's capacity.
const QUIET_LOAD: f64 = 0.5;
/// Seconds of quiet before the crowd, in which a protection may learn.
const QUIET_S: u64 = 2;

/// Kind of origin behind the protections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginKind {
    /// One worker, 20 ms of processor time for each request: it needs the whole of its core.
    CpuBound,
    /// Three workers, each busy for 60 ms with a request: 6 ms of processor time and 54 ms of waiting, as for
    /// a database. Only so does the capacity follow the number of workers on a single core.
    WorkerBound,
}

impl OriginKind {
    /// Threads, one request at a time each.
    #[must_use]
    pub const fn workers(self) -> u32 {
        match self {
            Self::CpuBound => 1,
            Self::WorkerBound => 3,
        }
    }

    /// Processor time of a request, milliseconds.
    #[must_use]
    pub const fn work_ms(self) -> u32 {
        match self {
            Self::CpuBound => 20,
            Self::WorkerBound => 6,
        }
    }

    /// Time a worker is then held without working, milliseconds.
    #[must_use]
    pub const fn wait_ms(self) -> u32 {
        match self {
            Self::CpuBound => 0,
            Self::WorkerBound => 54,
        }
    }
}

/// A number of workers from some second on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Seconds after the first arrival.
    pub at_s: u64,
    /// Workers from then on.
    pub workers: u32,
}

/// Arrival rates of the clients of a class. Each says the class in the field `x-class`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassRates {
    /// Its name.
    pub name: &'static str,
    /// Before the crowd, requests a second.
    pub quiet_rps: f64,
    /// From the crowd's beginning on, requests a second.
    pub crowd_rps: f64,
}

/// One row of the comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Its title.
    pub title: String,
    /// People of the crowd over the origin's whole capacity.
    pub offered: f64,
    /// Kind of origin behind the protections.
    pub origin: OriginKind,
    /// Changes of the origin; none starts with the crowd.
    pub changes: Vec<Change>,
    /// Length of the crowd, seconds.
    pub crowd_s: u64,
}

impl Scene {
    /// A crowd of `offered` times the capacity, for `crowd_s` seconds.
    #[must_use]
    pub fn overload(offered: f64, crowd_s: u64) -> Self {
        let title = format!("{offered} times the capacity");
        Self { title, offered, origin: OriginKind::CpuBound, changes: Vec::new(), crowd_s }
    }

    /// One and a half times the capacity, of which two thirds go away and come back; each state lasts
    /// `state_s` seconds.
    #[must_use]
    pub fn change(state_s: u64) -> Self {
        let origin = OriginKind::WorkerBound;
        let changes = vec![
            Change { at_s: QUIET_S + state_s, workers: 1 },
            Change { at_s: QUIET_S + 2 * state_s, workers: origin.workers() },
        ];
        let title = "1.5 times the capacity, which falls to a third and comes back".to_owned();
        Self { title, offered: 1.5, origin, changes, crowd_s: 3 * state_s }
    }

    /// The scenes of the table; each state of the changing origin lasts as long as a crowd.
    #[must_use]
    pub fn all(crowd_s: u64) -> Vec<Self> {
        [1.5, 3.0, 10.0]
            .map(|offered| Self::overload(offered, crowd_s))
            .into_iter()
            .chain([Self::change(crowd_s)])
            .collect()
    }

    /// Onset of the crowd, seconds after the first arrival.
    #[must_use]
    pub const fn crowd_from_s(&self) -> u64 {
        QUIET_S
    }

    /// The whole schedule, seconds.
    #[must_use]
    pub const fn length_s(&self) -> u64 {
        QUIET_S + self.crowd_s
    }

    /// The part of the whole capacity there is in a second.
    #[must_use]
    pub fn capacity_share(&self, second: u64) -> f64 {
        let now = self.changes.iter().rfind(|change| change.at_s <= second);
        now.map_or(1.0, |change| f64::from(change.workers) / f64::from(self.origin.workers()))
    }

    /// The classes of the crowd before an origin of `capacity_rps`: gold always asks for [`GOLD_SHARE`] of
    /// the capacity, silver and bronze swell.
    #[must_use]
    pub fn classes(&self, capacity_rps: f64) -> [ClassRates; 3] {
        let gold_rps = GOLD_SHARE * capacity_rps;
        let others = |name, part| {
            let rps = |load: f64| (load - GOLD_SHARE) * capacity_rps * part;
            ClassRates { name, quiet_rps: rps(QUIET_LOAD), crowd_rps: rps(self.offered) }
        };
        let gold = ClassRates { name: GOLD, quiet_rps: gold_rps, crowd_rps: gold_rps };
        [gold, others("silver", SILVER_PART), others("bronze", 1.0 - SILVER_PART)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crowd_is_as_large_as_told_and_gold_stays() {
        let classes = Scene::overload(3.0, 7).classes(60.0);
        let rates = classes.map(|class| (class.name, class.quiet_rps.round(), class.crowd_rps.round()));
        assert_eq!(rates, [("gold", 18.0, 18.0), ("silver", 4.0, 54.0), ("bronze", 8.0, 108.0)]);
    }

    #[test]
    fn the_capacity_follows_the_workers() {
        let scene = Scene::change(6);
        let shares: Vec<f64> = [0, 7, 8, 13, 14, 19].map(|second| scene.capacity_share(second)).to_vec();
        assert_eq!(shares, [1.0, 1.0, 1.0 / 3.0, 1.0 / 3.0, 1.0, 1.0]);
        assert_eq!(Scene::overload(10.0, 5).capacity_share(7), 1.0);
    }
}
