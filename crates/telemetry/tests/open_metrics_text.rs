//! The text a scrape gets, read back by a strict little parser of OpenMetrics 1.0.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use flashweir_admission::flash_crowd::{Cause, HotSpotLimit, Limit, Mode, Plan, Rule};
use flashweir_admission::sentry::{ClassCounts, Policy, SentryPlanner};
use flashweir_core::limits::CLASS_SLOTS;
use flashweir_core::{Instant, Rate, Reason};
use flashweir_telemetry::{Bound, ClassNews, Happening, Outcome, StatusClass, Telemetry};

/// Samples by full name with labels, after checking the grammar and that each belongs to a declared family.
fn scrape(telemetry: &Telemetry) -> BTreeMap<String, f64> {
    let text = telemetry.open_metrics();
    let body = text.strip_suffix("# EOF\n").expect("ends with # EOF");
    let (mut families, mut samples) = (BTreeMap::new(), BTreeMap::new());
    let mut present = String::new();
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("help has a text");
            assert!(help.ends_with('.') && !help.contains('\\'), "{line}");
            assert!(families.insert(name.to_owned(), String::new()).is_none(), "declared twice: {line}");
            present = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("type has a kind");
            assert_eq!(name, present);
            families.insert(name.to_owned(), kind.to_owned());
        } else if let Some(rest) = line.strip_prefix("# UNIT ") {
            let (name, unit) = rest.split_once(' ').expect("unit has a name");
            assert!(name == present && name.ends_with(&format!("_{unit}")), "{line}");
        } else {
            let (name, value) = line.rsplit_once(' ').expect("a sample has a value");
            let bare = name.split('{').next().expect("split yields at least one part");
            let suffixes: &[&str] = match families[&present].as_str() {
                "counter" => &["_total"],
                "gauge" => &[""],
                "histogram" => &["_bucket", "_count", "_sum"],
                "info" => &["_info"],
                other => panic!("unknown type {other}"),
            };
            assert!(
                suffixes.iter().any(|suffix| bare == format!("{present}{suffix}")),
                "{line} in {present}"
            );
            let value = value.parse().unwrap_or_else(|_| panic!("not a number: {line}"));
            assert!(samples.insert(name.to_owned(), value).is_none(), "sampled twice: {line}");
        }
    }
    samples
}

#[test]
fn a_fresh_gateway_exports_zeroes_and_leaves_out_what_it_does_not_know() {
    let samples = scrape(&Telemetry::new(3, "0.1.0"));
    assert_eq!(samples["flashweir_requests_offered_total"], 0.0);
    assert_eq!(samples["flashweir_requests_shed_total{reason=\"flash_crowd\"}"], 0.0);
    assert_eq!(samples["flashweir_workers"], 3.0);
    assert_eq!(samples["flashweir_build_info{version=\"0.1.0\"}"], 1.0);
    assert!(!samples.contains_key("flashweir_plan_quality_ratio"));
    assert!(!samples.contains_key("flashweir_plan_ceiling_requests_per_second"));
}

#[test]
fn a_scrape_sums_over_workers() {
    let telemetry = Telemetry::new(2, "0.1.0");
    for (index, count) in [(0, 3), (1, 4)] {
        let worker = telemetry.worker(index);
        worker.requests.admitted.add(count);
        worker.requests.shed.add(Reason::Draining, count);
        worker.responses.by_class.increment(StatusClass::of(503));
        worker.responses.duration.record(Duration::from_millis(20));
        worker.connections.opened.add(10);
        worker.connections.closed.add(count);
        worker.bound_hits.increment(Bound::AcksAwaited);
    }
    telemetry.worker(0).requests.completed.increment();
    telemetry.worker(1).requests.abandoned.increment();
    telemetry.worker(1).requests.failed.increment();
    let samples = scrape(&telemetry);
    assert_eq!(samples["flashweir_requests_shed_total{reason=\"draining\"}"], 7.0);
    assert_eq!(samples["flashweir_requests_in_flight"], 4.0);
    assert_eq!(samples["flashweir_connections_open"], 13.0);
    assert_eq!(samples["flashweir_responses_total{class=\"5xx\"}"], 2.0);
    assert_eq!(samples["flashweir_request_duration_seconds_bucket{le=\"0.01\"}"], 0.0);
    assert_eq!(samples["flashweir_request_duration_seconds_bucket{le=\"0.025\"}"], 2.0);
    assert_eq!(samples["flashweir_request_duration_seconds_bucket{le=\"+Inf\"}"], 2.0);
    assert_eq!(samples["flashweir_request_duration_seconds_sum"], 0.04);
    assert_eq!(samples["flashweir_bound_hits_total{bound=\"acks_awaited\"}"], 2.0);
}

