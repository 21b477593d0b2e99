//! Goal: a wrong file is one line that names what and where, and exit code 64.

use crate::egress::scene::binary;
use std::time::Duration;
use tempfile::TempDir;

const WITHIN: Duration = Duration::from_secs(30);

fn check(config: &str, expected: &str) {
    let directory = TempDir::new().expect("a directory");
    std::fs::write(directory.path().join("egress.toml"), config).expect("a writable directory");
    let finished =
        binary().run_in(directory.path(), WITHIN, ["egress", "--config", "egress.toml", "--check"]);
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(64), expected));
}

#[test]
fn wrong_files_are_named_in_one_line() {
    let listen = "name = \"shop\"\n[[listen]]\naddress = \"127.0.0.1:0\"\ntarget = \"api\"\n";
    check(
        &format!("{listen}[[target]]\nname = \"api\"\nurls = [\"http://127.0.0.1:1\"]\nqueue = 5000\n"),
        "flashweir: egress.toml: target.api.queue: expected 0 to 4096 (is 5000)\n",
    );
    check(
        &format!("{listen}[[target]]\nname = \"api\"\nurls = [\"http://127.0.0.1:1/path\"]\n"),
        "flashweir: egress.toml: target.api: upstream address `http://127.0.0.1:1/path` must have no path: requests keep the path \
         the client asked for\n",
    );
    check(
        &format!(
            "{listen}[[target]]\nname = \"api\"\nurls = [\"http://127.0.0.1:1\"]\nkey_file = \"api.keys\"\n"
        ),
        "flashweir: api.keys: No such file or directory (os error 2)\n",
    );
}

#[test]
fn a_right_file_is_accepted_and_a_taken_port_is_named() {
    let directory = TempDir::new().expect("a directory");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("bound");
    let config = format!(
        "name = \"shop\"\n[[listen]]\naddress = \"{address}\"\ntarget = \"api\"\n[[target]]\nname = \"api\"\nurls = [\"http://127.0.0.1:1\"]\n"
    );
    std::fs::write(directory.path().join("egress.toml"), config).expect("a writable directory");
    let run = |more: &[&str]| {
        let arguments = ["egress", "--config", "egress.toml"].iter().chain(more);
        binary().run_in(directory.path(), WITHIN, arguments)
    };
    assert_eq!(run(&["--check"]).code(), Some(0));
    let finished = run(&[]);
    assert_eq!(finished.code(), Some(1));
    assert!(
        finished.stderr.contains(&format!("cannot listen on {address}: address in use")),
        "{}",
        finished.stderr
    );
}
