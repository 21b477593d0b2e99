//! The server and the tools, each on its core.

use flashweir_testkit::{Nginx, require_program};
use std::path::PathBuf;
use std::process::Command;

/// Findings of a run at a rate.
pub(crate) struct Held {
    /// Of what was asked for.
    pub(crate) completed_share: f64,
    /// From the intended moment.
    pub(crate) latency_p90_ms: f64,
    /// Intended to real sending; 0 where the tool does not tell.
    pub(crate) lag_p50_us: f64,
    pub(crate) lag_p99_us: f64,
}

/// nginx on core 0, and what to load it with.
pub(crate) struct Bench {
    nginx: Nginx,
    seconds: u64,
    oha: Option<PathBuf>,
}

impl Bench {
    /// `None` after a loud line if something is not installed.
    pub(crate) fn start(seconds: u64) -> Option<Self> {
        let name = "generator";
        require_program("wrk", name)?;
        require_program("taskset", name)?;
        let body = "x".repeat(1024);
        let server = format!("keepalive_requests 1000000000; location / {{ return 200 '{body}'; }}");
        let nginx = Nginx::require(name, "", &server)?;
        let pid = nginx.process().id().to_string();
        let pinned = Command::new("taskset").args(["-cp", "0", &pid]).output().expect("taskset is installed");
        assert!(pinned.status.success(), "nginx cannot be pinned: {pinned:?}");
        let built = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../tools/bin/oha");
        let oha = if built.exists() { Some(built) } else { require_program("oha", "generator (oha's part)") };
        Some(Self { nginx, seconds, oha })
    }

    pub(crate) fn has_oha(&self) -> bool {
        self.oha.is_some()
    }

    /// Requests a second of a closed loop.
    pub(crate) fn wrk(&self) -> f64 {
        let text = self.on_core_1("wrk".into(), &["-t1", "-c64", "-d", &self.length(), &self.url()]);
        let rate = text.lines().find_map(|line| line.strip_prefix("Requests/sec:")?.trim().parse().ok());
        rate.unwrap_or_else(|| panic!("wrk printed no rate:\n{text}"))
    }

    pub(crate) fn flashweir(&self, rate: f64) -> Held {
        let (rate, length) = (format!("{rate:.0}"), self.length());
        let fixed = [&self.url(), "--rate", &rate, "--duration", &length, "--json"];
        let connections = ["--connections", "keep-alive", "--connections-most", "64"];
        let text =
            self.on_core_1(env!("CARGO_BIN_EXE_flashweir-load").into(), &[&fixed[..], &connections].concat());
        let result = json(&text);
        let number = |of: &serde_json::Value| of.as_f64().unwrap_or(f64::INFINITY);
        Held {
            completed_share: number(&result["completed"]) / number(&result["offered"]),
            latency_p90_ms: number(&result["latency_ms"]["p90"]),
            lag_p50_us: number(&result["lag_us"]["p50"]),
            lag_p99_us: number(&result["lag_us"]["p99"]),
        }
    }

    pub(crate) fn oha(&self, rate: f64) -> Held {
        let (per_s, length) = (format!("{rate:.0}"), self.length());
        let options = ["--no-tui", "--output-format", "json", "--latency-correction", "-c", "64"];
        let run = ["-q", &per_s, "-z", &length, &self.url()];
        let oha = self.oha.clone().expect("asked only when it is there");
        let result = json(&self.on_core_1(oha, &[&options[..], &run].concat()));
        let done = result["summary"]["requestsPerSec"].as_f64().unwrap_or(0.0);
        let p90_s = result["latencyPercentiles"]["p90"].as_f64().unwrap_or(f64::INFINITY);
        Held { completed_share: done / rate, latency_p90_ms: p90_s * 1e3, lag_p50_us: 0.0, lag_p99_us: 0.0 }
    }

    fn on_core_1(&self, program: PathBuf, arguments: &[&str]) -> String {
        let output = Command::new("taskset").args(["-c", "1"]).arg(&program).args(arguments).output();
        let output = output.expect("taskset is installed");
        assert!(output.status.success(), "{}: {output:?}", program.display());
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn url(&self) -> String {
        format!("http://{}/", self.nginx.address())
    }

    fn length(&self) -> String {
        format!("{}s", self.seconds)
    }
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("not JSON ({error}):\n{text}"))
}
