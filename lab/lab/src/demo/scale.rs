//! `flashweir demo-scale`: a crowd comes, people are refused for seconds, servers come, no more are refused,
//! servers go.

use super::children::{Controller, Family, Gateway, own_program};
use super::http;
use super::numbers_only::{self, Choices};
use anyhow::ensure;
use flashweir_load::{ClassPlan, LoadPlan, LoadTarget, Progress, Sources};
use flashweir_testbed::reserve_ports;
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule};
use serde::Serialize;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::time::Duration;

/// Each server holds a request this long without working, as one that waits for its database: so that several
/// on one machine carry several times the load of one.
const WAIT_MS: u32 = 100;
const WORKERS: u32 = 4;
/// Capacity of one server.
const SERVER_RPS: f64 = WORKERS as f64 * 1_000.0 / WAIT_MS as f64;
const SERVERS_MAX: u16 = 8;
/// From the order to the first answer.
const START_UP_S: u32 = 3;
/// Demand before the crowd and after it, of one server's.
const USUAL_PART: f64 = 0.5;
const QUIET: Duration = Duration::from_secs(6);
const CROWD: Duration = Duration::from_secs(30);
/// Servers are kept for a minute after they were needed last; then it is seen that they go, and that no
/// request is refused.
const TAIL: Duration = Duration::from_secs(80);
const PATIENCE: Duration = Duration::from_secs(2);
const TARGET: Duration = Duration::from_secs(1);
const SOURCES: u32 = 4_000;
const ANSWERS_WITHIN: Duration = Duration::from_millis(500);
const SECOND: Duration = Duration::from_secs(1);

/// Printed numbers.
#[derive(Debug, Serialize)]
struct Numbers {
    /// Requests a second that one server completes.
    server_rps: f64,
    multiple: f64,
    offered: u64,
    /// Answered within a second.
    in_time: u64,
    refused: u64,
    /// Neither answered nor refused.
    lost: u64,
    #[serde(flatten)]
    course: Course,
}

/// Course of the run, from its seconds.
#[derive(Debug, Serialize)]
struct Course {
    /// From the crowd's beginning to the last second in which a request was refused; none where all were
    /// served.
    refused_until_s: Option<f64>,
    /// Most servers that served at once.
    servers_most: u32,
    /// Time from the crowd's end until the first server was released.
    released_after_s: Option<f64>,
    /// Servers at the end.
    servers_last: u32,
    seconds: Vec<Row>,
}

/// One second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Row {
    /// Its end, since the start.
    at_s: u64,
    offered: u64,
    in_time: u64,
    refused: u64,
    servers_ordered: Option<u32>,
    servers_ready: Option<u32>,
}

/// Runs it and prints its numbers.
///
/// # Errors
/// A child that does not start, or numbers that cannot be written.
pub(crate) fn run(choices: &Choices) -> anyhow::Result<()> {
    numbers_only::run(choices, "scale.json", play, text)
}

fn play(choices: &Choices, family: &Family) -> anyhow::Result<Numbers> {
    let first_port = reserve_ports(SERVERS_MAX)?;
    let urls: Vec<_> =
        (first_port..first_port + SERVERS_MAX).map(|port| format!("\"http://127.0.0.1:{port}\"")).collect();
    let sections = format!("[upstream]\nurls = [{}]\n", urls.join(", "));
    let gateway = Gateway::start_configured(family, "gateway", &sections, &choices.out)?;
    let program = own_program()?;
    // The shell stands for what makes real servers slow to start.
    let command = format!(
        "sleep {START_UP_S}; exec \"$0\" origin --listen 127.0.0.1:\"$1\" --workers {WORKERS} --work-ms 1 --wait-ms {WAIT_MS} \
         --iterations-per-ms {}",
        flashweir_testbed::origin::calibrate()
    );
    let words = ["sh", "-c", &command, &program.to_string_lossy(), "{port}"].map(toml_string);
    let config = format!(
        "admin = \"{}\"\ninterval_s = 1\nstart_up_s = {START_UP_S}\nmin = 1\nmax = {SERVERS_MAX}\n\
         [copies]\ncommand = [{}]\nfirst_port = {first_port}\nhealth = \"/healthz\"\n",
        gateway.admin,
        words.join(", "),
    );
    let controller = Controller::start(family, &config, &choices.out)?;
    wait_for_the_first(controller.listen)?;
    let visit = visit(choices, &gateway, controller.listen)?;
    drop(controller);
    Ok(visit)
}

/// As TOML writes any text in quotes.
fn toml_string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn wait_for_the_first(controller: SocketAddr) -> anyhow::Result<()> {
    const LOOKS: u32 = 100;
    for _ in 0..LOOKS {
        if servers(controller, "ready").is_some_and(|ready| ready > 0) {
            return Ok(());
        }
        std::thread::park_timeout(SECOND / 5);
    }
    anyhow::bail!("no server serves after 20 s (control.log says more)")
}

/// Number of servers in the controller's metrics.
fn servers(controller: SocketAddr, which: &str) -> Option<u32> {
    let metrics = http::get(controller, "/metrics", ANSWERS_WITHIN).ok()?;
    let name = format!("flashweir_servers_{which}{{");
    let line = metrics.lines().find(|line| line.starts_with(&name))?;
    Some(line.rsplit(' ').next()?.parse::<f64>().ok()? as u32)
}

