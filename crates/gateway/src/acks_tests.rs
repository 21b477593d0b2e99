//! The acknowledgement rule on literal numbers, and one pass over real sockets.

use super::*;
use crate::tracked::WireIo;
use flashweir_admission::flash_crowd::CeilingPriority;
use flashweir_admission::pipeline::{
    AdmissionRequest, Arrival, FlashCrowdOptions, OriginReport, Pipeline, RequestOutcome, ServiceSettings,
    SharedByWorkers,
};
use flashweir_runtime::Clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn connected() -> (Rc<Wire>, WireIo, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let client = TcpStream::connect(listener.local_addr().expect("address")).await.expect("connect");
    let (server, _) = listener.accept().await.expect("accept");
    let wire = Wire::new(server, Clock::start());
    (wire.clone(), WireIo::new(wire, Duration::from_secs(60)), client)
}

/// As a pipeline gives it with the end of a request that completed.
fn delivery() -> Delivery {
    let mut pipeline = Pipeline::new(0, &SharedByWorkers::default());
    pipeline.configure(usize::MAX, FlashCrowdOptions::default());
    let service = pipeline.add_service(ServiceSettings { sentry: None, upstream_capacity: 1 });
    let request = AdmissionRequest {
        service,
        class: 0,
        ceiling_priority: CeilingPriority::LAST,
        client_key: 1,
        url_class: 1,
        host_key: 1,
        person_key: 1,
        candidate: None,
        is_beyond_sender_share: false,
        deadline: None,
        closed: None,
        signs: Default::default(),
        asking: Default::default(),
    };
    let Arrival::Admitted(permit, _) = pipeline.arrive(Instant::ZERO, request, ()) else {
        panic!("there is room")
    };
    let outcome = RequestOutcome::Completed(OriginReport::default());
    pipeline.finish(Instant::ZERO, permit, outcome).expect("it completed")
}

