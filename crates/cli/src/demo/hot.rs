//! `flashweir demo-hot`: one page that everybody wants, three times: straight, through admission, through admission and the cache.

use super::children::{Family, Gateway, Origin};
use super::numbers_only::{self, Choices};
use anyhow::Context;
use bytes::Bytes;
use flashweir_load::{ClassPlan, LoadPlan, Paths, Prepared, Sources, Tally, Target, Template};
use flashweir_origin::placement::Placement;
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule, Share, Stream};
use http::{HeaderValue, Method, header};
use serde::Serialize;
use std::time::Duration;

/// Processor time of each request at the origin: so slow that fifty times its capacity (1,250 requests/s) is within what the generator sends on one core.
const ORIGIN_MS: f64 = 40.0;
/// The page that everybody wants; caches may keep it for ten seconds.
const HOT_PAGE: &str = "/work?max_age=10";
const HOT_HOST: &str = "hot.example";
/// What others want meanwhile, of another host at the same origin; no cache may keep it.
const CALM_PAGE: &str = "/work";
const CALM_HOST: &str = "calm.example";
/// Their part of the capacity.
const CALM_PART: f64 = 0.3;
/// Quiet before the crowd: enough to learn what is usual.
const QUIET: Duration = Duration::from_secs(5);
const CROWD: Duration = Duration::from_secs(12);
const PATIENCE: Duration = Duration::from_secs(2);
const TARGET: Duration = Duration::from_secs(1);
const SOURCES: u32 = 4_000;
const CAPACITY_MEASURED_FOR: Duration = Duration::from_secs(2);
/// For what the origin still has to do for people who have left.
const ASKED_WITHIN: Duration = Duration::from_secs(5);
const CONFIG_FILE: &str = "hot.toml";

/// What is printed.
#[derive(Debug, Serialize)]
struct Numbers {
    /// Requests a second that the origin completes.
    capacity_rps: f64,
    multiple: f64,
    visits: Vec<Visit>,
}

/// One of the three.
#[derive(Debug, Serialize)]
struct Visit {
    name: &'static str,
    /// The crowd and those before it, all for the hot page.
    hot: Figures,
    /// Those who want something else.
    calm: Figures,
    /// Requests that the origin completed, per second of the visit; none where it does not answer in time.
    origin_rps: Option<f64>,
    /// The load generator could not keep up: the visit says little.
    generator_saturated: bool,
}

/// What became of one kind of people.
#[derive(Debug, Serialize)]
struct Figures {
    offered: u64,
    /// Answered within a second, of those who came.
    in_time_ratio: Option<f64>,
    refused: u64,
    timed_out: u64,
    errors: u64,
    p90_ms: Option<f64>,
    p99_ms: Option<f64>,
}

impl Figures {
    fn of(tally: &Tally) -> Self {
        let ratio = tally.goodput as f64 / tally.offered as f64;
        Self {
            offered: tally.offered,
            in_time_ratio: (tally.offered > 0).then_some(ratio),
            refused: tally.refused,
            timed_out: tally.timed_out,
            errors: tally.errors,
            p90_ms: tally.latency_ms.p90,
            p99_ms: tally.latency_ms.p99,
        }
    }
}

/// Runs the three visits and prints their numbers.
///
/// # Errors
/// A child that does not start, or numbers that cannot be written.
pub(crate) fn run(choices: &Choices) -> anyhow::Result<()> {
    numbers_only::run(choices, "hot.json", play, table)
}

fn play(choices: &Choices, family: &Family) -> anyhow::Result<Numbers> {
    let placement = Placement::divide();
    if let Some(placement) = &placement {
        placement.leave_the_origin_its_core().context("this process cannot leave a core to the origin")?;
    }
    let iterations_per_ms = flashweir_origin::calibrate();
    // A fresh one for each visit: after a crowd the first would be busy for a while with people who have left.
    let start_origin = || {
        let origin = Origin::start(family, ORIGIN_MS, iterations_per_ms, &choices.out)?;
        if let Some(placement) = &placement {
            let given = placement.give_the_origin_its_core(origin.process_id());
            given.context("the origin cannot be moved to a core of its own")?;
        }
        anyhow::Ok(origin)
    };
    let origin = start_origin()?;
    let capacity_rps = flashweir_load::measure_capacity(&origin.url(), 4, CAPACITY_MEASURED_FOR)?;
    let visit = |name, address: &str, origin: &Origin| visit(choices, capacity_rps, name, address, origin);
    let mut visits = vec![visit("without Flashweir", &origin.address(), &origin)?];
    drop(origin);
    for (name, config) in
        [("with admission", ""), ("with admission and the cache", "[cache]\nmode = \"crowd\"\n")]
    {
        let origin = start_origin()?;
        let file = choices.out.join(CONFIG_FILE);
        std::fs::write(&file, config).with_context(|| format!("{}: cannot be written", file.display()))?;
        let gateway = Gateway::start_with(family, &origin, &choices.out, Some(&file))?;
        visits.push(visit(name, &gateway.address(), &origin)?);
    }
    Ok(Numbers { capacity_rps, multiple: choices.multiple, visits })
}

