//! One crowd: a fresh origin, a fresh protection before it, calm, and then the people.

use crate::common::stage::people;
use crate::front::Front;
use crate::place::Place;
use crate::protection::{Kind, Tools};
use flashweir_load::LoadResult;
use flashweir_load::trials::origins::{CALM_LOAD, Counts, FIRST, Origin, OriginRun, Protection, Row, TARGET};
use flashweir_workload::RateProfile;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The last reading comes before the end of the crowd: where every client is answered at once, the run ends
/// with it.
const READ_BEFORE_END: Duration = Duration::from_millis(300);

/// Rate and length of a crowd.
#[derive(Clone, Copy)]
pub(crate) struct Crowd {
    /// Over the capacity.
    pub(crate) overload: f64,
    pub(crate) capacity_rps: f64,
    pub(crate) calm_s: u64,
    pub(crate) crowd_s: u64,
    /// Beginning of the crowd that is judged separately.
    pub(crate) first: Duration,
    pub(crate) round: usize,
}

impl Crowd {
    /// The one of the table.
    pub(crate) fn whole(row: &Row, capacity_rps: f64, round: usize) -> Self {
        let [calm_s, crowd_s] = row.lengths_s;
        Self { overload: row.overload, capacity_rps, calm_s, crowd_s, first: FIRST, round }
    }

    fn profile(&self) -> Result<RateProfile, String> {
        let rate = |load: f64, seconds| {
            RateProfile::constant(load * self.capacity_rps, Duration::from_secs(seconds))
        };
        let both =
            rate(CALM_LOAD, self.calm_s).and_then(|calm| Ok(calm.then(rate(self.overload, self.crowd_s)?)));
        both.map_err(|error| error.to_string())
    }

    /// The crowd's beginning, the end of its first seconds, and the last reading.
    fn moments(&self) -> [Duration; 3] {
        let begins = Duration::from_secs(self.calm_s);
        [begins, begins + self.first, begins + Duration::from_secs(self.crowd_s) - READ_BEFORE_END]
    }
}

/// Parts that all visits share.
pub(crate) struct Visits {
    pub(crate) tools: Tools,
    /// File of the gateway's plan, look by look.
    pub(crate) trace: Option<PathBuf>,
}

impl Visits {
    /// Sends the crowd; `kind` is what to start unless it is Flashweir. Why not, if something does not start,
    /// or cannot be sent or read.
    pub(crate) fn visit(
        &self,
        origin: Origin,
        protection: Protection,
        kind: Kind,
        crowd: Crowd,
    ) -> Result<OriginRun, String> {
        let place = Place::start(origin)?;
        let front = place.outside(|| Front::start(&self.tools, protection, kind, place.address()))?;
        let moments = crowd.moments();
        let mut measure = place.measure(&moments);
        let lost_before = place.lost();
        let load =
            self.send(&place, protection, front.address(), crowd, |progress| measure.look(progress))?;
        let (first, _) = measure.share(0, 1)?;
        let (settled, taken) = measure.share(1, 2)?;
        let from_s = crowd.calm_s + crowd.first.as_secs();
        let name = format!("{}-{}-{}", origin.key(), crowd.overload, crowd.round + 1);
        let trace = self.trace.as_deref().map(|folder| (folder, name.as_str()));
        let belief = front.stop(load.started, &[[moments[1], moments[2]]], trace).pop().flatten();
        Ok(OriginRun {
            protection,
            first,
            settled,
            taken,
            counts: Counts::of(&load, from_s, crowd.calm_s + crowd.crowd_s),
            refused_in_calm: load
                .totals
                .series
                .iter()
                .filter(|second| second.second < crowd.calm_s)
                .map(|second| second.refused)
                .sum(),
            belief,
            is_spoilt: load.saturated || place.lost() > lost_before,
        })
    }

    fn send(
        &self,
        place: &Place,
        protection: Protection,
        address: SocketAddr,
        crowd: Crowd,
        mut look: impl FnMut(&flashweir_load::Progress) + Send,
    ) -> Result<LoadResult, String> {
        let url = format!("http://{address}/{}", place.path());
        let mut plan = people(&url, crowd.profile()?).map_err(|error| error.to_string())?;
        // Behind a protection clients come over loopback, also in a namespace.
        if let Some(sources) = place.sources().filter(|_| protection == Protection::Nothing) {
            plan.sources = sources;
        }
        let mut classes = plan.classes.to_vec();
        for class in &mut classes {
            (class.timeout, class.good_within) = (TARGET, TARGET);
        }
        plan.classes = classes.into();
        place
            .outside(|| flashweir_load::run(plan, |progress| look(progress)))
            .map_err(|error| error.to_string())
    }
}
