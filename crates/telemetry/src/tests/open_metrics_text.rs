//! The text a scrape gets, read back by a strict little parser of OpenMetrics 1.0.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::{
    Bound, CandidateNews, ClassNews, Counter, Happening, KernelFigures, KernelFlows, KernelService,
    MetricGroup, Outcome, ProbeResult, Scrape, StatusClass, Telemetry, UpstreamChanges, UpstreamHealth,
};
use flashweir_admission::flash_crowd::{Agreement, Cause, HotSpotLimit, Limit, Mode, Plan, Rule};
use flashweir_admission::sentry::{ClassCounts, Common, Compared, Policy, SentryPlanner};
use flashweir_core::kernel_counts::{GateCounts, TierCounts};
use flashweir_core::limits::CLASS_SLOTS;
use flashweir_core::{Instant, Rate, Reason};

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

/// The names that a scrape declares, whether there is a number of them or not.
fn families(telemetry: &Telemetry) -> BTreeSet<String> {
    let text = telemetry.open_metrics();
    let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    names.map(str::to_owned).collect()
}

#[test]
fn a_router_exports_its_own_groups_and_none_of_the_gateways() {
    let (router, gateway) = (Telemetry::router("0.1.0"), Telemetry::gateway(1, "0.1.0"));
    let (router, gateway) = (families(&router), families(&gateway));
    let of_both = |name: &str| {
        ["plan", "plans", "kernel", "planner"].contains(&name.split('_').nth(1).unwrap_or_default())
            || ["samples_judged", "config_reloads", "state_writes", "warnings", "shadow", "build"]
                .contains(&name.trim_start_matches("flashweir_"))
    };
    let of_a_link = |name: &str| name.starts_with("flashweir_link_");
    let of_a_gateway: Vec<_> = router.iter().filter(|name| !of_both(name) && !of_a_link(name)).collect();
    assert!(of_a_gateway.is_empty(), "{of_a_gateway:?}");
    let links: Vec<_> = gateway.iter().filter(|name| of_a_link(name)).collect();
    assert!(links.is_empty(), "a gateway divides no link: {links:?}");
    // A router has a gateway's metrics of plans and of the gate.
    let missing: Vec<_> = gateway.iter().filter(|name| of_both(name) && !router.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    for name in ["plan_mode", "kernel_connections_offered", "kernel_flows", "kernel_queue_packets", "build"] {
        assert!(router.contains(&format!("flashweir_{name}")), "{name}");
    }
    for name in ["requests_offered", "connections_open", "class_offered", "sentry_limit", "workers"] {
        assert!(gateway.contains(&format!("flashweir_{name}")), "{name}");
        assert!(!router.contains(&format!("flashweir_{name}")), "{name}");
    }
    assert!(!gateway.contains("flashweir_kernel_flows"), "a gateway follows no flows");
    let router = Telemetry::router("0.1.0");
    let accept_failed = "flashweir_warnings_total{event=\"accept_failed\"}";
    assert!(!scrape(&router).contains_key(accept_failed), "a router accepts nothing");
    router.warnings().warn(Instant::ZERO, Happening::AcceptFailed, format_args!("it does"));
    assert_eq!(scrape(&router)[accept_failed], 1.0);
}

#[test]
fn a_candidate_of_the_flash_crowd_stage_is_counted_and_its_plan_goes_with_it() {
    let telemetry = Telemetry::gateway(1, "0.1.0");
    let (control, name) = (telemetry.control(), "flashweir_flash_crowd_candidate");
    assert!(!scrape(&telemetry).keys().any(|series| series.contains("candidate_compared")), "there is none");
    let agreement = Agreement { both: 5, only_live: 3, only_candidate: 2, neither: 1 };
    control.count_flash_crowd_candidate(&agreement);
    control.count_flash_crowd_candidate(&agreement);
    let mut plan = Plan::open(1);
    (plan.explanation.ceiling_rps, plan.explanation.cause) = (Some(42.0), Cause::Popular);
    control.publish_flash_crowd_candidate(Some(&plan));
    let found = scrape(&telemetry);
    let compared = |live, candidate| {
        found[&format!("{name}_compared_total{{live=\"{live}\",candidate=\"{candidate}\"}}")]
    };
    let pairs = [("pass", "pass"), ("pass", "refuse"), ("refuse", "pass"), ("refuse", "refuse")];
    assert_eq!(pairs.map(|(live, candidate)| compared(live, candidate)), [10.0, 6.0, 4.0, 2.0]);
    assert_eq!(found[&format!("{name}_ceiling_requests_per_second")], 42.0);
    assert_eq!(found[&format!("{name}_cause{{cause=\"popular\"}}")], 1.0);
    control.publish_flash_crowd_candidate(None);
    let found = scrape(&telemetry);
    assert!(!found.contains_key(&format!("{name}_ceiling_requests_per_second")));
    assert_eq!(found[&format!("{name}_cause{{cause=\"popular\"}}")], 0.0);
}

#[test]
fn every_label_of_a_closed_list_is_plain() {
    for shell in [Telemetry::router("0.1.0"), Telemetry::gateway(1, "0.1.0")] {
        for name in
            scrape(&shell).keys().filter(|name| !name.contains("_bucket{") && !name.contains("_info{"))
        {
            let value = name.split('"').nth(1).unwrap_or("none");
            let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
            assert!(!value.is_empty() && value.bytes().all(plain), "{name}");
        }
    }
}

#[derive(Debug, Default)]
struct Invented {
    counted: Counter,
}

impl MetricGroup for Invented {
    fn title(&self) -> &'static str {
        "Invented"
    }

    fn export(&self, scrape: &mut Scrape) {
        scrape.counters(&[self], &[("invented", "Things invented.", |of| &of.counted)]);
    }
}

