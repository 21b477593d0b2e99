//! Programs a test needs and a machine may lack.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Directory of daemons; not on every user's PATH.
pub(crate) const DAEMONS: &str = "/usr/sbin";

/// The program, or `None` after a loud line that names it and the test that is skipped.
///
/// ```no_run
/// use flashweir_testkit::require_program;
/// assert!(require_program("surely-not-installed", "an example").is_none());
/// ```
#[must_use]
pub fn require_program(name: &str, test: &str) -> Option<PathBuf> {
    let found = [PathBuf::from(name), PathBuf::from(DAEMONS).join(name)].into_iter().find(answers);
    if found.is_none() {
        skip(test, &format!("the program `{name}` is missing"));
    }
    found
}

/// The environment variable that names a file for one line `TEST: REASON` of each skipped test;
/// `scripts/test.sh` sets it.
const SKIPS: &str = "FLASHWEIR_SKIPS";

/// Says that a test is skipped and why, past the test runner's capture of output.
///
/// # Panics
/// When the file that collects skipped tests cannot be written: a skip that is not counted would pass for a
/// test.
pub fn skip(test: &str, why: &str) {
    // `eprintln!` is captured and thrown away when a test passes; a skipped test must be seen.
    let _unheard = writeln!(std::io::stderr(), "SKIPPED {test}: {why}");
    append(SKIPS, &format!("{test}: {}\n", why.replace('\n', " ")));
}

/// The environment variable that names a file for one line `SUITE<TAB>PASSED<TAB>CASES` of each suite; `make
/// conformance` sets it.
const RESULTS: &str = "FLASHWEIR_RESULTS";

/// Records how many cases of a suite that others wrote passed, for docs/conformance.md.
///
/// # Panics
/// When the file that collects results cannot be written.
pub fn record_result(suite: &str, passed: usize, cases: usize) {
    append(RESULTS, &format!("{suite}\t{passed}\t{cases}\n"));
}

/// Appends the line to the file that the environment variable names, if it is set.
fn append(variable: &str, line: &str) {
    let Some(file) = std::env::var_os(variable) else { return };
    let written =
        OpenOptions::new().append(true).open(&file).and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("{variable}={}: {error}", file.display()));
}

fn answers(program: &PathBuf) -> bool {
    // curl knows `-V`, nginx and haproxy `-v`; that it starts at all is what counts.
    Command::new(program)
        .arg("-V")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok()
}