/// Sends both kinds of people to an address, at which or behind which the origin is.
fn visit(
    choices: &Choices,
    capacity_rps: f64,
    name: &'static str,
    address: &str,
    origin: &Origin,
) -> anyhow::Result<Visit> {
    let target = Target::parse(&format!("http://{address}{CALM_PAGE}"))?;
    let (usual, crowd) = (capacity_rps * CALM_PART, capacity_rps * choices.multiple);
    let hot = RateProfile::constant(usual, QUIET)?.then(RateProfile::constant(crowd, CROWD)?);
    let calm = RateProfile::constant(usual, QUIET + CROWD)?;
    let length = QUIET + CROWD;
    let stream = |profile, class| Stream {
        arrivals: ArrivalProcess::Poisson(profile),
        classes: vec![Share { class, weight: 1.0 }],
    };
    let schedule = Schedule::new(vec![stream(hot, 0), stream(calm, 1)], choices.seed)?;
    let class = |name: &str, host: &'static str, page: &str| -> anyhow::Result<ClassPlan> {
        let fields = [(header::HOST, HeaderValue::from_static(host))];
        let request = Prepared::new(&target, Method::GET, &fields, Bytes::new())?;
        let paths = Paths::Template(Template::new(page, None, 0)?);
        Ok(ClassPlan { timeout: PATIENCE, good_within: TARGET, ..ClassPlan::new(name, request, paths) })
    };
    let classes = [class("hot", HOT_HOST, HOT_PAGE)?, class("calm", CALM_HOST, CALM_PAGE)?];
    let first = classes[0].clone();
    let plan = LoadPlan {
        classes: classes.into(),
        sources: Sources { count: SOURCES, ..Sources::default() },
        seed: choices.seed,
        ..LoadPlan::new(target, schedule, first)
    };
    let before = origin.completed(ASKED_WITHIN);
    let load = flashweir_load::run(plan, |_| {})?;
    let after = origin.completed(ASKED_WITHIN);
    let figures = |class: &str| Figures::of(load.classes.get(class).unwrap_or(&Tally::default()));
    Ok(Visit {
        name,
        hot: figures("hot"),
        calm: figures("calm"),
        origin_rps: before
            .ok()
            .zip(after.ok())
            .map(|(before, after)| after.saturating_sub(before) as f64 / length.as_secs_f64()),
        generator_saturated: load.saturated,
    })
}

fn table(numbers: &Numbers) -> String {
    let percent =
        |ratio: Option<f64>| ratio.map_or("-".to_owned(), |ratio| format!("{:.1} %", ratio * 100.0));
    let ms = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.0} ms"));
    let mut text = format!(
        "The origin completes {:.0} requests/s; one page is asked for at {:.0} times that for {} s.\n\n\
         {:<30} {:>12} {:>12} {:>10} {:>12} {:>12} {:>10}\n",
        numbers.capacity_rps,
        numbers.multiple,
        CROWD.as_secs(),
        "",
        "hot in time",
        "hot refused",
        "hot p99",
        "calm in time",
        "calm p90",
        "origin/s",
    );
    for visit in &numbers.visits {
        let Visit { name, hot, calm, origin_rps, generator_saturated } = visit;
        let origin = origin_rps.map_or("-".to_owned(), |rate| format!("{rate:.1}"));
        let note = if *generator_saturated { "  (the load generator could not keep up)" } else { "" };
        text += &format!(
            "{name:<30} {:>12} {:>12} {:>10} {:>12} {:>12} {origin:>10}{note}\n",
            percent(hot.in_time_ratio),
            hot.refused,
            ms(hot.p99_ms),
            percent(calm.in_time_ratio),
            ms(calm.p90_ms),
        );
    }
    text
}
