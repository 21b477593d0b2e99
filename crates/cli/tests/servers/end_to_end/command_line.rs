//! `flashweir run` with flags alone: what the first minute with it looks like.

use std::net::{Ipv6Addr, SocketAddr, TcpListener};

use flashweir_testkit::{Client, Process, Signal, Upstream, eventually, free_address, skip};
use tempfile::TempDir;

use crate::end_to_end::support::{binary, get};

struct Run {
    process: Process,
    directory: TempDir,
    admin: SocketAddr,
}

/// Starts it with these listening addresses and nothing else but what keeps tests apart.
fn run(upstream: &Upstream, listen: &[SocketAddr]) -> Run {
    let directory = TempDir::new().expect("a fresh directory");
    let admin = free_address();
    let mut arguments = vec!["run".to_owned(), "--upstream".to_owned(), upstream.url()];
    arguments.extend(listen.iter().flat_map(|address| ["--listen".to_owned(), address.to_string()]));
    arguments.extend([
        "--admin".to_owned(),
        admin.to_string(),
        "--state-file".to_owned(),
        "kept.json".to_owned(),
    ]);
    let mut process = binary().start(directory.path(), &arguments);
    eventually("the gateway's readiness", || {
        assert!(process.ended().is_none(), "ended at its start: {}", process.stderr());
        Client::try_connect(admin).ok()
    });
    Run { process, directory, admin }
}

#[test]
fn flags_are_enough_and_a_reload_without_a_file_harms_nothing() {
    let upstream = Upstream::saying("served");
    let address = free_address();
    let run = run(&upstream, &[address]);
    let mut client = Client::connect(address);
    assert_eq!(client.ask(&get("/")).text(), "served");
    run.process.signal(Signal::Reload);
    eventually("a word about the reload", || run.process.stderr().contains("reload").then_some(()));
    assert_eq!(client.ask(&get("/")).text(), "served", "on the same connection");
    assert_eq!(Client::get(run.admin, "/readyz").status(), 200);
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
    let addresses =
        [free_address(), free_address(), SocketAddr::from((Ipv6Addr::LOCALHOST, free_address().port()))];
    let _run = run(&upstream, &addresses);
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