#[test]
fn a_group_of_another_crate_registers_itself() {
    let mut telemetry = Telemetry::router("0.1.0");
    let group = Arc::new(Invented::default());
    telemetry.register(group.clone());
    group.counted.add(3);
    assert_eq!(scrape(&telemetry)["flashweir_invented_total"], 3.0);
}

#[test]
fn a_fresh_gateway_exports_zeroes_and_leaves_out_what_it_does_not_know() {
    let samples = scrape(&Telemetry::gateway(3, "0.1.0"));
    assert_eq!(samples["flashweir_requests_offered_total"], 0.0);
    assert_eq!(samples["flashweir_requests_shed_total{reason=\"flash_crowd\"}"], 0.0);
    assert_eq!(samples["flashweir_workers"], 3.0);
    assert_eq!(samples["flashweir_build_info{version=\"0.1.0\"}"], 1.0);
    assert!(!samples.contains_key("flashweir_plan_quality_ratio"));
    assert!(!samples.contains_key("flashweir_plan_ceiling_requests_per_second"));
}

#[test]
fn a_scrape_sums_over_workers() {
    let telemetry = Telemetry::gateway(2, "0.1.0");
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
    let telemetry = Telemetry::gateway(1, "0.1.0");
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
    let telemetry = Telemetry::gateway(1, "0.1.0");
    let health = |service: &str, is_in_use| UpstreamHealth {
        service: service.to_owned(),
        place: 0,
        is_in_use,
        share_ratio: 0.5,
    };
    let mut health = vec![health("shop", true), health("api", false)];
    let changes =
        UpstreamChanges { service: "api".to_owned(), ejected: vec![("unreachable", 3)], returned: 2 };
    telemetry.control().publish_upstreams(health.clone(), vec![changes]);
    telemetry.control().count_probe(ProbeResult::NoConnection);
    telemetry.control().config_reloads.increment(Outcome::Failed);
    telemetry.control().set_draining(true);
    telemetry.warnings().warn(Instant::ZERO, Happening::StateFile, format_args!("truncated"));
    let samples = scrape(&telemetry);
    assert_eq!(samples["flashweir_upstream_healthy{service=\"shop\",upstream=\"0\"}"], 1.0);
    assert_eq!(samples["flashweir_upstream_healthy{service=\"api\",upstream=\"0\"}"], 0.0);
    assert_eq!(samples["flashweir_upstream_share_ratio{service=\"shop\",upstream=\"0\"}"], 0.5);
    assert_eq!(samples["flashweir_upstream_ejections_total{service=\"api\",cause=\"unreachable\"}"], 3.0);
    assert_eq!(samples["flashweir_upstream_returns_total{service=\"api\"}"], 2.0);
    assert_eq!(samples["flashweir_upstream_probes_total{result=\"no_connection\"}"], 1.0);
    assert_eq!(samples["flashweir_config_reloads_total{outcome=\"failed\"}"], 1.0);
    assert_eq!(samples["flashweir_warnings_total{event=\"state_file\"}"], 1.0);
    assert_eq!(samples["flashweir_draining"], 1.0);
    // Fewer upstreams after a reload leave no series behind.
    health.truncate(1);
    telemetry.control().publish_upstreams(health, Vec::new());
    assert!(!scrape(&telemetry).contains_key("flashweir_upstream_healthy{service=\"api\",upstream=\"0\"}"));
}

