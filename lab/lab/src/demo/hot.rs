//! `flashweir demo-hot`: one page that the whole crowd wants, four times: straight, through admission,
//! through admission and the cache, and a page that no cache may keep, with a grace.

use super::children::{Family, Gateway, Origin};
use super::numbers_only::{self, Choices};
use anyhow::Context;
use bytes::Bytes;
use flashweir_load::{
    ClassPlan, LoadPlan, LoadResult, LoadTarget, Paths, Prepared, Sources, Tally, Template,
};
use flashweir_testbed::origin::placement::Placement;
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule, Share, Stream};
use http::{HeaderValue, Method, header};
use serde::Serialize;
use std::time::Duration;

/// Processor time of each request at the origin: so slow that fifty times its capacity (1,250 requests/s) is
/// within what the generator sends on one core.
const ORIGIN_MS: f64 = 40.0;
/// The page that the whole crowd wants; caches may keep it for ten seconds.
const HOT_PAGE: &str = "/hot?max_age=10";
/// The same, and nothing says that a cache may keep it.
const UNCACHEABLE_PAGE: &str = "/hot";
const HOT_HOST: &str = "hot.example";
/// Page that other people want meanwhile, of another host at the same origin; no cache may keep it.
const CALM_PAGE: &str = "/work";
const CALM_HOST: &str = "calm.example";
/// Their part of the capacity.
const CALM_PART: f64 = 0.3;
/// Quiet before the crowd: enough to learn what is usual.
const QUIET: Duration = Duration::from_secs(6);
const CROWD: Duration = Duration::from_secs(10);
/// The crowd is noticed within this time; numbers of the crowd once noticed are from then on.
const NOTICED_WITHIN: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(2);
const TARGET: Duration = Duration::from_secs(1);
const SOURCES: u32 = 4_000;
const CAPACITY_MEASURED_FOR: Duration = Duration::from_secs(2);
/// For what the origin still has to do for people who have left.
const ASKED_WITHIN: Duration = Duration::from_secs(5);
const CONFIG_FILE: &str = "hot.toml";

/// A kind of crowd, and the protection before the origin.
struct Case {
    name: &'static str,
    page: &'static str,
    /// The gateway's configuration; none: no gateway.
    config: Option<&'static str>,
}

const CASES: [Case; 4] = [
    Case { name: "without Flashweir", page: HOT_PAGE, config: None },
    Case { name: "with admission", page: HOT_PAGE, config: Some("") },
    Case {
        name: "with admission and the cache",
        page: HOT_PAGE,
        config: Some("[cache]\nmode = \"crowd\"\n"),
    },
    Case {
        name: "not cacheable, a grace of 2 s",
        page: UNCACHEABLE_PAGE,
        config: Some(
            "[cache]\nmode = \"crowd\"\n[[class]]\nname = \"hot\"\nmatch.path = \"/hot\"\ngrace = \"2s\"\n\
             [[class]]\nname = \"others\"\n",
        ),
    },
];

/// Printed numbers.
#[derive(Debug, Serialize)]
struct Numbers {
    /// Requests a second that the origin completes.
    capacity_rps: f64,
    multiple: f64,
    visits: Vec<Visit>,
}

/// One of the four.
#[derive(Debug, Serialize)]
struct Visit {
    name: &'static str,
    /// The crowd, all for the hot page.
    hot: Figures,
    /// The same once the crowd is noticed.
    hot_noticed: NoticedFigures,
    /// People who want something else: before the crowd, in its first two seconds, and then.
    calm_before: Figures,
    calm_at_first: Figures,
    calm: Figures,
    /// 95th percentile of those who want something else, once the crowd is noticed over before it; none where
    /// more than one in twenty gets no answer.
    calm_p95_ratio: Option<f64>,
    /// Requests that the origin completed, per second of the visit; none where it does not answer in time.
    origin_rps: Option<f64>,
    /// Of the crowd, once noticed: those that were not for the others.
    origin_hot_rps: Option<f64>,
    /// The load generator could not keep up: the visit says little.
    generator_saturated: bool,
}

/// Outcome for one kind of people.
#[derive(Debug, Serialize)]
struct Figures {
    offered: u64,
    /// Answered within a second, of those who came.
    in_time_ratio: Option<f64>,
    refused: u64,
    timed_out: u64,
    errors: u64,
    p90_ms: Option<f64>,
    /// Of all who came: none where more than one in twenty gets no answer.
    p95_ms: Option<f64>,
    p99_ms: Option<f64>,
}

/// Outcome of the crowd from [`NOTICED_WITHIN`] on.
#[derive(Debug, Serialize)]
struct NoticedFigures {
    offered: u64,
    in_time_ratio: Option<f64>,
    /// Answers in time a second, of the crowd and the others, over the origin's capacity.
    goodput_over_capacity: f64,
}

