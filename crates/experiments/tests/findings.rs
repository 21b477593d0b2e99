//! Goal: an experiment is repeatable, judged by its rules, and its table changes only when an algorithm does. Method: one
//! experiment with minutes instead of an hour, compared with the committed table.

use flashweir_experiments::{EXPERIMENTS, Laboratory, Options, document, find, text};
use std::collections::BTreeSet;

fn short() -> Laboratory {
    let options = Options { seeds: 1, quiet_s: 180, crowd_s: 240, ..Options::default() };
    Laboratory::new(options).expect("options in range")
}

#[test]
fn a_short_run_of_figure_13_has_the_committed_table() {
    let experiment = find("NEWS-F13").expect("it exists");
    let laboratory = short();
    let finding = (experiment.run)(&laboratory).expect("it runs");
    insta::assert_snapshot!(text(experiment, &finding));
    // A laboratory remembers, and another one finds the same.
    let again = (experiment.run)(&laboratory).expect("it runs");
    let elsewhere = (experiment.run)(&short()).expect("it runs");
    for other in [again, elsewhere] {
        assert_eq!(finding.rows, other.rows);
        assert_eq!(finding.csv, other.csv);
        assert_eq!(finding.figure.svg(), other.figure.svg());
    }
    assert!(finding.csv.starts_with("series,seconds,kb/s\nnone,60,"));
    let document = document(&[(experiment, finding)], "figures");
    assert!(document.contains("| [NEWS-F13](#news-f13) |") && document.contains("(figures/news-f13.svg)"));
}

#[test]
fn names_are_unique_and_an_unknown_one_is_answered_with_all() {
    let names: BTreeSet<&str> = EXPERIMENTS.iter().map(|experiment| experiment.id).collect();
    assert_eq!(names.len(), EXPERIMENTS.len());
    let error = find("NEWS-F99").expect_err("no such experiment").to_string();
    assert!(error.starts_with("there is no experiment `NEWS-F99`; there are NEWS-"), "{error}");
    assert!(names.iter().all(|name| error.contains(name)), "{error}");
}

#[test]
fn options_out_of_range_are_told() {
    let error = |options| Laboratory::new(options).expect_err("out of range").to_string();
    assert_eq!(error(Options { seeds: 0, ..Options::default() }), "number of seeds is 0; expected 1 to 1000");
    assert_eq!(
        error(Options { quiet_s: 5, ..Options::default() }),
        "quiet time in seconds is 5; expected 120 to 20000"
    );
}
