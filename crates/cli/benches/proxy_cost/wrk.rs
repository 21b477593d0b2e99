//! The load: wrk, pinned to core 1.

use std::process::Command;
use std::time::Duration;

/// Counts of wrk.
pub(crate) struct Outcome {
    pub(crate) requests: u64,
    pub(crate) not_2xx: u64,
}

/// Keeps these connections busy for `duration`.
pub(crate) fn run(url: &str, connections: usize, duration: Duration) -> Outcome {
    let seconds = duration.as_secs().max(1).to_string();
    let output = Command::new("taskset")
        .args(["-c", "1", "wrk", "-t1", "-c", &connections.to_string(), "-d", &seconds, url])
        .output()
        .expect("wrk was found at the start");
    let text = String::from_utf8_lossy(&output.stdout);
    let number_on = |line_with: &str, place: fn(&str) -> Option<&str>| {
        text.lines().find(|line| line.contains(line_with)).and_then(place)?.parse().ok()
    };
    let requests = number_on(" requests in ", |line| line.split_whitespace().next());
    let not_2xx = number_on("Non-2xx", |line| line.split(':').nth(1).map(str::trim));
    Outcome {
        requests: requests.unwrap_or_else(|| panic!("wrk printed no count:\n{text}")),
        not_2xx: not_2xx.unwrap_or(0),
    }
}
