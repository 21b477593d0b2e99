//! The run that the options describe.

use super::RunArgs;
use super::class::Class;
use super::classes::{self, Described};
use super::inputs::Inputs;
use crate::{CrowdWindow, LoadPlan, LoadTarget};
use anyhow::{Context, bail, ensure};
use flashweir_workload::{ArrivalProcess, Part, Schedule, Share, Stream};
use std::path::Path;

/// Name of the only class of a run without classes.
const ONLY_CLASS: &str = "all";

/// The run that the options describe, checked.
///
/// # Errors
/// Options that make no run, with the one thing that is wrong.
pub(super) fn plan(options: &RunArgs, inputs: &mut Inputs) -> anyhow::Result<LoadPlan> {
    let url = options.url.as_deref().context("the URL is missing")?;
    let target = LoadTarget::parse(url)?;
    let (schedule, classes) = match &options.classes {
        Some(file) => several(options, file, &target, inputs)?,
        None => one(options, &target, inputs)?,
    };
    let mut plans = classes.into_iter().map(|class| class.plan);
    let first = plans.next().context("a run needs a class")?;
    let mut plan = LoadPlan::new(target, schedule, first.clone());
    plan.classes = std::iter::once(first).chain(plans).collect();
    plan.seed = options.seed;
    plan.part = options.shard;
    plan.start_at = options.start_at;
    if let Some(crowd) = options.crowd_window {
        let length_s = plan.schedule.length().as_secs_f64();
        let CrowdWindow { to_s, .. } = crowd;
        ensure!(to_s < length_s, "--crowd-window: it ends at {to_s} s, but the run lasts {length_s} s");
        plan.crowd = Some(crowd);
    }
    options.transport.apply(&mut plan)?;
    plan.check()?;
    Ok(plan)
}

/// One line about who will come.
pub(super) fn announcement(plan: &LoadPlan) -> String {
    let people = plan.schedule.expected().round();
    let length = plan.schedule.length().as_secs_f64();
    let digits = if length < 10.0 { 1 } else { 0 };
    let part = if plan.part == Part::WHOLE {
        String::new()
    } else {
        format!(", of which this is part {}", plan.part)
    };
    let seed = plan.seed;
    let is_given = |stream: &Stream| matches!(stream.arrivals, ArrivalProcess::Given(_));
    let about = if plan.schedule.streams().iter().all(is_given) { "" } else { "about " };
    format!("{about}{} people in {length:.digits$} s, seed {seed}{part}", with_commas(people))
}

fn one(
    options: &RunArgs,
    target: &LoadTarget,
    inputs: &mut Inputs,
) -> anyhow::Result<(Schedule, Vec<Class>)> {
    let class = options.class.class(ONLY_CLASS, target, options.seed, inputs)?;
    let arrivals = class.arrivals.clone().context(
        "nothing says when people come: expected one of --rate, --profile, --crowd, --replay, --workers, or --classes",
    )?;
    Ok((Schedule::one(arrivals, options.seed), vec![class]))
}

/// The classes of a file, some of them with the command line's people.
fn several(
    options: &RunArgs,
    file: &Path,
    target: &LoadTarget,
    inputs: &mut Inputs,
) -> anyhow::Result<(Schedule, Vec<Class>)> {
    let described = classes::read(file, target, options.seed, options.class.duration(), inputs)?;
    let numbered = || (0u16..).zip(&described);
    let share =
        |(class, Described { weight, .. }): (u16, &Described)| weight.map(|weight| Share { class, weight });
    let shares: Vec<_> = numbered().filter_map(share).collect();
    let mut streams = Vec::new();
    match (options.class.arrival_plan(inputs)?, shares.is_empty()) {
        (Some(arrival_plan), false) => {
            ensure!(
                !arrival_plan.in_closed_loop,
                "--timing closed: give a class of the file workers of its own"
            );
            streams.push(Stream { arrivals: arrival_plan.arrivals, classes: shares });
        }
        (None, true) => {}
        (Some(_), true) => bail!("the options say when people come, but no class of the file has a weight"),
        (None, false) => {
            bail!(
                "classes with a weight share people, but no option says when they come: --rate, --profile, ..."
            )
        }
    }
    for (class, Described { class: Class { arrivals, .. }, .. }) in numbered() {
        let classes = vec![Share { class, weight: 1.0 }];
        streams.extend(arrivals.clone().map(|arrivals| Stream { arrivals, classes }));
    }
    let schedule = Schedule::new(streams, options.seed)?;
    Ok((schedule, described.into_iter().map(|described| described.class).collect()))
}

