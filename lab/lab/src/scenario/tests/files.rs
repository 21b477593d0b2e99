//! Goal: an error in a file is one line with file, line and key; what is right makes the run it says.
//! Method: small texts, and tables in a fresh directory.

use crate::scenario::{Scenario, Settings, Sheet, swarm_text};
use flashweir_admission::sentry::{ClassPolicy, Policing};
use flashweir_core::{Duration, Rate};
use flashweir_sim::request::{FaultKind, NetworkModel, Policy, SentryPolicy, Work};

const WHOLE: &str = "duration = '20s'\n[workload]\nrate = 50\n[[class]]\nname = 'a'\nwork = '5ms'\n";

fn read(text: &str) -> Result<Scenario, String> {
    Scenario::from_toml(text, "FILE", &Settings::default()).map_err(|error| error.to_string())
}

#[test]
fn a_whole_scenario_says_everything() {
    let scenario = read(
        r#"
        title = "everything"
        duration = "60s"
        seed = 7
        seeds = 2
        bin = "500ms"
        [workload]
        rate = 50
        spike = "500@10s"
        half_life = "4s"
        [[class]]
        name = "readers"
        weight = 3
        work = "two-point:1ms:50ms:0.1"
        documents = 500
        zipf = 0.8
        sizes = "pareto:1.3:1170"
        session = 3
        think = "exp:2s"
        patience = "uniform:1s-9s"
        [[class]]
        name = "crawler"
        work = "exp:9ms"
        host = 1
        goes_on_unserved = true
        retry = "at-once"
        retry-share = 0.5
        [class.workload]
        rate = 5
        step = ["9@20s", "5@30s"]
        arrivals = "constant"
        [network]
        one_way_delay = "15ms"
        [server]
        kind = "shared"
        processors = 2
        workers = 30
        queue = 256
        overflow = "refuse"
        refusal_cost = "4ms"
        departed = "stops"
        memory = { memory_mib = 1024, base_mib = 100, request_kib = 4096, penalty = 3 }
        [controller]
        mode = "static"
        rate = 80
        interval = "250ms"
        max_requests_in_flight = 400
        [[fault]]
        kind = "lost_feedback"
        share = 0.5
        during = "5s-9s"
        [window]
        early = "0s-10s"
        [accept]
        goodput_ratio = "> 0, <= 1"
        early.offered_rps = "> 10"
        crawler.p99_ms = "< 5000"
        "#,
    )
    .unwrap();
    let run = scenario.run(8);
    assert_eq!((scenario.seeds(), run.seed, scenario.title()), (vec![7, 8], 8, "everything"));
    assert_eq!(run.bin, Duration::from_millis(500));
    assert_eq!(run.network, NetworkModel::Delay(Duration::from_millis(15)));
    assert_eq!(run.classes[1].work, Work::Exponential { mean: Duration::from_millis(9) });
    assert_eq!((run.classes[1].host, run.classes[1].goes_on_unserved), (1, true));
    assert_eq!(run.classes[1].habits.retry.unwrap().share, 0.5);
    assert_eq!(run.classes[0].habits.session.requests.to_string(), "3");
    assert_eq!(run.faults[0].kind, FaultKind::LostFeedback(0.5));
    assert!(matches!(run.policy, Policy::StaticRate { burst: 80, .. }));
    assert_eq!(run.requests_in_flight, Some(400));
    assert_eq!(scenario.windows()[0].bins, 0..20);
    assert_eq!(run.schedule.classes(), [0, 1]);
    assert_ne!(run.schedule, scenario.run(7).schedule);
}

