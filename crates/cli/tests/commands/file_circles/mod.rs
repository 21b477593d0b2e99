//! Files that take names from one another in a circle: only those that are listed here, each with its reason.
//!
//! A module may use the modules inside it: that is no part of a circle.

mod imports;

use imports::{Imports, imports};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// One file of each circle that is meant, and why.
const MEANT: [(&str, &str); 0] = [];

type Files = BTreeSet<PathBuf>;

#[test]
fn files_take_names_from_one_another_in_one_direction() {
    let root = root();
    let mut problems = Vec::new();
    let mut is_met = [false; MEANT.len()];
    for crate_root in crate_roots(&root) {
        let imports = upward(imports(&crate_root));
        for circle in circles(&imports) {
            match MEANT.iter().position(|(file, _)| circle.contains(&root.join(file))) {
                Some(meant) => is_met[meant] = true,
                None => problems.push(description(&root, &circle, &imports)),
            }
        }
    }
    for ((file, _), _) in MEANT.iter().zip(is_met).filter(|(_, is_met)| !is_met) {
        problems.push(format!("{file} is in no circle any more: take it out of the list"));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn circles_of_a_sample_are_found_behind_a_feature_too_and_what_a_parent_uses_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let sources = [
        (
            "lib.rs",
            "mod one; mod other; mod parent; pub use one::First;\n\
             #[cfg(feature = \"latest\")] mod kernel; #[cfg(not(feature = \"latest\"))] #[path = \"absent.rs\"] mod kernel;",
        ),
        ("kernel.rs", "mod gate; mod plan;"),
        ("kernel/gate.rs", "use super::plan::Plan; pub struct Gate(Plan);"),
        ("kernel/plan.rs", "pub struct Plan; fn use_it(_: crate::kernel::gate::Gate) {}"),
        ("absent.rs", ""),
        // Through the root's re-export, and in the middle of an expression.
        ("one.rs", "pub struct First; fn use_it() -> u8 { crate::other::last() }"),
        ("other.rs", "use crate::First; pub fn last() -> u8 { let _ = First; 0 }"),
        ("parent.rs", "mod child; use child::of_child; pub const BOUND: u8 = 1; fn use_it() { of_child() }"),
        (
            "parent/child.rs",
            "pub fn of_child() { let _ = super::BOUND; }\n#[cfg(test)] mod tests { use crate::one::First; }",
        ),
    ];
    for inside in ["parent", "kernel"] {
        std::fs::create_dir(folder.path().join(inside)).expect("a folder");
    }
    for (name, text) in sources {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    let imports = upward(imports(&folder.path().join("lib.rs")));
    let of = |name: &str| folder.path().join(name);
    let found = [["kernel/gate.rs", "kernel/plan.rs"], ["one.rs", "other.rs"]];
    assert_eq!(circles(&imports), found.map(|files| Files::from(files.map(of))));
    let names = &imports[&(of("other.rs"), of("one.rs"))];
    assert_eq!(names, &BTreeSet::from(["First".to_owned()]));
}

/// Leaves out the names that a module takes from modules inside it.
fn upward(mut imports: Imports) -> Imports {
    imports.retain(|(from, to), _| !to.starts_with(inside(from)));
    imports
}

/// The folder of the modules inside a file.
fn inside(file: &Path) -> PathBuf {
    let is_of_its_folder =
        ["mod.rs", "lib.rs", "main.rs"].iter().any(|name| file.file_name().is_some_and(|own| own == *name));
    if is_of_its_folder { file.parent().expect("a folder").to_owned() } else { file.with_extension("") }
}

/// Sets of files each of which leads to all others of its set.
fn circles(imports: &Imports) -> Vec<Files> {
    let mut next: BTreeMap<&PathBuf, Vec<&PathBuf>> = BTreeMap::new();
    for (from, to) in imports.keys() {
        next.entry(from).or_default().push(to);
    }
    let reached: BTreeMap<_, _> = next.keys().map(|file| (*file, reachable(file, &next))).collect();
    let leads_to = |from: &PathBuf, to: &PathBuf| reached.get(from).is_some_and(|files| files.contains(to));
    let mut found: Vec<Files> = Vec::new();
    for (file, files) in reached.iter().filter(|(file, files)| files.contains(**file)) {
        if !found.iter().any(|circle| circle.contains(*file)) {
            found.push(files.iter().filter(|other| leads_to(other, file)).cloned().collect());
        }
    }
    found
}

fn reachable(file: &PathBuf, next: &BTreeMap<&PathBuf, Vec<&PathBuf>>) -> Files {
    let (mut reached, mut open) = (Files::new(), vec![file]);
    while let Some(file) = open.pop() {
        for further in next.get(file).into_iter().flatten() {
            if reached.insert((*further).clone()) {
                open.push(further);
            }
        }
    }
    reached
}

/// The files of a circle, and the names that tie them.
fn description(root: &Path, circle: &Files, imports: &Imports) -> String {
    let short = |path: &Path| path.strip_prefix(root).unwrap_or(path).display().to_string();
    let mut text = format!("a circle of {} files:", circle.len());
    for ((from, to), names) in imports {
        if circle.contains(from) && circle.contains(to) {
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            let _ = write!(text, "\n  {} takes {} from {}", short(from), names.join(", "), short(to));
        }
    }
    text
}

/// Root files of all crates, benches included.
fn crate_roots(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for part in ["crates", "lab"] {
        for folder in folders(&root.join(part)) {
            let names = [folder.join("src/lib.rs"), folder.join("src/main.rs")];
            found.extend(names.into_iter().filter(|file| file.exists()));
            let benches = folder.join("benches");
            if benches.exists() {
                found.extend(folders(&benches).into_iter().map(|bench| bench.join("main.rs")));
            }
        }
    }
    found.retain(|file| file.exists());
    assert!(found.len() > 40, "only {} crates and benches below {}", found.len(), root.display());
    found
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a readable folder");
    entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir()).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}
