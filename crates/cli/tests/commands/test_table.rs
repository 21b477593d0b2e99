//! Goal: `make test` ends with a table that is true, and with an exit code that counts what failed and what
//! was skipped. Method: `scripts/test.sh` around a program that prints what cargo prints.

use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Of two programs: one test passed, one failed, one was ignored; three passed.
const FAILED: &str = "     Running unittests src/lib.rs (target/debug/deps/flashweir_sim-0a1b2c3d)
test queue::holds ... ok
test crowd ... ignored, make soak
test lost ... FAILED

failures:

---- lost stdout ----

thread 'lost' (7) panicked at crates/sim/src/queue.rs:9:5:
assertion `left == right` failed
  left: 1
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.50s
   Doc-tests flashweir_core
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.25s
";
const PASSED: &str = "     Running tests/servers/main.rs (target/debug/deps/servers-0a1b2c3d)
test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s
";

/// Exit code and output of the script around `cargo`, which prints this, skips these tests and ends with this
/// code.
fn table(printed: &str, skips: &[&str], code: i32, expected: Option<&str>) -> (Option<i32>, String) {
    let directory = TempDir::new().expect("a directory");
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("a writable directory");
        path.display().to_string()
    };
    let (printed, skips) = (write("printed", printed), write("skips", &skips.join("")));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/test.sh");
    let mut command = Command::new(script);
    if let Some(expected) = expected {
        command.args(["--expected-skips", &write("expected", expected)]);
    }
    let cargo = format!("cat {printed}; cat {skips} >>\"$FLASHWEIR_SKIPS\"; exit {code}");
    let output = command.args(["sh", "-c", &cargo]).output().expect("bash runs");
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn what_passed_failed_and_was_ignored_is_counted_and_named() {
    let (code, text) = table(&format!("{FAILED}{PASSED}"), &[], 101, None);
    assert_eq!(code, Some(1), "{text}");
    for line in [
        "| sim (unit) | 1 | 1 | 1 | 0.5 |",
        "| core (doc) | 3 | 0 | 0 | 0.2 |",
        "| servers (integration) | 4 | 0 | 0 | 1.0 |",
        "| all | 8 | 1 | 1 | 1.8 |",
        "  make soak:\n    crowd",
        "Failed:\n  sim (unit): lost\n      at crates/sim/src/queue.rs:9:5:\n      assertion `left == right` failed\n        left: 1\n",
        "Skipped because this machine lacks something: none",
        "\n8 passed, 1 failed, 0 skipped\n",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
}

#[test]
fn a_skip_that_is_not_expected_fails_and_an_expected_one_does_not() {
    let skips = ["a chart: the program `helm` is missing\n", "a trace: it is not here\n"];
    let both = "# What this machine lacks.\n\na chart: .*helm.* is missing\na trace: it is not here\n";
    assert_eq!(table(PASSED, &skips, 0, None).0, Some(0), "a newcomer's machine may lack anything");
    assert_eq!(table(PASSED, &skips, 0, Some(both)).0, Some(0));
    let (code, text) = table(PASSED, &skips, 0, Some("a chart: .*\n"));
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("does not expect it:\n  a trace: it is not here\n"), "{text}");
    let (code, text) = table(PASSED, &skips, 0, Some("# Nothing is expected.\n"));
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("4 passed, 0 failed, 2 skipped"), "{text}");
    assert_eq!(table(PASSED, &skips, 101, Some(both)).0, Some(1), "cargo failed without a test that failed");
}

/// Exit code and output where `lost` fails for the first `failures` times that it is run, with this many
/// attempts.
fn attempts(failures: usize, attempts: &str, printed_first: &str) -> (Option<i32>, String) {
    let directory = TempDir::new().expect("a directory");
    let first = directory.path().join("first");
    std::fs::write(&first, printed_first).expect("a writable directory");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/test.sh");
    let cargo = format!(
        "cd {folder}; echo run >>runs; runs=$(wc -l <runs)
        if [ $runs = 1 ]; then cat first; exit 101; fi
        [ \"$*\" = '--include-ignored --exact --test-threads 2 lost' ] || exit 99
        if [ $runs -le {failures} ]; then echo 'test lost ... FAILED'; exit 101; fi
        echo 'test lost ... ok'",
        folder = directory.path().display()
    );
    let words = ["--attempts", attempts, "sh", "-c", &cargo, "--", "--ignored", "under_load"];
    let output = Command::new(script).args(words).output().expect("bash runs");
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn a_failed_test_is_run_again_alone_a_bounded_number_of_times_and_each_attempt_is_told() {
    let (code, text) = attempts(1, "3", FAILED);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.ends_with("  attempt 2 of 3, alone: lost passed\n\n4 passed, 1 failed, 0 skipped\n"),
        "{text}"
    );
    let (code, text) = attempts(2, "3", FAILED);
    assert_eq!(code, Some(0), "{text}");
    let both = "attempt 2 of 3, alone: lost FAILED\n  attempt 3 of 3, alone: lost passed\n";
    assert!(text.contains(both), "{text}");
    assert_eq!(attempts(3, "3", FAILED).0, Some(1), "a test that never passes");
    assert_eq!(attempts(1, "1", FAILED).0, Some(1), "one attempt");
}

#[test]
fn where_more_than_three_tests_fail_none_is_run_again() {
    let four: String = (0..4).map(|test| format!("test lost_{test} ... FAILED\n")).collect();
    let (code, text) = attempts(1, "3", &format!("{four}{FAILED}"));
    assert_eq!(code, Some(1), "{text}");
    assert!(!text.contains("alone"), "{text}");
    for other in
        ["error: could not compile `flashweir-sim`", "  process didn't exit successfully: `sim` (signal: 6)"]
    {
        assert_eq!(attempts(1, "3", &format!("{other}\n{FAILED}")).0, Some(1), "{other}");
    }
}
