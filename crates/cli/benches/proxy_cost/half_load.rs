//! Latency at half load: an open loop, so that a slow answer delays no other request.

use crate::servers::{Candidate, Place};
use crate::{Job, largest, median, smallest, start_all};
use flashweir_load::{ClassPlan, LoadPlan, LoadTarget, Protocol, TransportOptions};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule};
use std::time::Duration;

/// Load as a part of what wrk gets through nginx. The generator takes several times wrk's processor time for
/// a request, and it, the proxy and the upstream share two cores: twice this rate is what the three carry.
const OF_WRK: f64 = 0.25;

/// Median and 99.9th percentile, from the intended moment on.
struct Latency {
    p50_ms: f64,
    p999_ms: f64,
}

/// Prints the latencies of all candidates and Flashweir's over each; they take turns.
pub(crate) fn compare(place: &Place, rounds: usize, seconds: u64) {
    let candidates = start_all(place, Job::Proxy);
    let nginx = candidates.iter().find(|candidate| candidate.name == "nginx").expect("nginx is one");
    let rps = crate::measure(Job::Proxy, nginx, seconds).requests_per_s * OF_WRK;
    let mut results: Vec<Vec<Latency>> = candidates.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            results[index].push(measure(&candidates[index], rps, round as u64, Duration::from_secs(seconds)));
        }
    }
    println!(
        "latency at {rps:.0} requests/s, a quarter of wrk's through nginx; Poisson arrivals, keep-alive"
    );
    println!(
        "  {:<20} {:>10} {:>10} {:>38}",
        "", "p50 ms", "p99.9 ms", "Flashweir's p99.9 over it [min–max]"
    );
    for (index, candidate) in candidates.iter().enumerate() {
        let ratios: Vec<f64> =
            (0..rounds).map(|round| results[0][round].p999_ms / results[index][round].p999_ms).collect();
        let ratio = match index {
            0 => String::from("1"),
            _ => format!("{:.2} [{:.2}–{:.2}]", median(ratios.clone()), smallest(&ratios), largest(&ratios)),
        };
        let of = |value: fn(&Latency) -> f64| median(results[index].iter().map(value).collect());
        let (p50, p999) = (of(|latency| latency.p50_ms), of(|latency| latency.p999_ms));
        println!("  {:<20} {p50:>10.3} {p999:>10.3} {ratio:>38}", candidate.name);
    }
    println!();
}

fn measure(candidate: &Candidate, rps: f64, seed: u64, length: Duration) -> Latency {
    let profile = RateProfile::constant(rps, length).expect("a rate above zero");
    let target = LoadTarget::parse(&candidate.url).expect("a URL");
    let class = ClassPlan::get(&target).expect("a request");
    let transport = TransportOptions { protocol: Protocol::Http1KeepAlive, ..TransportOptions::default() };
    let schedule = Schedule::one(ArrivalProcess::Poisson(profile), seed);
    let plan = LoadPlan { transport, ..LoadPlan::new(target, schedule, class) };
    let load = flashweir_load::run(plan, |_| {}).expect("a load that can be sent");
    if load.saturated {
        eprintln!("proxy_cost: the load generator fell behind before {}", candidate.name);
    }
    let latency = &load.totals.latency_ms;
    let all = "all requests are answered";
    Latency { p50_ms: latency.p50.expect(all), p999_ms: latency.p999.expect(all) }
}
