//! People who ask for the documents of a site, a few of them mostly.

use crate::site::{self, HOST};
use bytes::Bytes;
use flashweir_load::{ClassPlan, LoadPlan, LoadResult, LoadTarget, Paths, Prepared, Sources, Template};
use flashweir_workload::documents::Popularity;
use flashweir_workload::{ArrivalProcess, Schedule, Share, Stream};
use http::{HeaderValue, Method, header};
use std::net::SocketAddr;
use std::time::Duration;

/// The first round's; each further round takes the next.
pub(crate) const SEED: u64 = 7_001;
/// Minix3's documents by number and concentration, as the simulator has them: ten get 79 %.
pub(crate) const DOCUMENTS: u32 = 507;
const ZIPF: f64 = 1.5;
const SOURCES: u32 = 4_000;

/// Sends these rates one after the other, by the thesis's method 4, for the documents with these paths (or
/// any, by number); each request has its own connection, and counts as in time within a second.
pub(crate) fn send(
    to: SocketAddr,
    rates: &[(u32, Duration)],
    round: u64,
    paths: Option<&[Box<str>]>,
) -> LoadResult {
    let target = LoadTarget::parse(&format!("http://{to}/")).expect("an address");
    let mut moments = Vec::new();
    let mut start = Duration::ZERO;
    for (place, &(rps, length)) in (0..).zip(rates) {
        let arrivals = ArrivalProcess::random_timing(rps, length).expect("a rate above zero");
        moments.extend(arrivals.moments(SEED + round + 1_000 * place).map(|at| start + at));
        start += length;
    }
    moments.sort_unstable();
    let arrivals = ArrivalProcess::given_within(moments, start).expect("moments within the length");
    let stream = Stream { arrivals, classes: vec![Share { class: 0, weight: 1.0 }] };
    let schedule = Schedule::new(vec![stream], SEED + round).expect("a schedule");
    let fields = [(header::HOST, HeaderValue::from_static(HOST))];
    let request = Prepared::new(&target, Method::GET, &fields, Bytes::new()).expect("a request");
    let paths = match paths {
        Some(paths) => Paths::Table(paths.into()),
        None => Paths::Template(Template::new(&site::path("{document}"), None, 0).expect("a template")),
    };
    let popularity = Popularity::zipf(ZIPF, DOCUMENTS).expect("a popularity");
    let class = ClassPlan { popularity, ..ClassPlan::new("all", request, paths) };
    let plan = LoadPlan {
        seed: SEED + round,
        sources: Sources { count: SOURCES, ..Sources::default() },
        ..LoadPlan::new(target, schedule, class)
    };
    flashweir_load::run(plan, |_| {}).expect("a load that can be sent")
}
