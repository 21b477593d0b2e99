//! Cost of a request: CPU time of Flashweir over nginx and over HAProxy for the same work, in one run.
//!
//! One worker each, pinned to core 0; wrk and the upstream (nginx) on core 1. Candidates take turns, in
//! reversed order every other round, so that other work of the machine falls on all of them; CPU time is
//! read from the scheduler's own account of each process, and ratios are medians over rounds, each within
//! its round. Large bodies cost by their size, so theirs is CPU time for each GiB; nginx runs twice there,
//! with its usual settings and without its buffers. At the end: the cost of refusing over proxying, for
//! each; Flashweir refuses at a bound, and by the sentry's limit. `make compare-cost` runs it; ROUNDS and
//! SECONDS in the environment change its length.

#[path = "../common/servers.rs"]
mod common_servers;
mod cpu;
mod sentry;
mod servers;
mod wrk;

use common_servers::{Directory, is_installed};
use flashweir_testkit::number_from_environment;
use servers::Candidate;
use std::time::Duration;

/// Jobs: pass a small response on, pass a large one on, and refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    Proxy,
    /// A body of this size.
    ProxyKib(usize),
    Refuse,
}

impl Job {
    /// Work that the CPU time is for, as part of a request's, and its unit.
    fn unit(self) -> (f64, &'static str) {
        match self {
            Self::Proxy | Self::Refuse => (1e6, "CPU µs/request"),
            Self::ProxyKib(kib) => ((1 << 20) as f64 / kib as f64, "CPU s/GiB"),
        }
    }

    fn title(self) -> String {
        let connections = self.connections();
        match self {
            Self::Proxy => {
                format!("proxying a 1 KiB response, keep-alive on both sides, {connections} connections")
            }
            Self::ProxyKib(kib) => {
                format!("proxying a body of {kib} KiB, keep-alive on both sides, {connections} connections")
            }
            Self::Refuse => format!("answering 503, keep-alive, {connections} connections"),
        }
    }

    fn connections(self) -> usize {
        match self {
            Self::Proxy | Self::Refuse => 64,
            Self::ProxyKib(_) => 16,
        }
    }
}

struct Measured {
    cpu_s_per_request: f64,
    requests_per_s: f64,
}

fn main() {
    // `cargo test --benches` and `cargo bench -- --list` must not start servers.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("0 passed, 0 failed");
        return;
    }
    let missing: Vec<&str> =
        ["wrk", "nginx", "haproxy", "taskset"].into_iter().filter(|name| !is_installed(name)).collect();
    if !missing.is_empty() {
        eprintln!("proxy_cost: skipped, not installed: {}", missing.join(", "));
        return;
    }
    let rounds = number_from_environment("ROUNDS", 5);
    let seconds = number_from_environment("SECONDS", 2);
    let directory = Directory::new();
    println!("{rounds} rounds of {seconds} s each; server on core 0, wrk and upstream on core 1\n");
    let [proxying, _, _, refusing] =
        [Job::Proxy, Job::ProxyKib(64), Job::ProxyKib(1024), Job::Refuse].map(|job| {
            let candidates = start_all(&directory, job);
            compare(job, &candidates, rounds, seconds)
        });
    println!("CPU of refusing over proxying");
    for (name, refusing_us) in refusing {
        // Both of Flashweir's ways to refuse are over its one way to proxy.
        let proxying_us = proxying.iter().find(|(proxy, _)| name.starts_with(proxy));
        let (_, proxying_us) = proxying_us.expect("each refusing candidate proxies as well");
        println!("  {name:<20} {:.2}", refusing_us / proxying_us);
    }
}

/// Flashweir first: ratios are of it over the others.
fn start_all(directory: &Directory, job: Job) -> Vec<Candidate> {
    let by_sentry = (job == Job::Refuse).then(|| sentry::flashweir(directory)).flatten();
    let ours = [servers::flashweir(directory, job)].into_iter().chain(by_sentry);
    let unbuffered =
        matches!(job, Job::ProxyKib(_)).then(|| servers::nginx(directory, job, "proxy_buffering off;"));
    let nginx = [servers::nginx(directory, job, "")].into_iter().chain(unbuffered);
    ours.chain(nginx).chain([servers::haproxy(directory, job)]).collect()
}

/// Names, and the median CPU time in the job's unit.
fn compare(job: Job, candidates: &[Candidate], rounds: usize, seconds: u64) -> Vec<(&'static str, f64)> {
    let (scale, unit) = job.unit();
    let mut results: Vec<Vec<Measured>> = candidates.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            results[index].push(measure(job, &candidates[index], seconds));
        }
    }
    println!("{}", job.title());
    println!("  {:<20} {:>14} {:>12} {:>34}", "", unit, "requests/s", "Flashweir's CPU over it [min–max]");
    for (index, candidate) in candidates.iter().enumerate() {
        let ratios: Vec<f64> = (0..rounds)
            .map(|n| results[0][n].cpu_s_per_request / results[index][n].cpu_s_per_request)
            .collect();
        let of = |value: fn(&Measured) -> f64| median(results[index].iter().map(value).collect());
        let ratio = if index == 0 {
            String::from("1")
        } else {
            format!("{:.2} [{:.2}–{:.2}]", median(ratios.clone()), smallest(&ratios), largest(&ratios))
        };
        println!(
            "  {:<20} {:>14.2} {:>12.0} {ratio:>34}",
            candidate.name,
            scale * of(|m| m.cpu_s_per_request),
            of(|m| m.requests_per_s)
        );
    }
    println!();
    let cpu = |results: &Vec<Measured>| {
        scale * median(results.iter().map(|measured| measured.cpu_s_per_request).collect())
    };
    candidates.iter().map(|candidate| candidate.name).zip(results.iter().map(cpu)).collect()
}

fn measure(job: Job, candidate: &Candidate, seconds: u64) -> Measured {
    wrk::run(&candidate.url, job.connections(), Duration::from_millis(500));
    let before = cpu::used(candidate.pid);
    let outcome = wrk::run(&candidate.url, job.connections(), Duration::from_secs(seconds));
    let used = cpu::used(candidate.pid).saturating_sub(before);
    let unexpected = match job {
        Job::Proxy | Job::ProxyKib(_) => outcome.not_2xx,
        Job::Refuse => outcome.requests - outcome.not_2xx,
    };
    assert!(
        unexpected * 1_000 <= outcome.requests,
        "{}: {unexpected} of {} answers were not what {job:?} expects",
        candidate.name,
        outcome.requests
    );
    Measured {
        cpu_s_per_request: used.as_secs_f64() / outcome.requests.max(1) as f64,
        requests_per_s: outcome.requests as f64 / seconds as f64,
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn smallest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}
