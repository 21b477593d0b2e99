//! A browser in front of a gate that refuses.

use std::path::Path;
use std::time::Duration;

use flashweir_kernel::gate::{ExcessTreatment, Hook};
use flashweir_testkit::{Process, require_program};
use tempfile::TempDir;

use crate::before_an_interface::bench::{Bench, Family};

/// It starts dozens of processes, on a machine that may be busy.
const BROWSER_WITHIN: Duration = Duration::from_secs(60);

#[test]
fn chromium_shows_the_page_and_reads_when_to_come_back() {
    let test = "Chromium in front of a kernel gate";
    let Some(chromium) = require_program("chromium", test) else { return };
    let Some(mut bench) = Bench::require(test, Hook::Native, Family::V4) else { return };
    bench.close(ExcessTreatment::Answer);
    bench.gate.fail_closed(true).expect("a flag");
    let directory = TempDir::new().expect("a fresh directory");
    let [profile, log] = ["profile", "log"].map(|name| directory.path().join(name));
    let with_path = |option: &str, path: &Path| format!("{option}={}", path.display());
    let mut arguments: Vec<String> = [
        "--headless",
        // Tests run as root, which it otherwise refuses.
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--no-proxy-server",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-extensions",
        "--dump-dom",
    ]
    .map(str::to_owned)
    .into();
    arguments.push(with_path("--user-data-dir", &profile));
    arguments.push(with_path("--log-net-log", &log));
    arguments.push(format!("http://{}/", bench.server));
    let browse = || Process::run(&chromium, directory.path(), BROWSER_WITHIN, &arguments);
    let finished = bench.testbed.inside("client", browse);
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    let shown = &finished.stdout;
    assert!(shown.contains("Too busy: please try again shortly."), "{shown}{}", finished.stderr);
    let log = std::fs::read_to_string(log).expect("what it did on the network");
    assert!(log.contains("\"HTTP/1.1 503 Service Unavailable\""), "{log}");
    let (_, retry_after) = log.split_once("\"Retry-After: ").expect("a field");
    let seconds = retry_after.trim_start().split_once('"').and_then(|(text, _)| text.parse::<u32>().ok());
    assert!(seconds.is_some_and(|seconds| (10..=20).contains(&seconds)), "{seconds:?}");
    let counts = bench.gate.counters().expect("counters")[0];
    assert_eq!((counts.admitted, counts.unsent), (0, 0), "{counts:?}");
}