fn with_commas(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Protocol;
    use clap::Parser;
    use std::io::Write;
    use std::time::{Duration, UNIX_EPOCH};

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        run: RunArgs,
    }

    fn plan(options: &str) -> Result<LoadPlan, String> {
        plan_of("http://127.0.0.1:8080/", options)
    }

    fn plan_of(url: &str, options: &str) -> Result<LoadPlan, String> {
        let words = ["load", url].into_iter().chain(options.split_whitespace());
        let words = Words::try_parse_from(words).map_err(|error| error.to_string())?;
        super::plan(&words.run, &mut Inputs::default()).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn the_defaults_are_those_of_the_library() {
        let plan = plan("--rate 5").unwrap();
        let usual = LoadPlan::new(plan.target.clone(), (*plan.schedule).clone(), plan.classes[0].clone());
        assert_eq!((plan.sources, plan.seed, plan.threads), (usual.sources, usual.seed, usual.threads));
        assert_eq!(plan.transport.protocol, usual.transport.protocol);
        assert_eq!((plan.part, plan.start_at, plan.crowd), (Part::WHOLE, None, None));
        assert_eq!(plan.classes[0].name, "all");
        assert_eq!(announcement(&plan), "about 50 people in 10 s, seed 1");
    }

    #[test]
    fn the_run_is_as_told() {
        let options = "--rate 5000 --duration 2.5s --shard 2/3 --start-at 4000000000 --seed 9 --threads 4 \
                       --connections-most 10 --connections keep-alive --sources 300 --source-network 127.1.0.0/16";
        let plan = plan(options).unwrap();
        assert_eq!((plan.part, plan.seed, plan.threads.get()), (Part::new(1, 3).unwrap(), 9, 4));
        assert_eq!(plan.start_at, Some(UNIX_EPOCH + Duration::from_secs(4_000_000_000)));
        assert_eq!(plan.transport.protocol, Protocol::Http1KeepAlive);
        assert_eq!(plan.transport.connections_most, Some(2));
        assert_eq!((plan.sources.count, plan.sources.network.to_string().as_str()), (300, "127.1.0.0/16"));
        let said = "about 12,500 people in 2.5 s, seed 9, of which this is part 2/3";
        assert_eq!(announcement(&plan), said);
        let workers = self::plan("--workers 3 --timing closed").unwrap();
        assert_eq!(announcement(&workers), "3 people in 10 s, seed 1");
        assert_eq!(self::plan("--rate 5 --http2").unwrap().transport.protocol, Protocol::Http2);
        let few = self::plan("--rate 5 --connections-most 1 --threads 4").unwrap();
        assert_eq!(few.transport.connections_most, Some(1));
        let tls = plan_of("https://127.0.0.1:8080/", "--rate 5 --insecure").unwrap();
        assert!(tls.target.tls && tls.transport.tls.insecure);
    }

    #[test]
    fn the_crowd_is_as_the_schedule_or_the_option_says() {
        let crowd = plan("--rate 50 --step 500@3s --step 50@6s").unwrap().crowd.unwrap();
        assert!((crowd.from_s - 3.0).abs() < 0.1 && (crowd.to_s - 6.0).abs() < 0.1, "{crowd:?}");
        let window = plan("--rate 50 --step 500@3s --step 50@6s --crowd-window 2s-7s").unwrap().crowd;
        assert_eq!(window, Some(CrowdWindow { from_s: 2.0, to_s: 7.0 }));
        assert!(plan("--rate 50 --crowd-window 2s-10s").unwrap_err().contains("the run lasts 10 s"));
    }

    #[test]
    fn classes_share_a_stream_or_have_their_own() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let text = "[[class]]\nname = 'a'\nweight = 3\n[[class]]\nname = 'b'\nrate = 7\n\
                    [[class]]\nname = 'c'\nweight = 1\n";
        file.write_all(text.as_bytes()).unwrap();
        let option = format!("--classes {}", file.path().display());
        let plan = plan(&format!("{option} --rate 40 --duration 5s")).unwrap();
        let names: Vec<_> = plan.classes.iter().map(|class| class.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        let [shared, own] = plan.schedule.streams() else { panic!("two streams") };
        assert_eq!(shared.classes, [Share { class: 0, weight: 3.0 }, Share { class: 2, weight: 1.0 }]);
        assert_eq!(own.classes, [Share { class: 1, weight: 1.0 }]);
        assert_eq!((own.arrivals.expected(), plan.schedule.length()), (35.0, Duration::from_secs(5)));
        assert!(self::plan(&option).unwrap_err().contains("no option says when they come"));
        assert!(
            self::plan(&format!("{option} --rate 5 --retry at-once")).unwrap_err().contains("cannot be used")
        );
    }

    #[test]
    fn numbers_have_commas() {
        let text = [0.0, 7.0, 999.0, 1000.0, 12_345.0, 1_234_567.0].map(with_commas);
        assert_eq!(text, ["0", "7", "999", "1,000", "12,345", "1,234,567"]);
    }
}
