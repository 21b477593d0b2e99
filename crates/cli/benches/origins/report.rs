//! `docs/origins.json`, which keeps the rows of earlier invocations, and `docs/origins.md` made from it.

use crate::machine;
use crate::place::about_the_link;
use flashweir_testkit::Process;
use flashweir_trials::origins::Report;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const JSON: &str = "origins.json";
const PAGE: &str = "origins.md";
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// Where the two files are: `OUT`, or `docs`.
pub(crate) fn folder() -> PathBuf {
    std::env::var_os("OUT").map_or_else(|| machine::repository().join("docs"), PathBuf::from)
}

/// What earlier invocations found; nothing, if there is no file or it is of another form.
pub(crate) fn read() -> Report {
    let text = fs::read_to_string(folder().join(JSON)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

pub(crate) fn write(mut report: Report, placement: &str) {
    report.machine = machine::description();
    placement.clone_into(&mut report.placement);
    report.programs = programs();
    let folder = folder();
    fs::create_dir_all(&folder).expect("a directory that can be made");
    let page = report.page();
    fs::write(folder.join(PAGE), &page).expect("a writable directory");
    let json = serde_json::to_string_pretty(&report).expect("numbers and text");
    fs::write(folder.join(JSON), json + "\n").expect("a writable directory");
    println!("{page}\nWritten to {}", folder.display());
}

/// What the origins are, with the versions that are installed.
fn programs() -> Vec<String> {
    let version = |program: &str, argument: &str| {
        let program = flashweir_testkit::require_program(program, "its version")?;
        let finished = Process::run(&program, Path::new("/"), ANSWERS_WITHIN, [argument]);
        let said = finished.stdout + &finished.stderr;
        said.lines().next().map(|line| line.trim().to_owned())
    };
    let of =
        |program, argument| version(program, argument).unwrap_or_else(|| format!("`{program}` is missing"));
    vec![
        format!(
            "PHP-FPM ({}), 8 workers behind nginx: a list of products is made, filtered, sorted and rendered.",
            of("php", "--version")
        ),
        format!(
            "Python ({}) behind Gunicorn, 4 processes: records are parsed, grouped and written as JSON.",
            of("gunicorn", "--version")
        ),
        format!("Node {}, one thread: documents are parsed, sorted and rendered.", of("node", "--version")),
        format!(
            "PostgreSQL ({}): a query without an index behind an application of 40 threads with a pool of 10 connections. The processes of the database and of the \
             application share the core.",
            of("psql", "--version")
        ),
        format!("{}.", about_the_link()),
        format!("HAProxy: {}", crate::protection::haproxy::ABOUT),
        format!("Envoy: {}", crate::protection::envoy::ABOUT),
    ]
}
