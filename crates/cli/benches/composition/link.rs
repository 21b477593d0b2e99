//! A narrow link between network namespaces; gateway and origin behind it.

use crate::common::stage::{binary, compose, people};
use flashweir_load::trials::comparison::{Knob, best};
use flashweir_load::trials::composition::link::{CALM, CROWD, Guard, Link, LinkRun, RATE_LIMITS};
use flashweir_load::trials::useful::Composition;
use flashweir_load::{LoadResult, Sources};
use flashweir_testkit::{
    GatewayBuilder, NarrowLink, Nginx, Origin, RateLimit, StatusWatch, number_from_environment,
};
use flashweir_workload::RateProfile;
use std::ops::Range;
use std::time::{Duration, Instant};

const NAME: &str = "the narrow link";
/// Each way.
const DELAY: Duration = Duration::from_millis(10);
/// The origin's work for a page: it could do many times what a link carries.
const WORK_MS: &str = "0.2";
/// Calm before the crowd, in which the gateway learns what is usual.
const CALM_S: u64 = 6;
/// For which the crowd is measured once it has settled.
const SECONDS: u64 = 12;
const SECONDS_MIN: u64 = 3;
/// The crowd stays longer than it is measured, so that the last who are measured are among it.
const LONGER_S: u64 = 1;
/// Requests that a rate limit lets through at once after a pause, as in the simulator's tests.
const BURST: u32 = 10;
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Runs every link whose name contains `only`: the search for the best rate limit, then all guards in turn.
pub(crate) fn run(rounds: usize, only: &str) -> Vec<LinkRun> {
    let judged_s = number_from_environment("SECONDS", SECONDS).max(SECONDS_MIN);
    let mut runs = Vec::new();
    for link in Link::ALL.into_iter().filter(|link| link.name().contains(only)) {
        let Some(place) = Place::new(link, judged_s) else { return runs };
        let only_rate = Knob { grid: &[()], below: |()| None, above: |()| None };
        let found = best(RATE_LIMITS, only_rate, |part, ()| {
            place.visit(Guard::RateLimit(part)).map(|run| run.in_time_rps).ok_or(())
        });
        let Ok(found) = found else { continue };
        let Some(limit) = found.trials.first().map(|trial| Guard::RateLimit(trial.setting.0)) else {
            continue;
        };
        if found.is_at_edge {
            eprintln!("{}: the best rate limit may lie beyond {}", link.name(), limit.name());
        }
        let compositions = [Composition::SentryAlone, Composition::NewsAlone, Composition::Default];
        let guards: Vec<Guard> = compositions.into_iter().map(Guard::Gateway).chain([limit]).collect();
        for _ in 0..rounds {
            runs.extend(guards.iter().filter_map(|&guard| place.visit(guard)));
        }
    }
    runs
}

/// Readings of the status at one moment.
struct Seen {
    verdict: String,
    ceiling_rps: Option<f64>,
}

/// One link, with an origin behind it.
struct Place {
    link: Link,
    judged_s: u64,
    origin: Origin,
    network: NarrowLink,
}

impl Place {
    fn new(link: Link, judged_s: u64) -> Option<Self> {
        let network = NarrowLink::require(NAME, link.rate_bits_per_s, link.packets, DELAY)?;
        let body_bytes = link.answer_bytes.to_string();
        let options = ["--workers", "2", "--work-ms", WORK_MS, "--body-bytes", &body_bytes];
        let origin = network.as_server(|| Origin::start_with(&binary(), &options));
        Some(Self { link, judged_s, origin, network })
    }

