//! Tests of the crate `command`: what the programs share.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use flashweir_config::command::environment::state_directory_of;
use flashweir_config::command::exit::{UsageError, after_failure, one_line};
use flashweir_config::command::numbers::{positive, within};
use flashweir_config::command::program::Program;

#[test]
fn systemd_wins_over_xdg_and_xdg_over_home() {
    let directory = |variables: &[(&str, &str)]| {
        let find =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        state_directory_of(find)
    };
    let home = ("HOME", "/home/a");
    let xdg = ("XDG_STATE_HOME", "/s");
    assert_eq!(directory(&[]), None);
    assert_eq!(directory(&[home]).as_deref(), Some(Path::new("/home/a/.local/state/flashweir")));
    assert_eq!(directory(&[home, xdg]).as_deref(), Some(Path::new("/s/flashweir")));
    assert_eq!(directory(&[home, ("XDG_STATE_HOME", "s")]), directory(&[home]));
    assert_eq!(directory(&[xdg, ("STATE_DIRECTORY", "/a:/b")]).as_deref(), Some(Path::new("/a")));
}

#[test]
fn a_cause_is_said_once() {
    let cause = || anyhow::anyhow!("refused");
    assert_eq!(one_line(&cause().context("cannot connect")), "cannot connect: refused");
    assert_eq!(one_line(&cause().context("cannot connect: refused")), "cannot connect: refused");
}

#[test]
fn a_wrong_command_line_is_64_and_a_failure_1() {
    let usage = || anyhow::Error::from(UsageError::new("--rate"));
    assert_eq!(after_failure(&usage().context("at start"), false), ExitCode::from(64));
    assert_eq!(after_failure(&anyhow::anyhow!("a.toml:3"), true), ExitCode::from(64));
    assert_eq!(after_failure(&anyhow::anyhow!("broken pipe"), false), ExitCode::FAILURE);
}

#[test]
fn numbers_are_finite_and_in_their_range() {
    assert_eq!(positive("2.5"), Ok(2.5));
    assert!(["0", "-1", "inf", "NaN", "many"].into_iter().all(|text| positive(text).is_err()));
    assert_eq!(within(0.0, 2.0)("2"), Ok(2.0));
    assert!(["-1", "2.1", "NaN", "many"].into_iter().all(|text| within(0.0, 2.0)(text).is_err()));
}

/// Goal: the program beside this one wins over those on PATH, and a file that cannot be run is none.
#[test]
fn a_program_is_looked_for_beside_and_then_on_path() {
    let folder = tempfile::tempdir().expect("a directory");
    let [beside, first, second] = ["beside", "first", "second"].map(|name| folder.path().join(name));
    let file = |directory: &Path, mode: u32| {
        std::fs::create_dir_all(directory).expect("a directory");
        let file = directory.join("flashweir-load");
        std::fs::write(&file, "").expect("a file");
        std::fs::set_permissions(&file, Permissions::from_mode(mode)).expect("a mode");
        file
    };
    file(&first, 0o644);
    let (near, far) = (file(&beside, 0o755), file(&second, 0o755));
    let find = |beside: Option<&Path>, path: &[&PathBuf]| {
        let path: Vec<PathBuf> = path.iter().map(|&it| it.clone()).collect();
        Program::Load.find_in(beside, &path)
    };
    assert_eq!(find(Some(&beside), &[&second]).expect("beside"), near);
    assert_eq!(find(Some(&first), &[&first, &second]).expect("on PATH"), far);
    assert_eq!(find(None, &[&second]).expect("on PATH"), far);
    let message = |beside: Option<&Path>| find(beside, &[&first]).expect_err("none").to_string();
    let [known, unknown] = [message(Some(Path::new("/opt"))), message(None)];
    let start = "the program flashweir-load is neither in /opt nor in a directory of PATH; ";
    assert!(known.starts_with(start), "{known}");
    assert!(known.contains("`cargo install --locked --path lab/load`"), "{known}");
    assert!(unknown.contains(" is neither beside this program nor in "), "{unknown}");
}
