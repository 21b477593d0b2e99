//! The crowd of a scene and those beside it, as runs of the load generator, and what they came to.

use super::network::Network;
use super::servers::{NEIGHBOURS_PAGES, pages};
use crate::experiments::testbed::{Beside, People, Record, Scene, Second, TestbedRun};
use anyhow::Context as _;
use flashweir_load::{ClassPlan, LoadPlan, LoadResult, LoadTarget, Paths, StopFlag, Tally};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule, Segment, Share, Stream};
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

/// Classes beside the crowd, by when they came.
const BESIDE: [&str; 3] = ["beside, before", "beside, while it is found", "beside, once found"];
/// While a crowd is found: two of the scale's intervals.
const FOUND_WITHIN_S: u64 = 8;
/// The second client, as the records know it.
const SECOND: [&str; 1] = ["second"];
/// Seed of the people beside the crowd, who are drawn separately from it.
const BESIDE_SEED: u64 = 1 << 32;
const SECOND_SEED: u64 = 1 << 33;

/// Clients of a run: its network and scene, and the time at which it begins.
pub(super) struct RunClients<'a> {
    pub(super) network: &'a Network,
    pub(super) run: &'a TestbedRun,
    pub(super) at: SystemTime,
    pub(super) stop: &'a StopFlag,
}

impl RunClients<'_> {
    /// The crowd's run of the load generator.
    pub(super) fn crowd(&self, paths: Paths) -> anyhow::Result<LoadPlan> {
        let schedule = Schedule::one(self.run.scene.arrivals.clone(), self.run.seed);
        self.plan(self.network.target, schedule, &["crowd"], paths)
    }

    /// The run of those beside the crowd, where they are people.
    pub(super) fn beside(&self) -> anyhow::Result<Option<LoadPlan>> {
        let scene = &self.run.scene;
        let (server, streams, paths) = match (&scene.beside, self.network.neighbour) {
            (Beside::Readers { per_s }, Some(server)) => {
                (server, readers(scene, *per_s)?, pages(NEIGHBOURS_PAGES))
            }
            (Beside::Clients { uncontrolled, .. }, _) => {
                let stream = Stream { arrivals: uncontrolled.clone(), classes: only(2) };
                (self.network.target, vec![stream], front_page())
            }
            _ => return Ok(None),
        };
        let schedule = Schedule::new(streams, self.run.seed + BESIDE_SEED)?;
        self.plan(server, schedule, &BESIDE, paths).map(Some)
    }

    /// The run of the second client, where there is one.
    pub(super) fn second(&self) -> anyhow::Result<Option<LoadPlan>> {
        let Beside::Clients { second, .. } = &self.run.scene.beside else { return Ok(None) };
        let schedule = Schedule::one(second.clone(), self.run.seed + SECOND_SEED);
        self.plan(self.network.target, schedule, &SECOND, front_page()).map(Some)
    }

    fn plan(
        &self,
        server: SocketAddr,
        schedule: Schedule,
        classes: &[&str],
        paths: Paths,
    ) -> anyhow::Result<LoadPlan> {
        let target = LoadTarget::parse(&format!("http://{server}/")).context("the server's address")?;
        let usual = ClassPlan::get(&target)?;
        let class = |name: &&str| ClassPlan {
            name: (*name).to_owned(),
            paths: paths.clone(),
            timeout: self.run.scene.patience,
            good_within: self.run.scene.good_within,
            ..usual.clone()
        };
        let classes: Vec<ClassPlan> = classes.iter().map(class).collect();
        let mut plan = LoadPlan::new(target, schedule, usual.clone());
        plan.classes = classes.into();
        plan.seed = self.run.seed;
        plan.start_at = Some(self.at);
        plan.stop = self.stop.clone();
        Ok(plan)
    }
}

/// One stream for each class: before, while the crowd is found, and from then on.
fn readers(scene: &Scene, per_s: f64) -> anyhow::Result<Vec<Stream>> {
    let onset_s = scene.onset_s();
    let found_s = (onset_s + FOUND_WITHIN_S).min(scene.length_s());
    let edges = [0, onset_s, found_s, scene.length_s()].map(Duration::from_secs);
    let streams = edges.windows(2).zip(0u16..).filter(|(edge, _)| edge[0] < edge[1]).map(|(edge, class)| {
        let silence = Segment::constant(edge[0], 0.0);
        let profile = RateProfile::new(
            [silence, Segment::constant(edge[1] - edge[0], per_s)]
                .into_iter()
                .filter(|it| !it.length.is_zero()),
        )?;
        Ok(Stream { arrivals: ArrivalProcess::Poisson(profile), classes: only(class) })
    });
    streams.collect()
}

fn front_page() -> Paths {
    Paths::Table(["/".into()].into())
}

fn only(class: u16) -> Vec<Share> {
    vec![Share { class, weight: 1.0 }]
}

/// Adds what became of the crowd.
pub(super) fn add_crowd(record: &mut Record, load: &LoadResult) {
    add_second(record, load);
    for second in &load.totals.series {
        if let Some(ours) = at(record, second.second) {
            ours.latency_s = second.latency_p50_ms.map(|ms| ms / 1e3);
        }
    }
}

/// Adds what became of the second client to the crowd's; latencies stay those of the crowd.
pub(super) fn add_second(record: &mut Record, load: &LoadResult) {
    add_people(record, load);
    for second in &load.totals.series {
        if let Some(ours) = at(record, second.second) {
            ours.completed += second.completed;
            ours.good += second.goodput;
            ours.timed_out += second.timed_out + second.abandoned + second.errors;
        }
    }
}

/// Adds what became of those beside it.
pub(super) fn add_beside(record: &mut Record, load: &LoadResult) {
    add_people(record, load);
    for second in &load.totals.series {
        if let Some(ours) = at(record, second.second) {
            ours.beside_completed = second.completed;
            ours.beside_latency_s = second.latency_p50_ms.map(|ms| ms / 1e3);
        }
    }
}

fn add_people(record: &mut Record, load: &LoadResult) {
    let people = |tally: &Tally| People {
        unique_offered: tally.unique_offered,
        completed: tally.completed,
        mean_s: tally.latency_ms.mean.map(|ms| ms / 1e3),
        median_s: tally.latency_ms.p50.map(|ms| ms / 1e3),
    };
    let came = load.classes.iter().filter(|(_, tally)| tally.unique_offered > 0);
    record.people.extend(came.map(|(name, tally)| (name.clone(), people(tally))));
    if load.saturated {
        record.doubts.push("the load generator could not keep up".to_owned());
    }
}

fn at(record: &mut Record, second: u64) -> Option<&mut Second> {
    record.seconds.get_mut(usize::try_from(second).ok()?)
}
