//! Goal: `flashweir sim` does what its help says. Method: the real binary in a fresh directory.

use flashweir_testkit::{Finished, Flashweir};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// Far more than needed, so that only a hang fails.
const PATIENT: Duration = Duration::from_secs(60);

const QUIET: &str = "duration = '20s'\nseeds = 2\n[workload]\nrate = 50\n[[class]]\nname = 'a'\nwork = 'exp:5ms'\n\
                     [accept]\ngoodput_ratio = '>= 0.99'\n";

fn sim(directory: &Path, arguments: &[&str]) -> Finished {
    let binary = Flashweir::new(env!("CARGO_BIN_EXE_flashweir-lab"));
    binary.run_in(directory, PATIENT, ["sim"].iter().chain(arguments))
}

fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

#[test]
fn a_scenario_that_holds_is_told_in_all_forms() {
    let directory = directory(&[("quiet.toml", QUIET)]);
    let finished = sim(directory.path(), &["quiet.toml", "--out", "found"]);
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    assert!(finished.stdout.contains("ok: all 1 ranges are met"), "{}", finished.stdout);
    assert!(finished.stderr.contains("100 % of 2 runs of 20 s"), "{}", finished.stderr);
    for name in ["report.html", "statistics.csv", "series.csv", "rates.svg", "latency.svg", "server.svg"] {
        let text = std::fs::read_to_string(directory.path().join("found").join(name)).unwrap();
        assert!(text.len() > 500, "{name}: {text}");
    }
    let json = |seed: &str| -> serde_json::Value {
        let finished = sim(directory.path(), &["quiet.toml", "--json", "--seeds", "3", "--seed", seed]);
        serde_json::from_str(&finished.stdout).unwrap()
    };
    let found = json("5");
    assert_eq!((found["ok"].as_bool(), found["seeds"].as_array().unwrap().len()), (Some(true), 3));
    assert_eq!(found, json("5"), "the same seeds were another run");
    // Seed 6 is the second of the first and the first of the second: nothing depends on which core ran it.
    assert_eq!(found["event_hashes"][1], json("6")["event_hashes"][0]);
}

const NARROW: &str = "duration = '20s'\nseeds = 2\n[[link]]\nname = 'uplink'\nbetween = ['homes', 'shop']\nrate = '2Mb/s'\n\
                      buffer = '20 packets'\n[workload]\nrate = 9\n[[class]]\nname = 'a'\nwork = '1ms'\n\
                      clients = { at = 'homes', count = 9, rate = '1Mb/s', delay = '5ms' }\n\
                      [[transfer]]\nname = 'backup'\nfrom = 'shop'\nto = 'homes'\n\
                      [[datagrams]]\nname = 'camera'\nfrom = 'homes'\nto = 'shop'\nrate = '100kb/s'\n\
                      [controller]\nat = 'router'\n[accept]\nuplink.back_utilization = '> 0.9'\nbackup.goodput_kbps = '> 500'\n";

#[test]
fn packets_are_told_in_all_forms() {
    let directory = directory(&[("narrow.toml", NARROW), ("quiet.toml", QUIET)]);
    let finished = sim(directory.path(), &["narrow.toml", "--out", "found"]);
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    for wanted in
        ["uplink.back_loss_ratio", "backup.goodput_kbps", "camera.delivered_ratio", "router_shed_ratio"]
    {
        assert!(finished.stdout.contains(wanted), "{} lacks {wanted}", finished.stdout);
    }
    let found = |name: &str| std::fs::read_to_string(directory.path().join("found").join(name)).unwrap();
    let report = found("report.html");
    for title in ["Packets lost of those that came", "Utilization", "Long transfers", "SYNs at the router"] {
        assert!(report.contains(title), "the report lacks {title}");
    }
    for name in ["loss.svg", "utilization.svg", "transfers.svg", "router.svg"] {
        assert!(found(name).len() > 500, "{name}");
    }
    // Two seeds, two directions, twenty bins and the one beyond the end.
    let links = found("links.csv");
    assert_eq!(links.lines().count(), 1 + 2 * 2 * 21, "{links}");
    let head = "seed,from_s,link,direction,offered,dropped,marked,delivered_bytes,utilization";
    assert_eq!(links.lines().next(), Some(head));
    let received = found("transfers.csv");
    let bytes = received.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse::<u64>().unwrap());
    // Two runs of twenty seconds at two megabits a second, shared with the people.
    assert!((4_000_000..10_000_000).contains(&bytes.sum::<u64>()), "{received}");
    assert!(found("datagrams.csv").contains(",camera,") && found("router.csv").lines().count() > 40);
    let finished = sim(directory.path(), &["quiet.toml", "--out", "quiet"]);
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    assert!(!directory.path().join("quiet/links.csv").exists());
}

