//! `flashweir reproduce` through the real binary.

use std::process::{Command, Output};

fn reproduce(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashweir-lab"));
    command.arg("reproduce").args(arguments).output().expect("the binary starts")
}

#[test]
fn an_unknown_name_is_answered_in_one_line_with_all_names() {
    let output = reproduce(&["NEWS-T1", "NEWS-T9"]);
    assert_eq!(output.status.code(), Some(64));
    assert!(output.stdout.is_empty());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.starts_with("flashweir: there is no experiment `NEWS-T9`; there are NEWS-F6, NEWS-T1, "),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1);
    assert_eq!(reproduce(&["NEWS-T1", "--seeds", "0"]).status.code(), Some(64));
}

#[test]
fn the_list_has_a_line_for_each_name() {
    for arguments in [&[][..], &["list"]] {
        let output = reproduce(arguments);
        assert!(output.status.success());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("NEWS-T1      NEWS and static rate limits in a flash crowd\n"), "{text}");
    }
}

/// Goal: the testbed has its own names, and says in one line what it lacks before anything runs.
#[test]
fn the_testbed_has_names_of_its_own() {
    let list = reproduce(&["--testbed", "list"]);
    assert!(list.status.success());
    let text = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(text.contains("NEWS-F20     Request rates at the router"), "{text}");
    let unknown = reproduce(&["--testbed", "NEWS-F6"]);
    assert_eq!(unknown.status.code(), Some(64));
    let said = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(
        said.starts_with("flashweir: there is no experiment `NEWS-F6`; there are NEWS-F19, NEWS-F20, "),
        "{said}"
    );
    assert_eq!(reproduce(&["--testbed", "NEWS-F20", "--seeds", "2"]).status.code(), Some(64));
    let simulated = reproduce(&["NEWS-F20"]);
    let said = String::from_utf8_lossy(&simulated.stderr).into_owned();
    assert!(said.ends_with("measured, not simulated: flashweir reproduce --testbed NEWS-F20\n"), "{said}");
}

#[test]
fn a_short_run_prints_json_and_leaves_a_chart_and_its_numbers() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let figures = directory.path().join("figures");
    let out = figures.to_str().expect("temporary names are text");
    let output = reproduce(&[
        "news-f6",
        "--json",
        "--out",
        out,
        "--seeds",
        "1",
        "--quiet-s",
        "120",
        "--crowd-s",
        "120",
    ]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    // Standard error says first what the clients' arrivals are, then what the figure costs, and its end and
    // its verdict.
    let lines: Vec<&str> = said.lines().collect();
    let [simulated, on_testbed, cost, .., end, summary] = lines.as_slice() else { panic!("{said}") };
    let counts = "no log is used; clients arrive as the counts in lab/lab/src/experiments/news";
    assert!(simulated.contains(&format!("{counts}/opening_match.csv of the opening match")), "{said}");
    assert!(on_testbed.contains(&format!("{counts}/semi_final.csv of the semi-final")), "{said}");
    assert!(cost.starts_with("NEWS-F6: takes ") && end.starts_with("NEWS-F6: done in "), "{said}");
    assert!(summary.starts_with("1 figure: matches 0, same shape "), "{said}");
    let list: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON on stdout");
    let [finding] = list.as_array().expect("a list").as_slice() else { panic!("one finding: {list}") };
    assert_eq!(finding["id"], "NEWS-F6");
    assert_eq!(finding["paper"]["fastest tenth falls by %"], 78.0);
    assert!(finding["ours"]["fastest tenth falls by %"]["as published"]["mean"].is_number());
    assert!(finding["verdict"].is_string());
    let read = |name: &str| std::fs::read_to_string(figures.join(name)).expect(name);
    assert!(read("news-f6.svg").starts_with("<svg"));
    assert!(read("news-f6.csv").starts_with("series,seconds,kb/s\n"));
    // The table of all verdicts is only written when all were run.
    assert!(!directory.path().join("reproduction.md").exists());
}

/// Goal: a log that is given is named before anything runs and in the finding; the summary ends the output.
#[test]
fn a_log_is_named_and_verdicts_are_counted() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let traces = directory.path().to_str().expect("temporary names are text");
    let minute = |minute: u32| {
        let requests = if minute < 930 { 600 } else { 6_000 };
        format!("1998-06-10T{:02}:{:02}:00Z,{requests}\n", minute / 60, minute % 60)
    };
    let log = format!("minute_gmt,requests\n{}", (900..990).map(minute).collect::<String>());
    std::fs::write(directory.path().join("wc98_brazil_scotland_19980610.csv"), log).expect("a file");
    let out = directory.path().join("figures");
    let out = out.to_str().expect("temporary names are text");
    let output = reproduce(&[
        "NEWS-F6",
        "--traces",
        traces,
        "--out",
        out,
        "--seeds",
        "1",
        "--quiet-s",
        "120",
        "--crowd-s",
        "120",
    ]);
    let (text, said) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert!(output.status.success(), "{said}");
    let named = "clients arrive as the log wc98_brazil_scotland_19980610.csv of the opening match";
    assert!(said.starts_with(&format!("simulations of NEWS: {named}")), "{said}");
    assert!(text.contains("note: Clients arrive as the log wc98_brazil_scotland_19980610.csv"), "{text}");
    let summary = text.lines().last().unwrap_or_default();
    assert!(summary.starts_with("1 figure: matches 0, same shape "), "{text}");
}

/// Goal: a log that is not as expected is reported in one line with file and line, before anything runs.
#[test]
fn a_log_with_a_hole_is_told_by_file_and_line() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let traces = directory.path().to_str().expect("temporary names are text");
    let log = directory.path().join("wc98_brazil_scotland_19980610.csv");
    let run = |text: &str| {
        std::fs::write(&log, text).expect("a file");
        let out = directory.path().join("figures");
        let output = reproduce(&["NEWS-F6", "--traces", traces, "--out", out.to_str().expect("text")]);
        assert_eq!(output.status.code(), Some(64));
        assert!(output.stdout.is_empty() && !out.exists());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let named = format!("flashweir: {}: line ", log.display());
    let hole = run("minute_gmt,requests\n1998-06-10T15:00:00Z,10\n1998-06-10T15:02:00Z,10\n");
    assert_eq!(
        hole,
        format!("{named}3: 1998-06-10T15:02:00Z comes after 1998-06-10T15:00:00Z: the log has a hole\n")
    );
    let short = run("minute_gmt,requests\n1998-06-10T15:29:00Z,10\n1998-06-10T15:30:00Z,10\n");
    assert!(short.starts_with(&format!("{named}3: the log ends, and goes from 60 s before")), "{short}");
    let words = run("minute_gmt,requests\n1998-06-10T15:29:00Z,ten\n");
    assert_eq!(words, format!("{named}2: \"ten\" is not a count of requests\n"));
    let missing = reproduce(&["NEWS-F6", "--traces", log.to_str().expect("text")]);
    assert_eq!(
        String::from_utf8_lossy(&missing.stderr),
        format!("flashweir: {}: not a directory\n", log.display())
    );
}
