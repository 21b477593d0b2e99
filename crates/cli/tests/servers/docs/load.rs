//! Goal: every shell block of docs/load.md does what it says, typed one after the other. Method: one shell in
//! a fresh directory, with the port replaced by a free one; each block's exit code and what it left behind
//! are looked at.
//!
//! No twin in virtual time of the tests under load: what is tested is that the manual can be typed.

use crate::docs::blocks::blocks_of_document;
use flashweir_testkit::reserve_address;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

/// The addresses that the document uses.
const ADDRESSES: [&str; 2] = ["127.0.0.1:3000", "127.0.0.1:3001"];

/// At most ten seconds; at once when it listens.
const WAIT_FOR_ORIGIN: &str = "for _ in $(seq 200); do (: < /dev/tcp/127.0.0.1/${ORIGIN##*:}) 2> /dev/null && break; sleep 0.05; done\n";

#[test]
#[ignore = "real load: make test-load"]
fn the_load_manual_can_be_typed_from_top_to_bottom_under_load() {
    let directory = tempfile::tempdir().expect("a fresh directory");
    let blocks: Vec<_> =
        blocks_of_document("docs/load.md").into_iter().filter(|block| block.language == "sh").collect();
    assert!(blocks.len() >= 10, "only {} blocks", blocks.len());
    let mut script = String::from("trap 'kill $(jobs -p)' EXIT\n");
    for block in &blocks {
        if script.contains("flashweir origin") {
            // No reader types as fast as a script: the origin has started by then.
            script += WAIT_FOR_ORIGIN;
        }
        // A block's lines stand or fall together; what comes after it is tried all the same.
        // Writing to a String cannot fail.
        let _ = writeln!(script, "{}\necho \"line {}: exit $?\" >> exits", block.text.trim_end(), block.line);
    }
    // Outside the range of outgoing connections: a crowd of thousands would take a port that waits for its
    // server.
    let [first, second] = ADDRESSES.map(|_| reserve_address().to_string());
    let script = script.replace(ADDRESSES[0], &first).replace(ADDRESSES[1], &second);
    let output = run(&format!("ORIGIN={first}\n{script}"), directory.path());
    let said = String::from_utf8_lossy(&output.stderr);
    let exits = std::fs::read_to_string(directory.path().join("exits")).expect("every block was tried");
    assert_eq!(exits.lines().count(), blocks.len(), "{exits}\n{said}");
    for exit in exits.lines() {
        // On a machine that is busy with other things a run may be saturated, and then its assertions fail:
        // as they should.
        let saturated = exit.ends_with("exit 1") && said.contains("generator saturated");
        assert!(exit.ends_with("exit 0") || saturated, "{exit}\n{said}");
    }
    let there = |name: &str| directory.path().join(name).metadata().is_ok_and(|file| file.len() > 0);
    for name in ["crowd.html", "storm.json", "backoff.json", "series.csv", "result.json", "both.html"] {
        assert!(there(name), "{name} was not written\n{said}");
    }
}

pub(crate) fn run(script: &str, directory: &Path) -> Output {
    let binary = Path::new(env!("CARGO_BIN_EXE_flashweir")).parent().expect("a directory");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(binary.to_owned()).chain(std::env::split_paths(&path)));
    Command::new("bash")
        .args(["-c", script])
        .current_dir(directory)
        .env("PATH", path.expect("directories"))
        .output()
        .expect("bash is everywhere")
}