impl Figures {
    fn of(tally: &Tally) -> Self {
        Self {
            offered: tally.offered,
            in_time_ratio: ratio(tally.goodput, tally.offered),
            refused: tally.refused,
            timed_out: tally.timed_out,
            errors: tally.errors,
            p90_ms: tally.latency_ms.p90,
            p95_ms: p95_of_all_ms(tally),
            p99_ms: tally.latency_ms.p99,
        }
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The 95th percentile of all tries, where one without an answer takes longer than any with one.
fn p95_of_all_ms(tally: &Tally) -> Option<f64> {
    let rank = (tally.offered as f64 * 0.95).ceil() as u64;
    let mut counted = 0;
    let mut values = tally.histograms.latency_us.iter();
    let value = values.find(|(_, count)| {
        counted += count;
        counted >= rank
    });
    value.map(|(us, _)| *us as f64 / 1e3)
}

/// Runs the four visits and prints their numbers.
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
    let iterations_per_ms = flashweir_testbed::origin::calibrate();
    // A fresh one for each visit: after a crowd the first would be busy for a while with people who have
    // left.
    let start_origin = || {
        let origin = Origin::start(family, ORIGIN_MS, iterations_per_ms, &choices.out)?;
        if let Some(placement) = &placement {
            let given = placement.give_the_origin_its_core(origin.process_id());
            given.context("the origin cannot be moved to a separate core")?;
        }
        anyhow::Ok(origin)
    };
    let capacity_rps = flashweir_load::measure_capacity(&start_origin()?.url(), 4, CAPACITY_MEASURED_FOR)?;
    let visit = |case: &Case| {
        let origin = start_origin()?;
        let mode = format!("mode = \"{}\"", if choices.always_caches { "always" } else { "crowd" });
        let Some(config) = case.config else {
            return visit(choices, capacity_rps, case, &origin.address(), &origin);
        };
        let file = choices.out.join(CONFIG_FILE);
        std::fs::write(&file, config.replace("mode = \"crowd\"", &mode))
            .with_context(|| format!("{}: cannot be written", file.display()))?;
        let gateway = Gateway::start_with(family, &origin, &choices.out, Some(&file))?;
        visit(choices, capacity_rps, case, &gateway.address(), &origin)
    };
    let visits = CASES.iter().map(visit).collect::<anyhow::Result<_>>()?;
    Ok(Numbers { capacity_rps, multiple: choices.multiple, visits })
}

/// The kinds of people, by their places in the schedule.
const KINDS: [(&str, &str); 5] = [
    ("hot before", HOT_HOST),
    ("hot", HOT_HOST),
    ("calm before", CALM_HOST),
    ("calm at first", CALM_HOST),
    ("calm", CALM_HOST),
];

/// Sends both kinds of people to an address, at which or behind which the origin is.
fn visit(
    choices: &Choices,
    capacity_rps: f64,
    case: &Case,
    address: &str,
    origin: &Origin,
) -> anyhow::Result<Visit> {
    let target = LoadTarget::parse(&format!("http://{address}{CALM_PAGE}"))?;
    let (usual, crowd) = (capacity_rps * CALM_PART, capacity_rps * choices.multiple);
    let stretch = |rps, from, until: Duration| {
        let profile = RateProfile::constant(rps, until.saturating_sub(from))?;
        let before = (!from.is_zero()).then(|| RateProfile::constant(0.0, from)).transpose()?;
        anyhow::Ok(before.map_or(profile.clone(), |before| before.then(profile)))
    };
    let (noticed, end) = (QUIET + NOTICED_WITHIN, QUIET + CROWD);
    let profiles = [
        stretch(usual, Duration::ZERO, QUIET)?,
        stretch(crowd, QUIET, end)?,
        stretch(usual, Duration::ZERO, QUIET)?,
        stretch(usual, QUIET, noticed)?,
        stretch(usual, noticed, end)?,
    ];
    let streams = (0..).zip(profiles).map(|(class, profile)| Stream {
        arrivals: ArrivalProcess::Poisson(profile),
        classes: vec![Share { class, weight: 1.0 }],
    });
    let schedule = Schedule::new(streams.collect(), choices.seed)?;
    let class = |(name, host): (&str, &'static str)| -> anyhow::Result<ClassPlan> {
        let page = if host == HOT_HOST { case.page } else { CALM_PAGE };
        let fields = [(header::HOST, HeaderValue::from_static(host))];
        let request = Prepared::new(&target, Method::GET, &fields, Bytes::new())?;
        let paths = Paths::Template(Template::new(page, None, 0)?);
        Ok(ClassPlan { timeout: PATIENCE, good_within: TARGET, ..ClassPlan::new(name, request, paths) })
    };
    let classes = KINDS.into_iter().map(class).collect::<anyhow::Result<Vec<_>>>()?;
    let first = classes[0].clone();
    let plan = LoadPlan {
        classes: classes.into(),
        sources: Sources { count: SOURCES, ..Sources::default() },
        seed: choices.seed,
        ..LoadPlan::new(target, schedule, first)
    };
    let completed = || origin.completed(ASKED_WITHIN).ok();
    let at_first = completed();
    // Once the crowd is noticed. Straight at the origin the question would wait like every other request.
    let mut at_noticed = None;
    let load = flashweir_load::run(plan, |progress| {
        if case.config.is_some() && at_noticed.is_none() && progress.elapsed >= noticed {
            at_noticed = Some((progress.elapsed, completed()));
        }
    })?;
    let at_last = completed();
    let figures = |class: &str| Figures::of(load.classes.get(class).unwrap_or(&Tally::default()));
    let (calm_before, calm_at_first, calm) =
        (figures("calm before"), figures("calm at first"), figures("calm"));
    let rate = |before: u64, after: u64, length: Duration| {
        after.saturating_sub(before) as f64 / length.as_secs_f64()
    };
    let origin_hot_rps = at_noticed.zip(at_last).and_then(|((at, before), after)| {
        let length = end.saturating_sub(at);
        let calm_rps = count(&load, "calm", at, |second| second.completed) as f64 / length.as_secs_f64();
        Some((rate(before?, after, length) - calm_rps).max(0.0))
    });
    let [hot_good, calm_good] = ["hot", "calm"].map(|class| count(&load, class, noticed, |it| it.goodput));
    let hot_offered = count(&load, "hot", noticed, |it| it.offered);
    Ok(Visit {
        name: case.name,
        hot: figures("hot"),
        hot_noticed: NoticedFigures {
            offered: hot_offered,
            in_time_ratio: ratio(hot_good, hot_offered),
            goodput_over_capacity: (hot_good + calm_good) as f64
                / (CROWD - NOTICED_WITHIN).as_secs_f64()
                / capacity_rps,
        },
        calm_p95_ratio: calm.p95_ms.zip(calm_before.p95_ms).map(|(crowd, quiet)| crowd / quiet),
        calm_before,
        calm_at_first,
        calm,
        origin_rps: at_first.zip(at_last).map(|(before, after)| rate(before, after, QUIET + CROWD)),
        origin_hot_rps,
        generator_saturated: load.saturated,
    })
}

/// A count of one kind of people who came from this moment on (to a second).
fn count(load: &LoadResult, class: &str, from: Duration, value: fn(&flashweir_load::Second) -> u64) -> u64 {
    let seconds = load.classes.get(class).into_iter().flat_map(|tally| &tally.series);
    seconds.filter(|second| second.second >= from.as_secs()).map(value).sum()
}

fn table(numbers: &Numbers) -> String {
    let percent =
        |ratio: Option<f64>| ratio.map_or("-".to_owned(), |ratio| format!("{:.2} %", ratio * 100.0));
    let ms = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.0} ms"));
    let rate = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
    let mut text = format!(
        "The origin completes {:.1} requests/s; one page is asked for at {:.0} times that for {} s.\n\
         In time is within {} ms. *: from the {}rd second of the crowd on.\n\n\
         {:<30} {:>9} {:>9} {:>12} {:>9} {:>10} {:>9} {:>9} {:>10} {:>7} {:>10} {:>7}\n",
        numbers.capacity_rps,
        numbers.multiple,
        CROWD.as_secs(),
        TARGET.as_millis(),
        NOTICED_WITHIN.as_secs() + 1,
        "",
        "hot",
        "hot *",
        "goodput *",
        "hot p99",
        "origin/s *",
        "others *",
        "others",
        "others *",
        "over",
        "origin/s",
        "refused",
    );
    text += &format!(
        "{:<30} {:>9} {:>9} {:>12} {:>9} {:>10} {:>9} {:>9} {:>10} {:>7} {:>10} {:>7}\n",
        "",
        "in time",
        "in time",
        "/ capacity",
        "",
        "for hot",
        "in time",
        "quiet p95",
        "p95",
        "quiet",
        "in all",
        "",
    );
    for visit in &numbers.visits {
        let note = if visit.generator_saturated { "  (the load generator could not keep up)" } else { "" };
        let over = visit.calm_p95_ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        text += &format!(
            "{:<30} {:>9} {:>9} {:>12.1} {:>9} {:>10} {:>9} {:>9} {:>10} {over:>7} {:>10} {:>7}{note}\n",
            visit.name,
            percent(visit.hot.in_time_ratio),
            percent(visit.hot_noticed.in_time_ratio),
            visit.hot_noticed.goodput_over_capacity,
            ms(visit.hot.p99_ms),
            rate(visit.origin_hot_rps),
            percent(visit.calm.in_time_ratio),
            ms(visit.calm_before.p95_ms),
            ms(visit.calm.p95_ms),
            rate(visit.origin_rps),
            visit.hot.refused,
        );
    }
    text
}
