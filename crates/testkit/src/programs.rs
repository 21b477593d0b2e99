//! Programs a test needs and a machine may lack.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Where daemons live; not on everybody's PATH.
pub(crate) const DAEMONS: &str = "/usr/sbin";

/// The program, or `None` after a loud line that names it and the test that is skipped.
///
/// ```
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

/// Says that a test is skipped and why, past the test runner's capture of output.
pub fn skip(test: &str, why: &str) {
    // `eprintln!` is captured and thrown away when a test passes; a skipped test must be seen.
    let _unheard = writeln!(std::io::stderr(), "SKIPPED {test}: {why}");
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