#[test]
fn the_gate_in_the_kernel_is_told_of_only_where_there_is_one() {
    let telemetry = Telemetry::router("0.1.0");
    let names_it = |telemetry: &Telemetry| scrape(telemetry).keys().any(|name| name.contains("_kernel_"));
    assert!(!names_it(&telemetry));
    let mut counts = GateCounts { offered: 9, admitted: 4, answered: 3, reset: 2, ..GateCounts::default() };
    counts.tiers[0] = TierCounts { offered: 3, admitted: 3 };
    counts.tiers[1] = TierCounts { offered: 6, admitted: 1 };
    let shop = KernelService { name: "shop".to_owned(), ceiling_per_s: Some(12.5), counts, ranks: 2 };
    let figures = KernelFigures {
        services: vec![shop, KernelService { name: "hot_spot_1".to_owned(), ..KernelService::default() }],
        passed: vec![("not_tcp", 7)],
        interfaces: 2,
        heartbeat_age_s: 1.5,
        ..KernelFigures::default()
    };
    telemetry.control().publish_kernel(Some(figures.clone()));
    let samples = scrape(&telemetry);
    let shop = |name: &str| samples[&format!("flashweir_kernel_{name}{{service=\"shop\"}}")];
    assert_eq!((shop("connections_offered_total"), shop("connections_admitted_total")), (9.0, 4.0));
    let refused = |how: &str| {
        samples[&format!("flashweir_kernel_connections_refused_total{{service=\"shop\",how=\"{how}\"}}")]
    };
    assert_eq!(["dropped", "reset", "answered", "purged"].map(refused), [0.0, 2.0, 3.0, 0.0]);
    assert_eq!(shop("ceiling_connections_per_second"), 12.5);
    assert!(!samples.contains_key("flashweir_kernel_ceiling_connections_per_second{service=\"hot_spot_1\"}"));
    let tier = |what: &str, rank: u8| {
        samples
            [&format!("flashweir_kernel_tier_connections_{what}_total{{service=\"shop\",rank=\"{rank}\"}}")]
    };
    assert_eq!(["offered", "admitted", "refused"].map(|what| tier(what, 1)), [6.0, 1.0, 5.0]);
    assert_eq!(["offered", "refused"].map(|what| tier(what, 0)), [3.0, 0.0]);
    assert!(!samples.keys().any(|name| name.contains("_tier_") && name.contains("hot_spot_1")));
    assert_eq!(samples["flashweir_kernel_frames_passed_total{reason=\"not_tcp\"}"], 7.0);
    assert_eq!(samples["flashweir_kernel_heartbeat_age_seconds"], 1.5);
    assert!(!samples.contains_key("flashweir_kernel_flows_begun_total"), "nothing is observed");
    let flows = Some(KernelFlows {
        begun: 5,
        tracked: 3,
        left_out: 2,
        attempts_left_out: 9,
        ..KernelFlows::default()
    });
    telemetry.control().publish_kernel(Some(KernelFigures { flows, ..figures }));
    let flows = ["flows_begun", "flows_left_out", "attempts_left_out"]
        .map(|name| scrape(&telemetry)[&format!("flashweir_kernel_{name}_total")]);
    assert_eq!(flows, [5.0, 2.0, 9.0]);
    telemetry.control().publish_kernel(None);
    assert!(!names_it(&telemetry));
}