#[test]
fn a_missed_range_is_exit_code_1_and_a_wrong_file_64() {
    let directory = directory(&[("quiet.toml", QUIET), ("wrong.toml", "duration = '5s'\nworkers = 3\n")]);
    let check = |arguments: &[&str], code: i32, wanted: &str| {
        let finished = sim(directory.path(), arguments);
        assert_eq!(finished.code(), Some(code), "{arguments:?}: {}", finished.stderr);
        assert!(finished.stderr.contains(wanted), "{arguments:?}: {} lacks {wanted}", finished.stderr);
    };
    check(&["quiet.toml", "--set", "workload.rate=500"], 1, "flashweir: a range is missed: goodput_ratio");
    check(&["wrong.toml"], 64, "flashweir: wrong.toml:2: workers: unknown key");
    check(&["not-there.toml"], 64, "not-there.toml: cannot read the scenario");
    check(&["quiet.toml", "--set", "seeds"], 64, "--set seeds: expected KEY=VALUE");
    check(&["quiet.toml", "--seeds", "0"], 64, "--seeds");
    check(&["quiet.toml", "--out", "quiet.toml"], 64, "--out: quiet.toml cannot be made");
    check(&[], 64, "required");
    check(&["quiet.toml", "--swarm", "3"], 64, "cannot be used with");
    check(&["--whatif", "access.log"], 64, "--config");
}

#[test]
fn a_small_swarm_passes() {
    let directory = directory(&[]);
    let finished = sim(directory.path(), &["--swarm", "30", "--seed", "1"]);
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    assert_eq!(finished.stdout, "30 random scenarios, seeds 1 to 30: ok\n");
}

/// Ten minutes of a request every half second, with a crowd of forty a second in the sixth and seventh
/// minute.
fn log() -> String {
    let mut log = String::new();
    for second in 0..600 {
        let requests = if (300..420).contains(&second) { 40 } else { 2 };
        for request in 0..requests {
            let page = if request == 0 { 2 } else { 1 };
            let (minute, second) = (second / 60, second % 60);
            // Writing to a String cannot fail.
            let _ = writeln!(
                log,
                "192.0.2.77 - - [17/May/2015:10:{minute:02}:{second:02} +0000] \"GET /page/{page} HTTP/1.1\" 200 170"
            );
        }
    }
    log
}