#[test]
fn the_plan_in_force_is_exported_and_each_decision_counted_once() {
    let telemetry = Telemetry::new(1, "0.1.0");
    let control = telemetry.control();
    let mut plan = Plan::open(1);
    plan.epoch = 7;
    plan.limit = Limit::HotSpots(vec![HotSpotLimit { key: 1, rate: Rate::from_per_second(50.0) }]);
    plan.explanation.mode = Mode::Alarm;
    plan.explanation.cause = Cause::Popular;
    plan.explanation.rule = Rule::Raise;
    plan.explanation.ceiling_rps = Some(120.5);
    plan.explanation.quality = Some(0.5);
    control.publish_plan(&plan);
    control.publish_plan(&plan);
    let samples = scrape(&telemetry);
    assert_eq!(samples["flashweir_plan_mode{mode=\"alarm\"}"], 1.0);
    assert_eq!(samples["flashweir_plan_mode{mode=\"normal\"}"], 0.0);
    assert_eq!(samples["flashweir_plan_cause{cause=\"popular\"}"], 1.0);
    assert_eq!(samples["flashweir_plan_ceiling_requests_per_second"], 120.5);
    assert_eq!(samples["flashweir_plan_quality_ratio"], 0.5);
    assert_eq!(samples["flashweir_plan_hot_spots_limited"], 1.0);
    assert_eq!(samples["flashweir_plan_epoch"], 7.0);
    assert_eq!(samples["flashweir_plans_total{rule=\"raise\"}"], 1.0);
    plan.explanation.ceiling_rps = None;
    control.publish_plan(&plan);
    assert!(!scrape(&telemetry).contains_key("flashweir_plan_ceiling_requests_per_second"));
}

#[test]
fn upstreams_reloads_and_warnings_are_exported() {
    let telemetry = Telemetry::new(1, "0.1.0");
    let health = [("0".to_owned(), true), ("api/0".to_owned(), false)];
    telemetry.control().publish_upstream_health(&health);
    telemetry.control().config_reloads.increment(Outcome::Failed);
    telemetry.control().set_draining(true);
    telemetry.warnings().warn(Instant::ZERO, Happening::StateFile, format_args!("truncated"));
    let samples = scrape(&telemetry);
    assert_eq!(samples["flashweir_upstream_healthy{upstream=\"0\"}"], 1.0);
    assert_eq!(samples["flashweir_upstream_healthy{upstream=\"api/0\"}"], 0.0);
    assert_eq!(samples["flashweir_config_reloads_total{outcome=\"failed\"}"], 1.0);
    assert_eq!(samples["flashweir_warnings_total{event=\"state_file\"}"], 1.0);
    assert_eq!(samples["flashweir_draining"], 1.0);
    // Fewer upstreams after a reload leave no series behind.
    telemetry.control().publish_upstream_health(&health[..1]);
    assert!(!scrape(&telemetry).contains_key("flashweir_upstream_healthy{upstream=\"api/0\"}"));
}

