//! Goal: an experiment is repeatable, judged by its rules, and its table changes only when an algorithm
//! does. Method: one experiment with minutes instead of an hour, compared with the committed table.

use crate::experiments::{
    ELSEWHERE, EXPERIMENTS, Finding, Laboratory, OPENING_MATCH, Options, document, find, revised, text,
};
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

/// Goal: the same for the server without control, whose runs are short enough to be made as they are.
#[test]
fn the_server_without_control_has_the_committed_tables() {
    let laboratory = Laboratory::new(Options { seeds: 1, ..Options::default() }).expect("options in range");
    for id in ["INTEL-T1", "INTEL-F3", "INTEL-F4", "INTEL-F5", "INTEL-F6"] {
        let experiment = find(id).expect("it exists");
        let finding = (experiment.run)(&laboratory).expect("it runs");
        insta::assert_snapshot!(id, text(experiment, &finding));
    }
}

/// Goal: the same for the paper's controls, and for feedback that gets lost.
#[test]
fn the_server_with_control_has_the_committed_tables() {
    let laboratory = Laboratory::new(Options { seeds: 1, ..Options::default() }).expect("options in range");
    for id in [
        "INTEL-F7",
        "INTEL-F8",
        "INTEL-F9",
        "INTEL-F10",
        "INTEL-F11",
        "INTEL-F12",
        "INTEL-5.3SS",
        "INTEL-F13",
        "INTEL-F14",
        "INTEL-F15",
        "INTEL-F16",
        "INTEL-F17",
        "INTEL-F18",
        "INTEL-ABS",
        "INTEL-LOSS",
    ] {
        let experiment = find(id).expect("it exists");
        let finding = (experiment.run)(&laboratory).expect("it runs");
        insta::assert_snapshot!(id, text(experiment, &finding));
    }
}

/// Goal: the same for Cataclysm's policies, whose runs are short enough to be made as they are.
#[test]
fn cataclysms_policies_have_the_committed_tables() {
    let laboratory = Laboratory::new(Options { seeds: 1, ..Options::default() }).expect("options in range");
    for id in ["CAT-CAP", "CAT-F3", "CAT-F5"] {
        let experiment = find(id).expect("it exists");
        let finding = (experiment.run)(&laboratory).expect("it runs");
        insta::assert_snapshot!(id, text(experiment, &finding));
    }
}

/// Goal: the same for provisioning; CAT-7V follows each request, and takes too long here.
#[test]
fn provisioning_has_the_committed_tables() {
    let laboratory = Laboratory::new(Options { seeds: 1, ..Options::default() }).expect("options in range");
    for id in ["CAT-F6", "CAT-F7", "CAT-RELIEF"] {
        let experiment = find(id).expect("it exists");
        let finding = (experiment.run)(&laboratory).expect("it runs");
        insta::assert_snapshot!(id, text(experiment, &finding));
    }
}

/// Goal: the same for the servers with copies, whose runs are short enough to be made as they are.
#[test]
fn servers_with_copies_have_the_committed_tables() {
    let laboratory = Laboratory::new(Options { seeds: 1, ..Options::default() }).expect("options in range");
    for id in ["RADAR-F4.8", "RADAR-F4.10"] {
        let experiment = find(id).expect("it exists");
        let finding = (experiment.run)(&laboratory).expect("it runs");
        insta::assert_snapshot!(id, text(experiment, &finding));
    }
}

/// Goal: the same for Purge's counts of flows, whose runs are short enough to be made as they are.
#[test]
fn purges_counts_have_the_committed_tables() {
    let laboratory = Laboratory::new(Options { seeds: 1, ..Options::default() }).expect("options in range");
    for id in ["PURGE-F3", "PURGE-MEM"] {
        let experiment = find(id).expect("it exists");
        let finding = (experiment.run)(&laboratory).expect("it runs");
        insta::assert_snapshot!(id, text(experiment, &finding));
    }
}

/// Goal: the committed document has every experiment once, in order, and is what would be written again; a
/// finding takes the place of its section alone.
#[test]
fn the_committed_document_is_whole_and_a_finding_replaces_its_own_section() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reproduction.md");
    let committed = std::fs::read_to_string(path).expect("the document");
    assert_eq!(revised(&committed, &[], "figures"), committed);
    let headings: Vec<&str> = committed
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .filter(|id| !id.contains(' '))
        .collect();
    assert_eq!(headings, EXPERIMENTS.iter().map(|experiment| experiment.id).collect::<Vec<_>>());
    let experiment = find("INTEL-T1").expect("it exists");
    let laboratory = Laboratory::new(Options { seed: 2, ..Options::default() }).expect("options in range");
    let finding = (experiment.run)(&laboratory).expect("it runs");
    let changed = revised(&committed, &[(experiment, finding)], "figures");
    let section = |document: &str, id: &str| {
        let from = document.find(&format!("\n## {id}\n")).expect("a section");
        let end = document[from + 1..].find("\n## ").map_or(document.len(), |end| from + 1 + end);
        document[from..end].to_owned()
    };
    assert_ne!(section(&changed, "INTEL-T1"), section(&committed, "INTEL-T1"));
    for other in headings.iter().filter(|id| **id != "INTEL-T1") {
        assert_eq!(section(&changed, other), section(&committed, other));
    }
}

