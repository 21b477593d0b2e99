//! Servers, plans and the checks that every run must pass.

use crate::{ClassPlan, LoadPlan, LoadResult, LoadTarget, Progress, Tally};
use flashweir_testbed::origin::{Cold, Origin, Settings};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::time::Duration;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Runs a plan and checks what every run must satisfy.
pub(crate) fn run(plan: LoadPlan, progress: impl FnMut(&Progress)) -> LoadResult {
    let result = crate::run(plan, progress).unwrap();
    adds_up(&result.totals);
    result.classes.values().for_each(adds_up);
    let of_classes = |count: fn(&Tally) -> u64| result.classes.values().map(count).sum::<u64>();
    assert_eq!(of_classes(|class| class.offered), result.totals.offered);
    assert_eq!(of_classes(|class| class.goodput), result.totals.goodput);
    assert_eq!(of_classes(|class| class.abandoned), result.totals.abandoned);
    result
}

fn adds_up(tally: &Tally) {
    assert_eq!(tally.in_flight, 0, "{tally:?}");
    let settled = tally.completed + tally.refused + tally.timed_out + tally.abandoned + tally.errors;
    assert_eq!(tally.offered, settled, "{tally:?}");
    assert_eq!(tally.refused_by_reason.values().sum::<u64>(), tally.refused);
    assert_eq!(tally.refused_by_status.values().sum::<u64>(), tally.refused);
    assert_eq!(tally.errors_by_kind.values().sum::<u64>(), tally.errors);
    assert_eq!(tally.lag_us.count, tally.offered);
    assert_eq!(tally.latency_ms.count, tally.completed);
    for (second, wanted) in tally.series.iter().zip(0..) {
        assert_eq!(second.second, wanted);
        let settled = second.completed + second.refused + second.timed_out + second.abandoned + second.errors;
        assert_eq!(second.offered, settled, "{second:?}");
        assert_eq!(second.latency_buckets.iter().map(|(_, count)| count).sum::<u64>(), second.completed);
    }
    assert_eq!(tally.series.iter().map(|second| second.offered).sum::<u64>(), tally.offered);
    assert_eq!(tally.series.iter().map(|second| second.goodput).sum::<u64>(), tally.goodput);
}

/// Poisson arrivals from a fixed seed.
pub(crate) fn plan(url: &str, rate: f64, seconds: u32) -> LoadPlan {
    let profile = RateProfile::constant(rate, seconds * SECOND).unwrap();
    planned(url, Schedule::one(ArrivalProcess::Poisson(profile), 5))
}

/// `people` people at once, patient enough for a busy machine.
pub(crate) fn burst(address: SocketAddr, people: usize) -> LoadPlan {
    let plan = planned(&format!("http://{address}/"), fixed(&vec![Duration::ZERO; people]));
    for_everybody(plan, |class| class.timeout = 20 * SECOND)
}

/// One class that does what it does unless a test says otherwise.
pub(crate) fn planned(url: &str, schedule: Schedule) -> LoadPlan {
    let target = LoadTarget::parse(url).unwrap();
    let class = ClassPlan::get(&target).unwrap();
    LoadPlan::new(target, schedule, class)
}

/// Changes every class.
pub(crate) fn for_everybody(mut plan: LoadPlan, change: impl Fn(&mut ClassPlan)) -> LoadPlan {
    let mut classes = plan.classes.to_vec();
    classes.iter_mut().for_each(change);
    plan.classes = classes.into();
    plan
}

pub(crate) fn fixed(moments: &[Duration]) -> Schedule {
    Schedule::one(ArrivalProcess::given(moments).unwrap(), 1)
}

pub(crate) fn origin(work_ms: f64) -> Origin {
    start_origin(work_ms, 0.0)
}

/// An origin whose worker waits instead of working: a capacity that other processes on the machine hardly
/// change.
pub(crate) fn waiting_origin(wait_ms: f64) -> Origin {
    start_origin(0.0, wait_ms)
}

fn start_origin(work_ms: f64, wait_ms: f64) -> Origin {
    let listen = ([127, 0, 0, 1], 0).into();
    let workers = NonZeroUsize::MIN;
    let cold = Cold::default();
    Origin::start(Settings {
        listen,
        workers,
        work_ms,
        wait_ms,
        cold,
        body_bytes: 10,
        iterations_per_ms: None,
    })
    .unwrap()
}

pub(crate) fn url(origin: &Origin, path: &str) -> String {
    format!("http://{}{path}", origin.address())
}

/// A server that reads each request's head, sends these bytes and closes. It lives as long as the test
/// process.
pub(crate) fn serve(answer: &'static [u8]) -> SocketAddr {
    serve_each(move |_| answer)
}

/// The same with an answer for each connection that asked, counted from 0.
pub(crate) fn serve_each(answer: impl Fn(usize) -> &'static [u8] + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut asked = 0;
        for mut client in listener.incoming().flatten() {
            if read_head(&mut client) {
                // A client that has gone is the test's own doing.
                let _ = client.write_all(answer(asked));
                asked += 1;
            }
        }
    });
    address
}

/// Returns whether there was one: a client that only looks whether a server listens sends nothing.
fn read_head(client: &mut TcpStream) -> bool {
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.ends_with(b"\r\n\r\n") {
        match client.read(&mut piece) {
            Ok(read @ 1..) => request.extend_from_slice(&piece[..read]),
            _ => return false,
        }
    }
    true
}
