//! Whole pages of made-up results.

use super::{page, write};
use crate::command::sample;

/// The page without its style and without what is inside the plots, whose drawing the report crate's own
/// snapshots hold; their titles and descriptions stay.
fn words(page: &str) -> String {
    let page = without(page, "<style>", "</style>");
    without(&page, "</desc>", "</svg>")
}

/// Leaves out what stands between each `from` and the next `to`.
fn without(text: &str, from: &str, to: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(from) {
        let (_, behind) = after.split_once(to).expect("what begins ends");
        kept += before;
        kept += from;
        kept += to;
        rest = behind;
    }
    kept + rest
}

#[test]
fn a_small_page() {
    let page = page(&sample::crowd(9, 2)).unwrap();
    insta::assert_snapshot!(words(&page).replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}

#[test]
fn a_page_needs_nobody_and_fetches_nothing() {
    let page = page(&sample::crowd(30, 2)).unwrap();
    assert!(!page.contains("<b>") && !page.contains("<script"), "unescaped");
    assert_eq!(
        page.matches("src=").count() + page.matches("href=").count() + page.matches("url(").count(),
        0
    );
    assert!(page.contains("prefers-color-scheme: dark"));
}

#[test]
fn nobody_came_is_a_page() {
    let page = page(&sample::quiet(0, 0)).unwrap();
    assert!(page.contains("Nobody came") && page.contains("nothing was measured"));
    assert!(!page.contains("NaN") && !page.contains("inf"), "{}", words(&page));
}

#[test]
fn one_second_is_a_page() {
    let page = page(&sample::quiet(1, 50)).unwrap();
    assert!(
        page.contains("50 requests in 50 tries over 1 s (seed 7); 100 % of the requests"),
        "{}",
        words(&page)
    );
    assert!(!page.contains("NaN") && !page.contains("nothing was measured"), "{}", words(&page));
}

#[test]
fn few_classes_have_ledgers_and_many_have_a_table() {
    let figures = |classes| page(&sample::crowd(12, classes)).unwrap().matches("<figure>").count();
    assert_eq!([1, 2, 8, 9].map(figures), [7, 9, 15, 7]);
    let page = page(&sample::crowd(12, 64)).unwrap();
    assert_eq!(page.matches("<th scope=\"row\">class-").count(), 2 * 64);
}

#[test]
fn what_makes_numbers_doubtful_comes_before_them() {
    let mut result = sample::crowd(12, 1);
    assert!(!page(&result).unwrap().contains("Before you read"));
    result.saturated = true;
    result.run.interrupted = true;
    result.run.length_s = 60.0;
    result.run.shards = vec!["1/2".to_owned()];
    result.totals.in_flight = 5;
    let page = page(&result).unwrap();
    let (before, _) = page.split_once("In numbers").unwrap();
    for warning in [
        "Generator saturated",
        "ended after 12.3 s of a schedule of 60 s",
        "1 of 2 shards (1/2)",
        "5 tries had no outcome",
    ] {
        assert!(before.contains(warning), "{warning}: {before}");
    }
    assert!(page.contains("by so much the stack stays below the line"));
}

/// Goal: no run makes a page that is slow to open. Method: the longest series that is kept (two hours in
/// seconds) with no two neighbours alike, every bucket in use, distributions of 20,000 values, and as many
/// classes as have pictures.
#[test]
fn a_long_run_is_below_a_megabyte() {
    let mut result = sample::crowd(7_200, 8);
    let noise = |place: u64| place * 7_919 % 1_000;
    for second in &mut result.totals.series {
        let place = second.second;
        second.offered += noise(place);
        second.unique_offered += noise(place + 1);
        second.latency_p50_ms = Some(1.0 + noise(place + 2) as f64);
        second.latency_p99_ms = Some(1.0 + noise(place + 3) as f64);
        second.lag_max_us = 1 + noise(place + 4);
        second.latency_buckets = (100..400).map(|index| (index, 1 + noise(place * 300 + index))).collect();
    }
    let values: Vec<(u64, u64)> = (1..20_000).map(|value| (value * value, 1 + noise(value))).collect();
    let histograms = &mut result.totals.histograms;
    histograms.latency_us = values.clone();
    histograms.refusal_us = values.clone();
    histograms.ttfb_us = values.clone();
    histograms.served_us = values[1..].to_vec();
    let size = page(&result).unwrap().len();
    assert!(size < 1_000_000, "{size} bytes");
}

#[test]
fn a_result_that_contradicts_itself_is_named() {
    let mut result = sample::quiet(3, 10);
    result.totals.series[1].latency_buckets = vec![(9_999, 1)];
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.html");
    let message = format!("{:#}", write(&result, &path).unwrap_err());
    assert!(message.contains("run.html") && message.contains("second 1: latency_buckets"), "{message}");
    assert!(!path.exists());
    let message = format!("{:#}", write(&sample::quiet(1, 1), directory.path()).unwrap_err());
    assert!(message.contains("cannot be written"), "{message}");
}
