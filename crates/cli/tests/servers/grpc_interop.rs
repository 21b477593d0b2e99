//! gRPC's own interoperability client and server with the real binary between them, in the clear and with TLS
//! towards the client.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flashweir_testkit::{
    Authority, Client, Flashweir, Gateway, GatewayBuilder, Process, eventually, record_result,
    reserve_address, skip,
};

const BINARY: &str = env!("CARGO_BIN_EXE_flashweir");
/// Every case of the client that needs no credentials of a cloud, but `pick_first_unary`: the server alone
/// fails it.
const CASES: [&str; 16] = [
    "empty_unary",
    "large_unary",
    "client_streaming",
    "server_streaming",
    "ping_pong",
    "empty_stream",
    "timeout_on_sleeping_server",
    "cancel_after_begin",
    "cancel_after_first_response",
    "status_code_and_message",
    "special_status_message",
    "custom_metadata",
    "unimplemented_method",
    "unimplemented_service",
    // The last one changes what the server reports.
    "orca_per_rpc",
    "orca_oob",
];
/// The clients' load balancer for the cases of ORCA: it keeps the reports.
const BALANCER: &str = r#"{"loadBalancingConfig":[{"test_backend_metrics_load_balancer":{}}]}"#;
const ENDS_WITHIN: Duration = Duration::from_secs(60);
const STARTS_MAX: u32 = 3;

/// Path at which `make grpc-interop` puts one of the programs, beside the profile's own folder.
fn require(test: &str, name: &str) -> Option<PathBuf> {
    let installed = Path::new(BINARY).ancestors().nth(2)?.join("tools/bin").join(name);
    if installed.exists() {
        return Some(installed);
    }
    skip(
        test,
        "gRPC's interoperability programs are not installed: `make grpc-interop` needs Go and its module proxy",
    );
    None
}

/// The server behind a gateway, which `listen` completes, and every case of the client, with these arguments
/// more. The number of cases that passed is recorded under this name.
fn all_cases_pass(test: &str, name: &str, listen: fn(GatewayBuilder) -> (Gateway, Vec<String>)) {
    let (Some(client), Some(server)) =
        (require(test, "grpc-interop-client"), require(test, "grpc-interop-server"))
    else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let (address, _server) = listening(&server, directory.path());
    let builder = GatewayBuilder::new(&Flashweir::new(BINARY))
        .upstream(&format!("http://{address}"))
        .text("upstream.protocol", "http2");
    let (gateway, more) = listen(builder);
    let port = gateway.address().port().to_string();
    let usual = ["-server_host", "127.0.0.1", "-server_port", &port, "-service_config_json", BALANCER];
    let mut failures = Vec::new();
    for case in CASES {
        let arguments = usual.into_iter().chain(["-test_case", case]).chain(more.iter().map(String::as_str));
        let finished = Process::run(&client, directory.path(), ENDS_WITHIN, arguments);
        if finished.code() != Some(0) {
            failures.push(format!("{case}: {}{}", finished.stdout, finished.stderr));
        }
    }
    record_result(name, CASES.len() - failures.len(), CASES.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(gateway.metrics().value("flashweir_requests_shed_total"), 0.0);
}

/// The server, and where it listens: on all addresses, of which only one is reserved. Where another program
/// has the port at another address it ends, and is started with another port.
fn listening(server: &Path, directory: &Path) -> (SocketAddr, Process) {
    for _ in 0..STARTS_MAX {
        let address = reserve_address();
        let mut process = Process::start(server, directory, ["-port", &address.port().to_string()]);
        let listens = eventually("gRPC's server", || match process.ended() {
            Some(_) => Some(false),
            None => Client::try_connect(address).ok().map(|_| true),
        });
        if listens {
            return (address, process);
        }
        eprintln!("gRPC's server ended at its start: {}", process.stderr());
    }
    panic!("gRPC's server ended at each of {STARTS_MAX} starts");
}

#[test]
fn grpc_passes_in_the_clear() {
    all_cases_pass("grpc_passes_in_the_clear", "gRPC interoperability in the clear", |builder| {
        (builder.start(), Vec::new())
    });
}

#[test]
fn grpc_passes_with_tls() {
    all_cases_pass("grpc_passes_with_tls", "gRPC interoperability with TLS", |builder| {
        let authority = Authority::new();
        let ca = authority.write(builder.directory()).display().to_string();
        let _files = authority.issue(builder.directory(), "grpc");
        let gateway =
            builder.text("listen.tls.certificate", "server.pem").text("listen.tls.key", "server.key").start();
        let arguments = ["-use_tls", "-use_test_ca", "-ca_file", &ca, "-server_host_override", "localhost"];
        (gateway, arguments.map(str::to_owned).to_vec())
    });
}