/// Goal: the committed document counts its own verdicts, in both halves.
#[test]
fn the_committed_document_counts_its_verdicts() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reproduction.md");
    let committed = std::fs::read_to_string(path).expect("the document");
    let verdicts = |half: &str| {
        let count =
            |of: &str| half.lines().filter(|line| line.starts_with(&format!("- Verdict: **{of}"))).count();
        ["matches", "same shape", "differs"].map(count)
    };
    let halves: Vec<&str> = committed.split("\n# What of the papers comes out on a testbed").collect();
    assert_eq!(halves.len(), 2);
    for half in halves {
        let [matches, same_shape, differs] = verdicts(half);
        let all = matches + same_shape + differs;
        let summary =
            format!("\n**{all} figures: matches {matches}, same shape {same_shape}, differs {differs}.**\n");
        assert!(all > 0 && half.contains(&summary), "{summary}");
    }
}

/// Goal: CAT-F4 and PURGE-F5 are measured, and so have numbers in the document. Method: a measurement of
/// one seed; the numbers are the machine's, so only what does not depend on it is asked.
#[test]
fn measured_figures_have_numbers() {
    let laboratory = Laboratory::new(Options { seeds: 1, ..Options::default() }).expect("options in range");
    for (id, what) in [("CAT-F4", "refused by a threshold/s"), ("PURGE-F5", "1.25 million packets, s")] {
        let experiment = find(id).expect("it exists");
        let finding = (experiment.run)(&laboratory).expect("it runs");
        let row = finding.rows.iter().find(|row| row.what == what).expect(what);
        assert!(row.paper.is_some() && row.ours.values().all(|it| it.mean > 0.0 && it.mean.is_finite()));
        assert!(!row.ours.is_empty() && !finding.csv.is_empty());
    }
}

/// Goal: the same for the testbed, with bystanders and with a server short of memory. Method: minutes instead
/// of the paper's half an hour, in which NEWS decides ten times.
#[test]
fn short_runs_on_the_testbed_have_the_committed_tables() {
    let options = Options { seeds: 1, quiet_s: 240, crowd_s: 400, ..Options::default() };
    let laboratory = Laboratory::new(options).expect("options in range");
    for id in ["NEWS-F22", "NEWS-T3"] {
        let experiment = find(id).expect("it exists");
        let finding = (experiment.run)(&laboratory).expect("it runs");
        insta::assert_snapshot!(id, text(experiment, &finding));
    }
}

/// Goal: a log of the match takes the place of the counts in the repository, and its name is the first of
/// the notes; without a log they name the file of the counts.
#[test]
fn a_log_changes_who_comes_and_is_named_first_in_the_notes() {
    let minute = |minute: u32| {
        let requests = if minute < 930 { 600 } else { 6_000 + 60 * (minute - 930) };
        format!("1998-06-10T{:02}:{:02}:00Z,{requests}\n", minute / 60, minute % 60)
    };
    let log = format!("minute_gmt,requests\n{}", (900..990).map(minute).collect::<String>());
    let opening_match = OPENING_MATCH.crowd(&log).expect("a log");
    let options = Options { seeds: 1, quiet_s: 120, crowd_s: 120, opening_match, ..Options::default() };
    let counted = Options { opening_match: Options::default().opening_match, ..options.clone() };
    let experiment = find("NEWS-F6").expect("it exists");
    let run = |options| (experiment.run)(&Laboratory::new(options).expect("in range")).expect("it runs");
    let (logged, counted) = (run(options), run(counted));
    let starts =
        |finding: &Finding, with: &str| finding.notes.first().is_some_and(|note| note.starts_with(with));
    assert!(
        starts(&logged, "Clients arrive as the log wc98_brazil_scotland_19980610.csv of the opening match"),
        "{:?}",
        logged.notes
    );
    assert!(
        starts(
            &counted,
            "Clients arrive as the counts in lab/lab/src/experiments/news/opening_match.csv of "
        ),
        "{:?}",
        counted.notes
    );
    assert_ne!(logged.rows, counted.rows);
}

#[test]
fn names_are_unique_and_an_unknown_one_is_answered_with_all() {
    let names: BTreeSet<&str> = EXPERIMENTS.iter().map(|experiment| experiment.id).collect();
    assert_eq!(names.len(), EXPERIMENTS.len());
    let error = find("NEWS-F99").expect_err("no such experiment").to_string();
    assert!(error.starts_with("there is no experiment `NEWS-F99`; there are NEWS-"), "{error}");
    assert!(names.iter().all(|name| error.contains(name)), "{error}");
    let measured = find("radar-processes").expect_err("no simulation").to_string();
    assert!(measured.starts_with("RADAR-PROCESSES is measured, not simulated: make bench-"), "{measured}");
    assert!(ELSEWHERE.iter().all(|elsewhere| !names.contains(elsewhere.id)));
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
