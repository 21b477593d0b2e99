//! Python behind Gunicorn: processes with one request at a time each.

use crate::application::{Application, Directory, Server};
use flashweir_testkit::{require_program, reserve_address};

const PROCESSES: usize = 4;
const REPORT: &str = include_str!("applications/report.py");

pub(super) fn start() -> Result<Application, String> {
    let directory = Directory::new();
    directory.write("report.py", REPORT);
    let address = reserve_address();
    let workers = ["--workers", &PROCESSES.to_string()];
    let server = gunicorn(&directory, &address.to_string(), &workers, &[], "report:application")?;
    Ok(Application::of_servers(address, PROCESSES, directory, vec![server]))
}

/// Gunicorn with an application of the directory; `environment` has lines as `NAME=value`.
pub(super) fn gunicorn(
    directory: &Directory,
    address: &str,
    workers: &[&str],
    environment: &[&str],
    application: &str,
) -> Result<Server, String> {
    let program = require_program("gunicorn", "an origin").ok_or("`gunicorn` is missing")?;
    let marks = format!("MARKS={}", directory.marks().display());
    // Threads with work to do would keep a worker that is to stop.
    let mut arguments =
        vec!["--bind", address, "--log-level", "warning", "--graceful-timeout", "1", "--env", &marks];
    environment.iter().for_each(|line| arguments.extend(["--env", line]));
    arguments.extend(workers);
    arguments.push(application);
    Ok(Server::start(&program, directory, &arguments))
}
