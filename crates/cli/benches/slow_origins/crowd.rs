//! Arrivals of each kind of request in each phase.

use bytes::Bytes;
use flashweir_core::limits::LOAD_SOURCES;
use flashweir_load::trials::origins::FIRST;
use flashweir_load::trials::slow::{CALM_S, EARLY_S, Kind, Offered, Origin, Phase, Row, Speaks};
use flashweir_load::{ClassPlan, LoadPlan, LoadTarget, Paths, Prepared, Sources, Template};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule, Share, Stream};
use http::Method;
use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

const LOSS_S: u64 = 10;
/// The same requests for every protection.
const SEED: u64 = 1;
/// The last reading comes before the end: where every client is answered at once, the run ends with it.
const READ_BEFORE_END: Duration = Duration::from_millis(300);

/// Lengths of the phases of an origin.
pub(crate) fn lengths_s(origin: Origin, crowd_s: u64) -> Vec<(Phase, u64)> {
    let loss = origin.loss().map(|_| (Phase::Loss, LOSS_S));
    [(Phase::Calm, CALM_S), (Phase::Crowd, crowd_s)].into_iter().chain(loss).collect()
}

/// One run: what is offered when.
#[derive(Clone, Debug)]
pub(crate) struct Crowd {
    pub(crate) origin: Origin,
    /// Pages that the origin completes, a second.
    pub(crate) capacity_rps: f64,
    pub(crate) lengths_s: Vec<(Phase, u64)>,
    /// The long requests of a long calm come in its first second, and no more after them: for short runs.
    pub(crate) is_short: bool,
}

impl Crowd {
    /// The one of the tables.
    pub(crate) fn whole(row: &Row, capacity_rps: f64) -> Self {
        Self { origin: row.origin, capacity_rps, lengths_s: row.lengths_s.clone(), is_short: false }
    }

    pub(crate) fn length(&self) -> Duration {
        Duration::from_secs(self.lengths_s.iter().map(|(_, length_s)| length_s).sum())
    }

    /// Each phase with its first second and the one after its last.
    pub(crate) fn phases(&self) -> Vec<(Phase, u64, u64)> {
        let mut from = 0;
        let phase = |&(phase, length_s): &(Phase, u64)| {
            let begins = from;
            from += length_s;
            (phase, begins, from)
        };
        self.lengths_s.iter().map(phase).collect()
    }

    /// The judged stretch of each phase.
    pub(crate) fn judged(&self) -> Vec<[Duration; 2]> {
        let length = self.length();
        let stretch = |(phase, from, to): (Phase, u64, u64)| {
            let settles_s = if phase == Phase::Calm { EARLY_S } else { FIRST.as_secs() };
            let settled = Duration::from_secs((from + settles_s).min(to));
            let end = Duration::from_secs(to).min(length.saturating_sub(READ_BEFORE_END));
            [settled.min(end), end]
        };
        self.phases().into_iter().map(stretch).collect()
    }

    /// Moments at which requests of a kind are to begin, at equal distances within each phase.
    pub(crate) fn moments(&self, kind: &Kind) -> Vec<Duration> {
        let mut moments = Vec::new();
        for (phase, from, to) in self.phases() {
            let (rps, length_s) = (self.rps(kind, phase), (to - from) as f64);
            let count = (rps * length_s).round() as u32;
            let at = |number| from as f64 + (f64::from(number) + 0.5) * length_s / f64::from(count);
            moments.extend((0..count).map(|number| Duration::from_secs_f64(at(number))));
        }
        moments
    }

    /// Rate of a kind in a phase, requests a second.
    fn rps(&self, kind: &Kind, phase: Phase) -> f64 {
        let rate = |phase: Phase| match kind.offered[phase as usize] {
            Offered::OfCapacity(load) => load * self.capacity_rps,
            Offered::Rps(rps) | Offered::Evenly(rps) => rps,
        };
        let is_page = matches!(kind.offered[phase as usize], Offered::OfCapacity(_));
        match phase {
            _ if !self.is_short || is_page => rate(phase),
            Phase::Calm => {
                let calm_s = self.lengths_s.first().map_or(1, |(_, length_s)| *length_s);
                kind.long_in_flight() / calm_s as f64
            }
            // Those of the calm are still there.
            _ => (rate(phase) - rate(Phase::Calm)).max(0.0),
        }
    }

    fn stream(&self, kind: &Kind, class: u16) -> Result<Stream, Box<dyn Error>> {
        let is_even = matches!(kind.offered[0], Offered::Evenly(_));
        let arrivals = if is_even {
            ArrivalProcess::given_within(self.moments(kind), self.length())?
        } else {
            let mut profile: Option<RateProfile> = None;
            for (phase, length_s) in &self.lengths_s {
                let next = RateProfile::constant(self.rps(kind, *phase), Duration::from_secs(*length_s))?;
                profile = Some(match profile {
                    Some(before) => before.then(next),
                    None => next,
                });
            }
            ArrivalProcess::Poisson(profile.ok_or("a run has phases")?)
        };
        Ok(Stream { arrivals, classes: vec![Share { class, weight: 1.0 }] })
    }

    /// The requests that the load generator sends: all but streams. Each client has one of very many
    /// addresses and a separate connection: the gateway takes a second request from a refused address for a
    /// retry of the first.
    pub(crate) fn plan(&self, address: SocketAddr) -> Result<LoadPlan, Box<dyn Error>> {
        let target = LoadTarget::parse(&format!("http://{address}/"))?;
        let kinds: Vec<&Kind> =
            self.origin.kinds().iter().filter(|kind| kind.speaks == Speaks::Http).collect();
        let streams = kinds.iter().zip(0..).map(|(kind, class)| self.stream(kind, class));
        let schedule = Schedule::new(streams.collect::<Result<_, _>>()?, SEED)?;
        let classes: Vec<ClassPlan> =
            kinds.iter().map(|kind| class_plan(kind, &target)).collect::<Result<_, _>>()?;
        let first = classes.first().cloned().ok_or("an origin has kinds of requests")?;
        let sources = Sources { count: LOAD_SOURCES, ..Sources::default() };
        Ok(LoadPlan {
            classes: classes.into(),
            sources,
            seed: SEED,
            ..LoadPlan::new(target, schedule, first)
        })
    }
}

fn class_plan(kind: &Kind, target: &LoadTarget) -> Result<ClassPlan, Box<dyn Error>> {
    let request = Prepared::new(target, Method::GET, &[], Bytes::new())?;
    let allowed = Duration::from_secs_f64(kind.allowed_s());
    Ok(ClassPlan {
        timeout: allowed,
        good_within: allowed,
        ..ClassPlan::new(kind.name, request, Paths::Template(Template::new(kind.path, None, 0)?))
    })
}

/// The phases index [`Kind::offered`].
const _: () = assert!(Phase::Calm as usize == 0 && Phase::Crowd as usize == 1 && Phase::Loss as usize == 2);