#[test]
fn whatif_reads_the_logs_of_other_servers_and_patterns() {
    let caddy = r#"{"ts":1431857103.75,"request":{"remote_ip":"192.0.2.77","method":"GET","uri":"/a"},"duration":0.5,"size":9}"#;
    let config = "[upstream]\nurls = ['http://127.0.0.1:3000']\n";
    let own = "192.0.2.77|1431857103.75|GET /a HTTP/1.1\n192.0.2.77|x\n";
    let directory = directory(&[("caddy.log", caddy), ("own.log", own), ("on.toml", config)]);
    let finished = sim(directory.path(), &["--whatif", "caddy.log", "--config", "on.toml"]);
    assert!(
        finished.stderr.contains("caddy.log: read as caddy (Caddy's JSON); no log says"),
        "{}",
        finished.stderr
    );
    let own = ["--whatif", "own.log", "--config", "on.toml"];
    let finished = sim(directory.path(), &own);
    assert_eq!(finished.code(), Some(64), "{}", finished.stderr);
    assert!(
        finished.stderr.contains("of no log format known here (har, cloudfront, "),
        "{}",
        finished.stderr
    );
    let finished = sim(directory.path(), &[&own[..], &["--format", "$remote_addr|$msec|$request"]].concat());
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    assert!(finished.stdout.contains("1 requests in "), "{}", finished.stdout);
    assert!(
        finished.stderr.contains("lines that do not parse: 1 of 2, left out:\n  line 2: "),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_recorded_crowd_tells_what_would_have_been_refused_and_when() {
    let config = "[upstream]\nurls = ['http://127.0.0.1:3000']\n";
    let off = format!("{config}[flash_crowd]\nmode = 'off'\n[sentry]\npolicing = 'off'\n");
    let classes = |of_page_2: &str| {
        format!(
            "{config}[[class]]\nname = 'gold'\nmatch.path = '/page/2'\n{of_page_2}\n[[class]]\nname = 'rest'\n"
        )
    };
    let (gold, exempt) = (classes("revenue = 10"), classes("exempt = true"));
    let directory = directory(&[
        ("access.log", &log()),
        ("on.toml", config),
        ("off.toml", &off),
        ("gold.toml", &gold),
        ("exempt.toml", &exempt),
    ]);
    let whatif = |more: &[&str]| {
        let arguments = ["--whatif", "access.log", "--service-ms", "100", "--workers", "1"];
        let finished = sim(directory.path(), &[&arguments, more].concat());
        assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
        assert!(!finished.stdout.contains("192.0.2"), "a client is named: {}", finished.stdout);
        finished.stdout
    };
    let report = whatif(&["--config", "on.toml", "--out", "found"]);
    assert!(
        report.starts_with("assumed, not measured: 1 at work at once, 100 ms for a request (at most 10"),
        "{report}"
    );
    assert!(report.contains("+0:05:00") && !report.contains("+0:02:00"), "{report}");
    assert!(report.contains("GET /page/1"), "{report}");
    for name in
        ["refused_over_time.csv", "refused_documents.csv", "requests.svg", "refused.svg", "report.html"]
    {
        assert!(directory.path().join("found").join(name).exists());
    }
    let json = |more: &[&str]| -> serde_json::Value { serde_json::from_str(&whatif(more)).unwrap() };
    let (on, off) = (json(&["--config", "on.toml", "--json"]), json(&["--config", "off.toml", "--json"]));
    let number = |found: &serde_json::Value, key: &str| found[key].as_u64().unwrap();
    assert_eq!(number(&on, "offered"), 120 * 40 + 480 * 2);
    assert!(number(&on, "refused") > 2_000 && number(&off, "refused") == 0, "{on} {off}");
    assert!(number(&on, "completed") > number(&off, "completed"), "{on} {off}");
    // The whole pipeline with its classes: what is worth more, or exempt, is not refused while others are.
    let refused_of = |found: &serde_json::Value, document: &str| {
        let of = found["documents"].as_array().unwrap().iter().find(|of| of["document"] == document).cloned();
        of.map_or(0, |of| number(&of, "refused"))
    };
    assert!(refused_of(&on, "GET /page/2") > 0, "{on}");
    for (file, most) in [("gold.toml", 3), ("exempt.toml", 0)] {
        let found = json(&["--config", file, "--json"]);
        assert!(refused_of(&found, "GET /page/2") <= most, "{file}: {found}");
        assert!(refused_of(&found, "GET /page/1") > 2_000, "{file}: {found}");
    }
    let twice = number(&json(&["--config", "on.toml", "--json", "--scale", "2"]), "offered");
    assert_eq!(twice, 2 * number(&on, "offered"));
}