#[test]
fn what_is_wrong_is_told_with_line_and_key() {
    let check = |text: &str, wanted: &str| {
        let said = read(text).unwrap_err();
        assert!(said.starts_with(wanted), "{said:?} does not begin with {wanted:?}");
        assert!(!said.contains('\n'), "{said:?} has several lines");
    };
    let with = |more: &str| format!("{WHOLE}{more}");
    check("duration = ", "FILE:1: ");
    check("duration = '20s'\nworkloads = 5\n", "FILE:2: workloads: unknown key `workloads`");
    check(&with("patience = 'soon'\n"), "FILE:7: class[0].patience: \"soon\" is not a wait");
    check(&with("wait = '5s'\n"), "FILE:7: class[0].wait: unknown key `wait`");
    check(&with("weight = -1\n"), "FILE:7: class[0].weight: -1 is out of range");
    check(&with("timeout = '0s'\n"), "FILE:7: class[0].timeout: expected more than no time");
    check(&with("tries = 3\n"), "FILE:7: class[0].tries: goes with retry");
    check(&with("think = '1s'\n"), "FILE:7: class[0].think: goes with session");
    check(&with("[[class]]\nname = 'a'\nwork = '5ms'\n"), "FILE:8: class[1].name: there is a class \"a\"");
    check(&with("[[class]]\nname = 'B b'\nwork = '5ms'\n"), "FILE:8: class[1].name: \"B b\" is no name");
    check(&with("[[class]]\nname = 'b'\n"), "FILE:7: class[1]: missing key `work`");
    check(&with("[server]\nprocessors = 0\n"), "FILE:8: server.processors: invalid value: integer `0`");
    check(&with("[server]\nkind = 'nginx'\n"), "FILE:8: server.kind: unknown variant `nginx`");
    check(&with("[server]\nrefusal_cost = '1ms'\n"), "FILE:8: server.refusal_cost: goes with overflow");
    check(&with("[controller]\nmode = 'static'\n"), "FILE:7: controller.rate: missing");
    check(&with("[controller]\ninterval = '1ms'\n"), "FILE:8: controller.interval: expected 10ms to 5m");
    check(&with("[network]\none_way_delay = '1h'\n"), "FILE:8: network.one_way_delay: at most 10 s");
    check(&with("[[fault]]\nkind = 'slow'\nduring = '1s-2s'\n"), "FILE:7: fault[0].factor: missing");
    check(
        &with("[[fault]]\nkind = 'crash'\nduring = '2s-1s'\n"),
        "FILE:9: fault[0].during: \"2s-1s\" is not FROM-TO",
    );
    check(&with("[window]\nx = '1s-30s'\n"), "FILE:8: window.x: it ends after the run");
    check(&with("[window]\nx = '100ms-2s'\n"), "FILE:8: window.x: it begins or ends within a bin");
    check(&with("[window]\na = '1s-2s'\n"), "FILE:8: window.a: a class has this name already");
    check(&with("[accept]\np99 = '< 5'\n"), "FILE:8: accept.p99: there is no statistic \"p99\"");
    check(&with("[accept]\np99_ms = '5'\n"), "FILE:8: accept.p99_ms: \"5\" is no range");
    check(&with("[accept]\np99_ms = 5\n"), "FILE:8: accept.p99_ms: expected a range in quotes");
    check(&with("[accept]\nlate.p99_ms = '< 5'\n"), "FILE:8: accept.late: there is no window, class, link");
    check(&with("[accept]\na.busy = '< 5'\n"), "FILE:8: accept.a.busy: busy is not told of a class");
    check(
        &with("[accept]\nx.a.busy = '< 5'\n[window]\nx = '1s-2s'\n"),
        "FILE:8: accept.x.a.busy: busy is not told of a class",
    );
    check(&with("revenue = 0\n"), "FILE:7: class[0].revenue: 0 is out of range");
    check(&with("revenue = nan\n"), "FILE:7: class[0].revenue: NaN is out of range");
    check(&with("guaranteed_rate = -1\n"), "FILE:7: class[0].guaranteed_rate: -1 is out of range");
    check(&with("response_target = '1ms'\n"), "FILE:7: class[0].response_target: expected 10ms to 1m");
    check(&with("queue = 99999\n"), "FILE:7: class[0].queue: at most 16384 wait");
    check(&with("policy_class = 'b'\n"), "FILE:7: class[0].policy_class: there is no class \"b\" with");
    check(
        &with("[[class]]\nname = 'b'\nwork = '5ms'\npolicy_class = 'a'\nqueue = 5\n"),
        "FILE:11: class[1].queue: it is \"a\" that says so",
    );
    check(&with("[controller]\npolicing = 'fair'\n"), "FILE:8: controller.policing: unknown variant `fair`");
    check(&with("[controller]\npolicing = 'off'\n"), "FILE:8: controller.policing: \"off\" refuses nobody");
    check(&with("[controller]\ngates = 0\n"), "FILE:8: controller.gates: ");
    let ladder = |steps: &str| with(&format!("[controller]\nladder = [{steps}]\n"));
    let (one, last) = ("{ below = 9, response_target = '1s' }", "{ response_target = '2s' }");
    check(
        &ladder(&format!("{one}, {one}, {last}")),
        "FILE:8: controller.ladder[1].below: expected more than",
    );
    check(&ladder(&format!("{last}, {last}")), "FILE:8: controller.ladder[0].below: missing: only the last");
    check(&ladder(one), "FILE:8: controller.ladder[0].below: the last step has no end");
    check("duration = '20s'\n[workload]\nrate = 50\n", "FILE:1: class: 0 [[class]] tables");
    check(&WHOLE.replace("rate = 50", "rate = 0"), "FILE:2: workload: nobody would come");
    check(&WHOLE.replace("rate = 50", "rate = -5"), "FILE:3: workload.rate: -5 is out of range");
    check(
        &WHOLE.replace("rate = 50", "rate = 5\nstep = '9@30s'"),
        "FILE:4: workload.step: a step comes after the end",
    );
    check(
        &WHOLE.replace("rate = 50", "rate = 5\nspike = '9@3s'"),
        "FILE:4: workload.spike: spike and half_life",
    );
    check(&WHOLE.replace("rate = 50", "crowd = true"), "FILE:2: workload.peak: crowd needs it");
    check(&WHOLE.replace("20s", "8000h"), "FILE:2: workload: a run lasts at most");
    check(&WHOLE.replace("'20s'", "'20s'\nseeds = 0"), "FILE:2: seeds: 0 is out of range");
    check(&WHOLE.replace("'20s'", "'20s'\nbin = '0s'"), "FILE:2: bin: at least 1 ms");
}

