//! The workspace keeps its shape: who may depend on whom, and who may do what.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Decide and never do: no runtime, no sockets, no serialisation.
const PURE: [&str; 12] = [
    "core",
    "limit",
    "admission",
    "aqm",
    "cache",
    "classify",
    "feedback",
    "http1",
    "provisioning",
    "replication",
    "workload",
    "sim",
];
/// May talk to the world.
const SHELLS: [&str; 11] = [
    "gateway", "router", "control", "agent", "runtime", "kernel", "testbed", "load", "http", "egress",
    "tower",
];
/// Crates that no pure crate may depend on, however useful.
const IMPURE: [&str; 15] = [
    "tokio",
    "tokio-util",
    "hyper",
    "hyper-util",
    "axum",
    "socket2",
    "rustix",
    "libc",
    "rustls",
    "tracing",
    "arc-swap",
    "serde",
    "serde_json",
    "toml",
    "tempfile",
];
/// Words that only impure sources contain; clippy's bans stop the rest.
const IMPURE_WORDS: [&str; 7] =
    ["std::time::Instant", "SystemTime", "std::thread", "std::net", "std::fs", "std::env", "std::process"];

struct Workspace {
    root: PathBuf,
    /// The folder of each crate: `crates/NAME` of the product, `lab/NAME` of the laboratory.
    folders: BTreeMap<String, PathBuf>,
    /// Our crates each crate needs, its tests left out; all by folder name.
    needs: BTreeMap<String, BTreeSet<String>>,
    /// The same with those only its tests need.
    needs_with_tests: BTreeMap<String, BTreeSet<String>>,
    /// Other people's crates each crate needs, its tests left out.
    foreign: BTreeMap<String, BTreeSet<String>>,
}

fn workspace() -> Workspace {
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut workspace = Workspace {
        root: PathBuf::from(metadata["workspace_root"].as_str().expect("a root")),
        folders: BTreeMap::new(),
        needs: BTreeMap::new(),
        needs_with_tests: BTreeMap::new(),
        foreign: BTreeMap::new(),
    };
    for package in metadata["packages"].as_array().expect("packages") {
        let name = package["name"].as_str().and_then(folder).expect("a crate called flashweir-something");
        let manifest = Path::new(package["manifest_path"].as_str().expect("the path of a manifest"));
        workspace.folders.insert(name.clone(), manifest.parent().expect("a folder").to_owned());
        let dependencies = package["dependencies"].as_array().expect("dependencies");
        let is_ordinary = |dependency: &&Value| dependency["kind"] != "dev";
        let ours = |dependency: &Value| folder(dependency["name"].as_str()?);
        let foreign = |dependency: &Value| {
            let name = dependency["name"].as_str()?;
            folder(name).is_none().then(|| name.to_owned())
        };
        let ordinary = || dependencies.iter().filter(is_ordinary);
        workspace.needs.insert(name.clone(), ordinary().filter_map(ours).collect());
        workspace.foreign.insert(name.clone(), ordinary().filter_map(foreign).collect());
        workspace.needs_with_tests.insert(name, dependencies.iter().filter_map(ours).collect());
    }
    workspace
}

/// `flashweir-core` lives in the folder `core`; a stranger has none.
fn folder(package: &str) -> Option<String> {
    package.strip_prefix("flashweir-").map(str::to_owned)
}

impl Workspace {
    fn ours(&self, of: &str) -> BTreeSet<&str> {
        self.needs[of].iter().map(String::as_str).collect()
    }

    fn check_only(&self, of: &str, allowed: &[&str]) {
        let wrong: Vec<_> = self.ours(of).into_iter().filter(|name| !allowed.contains(name)).collect();
        assert!(wrong.is_empty(), "{of} may not depend on {wrong:?}");
    }

    fn sources(&self, of: &str) -> Vec<PathBuf> {
        let mut files = Vec::new();
        rust_files(&self.folders[of].join("src"), &mut files);
        assert!(!files.is_empty(), "{of} has no sources");
        files
    }
}

