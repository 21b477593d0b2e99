//! `flashweir run` with flags alone: what the first minute with it looks like.

use std::net::{Ipv6Addr, TcpListener};

use flashweir_testkit::{Client, Listening, Process, READY_FILE, Signal, Upstream, eventually, skip};
use tempfile::TempDir;

use crate::end_to_end::support::{binary, get};

struct Run {
    process: Process,
    directory: TempDir,
    listening: Listening,
}

/// Starts it with these listening addresses and only those other settings that keep tests separate.
fn run(upstream: &Upstream, listen: &[&str]) -> Run {
    let directory = TempDir::new().expect("a fresh directory");
    let url = upstream.url();
    let mut arguments =
        vec!["run", "--upstream", &url, "--admin", "127.0.0.1:0", "--state-file", "kept.json"];
    arguments.extend(listen.iter().flat_map(|address| ["--listen", address]));
    let (process, listening) = start(&directory, &arguments);
    Run { process, directory, listening }
}

/// Starts a command and waits until it says where it listens.
fn start(directory: &TempDir, arguments: &[&str]) -> (Process, Listening) {
    let arguments = [arguments, &["--ready-file", READY_FILE]].concat();
    let mut process = binary().start(directory.path(), &arguments);
    let listening = eventually("a ready file", || {
        assert!(process.ended().is_none(), "{arguments:?} ended at its start: {}", process.stderr());
        // What an earlier command left is there until this one removes it.
        Listening::read(directory.path()).filter(|it| it.process_id() == Some(process.id().into()))
    });
    (process, listening)
}

#[test]
fn flags_are_enough_and_a_reload_without_a_file_harms_nothing() {
    let upstream = Upstream::saying("served");
    let run = run(&upstream, &["127.0.0.1:0"]);
    let mut client = Client::connect(run.listening.address("listen"));
    assert_eq!(client.ask(&get("/")).text(), "served");
    run.process.signal(Signal::Reload);
    eventually("a word about the reload", || run.process.stderr().contains("reload").then_some(()));
    assert_eq!(client.ask(&get("/")).text(), "served", "on the same connection");
    assert_eq!(Client::get(run.listening.address("admin"), "/readyz").status(), 200);
    run.process.signal(Signal::Terminate);
    let finished = run.process.finish(flashweir_testkit::PATIENCE);
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    assert!(run.directory.path().join("kept.json").exists(), "the baseline is kept where the flag says");
}

#[test]
fn it_listens_everywhere_it_was_told_to() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        skip("it_listens_everywhere_it_was_told_to", "this machine has no IPv6");
        return;
    }
    let upstream = Upstream::reflecting();
    let run = run(&upstream, &["127.0.0.1:0", "127.0.0.2:0", "[::1]:0"]);
    let addresses = run.listening.addresses("listen");
    assert_eq!(addresses.len(), 3, "{addresses:?}");
    for address in addresses {
        assert_eq!(Client::get(address, "/").status(), 200, "{address}");
    }
    let seen = upstream.last_request();
    assert_eq!(seen.field("x-forwarded-for"), Some("::1"));
    assert_eq!(seen.field("forwarded"), Some("for=\"[::1]\";host=test;proto=http"));
}

#[test]
fn the_last_flag_and_the_file_agree_on_who_wins() {
    // Flags win over the file, also after a reload.
    let (filed, flagged) = (Upstream::saying("from the file"), Upstream::saying("from the flag"));
    let gateway =
        crate::end_to_end::support::before(&filed).argument("--upstream").argument(&flagged.url()).start();
    let mut client = gateway.connect();
    assert_eq!(client.ask(&get("/")).text(), "from the flag");
    gateway.reload();
    gateway.wait_metric("flashweir_config_reloads_total{outcome=\"ok\"}", 1.0);
    assert_eq!(client.ask(&get("/")).text(), "from the flag");
}

/// Goal: a supervisor that gives port 0 learns where each command listens, from a file that appears when it
/// does. Method: every command that listens and needs no rights, asked at the address that it wrote.
#[test]
fn every_command_says_where_it_listens() {
    let upstream = Upstream::saying("served");
    let url = upstream.url();
    let directory = TempDir::new().expect("a fresh directory");
    let write = |name: &str, text: &str| {
        std::fs::write(directory.path().join(name), text).expect("a writable directory")
    };
    let egress =
        "name = \"shop\"\nadmin = \"127.0.0.1:0\"\n[[listen]]\naddress = \"127.0.0.1:0\"\ntarget = \"api\"\n";
    write("egress.toml", &format!("{egress}[[target]]\nname = \"api\"\nurls = [{url:?}]\n"));
    write(
        "control.toml",
        &format!(
            "admin = \"{}\"\nlisten = \"127.0.0.1:0\"\nmax = 1\n[exec]\ncommand = [\"true\"]\n",
            upstream.address()
        ),
    );
    let commands: [(&[&str], &str, &str); 5] = [
        (&["origin", "--listen", "127.0.0.1:0", "--iterations-per-ms", "1000"], "listen", "/healthz"),
        (&["agent", "--listen", "127.0.0.1:0"], "listen", "/healthz"),
        (
            &["replica", "--of", &url, "--listen", "127.0.0.1:0", "--url", "http://127.0.0.1:1"],
            "admin",
            "/readyz",
        ),
        (&["egress", "--config", "egress.toml"], "admin", "/healthz"),
        (&["control", "--config", "control.toml"], "listen", "/healthz"),
    ];
    for (arguments, role, path) in commands {
        let (process, listening) = start(&directory, arguments);
        assert_eq!(Client::get(listening.address(role), path).status(), 200, "{arguments:?}");
        process.signal(Signal::Terminate);
        let finished = process.finish(flashweir_testkit::PATIENCE);
        assert_eq!(finished.code(), Some(0), "{arguments:?}: {}", finished.stderr);
    }
}

#[test]
fn a_ready_file_that_cannot_be_written_ends_the_start() {
    let upstream = Upstream::saying("served");
    let url = upstream.url();
    let finished = binary().run(["run", "--upstream", &url, "--ready-file", "/surely/not/there/ready.json"]);
    assert_eq!(finished.code(), Some(64));
    assert_eq!(
        finished.stderr,
        "flashweir: --ready-file /surely/not/there/ready.json: No such file or directory (os error 2)\n"
    );
}