#[test]
fn what_does_not_fit_into_memory_is_refused_before_it_runs() {
    let crowd = WHOLE.replace("rate = 50", "rate = 100_000").replace("'20s'", "'1h'");
    let endless = format!("{crowd}session = 'endless'\nthink = '1s'\n");
    let said = read(&endless).unwrap_err();
    assert!(said.starts_with("FILE:2: workload: about 360000000 people would be present"), "{said}");
    let many = WHOLE.replace("'20s'", "'100h'\nseeds = 1000");
    let said = read(&many).unwrap_err();
    assert!(said.starts_with("FILE:2: seeds: 1000 runs would keep about"), "{said}");
}

#[test]
fn tables_of_counts_lie_beside_the_file_and_have_no_holes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("day.toml");
    let workload = "profile = 'day.csv'\ncolumn = 'requests'\nbin = '10s'";
    std::fs::write(&path, WHOLE.replace("rate = 50", workload)).unwrap();
    let load = |table: &str| {
        std::fs::write(directory.path().join("day.csv"), table).unwrap();
        let loaded = Scenario::load(&path, &Settings::default());
        loaded.map_err(|error| error.to_string().replace(&directory.path().display().to_string(), ""))
    };
    let scenario = load("minute,requests\n0,100\n1,500\n2,900\n").unwrap();
    // The file's duration cuts the table.
    assert_eq!((scenario.length(), scenario.run(1).schedule.expected()), (Duration::from_secs(20), 600.0));
    for (table, wanted) in [
        ("minute,requests\n0,100\n\n2,900\n", "/day.csv: line 3 is empty: the table has a hole"),
        ("minute,requests\n0,100\n1,\n2,900\n", "/day.csv: line 3: \"\" is not a count"),
        ("minute,requests\n0,100\n1\n", "/day.csv: line 3: no column 2"),
        ("minute,hits\n0,100\n", "/day.csv: line 1: no column is called \"requests\""),
    ] {
        let said = load(table).unwrap_err();
        assert!(said.starts_with("/day.toml:3: workload.profile: ") && said.contains(wanted), "{said}");
    }
    let missing = Scenario::load(&directory.path().join("not-there.toml"), &Settings::default()).unwrap_err();
    assert!(missing.to_string().contains("not-there.toml: cannot read the scenario"), "{missing}");
}

#[test]
fn settings_win_over_the_file_and_are_named_when_they_are_wrong() {
    let set = |text: &str| {
        let settings = Settings::parse([text]).map_err(|error| error.to_string())?;
        Scenario::from_toml(WHOLE, "FILE", &settings).map_err(|error| error.to_string())
    };
    assert_eq!(set("duration=5s").unwrap().length(), Duration::from_secs(5));
    assert_eq!(set("workload={rate=9}").unwrap().run(1).schedule.expected(), 180.0);
    assert_eq!(set("duration=0s").unwrap_err(), "--set duration=0s: expected more than no time");
    let fault = "fault=[{kind='slow',during='1s-2s'}]";
    assert!(set(fault).unwrap_err().starts_with(&format!("--set {fault}: fault[0].factor: missing")));
    // What a setting takes away is missed in the file.
    assert!(set("controller.mode=static").unwrap_err().starts_with("FILE:1: controller.rate: missing"));
}