#[test]
fn the_number_of_series_does_not_depend_on_traffic_and_fits_the_status_page() {
    let telemetry = Telemetry::new(8, "0.1.0");
    let before: BTreeSet<_> = scrape(&telemetry).into_keys().collect();
    for worker in 0..8 {
        let worker = telemetry.worker(worker);
        (0..1_000).for_each(|_| worker.requests.offered.increment());
    }
    let after: BTreeSet<_> = scrape(&telemetry).into_keys().collect();
    assert_eq!(before, after);
    assert!(before.len() < 300, "{} series", before.len());
}

#[test]
fn classes_are_counted_by_the_names_of_the_configuration_and_services_told_apart() {
    let telemetry = Telemetry::new(2, "0.1.0");
    let control = telemetry.control();
    let (gold, other) = (control.class_slot("shop", "gold"), control.class_slot("forge", "gold"));
    assert_eq!(control.class_slot("shop", "gold"), gold, "the same names, the same slot");
    for worker in [0, 1] {
        let worker = telemetry.worker(worker);
        worker.classes.of(gold).offered.add(10);
        worker.classes.of(gold).shed.add(Reason::Reserved, 3);
        worker.classes.of(gold).left.increment();
        worker.classes.of(gold).unmet_us.add(250_000);
    }
    let planner = SentryPlanner::new(Arc::new(Policy::single(Duration::from_secs(1))));
    let plan = planner.current();
    let counts =
        ClassCounts { completed: 5, good: 4, held: 2, oldest_held_us: 1_500_000, ..ClassCounts::default() };
    for _ in 0..2 {
        let news =
            ClassNews { slot: gold, counts: &counts, plan: &plan.classes[0], usual_us: 2_000, revenue: 2.5 };
        control.publish_sentry("shop", plan, [news].into_iter());
    }
    let samples = scrape(&telemetry);
    let shop = |name: &str| samples[&format!("flashweir_{name}{{service=\"shop\",class=\"gold\"}}")];
    assert_eq!((shop("class_offered_total"), shop("class_unmet_total")), (20.0, 8.0));
    assert_eq!(shop("class_unmet_server_seconds_total"), 0.5);
    assert_eq!(
        (shop("class_completed_total"), shop("class_good_total"), shop("class_revenue_total")),
        (10.0, 8.0, 20.0)
    );
    assert_eq!((shop("class_waiting"), shop("class_waiting_oldest_seconds")), (2.0, 1.5));
    assert_eq!((shop("class_limit"), shop("class_service_time_seconds")), (8.0, 0.002));
    let reserved = "flashweir_class_shed_total{service=\"shop\",class=\"gold\",reason=\"reserved\"}";
    assert_eq!(samples[reserved], 6.0);
    assert_eq!(samples["flashweir_sentry_limit{service=\"shop\"}"], 8.0);
    assert!(!samples.contains_key("flashweir_sentry_knee{service=\"shop\"}"), "nothing is known of it");
    assert_eq!(samples["flashweir_class_offered_total{service=\"forge\",class=\"gold\"}"], 0.0);
    assert_ne!(gold, other);
    // The service is gone at a reload: its levels are, too, but not what was counted.
    control.keep_sentries(|name| name == "forge");
    let samples = scrape(&telemetry);
    assert!(!samples.contains_key("flashweir_sentry_limit{service=\"shop\"}"));
    assert!(samples.contains_key("flashweir_class_offered_total{service=\"shop\",class=\"gold\"}"));
}

#[test]
fn however_many_classes_come_with_reloads_the_series_are_bounded() {
    let telemetry = Telemetry::new(1, "0.1.0");
    let control = telemetry.control();
    let slots: Vec<_> = (0..1_000).map(|n| control.class_slot("shop", &format!("class{n}"))).collect();
    telemetry.worker(0).classes.of(slots[999]).offered.increment();
    telemetry.worker(0).classes.of(slots[500]).offered.increment();
    let samples = scrape(&telemetry);
    let offered = samples.keys().filter(|name| name.starts_with("flashweir_class_offered_total")).count();
    assert_eq!(offered, CLASS_SLOTS);
    assert_eq!(samples["flashweir_class_offered_total{service=\"other\",class=\"other\"}"], 2.0);
}
