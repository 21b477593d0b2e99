use super::*;
use crate::command::sample;
use crate::{CrowdWindow, Recovery};
use proptest::prelude::*;

fn failures_of(result: &LoadResult, texts: &[&str]) -> Vec<String> {
    let assertions: Vec<_> = texts.iter().map(|text| parse(text).unwrap()).collect();
    failures(&assertions, result)
}

#[test]
fn what_holds_says_nothing() {
    let holding = [
        "offered == 1100",
        "goodput_ratio >= 0.94",
        "goodput_ratio>=94%",
        "error_ratio < 2%",
        "p99 < 613ms",
        "p99.9 <= 0.7s",
        "latency_p99 > 612ms",
        "refusal_p99 < 62ms",
        "lag_p99 < 1.3ms",
        "lag_p50 == 20us",
        "offered_rps >= 110",
        "browsers.offered == 1000",
        "buyers.p99.9 == 700ms",
        "connections == 1000",
        "connections_failed == 2",
        "connections_reused == 0",
        "retry_amplification <= 1",
        "timed_out == 0",
    ];
    assert_eq!(failures_of(&sample::result(), &holding), Vec::<String>::new());
}

#[test]
fn what_does_not_hold_says_what_is() {
    let failed = failures_of(
        &sample::result(),
        &[
            "p99   <  500ms",
            "goodput_ratio >= 95%",
            "buyers.offered > 100",
            "p50 < 10ms",
            "served_p99 < 9s",
            "b.p50 < 1s",
        ],
    );
    assert_eq!(
        failed,
        [
            "p99 < 500ms: p99 is 612.3 ms",
            "goodput_ratio >= 95%: goodput_ratio is 94.27 %",
            "buyers.offered > 100: offered is 100",
            "p50 < 10ms: p50 is 10.00 ms",
            "served_p99 < 9s: nothing was measured",
            "b.p50 < 1s: there is no class \"b\", only browsers, buyers",
        ]
    );
}

#[test]
fn a_saturated_generator_fails_every_run_with_assertions() {
    let mut result = sample::result();
    result.saturated = true;
    assert!(failures_of(&result, &[]).is_empty());
    let failed = failures_of(&result, &["offered == 1100"]);
    assert_eq!(failed.len(), 1);
    assert!(failed[0].contains("saturated"), "{failed:?}");
    assert!(enforce(&[parse("offered == 1100").unwrap()], &result).is_err());
    assert!(enforce(&[], &result).is_ok());
}

#[test]
fn never_recovered_is_longer_than_any_time() {
    let mut result = sample::result();
    let failed = |result: &LoadResult| failures_of(result, &["recovery <= 1h"]);
    assert!(failed(&result)[0].contains("no crowd to recover from"));
    result.crowd = Some(CrowdWindow { from_s: 3.0, to_s: 6.0 });
    assert!(failed(&result)[0].contains("too little was seen"));
    let judged =
        |seconds| Some(Recovery { goodput_ratio_before: 1.0, p99_before_ms: 9.0, seconds, watched_s: 12.0 });
    result.recovery = judged(None);
    assert_eq!(failed(&result), ["recovery <= 1h: recovery is never"]);
    assert!(failures_of(&result, &["recovery > 10s"]).is_empty());
    result.recovery = judged(Some(3.0));
    assert!(failed(&result).is_empty());
}

#[test]
fn an_interrupted_run_is_counted_over_what_it_did() {
    let mut result = sample::result();
    result.run.length_s = 1_000.0;
    result.run.interrupted = true;
    result.run.duration_s = 11.0;
    assert!(failures_of(&result, &["offered_rps == 100"]).is_empty());
}

#[test]
fn what_cannot_be_meant_is_told_at_once() {
    let check = |text: &str, wanted: &str| {
        let said = parse(text).unwrap_err();
        assert!(said.contains(wanted), "{text}: {said} lacks {wanted}");
    };
    check("", "like 'p99 < 500ms'");
    check("p99", "one of >= <= > < ==");
    check("p99 = 500ms", "one of >= <= > < ==");
    check("p99 != 500ms", "one of >= <= > < ==");
    check("p99 < 500", "write 500ms");
    check("p99 <", "like 500ms");
    check("p99 < 500ms 3", "like 500ms");
    check("p97 < 500ms", "there is no metric \"p97\"; did you mean p9");
    check("buyers.gooodput > 3", "there is no metric \"gooodput\"; did you mean goodput?");
    check("buyers.recovery < 3s", "for the whole run only");
    check("buyers.connections < 3", "for the whole run only");
    check(".p99 < 3s", "no class before the dot");
    check("goodput_ratio > 95", "write 95%");
}

#[test]
fn what_could_only_fail_is_found_before_the_run() {
    let check_one = |text: &str| check(&[parse(text).unwrap()], &["buyers", "browsers"], false);
    assert!(check_one("buyers.p99 < 1s").is_ok() && check_one("p99 < 1s").is_ok());
    assert_eq!(
        check_one("byers.p99 < 1s").unwrap_err(),
        "--assert 'byers.p99 < 1s': there is no class \"byers\", only buyers, browsers"
    );
    assert!(check_one("recovery < 1s").unwrap_err().contains("--crowd-window"));
    assert!(check(&[parse("recovery < 1s").unwrap()], &[], true).is_ok());
}

/// The help is the list of metrics that people see: it must name what there is.
#[test]
fn the_help_names_every_metric() {
    use crate::command::metric::{LEDGER, POINTS, RUN, TIMES};
    let names = LEDGER.iter().map(|metric| metric.name).chain(RUN.iter().map(|metric| metric.name));
    for name in names.chain(POINTS.iter().map(|point| point.name)).chain(TIMES.iter().map(|times| times.name))
    {
        assert!(HELP.contains(name), "{name}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,40}") {
        let _ = parse(&text);
    }

    #[test]
    fn nothing_that_looks_like_one_does(text in "[a-z_.]{0,12} ?[<>=!]{0,3} ?[0-9.eE+-]{0,8}[a-zµ%]{0,3}") {
        let _ = parse(&text);
    }

    #[test]
    fn what_is_written_is_read_the_same(
        class in proptest::option::of("[a-z][a-z0-9_-]{0,8}"),
        metric in prop::sample::select(vec!["p99", "p99.99", "refusal_p50", "lag_max", "served_mean"]),
        operator in prop::sample::select(Operator::ALL.to_vec()),
        value in 0u32..1_000_000,
        unit in prop::sample::select(vec!["us", "ms", "s", " s", "h"]),
        space in " {0,3}",
    ) {
        let subject = class.as_ref().map_or_else(|| metric.to_owned(), |class| format!("{class}.{metric}"));
        let assertion = parse(&format!("{subject}{space}{}{space}{value}{unit}", operator.sign())).unwrap();
        prop_assert_eq!(&assertion.class, &class);
        prop_assert_eq!(assertion.operator, operator);
        prop_assert_eq!(parse(&assertion.to_string()).unwrap(), assertion);
    }
}
