//! Admissions of several gateways that share one origin's limit: crowds that are spread unlike over them, and
//! what is read meanwhile. The same for every engine: here with the leader that is configured, in
//! `tests/kubernetes` with the one that is found.

#![expect(clippy::disallowed_methods, reason = "what is measured takes its time")]

use flashweir_testkit::{Flashweir, Load, number_from_environment};
use serde_json::Value;
use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Requests at once that the origin serves, and how long each has a worker without burning a processor: 200 a
/// second.
pub(crate) const WORKERS: u32 = 10;
pub(crate) const WAIT_MS: f64 = 50.0;
pub(crate) const CAPACITY_RPS: f64 = WORKERS as f64 * 1e3 / WAIT_MS;
/// Twice what the origin can do.
const OFFERED_RPS: f64 = 2.0 * CAPACITY_RPS;
/// The limit is known by then.
pub(crate) const WARM_UP: Duration = Duration::from_secs(15);
const MEASURED: Duration = Duration::from_secs(25);
/// A crowd lasts at least as long as both.
const CROWD_S: u32 = 42;
/// A crowd may take this long beyond its duration.
const GRACE: Duration = Duration::from_secs(120);

/// Numbers of gateways that are compared with one by itself.
pub(crate) const COUNTS: [usize; 3] = [1, 4, 16];

/// One gateway, as it is measured.
pub(crate) trait MeasuredGateway {
    /// Address to which clients connect.
    fn door(&self) -> SocketAddr;
    /// Its `/status`.
    fn says(&self) -> Value;
}

/// Counts of a number of gateways while they were measured.
pub(crate) struct Found {
    pub(crate) admitted_rps: f64,
    /// Means of what was read.
    pub(crate) limit: f64,
    pub(crate) in_flight: f64,
}

/// A crowd of this many requests a second from many addresses.
pub(crate) fn crowd(gateway: SocketAddr, rate_rps: f64, seconds: u32, seed: u64, more: &[&str]) -> Load {
    let (rate, seconds, seed) = (format!("{rate_rps:.2}"), format!("{seconds}s"), seed.to_string());
    let options = ["--rate", &rate, "--duration", &seconds, "--sources", "400", "--seed", &seed];
    let options = [&options[..], more].concat();
    Load::start(&Flashweir::new(env!("CARGO_BIN_EXE_flashweir")), &format!("http://{gateway}/"), &options)
}

/// A crowd at each gateway, the k-th gets 1/k of the first one's.
pub(crate) fn crowds(
    gateways: &[&impl MeasuredGateway],
    seconds: u32,
    seed: u64,
    more: &[&str],
) -> Vec<Load> {
    let all: f64 = (1..=gateways.len()).map(|place| 1.0 / place as f64).sum();
    let crowd = |(place, gateway): (usize, &&_)| {
        let rate = OFFERED_RPS / all / (place + 1) as f64;
        crowd(MeasuredGateway::door(*gateway), rate, seconds, seed + place as u64, more)
    };
    gateways.iter().enumerate().map(crowd).collect()
}

pub(crate) fn finish(crowds: Vec<Load>) {
    for crowd in crowds {
        let _ = crowd.finish(GRACE);
    }
}

/// Requests that all of them admitted, and that are at the origin by their sentries.
pub(crate) fn counts(gateways: &[&impl MeasuredGateway]) -> (u64, u64) {
    let count = |status: &Value, path: &str| status.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    gateways.iter().map(|gateway| gateway.says()).fold((0, 0), |(admitted, in_flight), status| {
        let at_origin = count(&status, "/services/0/sentry/in_flight");
        (admitted + count(&status, "/requests/admitted"), in_flight + at_origin)
    })
}

/// The limit that is shared; of a gateway by itself its sentry's.
fn limit(gateway: &impl MeasuredGateway) -> f64 {
    let status = gateway.says();
    let of = |path: &str| status.pointer(path).and_then(Value::as_f64);
    of("/cluster/services/0/limit").or_else(|| of("/services/0/sentry/plan/limit")).unwrap_or(0.0)
}

/// A crowd at each gateway: warmed up, then read.
pub(crate) fn measure(all: &[&impl MeasuredGateway], seed: u64, more: &[&str]) -> Found {
    let crowds = crowds(all, CROWD_S, seed, more);
    sleep(WARM_UP);
    let (from, before) = (Instant::now(), counts(all).0);
    let (mut readings, mut limits, mut in_flight) = (0.0, 0.0, 0.0);
    while from.elapsed() < MEASURED {
        (readings, limits, in_flight) =
            (readings + 1.0, limits + limit(all[0]), in_flight + counts(all).1 as f64);
        sleep(Duration::from_millis(500));
    }
    let admitted = (counts(all).0 - before) as f64;
    let admitted_rps = admitted / from.elapsed().as_secs_f64();
    finish(crowds);
    Found { admitted_rps, limit: limits / readings, in_flight: in_flight / readings }
}

/// Rounds to measure, by the environment.
pub(crate) fn rounds() -> u64 {
    number_from_environment("ROUNDS", 5)
}

/// Admissions of each number of gateways over those of one by itself.
#[derive(Debug, Default)]
pub(crate) struct Ratios([Vec<f64>; COUNTS.len()]);

impl Ratios {
    /// Takes one round: a gateway by itself, then each of [`COUNTS`].
    pub(crate) fn add(&mut self, one: &Found, several: [Found; COUNTS.len()]) {
        say("1 without a cluster", one, 1.0);
        for ((count, ratios), found) in COUNTS.into_iter().zip(&mut self.0).zip(several) {
            let ratio = found.admitted_rps / one.admitted_rps;
            say(&format!("{count} that share"), &found, ratio);
            ratios.push(ratio);
        }
    }

    /// Prints medians and what is furthest from 1; what is asserted is looser than what is wanted, for a busy
    /// machine.
    pub(crate) fn judge(mut self) {
        for (count, ratios) in COUNTS.into_iter().zip(&mut self.0) {
            ratios.sort_by(f64::total_cmp);
            let median = ratios[ratios.len() / 2];
            let worst = ratios.iter().map(|ratio| (ratio - 1.0).abs()).fold(0.0, f64::max);
            println!(
                "{count} gateways: median {median:.3} of one's, furthest {worst:.3} from it, {} rounds; wanted within .03",
                ratios.len()
            );
            assert!((median - 1.0).abs() < 0.15, "{count} gateways: {ratios:?}");
        }
    }
}

fn say(what: &str, found: &Found, ratio: f64) {
    let Found { admitted_rps, limit, in_flight } = found;
    println!(
        "{what}: {admitted_rps:.1}/s admitted, {ratio:.3} of one's; limit {limit:.2}, in flight {in_flight:.2}"
    );
}
