//! `flashweir demo`: the same crowd twice, without and with Flashweir, and what became of it.

pub(crate) mod chain;
mod children;
mod crowd;
mod document;
mod files;
pub(crate) mod hot;
mod http;
pub(crate) mod numbers_only;
mod outcome;
#[cfg(test)]
mod sample;
pub(crate) mod scale;
mod signals;
mod table;
mod useful;
mod verdicts;
mod view;
mod watch;

use anyhow::{Context, bail, ensure};
use children::{Family, Gateway, Origin};
use crowd::Crowd;
use flashweir_load::{ClassPlan, LoadPlan, LoadTarget, Sources, StopFlag};
use flashweir_testbed::origin::placement::Placement;
use flashweir_workload::{ArrivalProcess, Schedule};
use outcome::{Numbers, Protected, Visit, VisitOutcome};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;
use useful::OriginWatch;
use view::{Frame, View, Wish};
use watch::Watch;

/// Client timeout.
const PATIENCE: Duration = Duration::from_secs(2);
/// Answers within this time are goodput.
const TARGET: Duration = Duration::from_secs(1);
/// Client addresses the crowd comes from.
const SOURCES: u32 = 4_000;
/// Requests kept in flight to find the capacity: enough that the one worker never waits for the next.
const CAPACITY_CONCURRENCY: usize = 4;
const CAPACITY_MEASURED_FOR: Duration = Duration::from_secs(2);

pub(crate) const UNPROTECTED: &str = "without Flashweir";
pub(crate) const PROTECTED: &str = "with Flashweir";

/// Options of a demo.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Draws when people arrive and from where.
    pub(crate) seed: u64,
    /// Directory of the report.
    pub(crate) out: PathBuf,
    /// Print the numbers alone.
    pub(crate) json: bool,
    /// Plain lines even on a terminal.
    pub(crate) plain: bool,
    /// The crowd's peak over the origin's capacity.
    pub(crate) crowd_multiple: f64,
    /// Processor time the origin spends on each request.
    pub(crate) origin_ms: f64,
}

/// Everything the report is made of.
pub(crate) struct Story {
    pub(crate) options: Options,
    pub(crate) numbers: Numbers,
    pub(crate) crowd: Crowd,
    pub(crate) unprotected: Visit,
    pub(crate) protected: Visit,
}

/// Runs the demo, writes its report and prints its numbers on stdout.
///
/// # Errors
/// A child that does not start, a report that cannot be written, or the wish of the watching person.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    // Before a minute of work: is there a place for its results?
    files::prepare(&options.out)?;
    let family = Family::default();
    let live = std::io::stdout().is_terminal() && !options.plain && !options.json;
    signals::end_children_on_signal(family.clone(), live)?;

    let story = play(options, &family, live);
    drop(family.end_all());
    let story = story?;

    let report = files::write(&story)?;
    let text = if options.json {
        serde_json::to_string_pretty(&story.numbers)?
    } else {
        format!("{}\nThe whole story: {}", table::text(&story.numbers), report.display())
    };
    writeln!(std::io::stdout(), "{text}").context("the numbers cannot be printed")
}