    /// Sends the crowd; none after a line that says why not.
    fn visit(&self, guard: Guard) -> Option<LinkRun> {
        eprint!("{}, {}: ", self.link.name(), guard.name());
        let lost_before = self.network.lost();
        let (load, seen) = match guard {
            Guard::Gateway(composition) => self.behind_the_gateway(composition),
            Guard::RateLimit(part) => (self.behind_a_rate_limit(part)?, Vec::new()),
        };
        let load = match load {
            Ok(load) => load,
            Err(why) => {
                eprintln!("not measured: {why}");
                return None;
            }
        };
        let sum = |seconds: Range<u64>, count: fn(&flashweir_load::Second) -> u64| -> u64 {
            load.totals.series.iter().filter(|second| seconds.contains(&second.second)).map(count).sum()
        };
        let (verdict, ceiling_rps) = self.usual(&seen, load.started);
        let run = LinkRun {
            link: self.link,
            guard,
            in_time_rps: sum(self.judged(), |second| second.goodput) as f64 / self.judged_s as f64,
            verdict,
            refused_in_calm: sum(0..CALM_S, |second| second.refused),
            is_spoilt: load.saturated || self.network.lost() > lost_before,
        };
        let in_time: Vec<u64> = load.totals.series.iter().map(|second| second.goodput).collect();
        eprintln!("in time, by second: {in_time:?}");
        let per_s = |count| sum(self.judged(), count) as f64 / self.judged_s as f64;
        eprintln!(
            "{:.1}/s in time of {:.1}/s offered, {:.1} refused, {:.1} late, {:.1} given up, {:.1} errors; {}, ceiling {ceiling_rps:.1?}",
            run.in_time_rps,
            per_s(|second| second.offered),
            per_s(|second| second.refused),
            per_s(|second| second.completed - second.goodput),
            per_s(|second| second.timed_out),
            per_s(|second| second.errors),
            run.verdict.as_deref().unwrap_or("–"),
        );
        Some(run)
    }

    fn behind_the_gateway(
        &self,
        composition: Composition,
    ) -> (Result<LoadResult, String>, Vec<(Instant, Seen)>) {
        let address = self.network.address().to_string();
        let (gateway, watch) = self.network.as_server(|| {
            let builder = GatewayBuilder::new(&binary()).upstream(&self.origin.url());
            let gateway = compose(composition, builder.text("listen.address", &address)).start();
            let watch = StatusWatch::start(gateway.admin(), LOOK_EVERY, |status| {
                let verdict = status["verdict"]["cause"].as_str().unwrap_or_default().to_owned();
                Seen { verdict, ceiling_rps: status["plan"]["ceiling_rps"].as_f64() }
            });
            (gateway, watch)
        });
        let load = self.send();
        let seen = watch.stop();
        drop(gateway);
        (load, seen)
    }

    fn behind_a_rate_limit(&self, part: f64) -> Option<Result<LoadResult, String>> {
        let limit = RateLimit { rate_rps: part * self.link.capacity_rps(), burst: BURST };
        let (address, origin) = (self.network.address(), self.origin.address());
        let _nginx = self.network.as_server(|| Nginx::require_limited(NAME, address, limit, origin))?;
        Some(self.send())
    }

    fn send(&self) -> Result<LoadResult, String> {
        let rate = |load: f64, seconds| {
            RateProfile::constant(load * self.link.capacity_rps(), Duration::from_secs(seconds))
        };
        let crowd_s = self.judged().end + LONGER_S - CALM_S;
        let profile = rate(CALM, CALM_S).and_then(|calm| Ok(calm.then(rate(CROWD, crowd_s)?)));
        let plan = people(
            &format!("http://{}/", self.network.address()),
            profile.map_err(|error| error.to_string())?,
        );
        let mut plan = plan.map_err(|error| error.to_string())?;
        plan.sources = Sources { count: CLIENTS, network: NarrowLink::CLIENTS.parse().expect("a network") };
        self.network.as_client(|| flashweir_load::run(plan, |_| {})).map_err(|error| error.to_string())
    }

    /// The seconds of the run that are measured.
    fn judged(&self) -> Range<u64> {
        let from = CALM_S + self.link.settling_s();
        from..from + self.judged_s
    }

    /// The verdict of most looks within the seconds that are measured, and the ceiling of the last.
    fn usual(&self, seen: &[(Instant, Seen)], started: Option<Instant>) -> (Option<String>, Option<f64>) {
        let judged = self.judged();
        let within = |at: &Instant| {
            started.is_some_and(|started| judged.contains(&at.saturating_duration_since(started).as_secs()))
        };
        let measured = || seen.iter().filter(|(at, _)| within(at)).map(|(_, seen)| seen);
        let count = |wanted: &str| measured().filter(|seen| seen.verdict == wanted).count();
        let usual = measured().max_by_key(|seen| count(&seen.verdict)).map(|seen| seen.verdict.clone());
        (usual, measured().next_back().and_then(|seen| seen.ceiling_rps))
    }
}

/// All addresses of the network but its first and its last.
const CLIENTS: u32 = 65_534;
