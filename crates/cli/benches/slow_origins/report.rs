//! `docs/slow-origins.json`, which keeps the rows of earlier invocations, and `docs/slow-origins.md` made
//! from it.

use crate::core_time::CoreTime;
use crate::machine;
use crate::pages::{self, version};
use crate::running::{PHP_WORKERS, PROCESSES, THREADS};
use flashweir_load::trials::slow::Report;
use std::time::Duration;

const NAME: &str = "slow-origins";
const WATCHED: Duration = Duration::from_secs(2);
/// A quiet machine has less.
const BUSY_MENTIONED: f64 = 0.1;

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

/// A sentence for the page if other programs have the origin's core before the first run; else nothing.
pub(crate) fn company() -> String {
    let before = CoreTime::read();
    std::thread::park_timeout(WATCHED);
    let busy = before.zip(CoreTime::read()).and_then(|(before, after)| after.busy_since(before));
    match busy.filter(|busy| *busy > BUSY_MENTIONED) {
        Some(busy) => format!(
            " **Other programs had {:.0} % of core 0 before the first run: these numbers are rough.**",
            busy * 100.0
        ),
        None => String::new(),
    }
}

/// Names of the origins, with the installed versions.
fn programs() -> Vec<String> {
    let (node, python) = (version("node", "--version"), version("/usr/bin/python3", "--version"));
    vec![
        format!(
            "Node {node}, one thread: pages of some milliseconds beside long polls of 20 s, 40 in flight."
        ),
        format!(
            "{python}, asyncio with aiohttp: pages, long polls of 20 s (40 in flight) and requests of 6 s (6 in flight)."
        ),
        format!(
            "Node {node}: pages, and server-sent events and WebSockets that stay open with an event every second."
        ),
        format!(
            "Python ({}) behind Gunicorn, {PROCESSES} processes of {THREADS} threads: pages, reports with 1.5 s of work (0.3 of the core) and exports that wait 5 s.",
            version("gunicorn", "--version")
        ),
        format!(
            "Node {node} that computes for 0.4 s in every 2 s and answers nothing meanwhile, as a garbage collector makes it."
        ),
        format!(
            "PHP-FPM ({}), {PHP_WORKERS} workers behind nginx: pages that wait 0.8 s for another service on the same machine.",
            version("php", "--version")
        ),
        format!(
            "{python}, asyncio: waits for as long as a small machine (1,000 tokens a second read, 10 written) needs for ten requests at the quantiles of the Azure LLM inference \
             trace 2023 (code; Azure Public Dataset, CC-BY-4.0): 1 to 12 s."
        ),
        format!("HAProxy: {}", crate::protection::haproxy::ABOUT),
        format!("Envoy: {}", crate::protection::envoy::ABOUT),
    ]
}