/// The demo itself; the terminal is given back when it returns.
fn play(options: &Options, family: &Family, live: bool) -> anyhow::Result<Story> {
    let mut view = View::new(live).context("the live view cannot be shown (--plain does without)")?;
    view.announce("Starting an origin and measuring how much it can do ...")?;
    // The origin's own core, where there are several: what the crowd and the gateway cost is not to be its
    // capacity.
    let placement = Placement::divide();
    if let Some(placement) = &placement {
        placement.leave_the_origin_its_core().context("this process cannot leave a core to the origin")?;
    }
    // Two origins that do exactly the same work: after the unprotected visit the first would be busy for a
    // minute with people who have long left, and one calibrated again would differ by a few percent.
    let iterations_per_ms = flashweir_testbed::origin::calibrate();
    let start_origin = || {
        let origin = Origin::start(family, options.origin_ms, iterations_per_ms, &options.out)?;
        if let Some(placement) = &placement {
            let given = placement.give_the_origin_its_core(origin.process_id());
            given.context("the origin cannot be moved to a separate core")?;
        }
        anyhow::Ok(origin)
    };
    let origin = start_origin()?;
    let capacity_rps = origin_capacity_rps(&origin)?;
    let crowd = Crowd::new(capacity_rps, options.crowd_multiple, options.seed)?;
    view.announce(&format!(
        "The origin completes {capacity_rps:.0} requests/s. {} people come in {:.0} s, up to {:.0} a second.",
        crowd.schedule.len(),
        crowd.length().as_secs_f64(),
        capacity_rps * options.crowd_multiple,
    ))?;
    let mut stage = Stage { options, crowd: &crowd, capacity_rps, view: &mut view };

    let unprotected = stage.visit(UNPROTECTED, &origin, &origin.url(), None)?;
    drop(origin);

    let origin = start_origin()?;
    let between_rps = origin_capacity_rps(&origin)?;
    let gateway = Gateway::start(family, &origin, &options.out)?;
    let watch = Watch::start(gateway.admin)?;
    let protected = stage.visit(PROTECTED, &origin, &gateway.url(), Some(watch))?;
    let after_rps = origin_capacity_rps(&origin)?;

    let overload = crowd.overload.as_ref();
    let outcome = |visit: &Visit, before_rps: f64, after_rps: f64| {
        VisitOutcome::new(visit, overload, (before_rps + after_rps) / 2.0, PATIENCE)
    };
    let numbers = Numbers {
        capacity_rps,
        unprotected: outcome(&unprotected, capacity_rps, between_rps),
        protected: Protected::new(
            outcome(&protected, between_rps, after_rps),
            &protected.sightings,
            overload,
        ),
    };
    Ok(Story { options: options.clone(), numbers, crowd, unprotected, protected })
}

/// Requests a second that the origin completes now, kept busy and no more.
fn origin_capacity_rps(origin: &Origin) -> anyhow::Result<f64> {
    Ok(flashweir_load::measure_capacity(&origin.url(), CAPACITY_CONCURRENCY, CAPACITY_MEASURED_FOR)?)
}

/// State that both visits share.
struct Stage<'a> {
    options: &'a Options,
    crowd: &'a Crowd,
    capacity_rps: f64,
    view: &'a mut View,
}

impl Stage<'_> {
    /// Sends the crowd to `url`, at which or behind which `origin` is, and shows how it goes.
    fn visit(
        &mut self,
        name: &'static str,
        origin: &Origin,
        url: &str,
        watch: Option<Watch>,
    ) -> anyhow::Result<Visit> {
        let stop = StopFlag::default();
        let plan = self.plan(url, stop.clone())?;
        let mut trouble = None;
        let mut origin_watch = OriginWatch::new(origin.meter(), self.crowd.overload.as_ref());
        let load = flashweir_load::run(plan, |progress| {
            origin_watch.look(progress.elapsed, progress.totals.goodput);
            let frame = Frame {
                visit: name,
                phase: self.crowd.phase(progress.elapsed),
                progress,
                state: watch.as_ref().and_then(Watch::latest),
                capacity_rps: self.capacity_rps,
                peak_rps: self.capacity_rps * self.options.crowd_multiple,
            };
            match self.view.show(&frame) {
                Ok(Wish::GoOn) => {}
                Ok(Wish::Stop) => stop.stop(),
                Err(error) => {
                    stop.stop();
                    trouble.get_or_insert(error);
                }
            }
        })?;
        if let Some(trouble) = trouble {
            return Err(trouble).context("the live view failed (--plain does without)");
        }
        if stop.is_set() {
            bail!("ended on request; no report was written");
        }
        ensure!(load.totals.offered > 0, "the schedule is empty: no request was sent");
        // Only a result that was read from a file has no start.
        let started = load.started.context("the load generator reports no start")?;
        let sightings = watch.map_or_else(Vec::new, |watch| watch.finish(started));
        Ok(Visit { load, sightings, origin_time: origin_watch.finish() })
    }

    /// The crowd, sent to `url`.
    fn plan(&self, url: &str, stop: StopFlag) -> anyhow::Result<LoadPlan> {
        let moments = self.crowd.schedule.as_slice();
        let arrivals = ArrivalProcess::given_within(moments, self.crowd.length())?;
        let target = LoadTarget::parse(url)?;
        let class = ClassPlan { timeout: PATIENCE, good_within: TARGET, ..ClassPlan::get(&target)? };
        Ok(LoadPlan {
            sources: Sources { count: SOURCES, ..Sources::default() },
            seed: self.options.seed,
            stop,
            ..LoadPlan::new(target, Schedule::one(arrivals, self.options.seed), class)
        })
    }
}
