//! Calm, crowds, bursts, deadlines and clients that leave, in virtual time.

use super::service::{TARGET, Workers, crowd, four_workers, get, send};
use crate::{AdmissionError, AdmissionLayer};
use flashweir_core::Reason;
use http::Request;
use std::time::Duration;
use tokio::time::{self, Instant};
use tower_layer::Layer as _;
use tower_service::Service as _;

#[tokio::test(start_paused = true)]
async fn in_calm_every_request_is_served_without_a_wait() {
    let (layer, service) = four_workers();
    let met = crowd(&service, "/", 40.0, Duration::from_secs(30))
        .await
        .met(Instant::now() - Duration::from_secs(60), Duration::from_millis(60))
        .await;
    assert_eq!((met.in_time, met.all()), (1_200, 1_200), "{met:?}");
    let status = layer.status();
    assert_eq!((status.offered, status.admitted, status.completed, status.shed), (1_200, 1_200, 1_200, 0));
    assert_eq!((status.in_flight, status.queued), (0, 0));
}

/// Goal: five times the capacity is held to what the service can serve in time. Method: judged from the
/// tenth second on; without the layer the workers' line is 80 s long by then.
#[tokio::test(start_paused = true)]
async fn a_crowd_is_held_to_the_capacity_and_refusals_say_when_to_come_again() {
    let (layer, service) = four_workers();
    let began = Instant::now();
    let sent = crowd(&service, "/", 400.0, Duration::from_secs(30)).await;
    let met = sent.met(began + Duration::from_secs(10), TARGET).await;
    assert!(met.in_time as f64 >= 0.95 * 80.0 * 20.0, "{} in time of {}", met.in_time, met.all());
    assert!(met.late <= 16, "{} late of {}", met.late, met.all());
    assert!(
        met.refused.iter().all(|refused| (1..=60).contains(&refused.retry_after_s)),
        "{:?}",
        met.refused[0]
    );
    let status = layer.status();
    assert_eq!(status.offered, status.admitted + status.shed, "{status:?}");
    assert_eq!((status.in_flight, status.queued), (0, 0), "{status:?}");
}

#[tokio::test(start_paused = true)]
async fn a_burst_that_fits_the_target_is_served_whole() {
    let (_, service) = four_workers();
    time::sleep(Duration::from_secs(1)).await;
    let burst: Vec<_> = (0..60).map(|_| send(&service, get("/"))).collect();
    for sent in burst {
        let (answer, took) = sent.await.expect("an answer");
        assert!(answer.is_ok() && took <= TARGET, "{answer:?} after {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_no_longer_than_its_client_does() {
    let layer = AdmissionLayer::new(Duration::from_secs(10));
    let service = layer.layer(Workers::new(1, Duration::from_secs(2)));
    let before: Vec<_> = (0..12).map(|_| send(&service, get("/"))).collect();
    time::sleep(Duration::from_millis(1)).await;
    assert!(layer.status().queued > 0, "{:?}", layer.status());
    let within =
        |value: &str| Request::get("/").header("flashweir-deadline", value).body(()).expect("a request");
    for (deadline, waits) in [("0", Duration::ZERO), ("300", Duration::from_millis(300))] {
        let (answer, took) = send(&service, within(deadline)).await.expect("an answer");
        let Err(AdmissionError::Refused(refused)) = answer else { panic!("{answer:?}") };
        assert_eq!((refused.reason, took), (Reason::CallerDeadline, waits));
    }
    let by_grpc = Request::get("/").header("grpc-timeout", "0m").body(()).expect("a request");
    let (answer, _) = send(&service, by_grpc).await.expect("an answer");
    assert!(matches!(answer, Err(AdmissionError::Refused(_))), "{answer:?}");
    let (answer, _) = send(&service, within("no number")).await.expect("an answer");
    assert!(answer.is_ok(), "a value that cannot be read is ignored: {answer:?}");
    drop(before);
}

/// Goal: a client that leaves frees its place, wherever its request is. Method: requests whose futures are
/// dropped in the queue, at the service, and at the moment at which their turn has come and they have not
/// heard of it.
#[tokio::test(start_paused = true)]
async fn clients_that_leave_take_no_place_with_them() {
    let (layer, service) = four_workers();
    let mut sent: Vec<_> = (0..100).map(|_| Box::pin(service.clone().call(get("/")))).collect();
    for request in &mut sent {
        assert!(futures_poll(request).await, "none is answered at once");
    }
    let status = layer.status();
    assert!(status.queued > 0 && status.in_flight > 0, "{status:?}");
    time::sleep(Duration::from_millis(55)).await;
    sent.truncate(50);
    assert_eq!(layer.status().left, 50, "the last are in the queue");
    // Some places are given on when the first are dropped; those that get them are dropped next.
    drop(sent);
    let status = layer.status();
    assert_eq!((status.in_flight, status.queued), (0, 0), "{status:?}");
    assert_eq!(status.offered, status.admitted + status.shed + status.left, "{status:?}");
    let (answer, took) = send(&service, get("/")).await.expect("an answer");
    assert!(answer.is_ok() && took <= Duration::from_millis(60), "{answer:?} after {took:?}");
}

/// Polls once; whether it is pending.
async fn futures_poll<F: Future + Unpin>(future: &mut F) -> bool {
    std::future::poll_fn(|cx| std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(cx).is_pending()))
        .await
}

#[tokio::test(start_paused = true)]
async fn the_planner_rests_without_requests_and_comes_back_with_them() {
    let (layer, service) = four_workers();
    let ask = || async { send(&service, get("/")).await.expect("an answer").0.is_ok() };
    assert!(ask().await && layer.is_driven());
    time::sleep(Duration::from_secs(9)).await;
    assert!(layer.is_driven());
    time::sleep(Duration::from_secs(2)).await;
    assert!(!layer.is_driven());
    assert!(ask().await && layer.is_driven());
    drop((layer, service));
    // The task has no one to plan for, and ends.
    time::sleep(Duration::from_secs(1)).await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

/// Goal: a layer outlives the runtime in which its planner's task was started. Method: one layer asked in
/// two runtimes, one after the other.
#[test]
fn a_layer_is_driven_again_in_another_runtime() {
    let layer = AdmissionLayer::new(TARGET);
    let service = layer.layer(Workers::new(4, Duration::from_millis(1)));
    for _ in 0..2 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let answer = runtime.block_on(async { send(&service, get("/")).await.expect("an answer").0 });
        assert!(answer.is_ok() && layer.is_driven());
        drop(runtime);
        assert!(!layer.is_driven(), "its task is gone");
    }
}
