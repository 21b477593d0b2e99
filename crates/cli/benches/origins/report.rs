//! `docs/origins.json`, which keeps the rows of earlier invocations, and `docs/origins.md` made from it.

use crate::machine;
use crate::pages::{self, version};
use crate::place::about_the_link;
use flashweir_load::trials::origins::Report;

const NAME: &str = "origins";

/// Results of earlier invocations.
pub(crate) fn read() -> Report {
    pages::read(NAME)
}

pub(crate) fn write(mut report: Report, placement: &str) {
    report.machine = machine::description();
    placement.clone_into(&mut report.placement);
    report.programs = programs();
    pages::write(NAME, &report, &report.page());
}

/// Names of the origins, with the installed versions.
fn programs() -> Vec<String> {
    vec![
        format!(
            "PHP-FPM ({}), 8 workers behind nginx: a list of products is made, filtered, sorted and rendered.",
            version("php", "--version")
        ),
        format!(
            "Python ({}) behind Gunicorn, 4 processes: records are parsed, grouped and written as JSON.",
            version("gunicorn", "--version")
        ),
        format!(
            "Node {}, one thread: documents are parsed, sorted and rendered.",
            version("node", "--version")
        ),
        format!(
            "PostgreSQL ({}): a query without an index behind an application of 40 threads with a pool of 10 connections. The processes of the database and of the \
             application share the core.",
            version("psql", "--version")
        ),
        format!("{}.", about_the_link()),
        format!("HAProxy: {}", crate::protection::haproxy::ABOUT),
        format!("Envoy: {}", crate::protection::envoy::ABOUT),
    ]
}
