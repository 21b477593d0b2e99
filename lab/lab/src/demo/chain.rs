//! `flashweir demo-chain`: the same crowd through a caller's sidecar and an overloaded gateway, without and
//! with the gateway's feedback to the sidecar; then user requests that need three calls each, through two
//! gateways.

mod calls;
mod front_end;
mod outcome;
mod report;

use super::children::{Family, Gateway, Origin, Sidecar};
use super::{PATIENCE, SOURCES, TARGET, files, http, origin_capacity_rps, signals};
use anyhow::{Context, bail};
use flashweir_load::{ClassPlan, LoadPlan, LoadResult, LoadTarget, Sources};
use flashweir_testbed::origin::account::Ruler;
use flashweir_testbed::origin::placement::Placement;
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule};
use outcome::{Books, ChainOutcome, Work, cost_of_refusal_s};
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Options of the demo.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Draws when people arrive and from where.
    pub(crate) seed: u64,
    /// Directory of the report.
    pub(crate) out: PathBuf,
    /// Print the numbers alone.
    pub(crate) json: bool,
    /// The crowd over the origin's capacity.
    pub(crate) crowd_multiple: f64,
    /// Processor time the origin spends on each request, milliseconds.
    pub(crate) origin_ms: f64,
}

/// Both visits.
pub(crate) struct Story {
    pub(crate) options: Options,
    pub(crate) capacity_rps: f64,
    /// Without and with feedback.
    pub(crate) visits: [Visit; 2],
    /// Outcome of user requests of several calls, without and with feedback.
    pub(crate) chains: [calls::Chain; 2],
}

/// One visit of the crowd.
pub(crate) struct Visit {
    pub(crate) load: LoadResult,
    pub(crate) outcome: ChainOutcome,
    /// Work of the gateway in the quiet before the crowd, and in the judged part of the crowd.
    works: [Work; 2],
}

/// Of the capacity, before and after the crowd.
const QUIET_LOAD: f64 = 0.4;
const QUIET: Duration = Duration::from_secs(5);
const CROWD: Duration = Duration::from_secs(13);
const TAIL: Duration = Duration::from_secs(3);
/// From here on the quiet is measured: the gateways have started by then.
const QUIET_FROM: Duration = Duration::from_secs(2);
/// From here on a crowd is judged: by then all parts have noticed it.
const JUDGED_AFTER: Duration = Duration::from_secs(2);
/// The last reading comes this much before the crowd's end.
const READ_BEFORE_END: Duration = Duration::from_millis(500);
/// Name of the overloaded gateway.
const NODE: &str = "node";
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// Runs both visits, writes the report and prints the numbers on stdout.
///
/// # Errors
/// A child that does not start, a report that cannot be written.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    files::prepare(&options.out)?;
    let family = Family::default();
    signals::end_children_on_signal(family.clone(), false)?;
    let story = play(options, &family);
    drop(family.end_all());
    let story = story?;
    let page = report::write(&story)?;
    let text = if options.json {
        serde_json::to_string_pretty(&report::numbers(&story))?
    } else {
        format!("{}\nThe whole story: {}", report::text(&story), page.display())
    };
    writeln!(std::io::stdout(), "{text}").context("the numbers cannot be printed")
}

fn play(options: &Options, family: &Family) -> anyhow::Result<Story> {
    eprintln!("Starting an origin and measuring how much it can do ...");
    let placement = Placement::divide();
    if let Some(placement) = &placement {
        placement.leave_the_origin_its_core().context("this process cannot leave a core to the origin")?;
    }
    let iterations_per_ms = flashweir_testbed::origin::calibrate();
    let start_origin = || {
        let origin = Origin::start(family, options.origin_ms, iterations_per_ms, &options.out)?;
        if let Some(placement) = &placement {
            let given = placement.give_the_origin_its_core(origin.process_id());
            given.context("the origin cannot be moved to a separate core")?;
        }
        anyhow::Ok(origin)
    };
    let capacity_rps = origin_capacity_rps(&start_origin()?)?;
    let visit = |has_feedback: bool| {
        let how = if has_feedback { "with" } else { "without" };
        let crowd_rps = capacity_rps * options.crowd_multiple;
        eprintln!(
            "The origin completes {capacity_rps:.0} requests/s; a crowd of {crowd_rps:.0} a second, {how} feedback ..."
        );
        visit(options, family, &start_origin()?, capacity_rps, has_feedback)
    };
    let mut visits = [visit(false)?, visit(true)?];
    let works: Vec<Work> = visits.iter().flat_map(|visit| visit.works).collect();
    if let Some(cost_s) = cost_of_refusal_s(&works) {
        let without_rps = visits[0].outcome.refused_at_node_rps;
        for Visit { outcome, .. } in &mut visits {
            outcome.node_refusing_cores = Some(outcome.refused_at_node_rps * cost_s);
            outcome.node_refusing_part =
                (without_rps > 0.0).then(|| outcome.refused_at_node_rps / without_rps);
        }
    }
    let waiting_rps = calls::capacity_rps(options, family)?;
    let chain = |coordinates: bool| calls::visit(options, family, waiting_rps, coordinates);
    let chains = [chain(false)?, chain(true)?];
    Ok(Story { options: options.clone(), capacity_rps, visits, chains })
}

