//! Goal: `flashweir` becomes the program that has a command of the laboratory, and says where it looked if
//! there is none. Method: the real binary in a fresh directory, beside a script in the other program's place;
//! and what the real ones say of themselves.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// `flashweir` in this directory, without the programs beside it.
fn alone(directory: &Path) -> PathBuf {
    let (built, program) = (env!("CARGO_BIN_EXE_flashweir"), directory.join("flashweir"));
    // A link where both are on one file system: the binary of a test build is large.
    if fs::hard_link(built, &program).is_err() {
        fs::copy(built, &program).expect("the binary can be copied");
    }
    program
}

/// A program that prints its process id and its arguments, a line each, and exits with 7.
fn stand_in(directory: &Path, name: &str) {
    let file = directory.join(name);
    fs::write(&file, "#!/bin/sh\nprintf '%s\\n' \"$$\" \"$@\"\nexit 7\n").expect("the script is written");
    fs::set_permissions(&file, Permissions::from_mode(0o755)).expect("the script may run");
}

fn run(program: &Path, path: &Path, arguments: &[&OsStr]) -> (u32, Output) {
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", path).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the binary starts");
    (child.id(), child.wait_with_output().expect("it ends"))
}

#[test]
fn the_other_program_has_the_arguments_the_process_and_the_exit_code() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = alone(directory.path());
    let odd = ["--help", "--", "", "a b", "--seed=1"].map(OsStr::new);
    let odd = [&odd[..], &[OsStr::from_bytes(b"\xff")]].concat();
    for (command, name, before) in
        [("load", "flashweir-load", &[][..]), ("demo-hot", "flashweir-lab", &["demo-hot"])]
    {
        stand_in(directory.path(), name);
        let (id, output) = run(&program, Path::new(""), &[&[OsStr::new(command)], &odd[..]].concat());
        let words = before.iter().map(|word| OsStr::new(*word)).chain(odd.iter().copied());
        let mut expected = format!("{id}\n").into_bytes();
        words.for_each(|word| expected.extend([word.as_bytes(), b"\n"].concat()));
        assert_eq!((output.stdout, output.status.code()), (expected, Some(7)), "{command}");
    }
}

#[test]
fn a_program_on_path_will_do() {
    let [own, other] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    stand_in(other.path(), "flashweir-load");
    let (_, output) = run(&alone(own.path()), other.path(), &["load", "x"].map(OsStr::new));
    assert_eq!(output.status.code(), Some(7), "{output:?}");
}

#[test]
fn a_missing_program_is_said_with_the_places_and_the_remedy() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = alone(directory.path());
    let folder = directory.path().canonicalize().expect("a directory");
    for (command, name, package) in
        [("load", "flashweir-load", "lab/load"), ("sim", "flashweir-lab", "lab/lab")]
    {
        let (_, output) = run(&program, Path::new(""), &[command, "--help"].map(OsStr::new));
        let line = format!(
            "flashweir: the program {name} is neither in {} nor in a directory of PATH; `cargo install --locked --path \
             {package}` in Flashweir's repository installs it\n",
            folder.display()
        );
        assert_eq!(
            (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code()),
            (line, Some(64))
        );
        assert!(output.stdout.is_empty());
    }
}

/// Goal: the help of `flashweir` lists each command with the first line of the command's own help.
#[test]
fn the_help_lists_the_commands_as_they_describe_themselves() {
    let text = |arguments: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_flashweir")).args(arguments).output().expect("it starts");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        // Lines are wrapped at different columns.
        String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let list = text(&["--help"]);
    for command in ["load", "demo", "demo-chain", "demo-hot", "demo-scale", "origin", "sim", "reproduce"] {
        let own = text(&[command, "-h"]);
        let about = own.split(" Usage: flashweir ").next().expect("a first line");
        assert!(list.contains(&format!(" {command} {about}")), "{command}: {about}\n{list}");
        assert_eq!(text(&["help", command]), text(&[command, "--help-all"]));
    }
}