fn visit(choices: &Choices, gateway: &Gateway, controller: SocketAddr) -> anyhow::Result<Numbers> {
    let (usual, crowd) = (SERVER_RPS * USUAL_PART, SERVER_RPS * choices.multiple);
    let profile = RateProfile::constant(usual, QUIET)?
        .then(RateProfile::constant(crowd, CROWD)?)
        .then(RateProfile::constant(usual, TAIL)?);
    let target = LoadTarget::parse(&gateway.url())?;
    let class = ClassPlan { timeout: PATIENCE, good_within: TARGET, ..ClassPlan::get(&target)? };
    let plan = LoadPlan {
        sources: Sources { count: SOURCES, ..Sources::default() },
        seed: choices.seed,
        ..LoadPlan::new(target, Schedule::one(ArrivalProcess::Poisson(profile), choices.seed), class)
    };
    let mut rows = Vec::<Row>::new();
    let mut before = [0; 3];
    let shows = std::io::stderr().is_terminal() || !choices.json;
    let load = flashweir_load::run(plan, |Progress { elapsed, totals, .. }| {
        if *elapsed < SECOND * (rows.len() as u32 + 1) {
            return;
        }
        let now = [totals.offered, totals.goodput, totals.refused];
        let [offered, in_time, refused] = std::array::from_fn(|place| now[place] - before[place]);
        before = now;
        let [servers_ordered, servers_ready] = ["ordered", "ready"].map(|which| servers(controller, which));
        let row =
            Row { at_s: rows.len() as u64 + 1, offered, in_time, refused, servers_ordered, servers_ready };
        if shows {
            eprintln!("{}", line(&row));
        }
        rows.push(row);
    })?;
    ensure!(load.totals.offered > 0, "no request was sent: the schedule is empty");
    let totals = &load.totals;
    Ok(Numbers {
        server_rps: SERVER_RPS,
        multiple: choices.multiple,
        offered: totals.offered,
        in_time: totals.goodput,
        refused: totals.refused,
        lost: totals.timed_out + totals.errors + totals.abandoned,
        course: Course::of(&rows),
    })
}

impl Course {
    fn of(rows: &[Row]) -> Self {
        let (begins, ends) = (QUIET.as_secs(), (QUIET + CROWD).as_secs());
        let refused_last = rows.iter().rfind(|row| row.refused > 0).map(|row| row.at_s);
        let ready = || rows.iter().filter_map(|row| Some((row.at_s, row.servers_ready?)));
        let servers_most = ready().map(|(_, count)| count).max().unwrap_or_default();
        let released = ready().find(|(at_s, count)| *at_s > ends && *count < servers_most);
        Self {
            refused_until_s: refused_last.map(|at_s| at_s as f64 - begins as f64),
            servers_most,
            released_after_s: released.map(|(at_s, _)| (at_s - ends) as f64),
            servers_last: ready().next_back().map(|(_, count)| count).unwrap_or_default(),
            seconds: rows.to_vec(),
        }
    }
}

fn line(row: &Row) -> String {
    let count = |servers: Option<u32>| servers.map_or("?".to_owned(), |servers| servers.to_string());
    format!(
        "{:>4} s  offered {:>4}  in time {:>4}  refused {:>4}  servers {:>2} of {:>2} ordered",
        row.at_s,
        row.offered,
        row.in_time,
        row.refused,
        count(row.servers_ready),
        count(row.servers_ordered),
    )
}

fn text(numbers: &Numbers) -> String {
    let percent = |part: u64| part as f64 * 100.0 / numbers.offered as f64;
    let seconds = |value: Option<f64>, without: &str| {
        value.map_or(without.to_owned(), |seconds| format!("{seconds:.0} s after"))
    };
    format!(
        "One server completes {:.0} requests/s and takes {START_UP_S} s to start. {:.1} times that came for {} s.\n\n\
         answered within a second   {:>6}  {:>5.1} %\n\
         refused                    {:>6}  {:>5.1} %\n\
         lost                       {:>6}  {:>5.1} %\n\
         the last refusal           {} the crowd came\n\
         most servers               {}\n\
         the first server went      {} the crowd left; {} at the end",
        numbers.server_rps,
        numbers.multiple,
        CROWD.as_secs(),
        numbers.in_time,
        percent(numbers.in_time),
        numbers.refused,
        percent(numbers.refused),
        numbers.lost,
        percent(numbers.lost),
        seconds(numbers.course.refused_until_s, "none after"),
        numbers.course.servers_most,
        seconds(numbers.course.released_after_s, "not until the end, not after"),
        numbers.course.servers_last,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(at_s: u64, refused: u64, ready: u32) -> Row {
        Row {
            at_s,
            offered: 100,
            in_time: 100 - refused,
            refused,
            servers_ordered: None,
            servers_ready: Some(ready),
        }
    }

    #[test]
    fn refusals_and_servers_are_timed_from_the_crowd() {
        let (begins, ends) = (QUIET.as_secs(), (QUIET + CROWD).as_secs());
        let rows = [
            row(begins, 0, 1),
            row(begins + 1, 60, 1),
            row(begins + 7, 10, 4),
            row(begins + 8, 0, 5),
            row(ends + 1, 0, 5),
            row(ends + 61, 0, 2),
        ];
        let course = Course::of(&rows);
        assert_eq!((course.refused_until_s, course.servers_most), (Some(7.0), 5));
        assert_eq!((course.released_after_s, course.servers_last), (Some(61.0), 2));
        let calm = Course::of(&rows[..1]);
        assert_eq!((calm.refused_until_s, calm.released_after_s), (None, None));
    }
}