fn rust_files(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a readable directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

#[test]
fn estimators_come_before_decisions() {
    let workspace = workspace();
    workspace.check_only("core", &[]);
    workspace.check_only("admission", &["core", "limit", "aqm"]);
    workspace.check_only("aqm", &["core"]);
    workspace.check_only("provisioning", &["core", "admission"]);
    workspace.check_only("replication", &["core"]);
    workspace.check_only("feedback", &["core", "admission"]);
    workspace.check_only("cache", &["core", "http1"]);
    workspace.check_only("http1", &["core"]);
    workspace.check_only("wire", &["core", "limit", "admission"]);
    workspace.check_only("workload", &["core"]);
}

#[test]
fn the_simulator_runs_decisions() {
    let workspace = workspace();
    let decisions = ["core", "admission", "aqm", "feedback", "provisioning", "replication", "workload"];
    workspace.check_only("sim", &decisions);
}

#[test]
fn pure_crates_stay_pure() {
    let workspace = workspace();
    for name in PURE {
        let wrong: Vec<_> =
            workspace.foreign[name].iter().filter(|need| IMPURE.contains(&need.as_str())).collect();
        // Reading a rate profile needs a CSV reader over bytes; that is all.
        assert!(wrong.is_empty(), "{name} is pure and may not depend on {wrong:?}");
        let is_test = |file: &PathBuf| file.components().any(|part| part.as_os_str() == "tests");
        for file in workspace.sources(name).into_iter().filter(|file| !is_test(file)) {
            let text = std::fs::read_to_string(&file).expect("a readable file");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            let found: Vec<_> =
                lines.filter(|line| IMPURE_WORDS.iter().any(|word| line.contains(word))).collect();
            assert!(found.is_empty(), "{} is pure and names {found:?}", file.display());
        }
    }
}

#[test]
fn http_mechanics_know_of_decisions_only_which_server_answers() {
    workspace().check_only("http", &["core", "http1", "replication", "kernel"]);
}

/// A library in other people's programs brings no server, no configuration and no metrics along.
#[test]
fn libraries_in_other_programs_are_small() {
    let workspace = workspace();
    workspace.check_only("limit", &[]);
    workspace.check_only("tower", &["core", "admission", "feedback"]);
}

#[test]
fn glue_knows_no_shell() {
    let workspace = workspace();
    for name in ["config", "telemetry"] {
        let is_above = |need: &&str| SHELLS.contains(need) || ["cli", "lab"].contains(need);
        let wrong: Vec<_> = workspace.ours(name).into_iter().filter(is_above).collect();
        assert!(wrong.is_empty(), "{name} may not depend on {wrong:?}");
    }
}

#[test]
fn configuration_and_metrics_need_words_and_decisions_only() {
    let workspace = workspace();
    workspace.check_only("config", &["core", "admission", "feedback"]);
    workspace.check_only("telemetry", &["core", "admission"]);
    workspace.check_only("classify", &["core", "admission", "config", "http1", "telemetry"]);
}

/// A written mode becomes a policy in one place, so that the gateway, the router and the simulator mean the
/// same by it.
#[test]
fn only_the_configuration_turns_written_modes_into_planners() {
    let workspace = workspace();
    let readers = workspace.needs.iter().filter(|(_, needs)| needs.contains("config"));
    // The papers' figures are made without a configuration: their modes are values of the experiments.
    let experiments = workspace.folders["lab"].join("src/experiments");
    let files = readers.flat_map(|(name, _)| workspace.sources(name));
    for file in files.filter(|file| !file.starts_with(&experiments)) {
        let text = std::fs::read_to_string(&file).expect("a readable file");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let turns = code.lines().any(|line| line.contains("PlannerMode::") && line.contains("=>"));
        assert!(!turns, "{} turns a mode into a planner's, expected FlashCrowd::settings", file.display());
    }
}

#[test]
fn shells_do_not_know_each_other_but_for_what_they_are_made_of() {
    let workspace = workspace();
    for (name, made_of) in [
        ("gateway", &["http", "kernel", "runtime"][..]),
        ("router", &["kernel", "runtime"]),
        ("runtime", &["kernel"]),
        ("control", &["runtime"]),
        ("agent", &["runtime"]),
        ("egress", &["tower", "http", "runtime"]),
        ("load", &["kernel"]),
        ("kernel", &[]),
        ("testbed", &[]),
        ("http", &[]),
    ] {
        let wrong: Vec<_> = workspace
            .ours(name)
            .into_iter()
            .filter(|need| SHELLS.contains(need) && !made_of.contains(need))
            .collect();
        assert!(wrong.is_empty(), "{name} may not depend on {wrong:?}");
    }
}

/// The programs of an operator are built without the laboratory.
#[test]
fn the_product_does_not_need_the_laboratory() {
    let workspace = workspace();
    let is_laboratory = |name: &String| workspace.folders[name].starts_with(workspace.root.join("lab"));
    assert!(is_laboratory(&"load".to_owned()) && !is_laboratory(&"cli".to_owned()));
    for (name, needs) in workspace.needs.iter().filter(|(name, _)| !is_laboratory(name)) {
        let wrong: Vec<_> = needs.iter().filter(|need| is_laboratory(need)).collect();
        assert!(wrong.is_empty(), "{name} may not depend on {wrong:?}");
    }
}

#[test]
fn no_crate_depends_on_the_command_lines() {
    let workspace = workspace();
    let who_needs = |name: &str| {
        let needing = workspace.needs_with_tests.iter().filter(|(_, needs)| needs.contains(name));
        needing.map(|(who, _)| who.clone()).collect::<Vec<_>>()
    };
    for command_line in ["cli", "lab"] {
        assert!(who_needs(command_line).is_empty(), "{command_line}: {:?}", who_needs(command_line));
    }
}

#[test]
fn testkit_and_fuzz_are_for_tests() {
    let workspace = workspace();
    for name in ["testkit", "fuzz"] {
        let wrong: Vec<_> = workspace.needs.iter().filter(|(_, needs)| needs.contains(name)).collect();
        assert!(wrong.is_empty(), "{wrong:?} need {name} outside their tests");
    }
    workspace.check_only("testkit", &["testbed"]);
    workspace.check_only("testbed", &["core"]);
}

#[test]
fn only_the_kernel_crate_may_be_unsafe() {
    let workspace = workspace();
    for (name, folder) in &workspace.folders {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml"));
        let manifest = manifest.expect("a readable manifest");
        let takes_over = manifest.contains("[lints]\nworkspace = true");
        assert!(takes_over || name == "kernel", "{name} does not take over the workspace's lints");
        if name == "kernel" {
            continue;
        }
        let is_test = |file: &PathBuf| file.components().any(|part| part.as_os_str() == "tests");
        for file in workspace.sources(name).into_iter().filter(|file| !is_test(file)) {
            let text = std::fs::read_to_string(&file).expect("a readable file");
            let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
            let found: Vec<_> = code.filter(|line| line.contains("unsafe ")).collect();
            assert!(found.is_empty(), "{}: {found:?}", file.display());
        }
    }
    let root = std::fs::read_to_string(workspace.root.join("Cargo.toml")).expect("a readable manifest");
    assert!(root.contains("unsafe_code = \"forbid\""));
}

#[test]
fn every_crate_is_named_after_its_folder_and_none_is_empty() {
    let workspace = workspace();
    for part in ["crates", "lab"] {
        for entry in std::fs::read_dir(workspace.root.join(part)).expect("a readable directory") {
            let path = entry.expect("an entry").path();
            let folder = path.file_name().expect("a name").to_string_lossy().into_owned();
            assert_eq!(
                workspace.folders.get(&folder),
                Some(&path),
                "{part}/{folder} is no crate called flashweir-{folder}"
            );
            let lines: usize = workspace
                .sources(&folder)
                .iter()
                .map(|file| std::fs::read_to_string(file).expect("a readable file").lines().count())
                .sum();
            assert!(lines > 20, "{part}/{folder} is empty");
        }
    }
}