#[test]
fn the_sentry_has_a_target_of_a_second_if_not_said() {
    let target = |more: &str| {
        read(&format!("{WHOLE}[controller]\nmode = 'sentry'\n{more}")).map(|scenario| {
            let policy = scenario.run(1).policy;
            let sentry = policy.sentry_policy().expect("a sentry");
            sentry.policy.target
        })
    };
    assert_eq!(target(""), Ok(Duration::from_secs(1)));
    assert_eq!(target("target = '300ms'\n"), Ok(Duration::from_millis(300)));
    assert_eq!(target("target = '2m'\n").unwrap_err(), "FILE:9: controller.target: expected 10ms to 1m");
}

#[test]
fn classes_have_a_policy_of_their_own_or_another_classs() {
    let scenario = read(
        r#"
        duration = "20s"
        [workload]
        rate = 50
        [[class]]
        name = "bronze_too"
        work = "5ms"
        policy_class = "bronze"
        [[class]]
        name = "gold"
        work = "5ms"
        revenue = 9
        guaranteed_rate = 2.5
        response_target = "300ms"
        queue = 7
        [[class]]
        name = "bronze"
        work = "5ms"
        [controller]
        mode = "sentry"
        policing = "threshold"
        target = "2s"
        ladder = [{ below = 1000, response_target = "1s" }, { response_target = "3s" }]
        gates = 4
        [window]
        early = "0s-5s"
        [accept]
        early.gold.goodput_rps = "> 1"
        gold.revenue_rate = "> 100"
        "#,
    )
    .unwrap();
    let run = scenario.run(1);
    let Some(SentryPolicy { policy, workers: 4, .. }) = run.policy.sentry_policy() else {
        panic!("{:?}", run.policy)
    };
    assert_eq!(run.classes.iter().map(|class| class.policy_class).collect::<Vec<_>>(), [1, 0, 1]);
    let gold = ClassPolicy {
        revenue: 9.0,
        guaranteed_rate: Rate::from_per_second(2.5),
        target: Some(Duration::from_millis(300)),
        queue: Some(7),
    };
    assert_eq!(policy.classes, [gold, ClassPolicy::default()]);
    assert_eq!((policy.policing, policy.target), (Policing::Threshold, Duration::from_secs(2)));
    assert_eq!(policy.ladder.iter().map(|step| step.below_rps).collect::<Vec<_>>(), [1000.0, f64::INFINITY]);
    let sheet = Sheet::of(&scenario, &[flashweir_sim::request::run(&run).unwrap()]);
    let value = |name: &str| sheet.lines.iter().find(|line| line.name() == name).unwrap().values[0].unwrap();
    assert!(sheet.is_accepted() && value("early.gold.goodput_rps") > 10.0);
    let worth =
        9.0 * value("gold.goodput_rps") + value("bronze.goodput_rps") + value("bronze_too.goodput_rps");
    assert!((value("revenue_rate") - worth).abs() < 1e-6 && value("gold.revenue_rate") > 100.0);
}

/// A file cut off anywhere is refused or makes a scenario; nothing panics.
#[test]
fn a_file_cut_off_anywhere_is_no_trouble() {
    let whole = swarm_text(3);
    for end in (0..whole.len()).filter(|end| whole.is_char_boundary(*end)) {
        // Most are wrong, a few are not.
        let _ = read(&whole[..end]);
    }
}

#[test]
fn every_random_scenario_is_one_and_the_swarm_has_all_kinds() {
    let texts: Vec<String> = (0..400).map(swarm_text).collect();
    for (seed, text) in texts.iter().enumerate() {
        let scenario = read(text).unwrap_or_else(|said| panic!("seed {seed}: {said}\n{text}"));
        assert!(scenario.length() <= Duration::from_secs(60));
        assert_eq!(*text, swarm_text(seed as u64));
    }
    for word in [
        "crash",
        "slow",
        "link_cut",
        "lost_feedback",
        "shadow",
        "scoreboard",
        "paper",
        "sentry",
        "static",
        "spike",
        "ramp",
        "memory",
        "patience",
        "works_on",
        "hot_spots",
        "revenue",
        "guaranteed_rate",
        "response_target",
        "policy_class",
        "ladder",
        "reservation",
        "batch",
        "threshold",
        "auto",
    ] {
        let with = texts.iter().filter(|text| text.contains(word)).count();
        // Swarms turn things off: nothing is in every scenario.
        assert!((5..395).contains(&with), "{word}: {with}");
    }
}
