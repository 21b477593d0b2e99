//! Clocks that jump by an hour, both ways: set by libfaketime between the gateway and the kernel.

use std::path::{Path, PathBuf};

use flashweir_testkit::{Flashweir, Gateway, GatewayBuilder, Upstream, eventually, skip};

use crate::some_traffic;

/// Where Debian has it, by architecture.
const LIBRARIES: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
];

/// A gateway whose clocks follow a file.
struct Shifted {
    gateway: Gateway,
    file: PathBuf,
    _wrapper: tempfile::TempDir,
}

impl Shifted {
    /// `is_monotonic_real` leaves the monotonic clock alone, as setting a machine's time does.
    fn require(test: &str, upstream: &Upstream, is_monotonic_real: bool) -> Option<Self> {
        let Some(library) = LIBRARIES.iter().find(|library| Path::new(library).exists()) else {
            skip(test, "libfaketime is missing (Debian package faketime)");
            return None;
        };
        let wrapper = tempfile::tempdir().expect("a directory");
        let (program, file) = (wrapper.path().join("flashweir"), wrapper.path().join("shift"));
        std::fs::write(&file, "+0\n").expect("a writable directory");
        // A gateway's threads end with it, so what preloads it must become it.
        let script = format!(
            "#!/bin/sh\nexport LD_PRELOAD={library} FAKETIME_TIMESTAMP_FILE={} FAKETIME_NO_CACHE=1\n\
             export FAKETIME_DONT_FAKE_MONOTONIC={}\nexec {} \"$@\"\n",
            file.display(),
            u8::from(is_monotonic_real),
            env!("CARGO_BIN_EXE_flashweir"),
        );
        std::fs::write(&program, script).expect("a writable directory");
        make_executable(&program);
        let binary = Flashweir::new(&program.display().to_string());
        let gateway = GatewayBuilder::new(&binary).upstream(&upstream.url()).start();
        Some(Self { gateway, file, _wrapper: wrapper })
    }

    fn shift(&self, offset: &str) {
        std::fs::write(&self.file, format!("{offset}\n")).expect("a writable directory");
    }

    /// Hours and minutes of the time that the gateway believes in, from an answer of its own.
    fn hour(&self) -> u64 {
        let answer = self.gateway.get("/");
        let date = answer.field("date").expect("a date").to_owned();
        let clock = date.split(' ').nth(4).unwrap_or_default().to_owned();
        clock.split(':').next().and_then(|hour| hour.parse().ok()).unwrap_or_else(|| panic!("{date}"))
    }
}

fn make_executable(file: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).expect("a file of ours");
}

#[test]
fn setting_the_time_by_an_hour_either_way_changes_nothing_for_clients() {
    const TEST: &str = "setting_the_time_by_an_hour_either_way";
    let upstream = Upstream::saying("served");
    let Some(shifted) = Shifted::require(TEST, &upstream, true) else { return };
    some_traffic(&shifted.gateway);
    let mut hour = shifted.hour();
    for offset in ["+3600", "-3600", "+3600", "+0"] {
        shifted.shift(offset);
        eventually("another hour in the answers", || (shifted.hour() != hour).then_some(()));
        hour = shifted.hour();
        some_traffic(&shifted.gateway);
        assert_eq!(shifted.gateway.ask_admin("/readyz").status(), 200, "at {offset}");
        let status = shifted.gateway.status();
        assert_eq!(status["requests"]["in_flight"], 0, "at {offset}: {status}");
    }
    let shed = shifted.gateway.metrics().sum("flashweir_requests_shed_total");
    assert_eq!(shed, 0.0, "a clock is no reason to refuse");
}

/// As after a machine's sleep: every timer is due, every connection old.
#[test]
fn a_monotonic_clock_that_leaps_an_hour_costs_no_answer() {
    const TEST: &str = "a_monotonic_clock_that_leaps_an_hour";
    let upstream = Upstream::saying("served");
    let Some(shifted) = Shifted::require(TEST, &upstream, false) else { return };
    some_traffic(&shifted.gateway);
    let hour = shifted.hour();
    shifted.shift("+3600");
    eventually("another hour in the answers", || (shifted.hour() != hour).then_some(()));
    some_traffic(&shifted.gateway);
    assert_eq!(shifted.gateway.ask_admin("/readyz").status(), 200);
    shifted.gateway.wait_in_flight(0);
}