async fn finished(bytes: u64) -> Finished {
    let (wire, _io, _client) = connected().await;
    let mark = wire.ask_mark();
    let (started, delivered_from) = (Instant::from_millis(1_000), Instant::from_millis(1_020));
    let delivery = delivery();
    Finished {
        started,
        judged_from: started,
        delivered_from,
        delivery,
        bytes,
        url_class: 7,
        target_stretch: 1.0,
        wire,
        mark,
    }
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn mark(position: u64, millis: u64) -> MarkMet {
    MarkMet { position, at: at(millis) }
}

/// An acknowledgement that came `since_last_ack_ms` before the look, over a path of 30 ms and 1448-byte
/// segments.
fn acknowledged(bytes: u64, since_last_ack_ms: u64) -> TcpInfo {
    TcpInfo {
        bytes_acked: Some(bytes),
        rtt: Duration::from_millis(30),
        min_rtt: Some(Duration::from_millis(30)),
        sending_mss_bytes: 1_448,
        since_last_ack: Duration::from_millis(since_last_ack_ms),
        ..TcpInfo::default()
    }
}

fn measured(judgement: Judgement) -> Response {
    match judgement {
        Judgement::Acknowledged(response) => response,
        other => panic!("not measured: {other:?}"),
    }
}

#[tokio::test]
async fn a_small_response_is_charged_one_round_trip_when_its_ack_may_have_been_delayed() {
    let response = finished(500).await;
    // Left at 1,020; acknowledged at 1,085: within 30 + 40 ms.
    let got =
        measured(judge(&response, at(1_020), Some((mark(600, 1_020), acknowledged(600, 5))), at(1_090)));
    assert!((got.latency_s - 0.050).abs() < 1e-6, "{got:?}");
    assert_eq!((got.rate_bytes_per_s, got.bytes, got.url_class), (None, 500, 7));
}

#[tokio::test]
async fn where_only_delivery_is_judged_the_time_at_the_origin_is_left_out() {
    let small = finished(500).await;
    // The origin took half a second before its first byte, and another 100 ms within the body.
    let late = Finished { judged_from: at(1_620), delivered_from: at(1_620), ..small };
    let got = measured(judge(&late, at(1_620), Some((mark(600, 1_620), acknowledged(600, 5))), at(1_690)));
    assert!((got.latency_s - 0.030).abs() < 1e-6, "one round trip: {got:?}");
    assert_eq!(got.started, at(1_000), "it was admitted when it was sent to the origin");
}

#[tokio::test]
async fn a_small_response_is_charged_in_full_when_its_ack_came_late() {
    let response = finished(500).await;
    let got =
        measured(judge(&response, at(1_020), Some((mark(600, 1_020), acknowledged(600, 10))), at(1_310)));
    assert!((got.latency_s - 0.300).abs() < 1e-6, "{got:?}");
}

#[tokio::test]
async fn a_small_response_waits_for_its_last_byte_and_a_large_one_forgives_two_segments() {
    let small = finished(500).await;
    assert_eq!(
        judge(&small, at(1_020), Some((mark(600, 1_020), acknowledged(599, 0))), at(1_030)),
        Judgement::Wait { until: Some(at(1_090)) }
    );
    let large = finished(100_000).await;
    let short_by_two = 100_200 - 2 * 1_448;
    let waits =
        judge(&large, at(1_020), Some((mark(100_200, 1_030), acknowledged(short_by_two - 1, 0))), at(1_100));
    assert_eq!(waits, Judgement::Wait { until: None });
    let done =
        judge(&large, at(1_020), Some((mark(100_200, 1_030), acknowledged(short_by_two, 0))), at(1_220));
    let got = measured(done);
    assert!((got.latency_s - 0.220).abs() < 1e-6, "{got:?}");
    // 100,000 bytes from 1,020 to 1,220 ms.
    assert!((got.rate_bytes_per_s.expect("rate") - 500_000.0).abs() < 1.0, "{got:?}");
}

#[tokio::test]
async fn a_transfer_shorter_than_a_round_trip_has_no_rate() {
    let large = finished(100_000).await;
    let got =
        measured(judge(&large, at(1_020), Some((mark(100_200, 1_030), acknowledged(100_200, 0))), at(1_045)));
    assert_eq!(got.rate_bytes_per_s, None);
    assert!((got.latency_s - 0.045).abs() < 1e-6);
}

#[tokio::test]
async fn a_response_is_lost_when_its_connection_died_or_it_waited_a_minute() {
    let response = finished(500).await;
    let died = TcpInfo { closed: true, ..acknowledged(0, 0) };
    assert_eq!(judge(&response, at(1_020), Some((mark(600, 1_020), died)), at(1_100)), Judgement::Lost);
    assert_eq!(judge(&response, at(1_020), None, at(1_100)), Judgement::Wait { until: None });
    assert_eq!(judge(&response, at(1_020), None, at(61_021)), Judgement::Lost);
    let silent = Some((mark(600, 1_020), acknowledged(0, 0)));
    assert_eq!(judge(&response, at(1_020), silent, at(61_021)), Judgement::Lost);
}

#[tokio::test]
async fn a_kernel_that_does_not_count_acknowledgements_is_believed_at_hand_over() {
    let response = finished(500).await;
    let old = TcpInfo { bytes_acked: None, ..acknowledged(0, 0) };
    assert!(measured(judge(&response, at(1_020), Some((mark(600, 1_020), old)), at(1_030))).latency_s < 0.06);
}

#[tokio::test]
async fn a_sweep_measures_what_a_real_client_received_and_keeps_what_it_did_not() {
    let (wire, mut io, mut client) = connected().await;
    let (mut acks, clock) = (Acks::default(), Clock::start());
    let respond = |mark| Finished {
        started: clock.now(),
        judged_from: clock.now(),
        delivered_from: clock.now(),
        delivery: delivery(),
        bytes: 4_000,
        url_class: 1,
        target_stretch: 1.0,
        wire: wire.clone(),
        mark,
    };
    io.write_all(&[0; 4_000]).await.expect("write");
    assert!(matches!(acks.push(clock.now(), respond(wire.ask_mark())), Pushed::Taken));
    let swept = acks.sweep(clock.now(), |_, _| panic!("not flushed yet"));
    assert_eq!(swept, Swept::default());

    io.flush().await.expect("flush");
    client.read_exact(&mut [0; 4_000]).await.expect("read");
    client.write_all(b"x").await.expect("carries the acknowledgement");
    io.read_exact(&mut [0; 1]).await.expect("read");
    let mut responses = Vec::new();
    let swept =
        acks.sweep(clock.now() + Duration::from_millis(500), |_, response| responses.extend(response));
    assert_eq!((swept, responses.len()), (Swept { measured: 1, lost: 0 }, 1));
    assert!(responses[0].latency_s < 5.0);
    assert!(acks.is_empty());
}

/// The kernel's answer for one connection is not applied to another: here that would leave the longer
/// response waiting.
#[tokio::test]
async fn a_sweep_asks_about_each_connection() {
    let (mut acks, clock) = (Acks::default(), Clock::start());
    let mut connections = Vec::new();
    for bytes in [100, 4_000] {
        let (wire, mut io, mut client) = connected().await;
        io.write_all(&vec![0; bytes]).await.expect("write");
        let response = Finished { wire: wire.clone(), mark: wire.ask_mark(), ..finished(bytes as u64).await };
        assert!(matches!(acks.push(clock.now(), response), Pushed::Taken));
        io.flush().await.expect("flush");
        client.read_exact(&mut vec![0; bytes]).await.expect("read");
        client.write_all(b"x").await.expect("carries the acknowledgement");
        io.read_exact(&mut [0; 1]).await.expect("read");
        connections.push((io, client));
    }
    let swept = acks.sweep(clock.now() + Duration::from_millis(500), |_, _| ());
    assert_eq!(swept, Swept { measured: 2, lost: 0 });
}

#[tokio::test]
async fn a_sample_is_taken_between_two_sweeps_until_the_list_is_full() {
    let (wire, _io, _client) = connected().await;
    let mut acks = Acks::default();
    let response = |mark| Finished {
        started: Instant::ZERO,
        judged_from: Instant::ZERO,
        delivered_from: Instant::ZERO,
        delivery: delivery(),
        bytes: 1,
        url_class: 1,
        target_stretch: 1.0,
        wire: wire.clone(),
        mark,
    };
    let mark = wire.ask_mark();
    // The mark is never met (nothing is flushed), so no connection leaves the list.
    for _ in 0..limits::ACKS_AWAITED / MEASURED_PER_SWEEP {
        for _ in 0..MEASURED_PER_SWEEP {
            assert!(matches!(acks.push(Instant::ZERO, response(mark)), Pushed::Taken));
        }
        assert!(matches!(acks.push(Instant::ZERO, response(mark)), Pushed::LeftOut(_)));
        acks.sweep(Instant::ZERO, |_, _| panic!("nothing was acknowledged"));
    }
    assert!(matches!(acks.push(Instant::ZERO, response(mark)), Pushed::Full(_)));
}