/// A gateway that asks those in front of it for less, if that is to be so.
fn gateway(
    family: &Family,
    name: &'static str,
    upstream: &str,
    has_feedback: bool,
    options: &Options,
) -> anyhow::Result<Gateway> {
    let sections = format!(
        "[upstream]\nurls = [\"{upstream}\"]\n[feedback]\nenabled = {has_feedback}\nsenders = [\"127.0.0.1\"]\n"
    );
    Gateway::start_configured(family, name, &sections, &options.out)
}

/// The crowd comes to the caller's sidecar.
fn visit(
    options: &Options,
    family: &Family,
    origin: &Origin,
    capacity_rps: f64,
    has_feedback: bool,
) -> anyhow::Result<Visit> {
    let node = gateway(family, NODE, &origin.base_url(), has_feedback, options)?;
    let sidecar = Sidecar::start(family, NODE, &node.base_url(), &options.out)?;

    let rate = |factor: f64, length| RateProfile::constant(factor * capacity_rps, length);
    let profile =
        rate(QUIET_LOAD, QUIET)?.then(rate(options.crowd_multiple, CROWD)?).then(rate(QUIET_LOAD, TAIL)?);
    let target = LoadTarget::parse(&format!("http://{}/work", sidecar.address))?;
    let class = ClassPlan { timeout: PATIENCE, good_within: TARGET, ..ClassPlan::get(&target)? };
    let schedule = Schedule::one(ArrivalProcess::Poisson(profile), options.seed);
    let plan = LoadPlan {
        sources: Sources { count: SOURCES, ..Sources::default() },
        seed: options.seed,
        ..LoadPlan::new(target, schedule, class)
    };
    let judged = [QUIET + JUDGED_AFTER, QUIET + CROWD - READ_BEFORE_END];
    let readings = [QUIET_FROM, QUIET - READ_BEFORE_END, judged[0], judged[1]];
    let mut ruler = Ruler::new(origin.meter(), judged);
    let mut books: Vec<Books> = Vec::new();
    let mut trouble = None;
    let load = flashweir_load::run(plan, |progress| {
        ruler.look(progress.elapsed, progress.totals.goodput);
        if readings.get(books.len()).is_some_and(|moment| progress.elapsed >= *moment) {
            match read(&node, sidecar.admin) {
                Ok(now) => books.push(now),
                Err(error) => drop(trouble.get_or_insert(error)),
            }
        }
    })?;
    if let Some(trouble) = trouble {
        return Err(trouble).context("the counts of gateway and sidecar cannot be read");
    }
    let Ok(books) = <[_; 4]>::try_from(books) else {
        bail!("the run ended before the last counts were read");
    };
    let useful = ruler.useful(0, 1).ok().map(|useful| useful.useful());
    let outcome = ChainOutcome::new(&load, judged, [&books[2], &books[3]], useful);
    let node =
        |from: usize| Work::between(&books[from], &books[from + 1], readings[from + 1] - readings[from]);
    let works = [node(0), node(2)];
    Ok(Visit { load, outcome, works })
}

/// The counts and processor time so far.
fn read(node: &Gateway, sidecar: SocketAddr) -> anyhow::Result<Books> {
    let [metrics, of_sidecar] =
        [node.admin, sidecar].map(|admin| http::get(admin, "/metrics", ANSWER_WITHIN));
    Books::read(&metrics?, &of_sidecar?, node.process_id())
}
