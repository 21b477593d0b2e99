//! A small site with people in sessions, and a crawler that asks for several times what the site can do.

use flashweir_admission::sentry;
use flashweir_core::Duration;
use flashweir_sim::request::{
    ClassModel, FlashCrowdPolicy, NetworkModel, Policy, RunOutcome, Scenario, SentryPolicy, ServerModel,
    SignModel, Work, run,
};
use flashweir_workload::documents::Popularity;
use flashweir_workload::people::{Habits, Session};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule, Share, Stream};
use std::num::NonZeroU32;

/// Requests per second that the site can do.
pub(crate) const CAPACITY_RPS: f64 = 55.0;
/// Seconds at which all people have come, the crawler begins, and all ends.
const PEOPLE_ARE_IN_S: u64 = 10;
pub(crate) const CRAWL_FROM_S: u64 = 40;
pub(crate) const CRAWL_TO_S: u64 = 100;
const TARGET: Duration = Duration::from_secs(1);
/// A page has three assets: four requests, and half a minute to read. 200 people ask for half of what the
/// site can do.
const ASSETS: u32 = 3;
const THINK: &str = "exp:28s";

/// Protection of the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    None,
    /// The sentry alone.
    Sentry,
    /// All stages, fairness among clients included.
    Default,
}

/// The load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) people: u32,
    /// True if they all have one address.
    pub(crate) is_office: bool,
    pub(crate) addresses: u32,
    /// Requests of the crawler, as multiples of what the site can do.
    pub(crate) times: f64,
    /// True if clients speak TLS, the crawler with its own stack.
    pub(crate) has_tls: bool,
    /// Sessions of newcomers that begin each second while the crawler is there.
    pub(crate) newcomers_per_s: f64,
}

/// Results of people while the crawler was there.
#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "printed with the others")]
pub(crate) struct Found {
    /// Requests of people that were answered in time, as a part of those made.
    pub(crate) people_in_time: f64,
    pub(crate) newcomers_in_time: f64,
    /// The part of the site's time that went into answers in time.
    pub(crate) useful: f64,
    /// Of the crawler's requests, served a second, as a part of the capacity.
    pub(crate) crawler_served: f64,
    /// Seconds from the crawler's first request to the first second from which on nine tenths of its requests
    /// are demoted; none where that never happens.
    pub(crate) found_after_s: Option<u64>,
    /// The longest time that a person's requests were demoted.
    pub(crate) longest: Duration,
    /// Requests of people demoted.
    pub(crate) people_demoted: u64,
}

pub(crate) fn crawl(load: Load, protection: Protection, seed: u64) -> (Found, RunOutcome) {
    let scenario = scenario(load, protection, seed);
    let outcome = run(&scenario).expect("a run");
    (found(&outcome), outcome)
}

pub(crate) fn policy(protection: Protection) -> Policy {
    let sentry = || {
        let policy = sentry::Policy::single(TARGET);
        SentryPolicy { workers: 2, ..SentryPolicy::new(policy) }
    };
    match protection {
        Protection::None => Policy::None,
        Protection::Sentry => Policy::sentry(sentry()),
        Protection::Default => Policy::default_composition(FlashCrowdPolicy::default(), sentry()),
    }
}

fn scenario(load: Load, protection: Protection, seed: u64) -> Scenario {
    let seconds = Duration::from_secs;
    let arrivals = |rate: f64, from_s: u64, to_s: u64| {
        let bins = (0..CRAWL_TO_S).map(|second| if (from_s..to_s).contains(&second) { rate } else { 0.0 });
        ArrivalProcess::Poisson(RateProfile::from_bins(seconds(1), bins).expect("a profile"))
    };
    let people = f64::from(load.people) / PEOPLE_ARE_IN_S as f64;
    let streams = [
        arrivals(people, 0, PEOPLE_ARE_IN_S),
        arrivals(load.times * CAPACITY_RPS, CRAWL_FROM_S, CRAWL_TO_S),
        arrivals(load.newcomers_per_s.max(1e-6), CRAWL_FROM_S, CRAWL_TO_S),
    ];
    let streams = streams
        .into_iter()
        .zip(0..)
        .map(|(arrivals, class)| Stream { arrivals, classes: vec![Share { class, weight: 1.0 }] });
    let schedule = Schedule::new(streams.collect(), seed).expect("a schedule");
    let work = Work::Exponential { mean: Duration::from_secs_f64(1.0 / CAPACITY_RPS) };
    let popularity = || Popularity::InOrder { count: NonZeroU32::new(500).expect("some") };
    let session = |requests: &str| Session {
        requests: requests.parse().expect("a length"),
        think: THINK.parse().expect("a wait"),
    };
    // Fairness judges only where it is asked to; the sentry alone does not have it.
    let signed = |signs: SignModel| Some(SignModel { is_shown: protection == Protection::Default, ..signs });
    let browsers = SignModel {
        tls_stacks: load.has_tls.then_some(0..4),
        addresses: load.is_office.then_some(NonZeroU32::MIN),
        ..SignModel::people(ASSETS)
    };
    let crawler = SignModel {
        tls_stacks: load.has_tls.then_some(9..10),
        ..SignModel::crawler(NonZeroU32::new(load.addresses).expect("some"))
    };
    let of_people = |name: &str, requests: &str, signs: SignModel| ClassModel {
        habits: Habits { session: session(requests), patience: None, retry: None },
        goes_on_unserved: true,
        popularity: popularity(),
        signs: signed(signs),
        ..ClassModel::new(name, work)
    };
    let classes = vec![
        of_people("people", "endless", browsers.clone()),
        ClassModel { popularity: popularity(), signs: signed(crawler), ..ClassModel::new("crawler", work) },
        of_people("newcomers", "12", SignModel { addresses: None, ..browsers }),
    ];
    let first = classes[0].clone();
    Scenario {
        policy: policy(protection),
        seed,
        classes,
        network: NetworkModel::Delay(Duration::from_millis(1)),
        ..Scenario::new(schedule, first, ServerModel::processor_sharing(1))
    }
}

fn found(outcome: &RunOutcome) -> Found {
    let crawl = CRAWL_FROM_S as usize..CRAWL_TO_S as usize - 2;
    let in_time = |class: usize| {
        let bins = outcome.classes[class].bins.iter().take(crawl.end).skip(crawl.start);
        let (good, offered) =
            bins.fold((0, 0), |(good, offered), bin| (good + bin.goodput, offered + bin.offered));
        if offered == 0 { 1.0 } else { good as f64 / offered as f64 }
    };
    // After the seconds that learning takes.
    let settled = crawl.start + 10..crawl.end;
    let counts = outcome.began_within(settled.clone());
    let busy = outcome.mean_level(settled.clone()).busy;
    let crawler = &outcome.classes[1];
    let served: u64 = crawler.bins[settled.clone()].iter().map(|bin| bin.completed).sum();
    let is_demoted = |second: usize| {
        let demoted = crawler.demotions.by_second.get(second).copied().unwrap_or_default();
        demoted as f64 >= 0.9 * crawler.bins[second].offered as f64
    };
    let since = crawl.clone().rev().take_while(|&second| is_demoted(second)).last();
    Found {
        people_in_time: in_time(0),
        newcomers_in_time: in_time(2),
        useful: busy * counts.goodput as f64 / counts.completed.max(1) as f64,
        crawler_served: served as f64 / settled.len() as f64 / CAPACITY_RPS,
        found_after_s: since.map(|second| (second - crawl.start) as u64),
        longest: outcome.classes[0].demotions.longest,
        people_demoted: outcome.classes[0].demotions.by_second.iter().sum(),
    }
}
