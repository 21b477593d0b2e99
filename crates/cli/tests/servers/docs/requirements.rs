//! The tables of requirements in the documents name tests that exist.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders of the tests in the cache's table; the first that has the file counts: files of unit tests stand
/// beside the code they test.
const OF_THE_CACHE: [&str; 3] =
    ["crates/cache/src", "crates/cli/tests/servers/cache", "crates/cli/tests/servers/replication"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The names of all tests in a module, by its name: of the module's file and the one beside it.
fn tests_of(module: &str) -> Vec<String> {
    let candidates = OF_THE_CACHE
        .iter()
        .flat_map(|folder| [format!("{folder}/{module}.rs"), format!("{folder}/{module}_tests.rs")]);
    let texts = candidates.filter_map(|file| fs::read_to_string(root().join(file)).ok());
    texts.flat_map(|text| names_of_tests(&text)).collect()
}

/// Functions that are marked as tests.
fn names_of_tests(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_marked = false;
    for line in text.lines().map(str::trim) {
        if line == "#[test]" {
            is_marked = true;
        } else if let Some(rest) = line.strip_prefix("fn ")
            && std::mem::take(&mut is_marked)
        {
            names.extend(rest.split('(').next().map(str::to_owned));
        }
    }
    names
}

/// Rows of the tables whose head ends with this cell.
fn rows<'a>(text: &'a str, last: &str) -> Vec<Vec<&'a str>> {
    let cells = |line: &'a str| line.trim_matches('|').split(" | ").map(str::trim).collect::<Vec<_>>();
    let mut is_inside = false;
    let mut rows = Vec::new();
    for line in text.lines() {
        let cells = cells(line);
        if !line.starts_with('|') {
            is_inside = false;
        } else if is_inside && !line.starts_with("|-") {
            rows.push(cells);
        } else if cells.last() == Some(&last) {
            is_inside = true;
        }
    }
    rows
}

#[test]
fn each_requirement_on_the_cache_has_a_test_that_exists() {
    let text = fs::read_to_string(root().join("docs/cache.md")).expect("the document");
    let rows = rows(&text, "test");
    assert!(rows.len() > 30, "{} requirements", rows.len());
    let mut count = 0;
    for row in &rows {
        let [requirement, done, tests] = row[..] else { panic!("{row:?}") };
        let named: Vec<_> = tests.split('`').skip(1).step_by(2).collect();
        let is_not_done = done.starts_with("not done") || done.starts_with("nothing to do");
        assert!(!named.is_empty() || is_not_done, "no test of {requirement}");
        for name in named.into_iter().filter(|name| !name.starts_with("crates/")) {
            count += 1;
            if name.ends_with(".rs") {
                let text = fs::read_to_string(root().join("crates/cli/tests/servers").join(name));
                let tests = text.map(|text| names_of_tests(&text)).unwrap_or_default();
                assert!(!tests.is_empty(), "{requirement}: no tests in {name}");
                continue;
            }
            let (module, test) = name.split_once("::").unwrap_or_else(|| panic!("{requirement}: {name}"));
            let known = tests_of(module);
            let is_known = if test == "*" { !known.is_empty() } else { known.iter().any(|it| it == test) };
            assert!(is_known, "{requirement}: there is no test {name}");
        }
    }
    assert!(count > 60, "{count} names of tests");
}

#[test]
fn a_helper_is_no_test() {
    let text = "fn helper() {}\n#[test]\nfn is_one() {}\n    #[test]\n    #[cfg(unix)]\n    fn is_another() {}\nfn other() {}\n";
    assert_eq!(names_of_tests(text), ["is_one", "is_another"]);
}
