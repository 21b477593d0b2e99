//! Goal: what fails under load only is the shell around a rule, for the rule itself has a test in virtual
//! time. Method: the source of the tests under load, each file of which names its twin.

use std::fs;
use std::path::{Path, PathBuf};

const MARK: &str = "_under_load(";
const IGNORED: &str = "#[ignore = \"real load: make test-load\"]";
const TWIN: &str = "Twin in virtual time of the tests under load: ";
const NO_TWIN: &str = "//! No twin in virtual time of the tests under load: ";

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every source file below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => sources(&path),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|it| it == "rs"))
        .collect()
}

/// The name of a function that a line begins, if it does.
fn function(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("fn ")?.split('(').next()
}

#[test]
fn each_test_under_load_is_ignored_and_its_file_names_a_twin() {
    let mut count = 0;
    let programs = ["crates/cli/tests/servers", "crates/cli/tests/root", "lab/load/tests/load"];
    for path in programs.iter().flat_map(|program| sources(&workspace().join(program))) {
        let text = fs::read_to_string(&path).expect("a source file");
        let under_load = text.lines().filter(|line| line.starts_with("fn ") && line.contains(MARK)).count();
        let ignored = text.lines().filter(|line| line.trim() == IGNORED).count();
        assert_eq!(under_load, ignored, "{}: tests under load are ignored, and no others", path.display());
        count += under_load;
        if under_load == 0 || text.lines().any(|line| line.starts_with(NO_TWIN)) {
            continue;
        }
        // A sentence may go on in the next line.
        let text = text.replace("\n//! ", " ");
        let twin = text.split_once(TWIN).map(|(_, twin)| twin);
        let mut names = twin
            .unwrap_or_else(|| panic!("{}: no twin is named", path.display()))
            .split('`')
            .skip(1)
            .step_by(2);
        let (Some(krate), Some(test)) = (names.next(), names.next()) else {
            panic!("{}: expected `CRATE`, `TEST`", path.display())
        };
        let homes = ["crates", "lab"].map(|part| workspace().join(part).join(krate));
        let folders = homes.iter().flat_map(|home| [home.join("src"), home.join("tests")]);
        let there = folders.flat_map(|it| sources(&it)).any(|file| {
            file.file_stem().is_some_and(|stem| stem == test)
                || fs::read_to_string(file)
                    .expect("a source file")
                    .lines()
                    .any(|line| function(line) == Some(test))
        });
        assert!(there, "{}: there is no test {test} in {krate}", path.display());
    }
    assert!(count > 30, "only {count} tests under load were found");
}