#[test]
fn the_number_of_series_does_not_depend_on_traffic_and_fits_the_status_page() {
    let telemetry = Telemetry::gateway(8, "0.1.0");
    let before: BTreeSet<_> = scrape(&telemetry).into_keys().collect();
    for worker in 0..8 {
        let worker = telemetry.worker(worker);
        (0..1_000).for_each(|_| worker.requests.offered.increment());
    }
    let after: BTreeSet<_> = scrape(&telemetry).into_keys().collect();
    assert_eq!(before, after);
    // Not 300 or 360: the gateway has 380 series, and the count grows with each feature that has counters.
    // The bar is the count itself, so that a change that adds a series says so here.
    assert!(before.len() < 381, "{} series", before.len());
}

#[test]
fn classes_are_counted_by_the_names_of_the_configuration_and_services_told_apart() {
    let telemetry = Telemetry::gateway(2, "0.1.0");
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
        let news = ClassNews {
            slot: gold,
            counts: &counts,
            plan: &plan.classes[0],
            usual_us: 2_000,
            revenue: 2.5,
            queue_stands: true,
        };
        control.publish_sentry("shop", plan, &Common::new(1), [news].into_iter());
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
    assert_eq!(shop("class_queue_stands"), 1.0);
    let reserved = "flashweir_class_shed_total{service=\"shop\",class=\"gold\",reason=\"reserved\"}";
    assert_eq!(samples[reserved], 6.0);
    assert_eq!(samples["flashweir_sentry_limit{service=\"shop\"}"], 8.0);
    assert_eq!(samples["flashweir_sentry_evidence_merged_total{service=\"shop\"}"], 0.0);
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
    let telemetry = Telemetry::gateway(1, "0.1.0");
    let control = telemetry.control();
    let slots: Vec<_> = (0..1_000).map(|n| control.class_slot("shop", &format!("class{n}"))).collect();
    telemetry.worker(0).classes.of(slots[999]).offered.increment();
    telemetry.worker(0).classes.of(slots[500]).offered.increment();
    let samples = scrape(&telemetry);
    let offered = samples.keys().filter(|name| name.starts_with("flashweir_class_offered_total")).count();
    assert_eq!(offered, CLASS_SLOTS);
    assert_eq!(samples["flashweir_class_offered_total{service=\"(other)\",class=\"(other)\"}"], 2.0);
}

#[test]
fn a_candidate_is_counted_by_its_own_classes_and_beside_the_policy_in_force() {
    let telemetry = Telemetry::gateway(1, "0.1.0");
    let control = telemetry.control();
    let gold = control.candidate_slot("shop", "gold");
    assert_eq!(control.candidate_slot("shop", "gold"), gold);
    let counts =
        ClassCounts { offered: 10, admitted: 6, shed: 3, left: 1, good: 5, ..ClassCounts::default() };
    let mut compared = Compared {
        both: 4,
        only_live: 1,
        only_candidate: 2,
        neither: 3,
        held: 2,
        live_good: 4,
        ..Compared::default()
    };
    compared.shed[Reason::Reserved as usize] = 3;
    for _ in 0..2 {
        control.count_candidate(&CandidateNews {
            slot: gold,
            counts: &counts,
            compared: &compared,
            revenue: 2.5,
        });
    }
    let samples = scrape(&telemetry);
    let shop = |name: &str, more: &str| {
        samples[&format!("flashweir_candidate_{name}_total{{service=\"shop\",class=\"gold\"{more}}}")]
    };
    let plain = ["offered", "admitted", "held", "left"].map(|name| shop(name, ""));
    assert_eq!(plain, [20.0, 12.0, 4.0, 2.0]);
    assert_eq!(shop("shed", ",reason=\"reserved\""), 6.0);
    let who = ["both", "live", "candidate", "neither"];
    let agreement = who.map(|who| shop("agreement", &format!(",let_in_by=\"{who}\"")));
    assert_eq!(agreement, [8.0, 2.0, 4.0, 6.0]);
    let by_policy = |name: &str| ["live", "candidate"].map(|who| shop(name, &format!(",policy=\"{who}\"")));
    assert_eq!((by_policy("good"), by_policy("revenue")), ([8.0, 10.0], [20.0, 25.0]));
    for n in 0..1_000 {
        control.candidate_slot("shop", &format!("class{n}"));
    }
    let series =
        scrape(&telemetry).into_keys().filter(|name| name.starts_with("flashweir_candidate_offered"));
    assert_eq!(series.count(), CLASS_SLOTS);
}
