//! Goal: a crowd that comes for downloads, each of which takes long over a client's own connection, is no
//! queue on the service's link. Method: pages that are delivered at once and downloads of ten seconds each,
//! of which ten times as many are asked for all at once; far fewer come out than are handed over, and no
//! client waits for another.

use crate::common::drained_responses;

use flashweir_admission::flash_crowd::{Baseline, FlashCrowdPlanner, Response, Sample, Settings};
use flashweir_admission::{Flow, PlannerDriver};
use flashweir_core::{Duration, Instant};

const TICK: Duration = Duration::from_millis(100);
const DOWNLOAD_TICKS: usize = 100;
const CALM_TICKS: usize = 600;
const CROWD_TICKS: usize = 150;

fn response(url_class: u32, started: Instant, latency: Duration) -> Response {
    Response { started, bytes: 8_000, latency_s: latency.as_secs_f32(), rate_bytes_per_s: None, url_class }
}

/// The first moment of a ceiling, in ticks of the crowd; given are pages and downloads that are asked for in
/// a tick, before the crowd and in it.
fn ceiling_at(pages: [usize; 2], downloads: [usize; 2]) -> Option<usize> {
    let planner = FlashCrowdPlanner::new(Settings::default(), &Baseline::default());
    let mut planner = PlannerDriver::new(planner, Instant::ZERO);
    let mut evidence_from = Instant::ZERO;
    let mut now = Instant::ZERO;
    (0..CALM_TICKS + CROWD_TICKS).find_map(|tick| {
        let at = |tick: usize, counts: [usize; 2]| counts[usize::from(tick >= CALM_TICKS)];
        let from = now;
        now += TICK;
        let admitted = (at(tick, pages) + at(tick, downloads)) as u64;
        let ends = tick.checked_sub(DOWNLOAD_TICKS).map_or(0, |begun| at(begun, downloads));
        let page = response(1, from, Duration::from_millis(30));
        let takes = TICK * DOWNLOAD_TICKS as u32;
        let responses = (0..at(tick, pages)).map(|_| page).chain((0..ends).map(|_| {
            let started = Instant::ZERO + from.saturating_since(Instant::ZERO + takes);
            response(2, started, takes)
        }));
        let sample = Sample {
            from,
            to: now,
            evidence_from,
            flow: Flow { offered: admitted, admitted, ..Flow::default() },
            unique_offered: admitted,
            entered: admitted,
            handed_over: admitted,
            completed: (at(tick, pages) + ends) as u64,
            ..drained_responses::of_responses(responses)
        };
        planner.observe(now, &sample);
        let plan = planner.plan(now);
        evidence_from = plan.evidence_from;
        plan.explanation.ceiling_rps.map(|_| tick - CALM_TICKS)
    })
}

#[test]
fn a_crowd_of_downloads_beside_pages_is_no_queue() {
    assert_eq!(ceiling_at([2, 2], [1, 20]), None);
}

#[test]
fn a_crowd_of_downloads_alone_is_no_queue() {
    assert_eq!(ceiling_at([0, 0], [2, 20]), None);
}
