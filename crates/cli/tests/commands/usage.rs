//! Through the real binary: exit codes, the one line on standard error, and what the small commands print.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Output};
use std::thread::JoinHandle;

fn flashweir(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_flashweir")).args(arguments).output().expect("the binary starts")
}

/// Runs it and checks the exit code and that standard error is exactly this line.
fn check_refused(arguments: &[&str], code: i32, line: &str) {
    let output = flashweir(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), said.as_ref()),
        (Some(code), format!("{line}\n").as_str()),
        "{arguments:?}"
    );
    assert!(output.stdout.is_empty());
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("the temporary file is written");
    file
}

#[test]
fn wrong_usage_and_wrong_configuration_exit_with_64() {
    let bad = file("[upstream]\nurls = ['http://127.0.0.1:1']\n[bounds]\nmax_fields = 3\n");
    let name = bad.path().to_str().expect("temporary names are text");
    let line = format!("flashweir: {name}:4: bounds.max_fields: 3 is out of range, expected 16 to 1000");
    check_refused(&["run", "--config", name], 64, &line);
    check_refused(&["config", "check", name], 64, &line);
    check_refused(
        &["run"],
        64,
        "flashweir: upstream.urls: no upstream, expected at least one URL here or as --upstream http://HOST:PORT",
    );
    check_refused(
        &["run", "--upstream", "nonsense"],
        64,
        "flashweir: --upstream: `nonsense` does not start with http:// or https://, expected http://HOST:PORT or \
         https://HOST:PORT",
    );
    check_refused(
        &["explain", "abc"],
        64,
        "flashweir: `abc` is not a decision id: expected 13 characters of 0-9 and a-z without i, l, o and u",
    );
    let replica = ["replica", "--of", "http://127.0.0.1:3000", "--listen", "127.0.0.1:0", "--report-to"];
    check_refused(
        &[&replica[..], &["http://127.0.0.1:9090"]].concat(),
        64,
        "flashweir: --listen 127.0.0.1:0: redirectors cannot know a port that the system chooses, expected --url with the \
         replica's URL",
    );
    assert_eq!(flashweir(&["run", "--bogus"]).status.code(), Some(64));
    assert_eq!(flashweir(&["--help"]).status.code(), Some(0));
}

#[cfg(not(feature = "kernel"))]
#[test]
fn a_build_without_the_gate_in_the_kernel_says_so() {
    check_refused(
        &["run", "--upstream", "http://127.0.0.1:1", "--kernel", "--interface", "lo"],
        64,
        "flashweir: this flashweir was built without the gate in the kernel; build it with `--features kernel` (it takes \
         clang and the headers of libbpf, libelf and zlib), or leave out --kernel, --interface and kernel.interface",
    );
}

#[test]
fn a_good_file_is_ok_and_the_schema_and_the_reference_are_printed() {
    let good = file("upstream.urls = ['http://127.0.0.1:1']\n");
    let name = good.path().to_str().expect("temporary names are text");
    let text = |arguments: &[&str]| {
        let output = flashweir(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        String::from_utf8(output.stdout).expect("output is text")
    };
    assert_eq!(text(&["config", "check", name]), format!("{name}: ok\n"));
    assert_eq!(text(&["config", "schema"]), flashweir_config::schema::json_text());
    assert_eq!(text(&["config", "reference"]), flashweir_config::reference::markdown());
}

#[test]
fn explain_asks_the_admin_listener_and_prints_its_answer() {
    const ID: &str = "0123456789abc";
    let explain = |answer: &'static str, more: &[&str]| {
        let (admin, request) = answer_once(answer);
        let admin = admin.to_string();
        let output = flashweir(&[&["explain", ID, "--admin", &admin], more].concat());
        let request = request.join().expect("the request was read");
        assert!(request.starts_with(&format!("GET /explain/{ID} HTTP/1.1\r\n")), "{request}");
        output
    };
    let found = "HTTP/1.1 200 OK\r\ncontent-length: 24\r\n\r\n{\"reason\":\"flash_crowd\"}";
    assert_eq!(explain(found, &[]).stdout, b"reason  flash_crowd\n");
    assert_eq!(explain(found, &["--json"]).stdout, b"{\"reason\":\"flash_crowd\"}\n");

    let unknown = explain("HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\nno such decision\n", &[]);
    assert_eq!(unknown.status.code(), Some(1));
    assert_eq!(unknown.stderr, b"flashweir: no such decision\n");
}

#[test]
fn explain_says_when_nobody_answers() {
    let free = flashweir_testkit::reserve_address();
    let output = flashweir(&["explain", "0123456789abc", "--admin", &free.to_string()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said.starts_with(&format!("flashweir: cannot ask the gateway at {free} (is --admin right?): ")),
        "{said}"
    );
}

/// A server for one connection: reads a request's head, answers these bytes, closes.
fn answer_once(answer: &'static str) -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("a bound address");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).expect("a request") == 1 {
            request.push(byte[0]);
        }
        stream.write_all(answer.as_bytes()).expect("the answer is taken");
        String::from_utf8(request).expect("a request is text")
    });
    (address, server)
}

#[test]
fn a_request_is_told_its_class_and_why() {
    let policy = file(
        "upstream.urls = ['http://127.0.0.1:1']\n\
         [[service]]\nname = 'shop'\nhosts = ['shop.example', '*.shop.example']\nupstream.urls = ['http://127.0.0.1:2']\n\
         [[service.class]]\nname = 'checkout'\nmatch = { path = '/checkout/', method = ['POST', 'PUT'] }\nrevenue = 10\n\
         guaranteed_rate = 5\nfair_by = { cookie = 'session' }\n\
         [[service.class]]\nname = 'gold'\nmatch.header = 'x-plan: gold*'\nrevenue = 3\nresponse_target = '300ms'\nqueue = 9\n\
         [[service.class]]\nname = 'probe'\nmatch.client = '10.0.0.0/8'\nexempt = true\n",
    );
    let name = policy.path().to_str().expect("temporary names are text");
    let check = |arguments: &[&str], expected: &[&str]| {
        let output = flashweir(&[&["config", "classify", name], arguments].concat());
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said.lines().collect::<Vec<_>>(), expected, "{}", String::from_utf8_lossy(&output.stderr));
    };
    let shop = "service   shop (shop.example, *.shop.example)";
    check(
        &["--method", "POST", "--url", "https://www.shop.example:8443//x/../checkout/pay?a=b"],
        &[
            shop,
            "class     checkout (1 of 4)",
            "because   path /checkout/*, method POST or PUT",
            "worth     revenue 10: nobody goes first",
            "promised  an answer within 1 s, or a refusal, 5 requests/s let in at any load",
            "fair by   cookie session, else network",
        ],
    );
    check(
        &[
            "--url",
            "http://127.0.0.1:8080/",
            "-H",
            "Host: shop.example",
            "-H",
            "X-Plan: golden",
            "--client",
            "192.0.2.1",
        ],
        &[
            shop,
            "class     gold (2 of 4)",
            "because   header x-plan: gold*",
            "worth     revenue 3: after checkout",
            "promised  an answer within 0.3 s, or a refusal, at most 9 waiting",
            "fair by   network (IPv4 /24, IPv6 /56)",
        ],
    );
    check(
        &["--url", "http://shop.example", "--client", "10.1.2.3"],
        &[
            shop,
            "class     probe (3 of 4)",
            "because   client 10.0.0.0/8",
            "worth     exempt: never counted, limited or made to wait",
        ],
    );
    check(
        &["--url", "http://else.example/checkout/", "--method", "POST"],
        &[
            "service   default (every host that no other service has)",
            "class     default (1 of 1)",
            "because   no class before it took the request",
            "worth     revenue 1: nobody goes first",
            "promised  an answer within 1 s, or a refusal",
            "fair by   network (IPv4 /24, IPv6 /56)",
        ],
    );
    let classify = |arguments: &[&str], line: &str| {
        check_refused(&[&["config", "classify", name], arguments].concat(), 64, line)
    };
    classify(
        &["--url", "/x"],
        "flashweir: --url: `/x` is not a URL, expected http://HOST/PATH or https://HOST/PATH",
    );
    classify(
        &["--url", "http://a", "-H", "x"],
        "flashweir: --header: `x` is not a field, expected `name: value`",
    );
    classify(
        &["--url", "http://a", "--method", ""],
        "flashweir: --method: `` is not a method, expected one like POST",
    );
}

/// Builds differ by their features; an operator sees which one is installed.
#[test]
fn the_version_says_what_is_in_the_build() {
    let text = |argument: &str| String::from_utf8(flashweir(&[argument]).stdout).expect("UTF-8");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(text("-V"), format!("flashweir {version}\n"));
    let long = text("--version");
    let lines: Vec<&str> = long.lines().collect();
    assert_eq!(lines[0], format!("flashweir {version}"));
    let names = |start: &str| {
        let line = lines.iter().find_map(|line| line.strip_prefix(start)).expect("a line of features");
        line.split(", ").filter(|name| *name != "none").map(str::to_owned).collect::<Vec<_>>()
    };
    let (features, left_out) = (names("features: "), names("left out: "));
    for (name, is_in) in [
        ("kernel", cfg!(feature = "kernel")),
        ("kubernetes", cfg!(feature = "kubernetes")),
        ("nats", cfg!(feature = "nats")),
    ] {
        let name = name.to_owned();
        assert_eq!((features.contains(&name), left_out.contains(&name)), (is_in, !is_in), "{long}");
    }
    assert!(lines.last().is_some_and(|line| line.starts_with("linked ")), "{long}");
}

/// Lines of a terminal that is not full screen.
const SCREEN_LINES: usize = 40;

#[test]
fn help_fits_a_screen_and_help_all_leaves_nothing_out() {
    let text = |arguments: &[&str]| {
        let output = flashweir(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        String::from_utf8(output.stdout).expect("output is text")
    };
    let commands =
        ["run", "router", "control", "egress", "replica", "agent", "status", "explain", "replay", "config"];
    for command in commands {
        let lines = text(&[command, "--help"]).lines().count();
        assert!(lines <= SCREEN_LINES, "{command} --help has {lines} lines");
    }
    assert!(!text(&["run", "--help"]).contains("--fail-closed"));
    assert!(text(&["run", "--help-all"]).contains("--fail-closed"));
}

#[test]
fn shells_and_man_get_what_they_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_str().expect("temporary names are text");
    assert_eq!(flashweir(&["manual", path]).status.code(), Some(0));
    let page = std::fs::read_to_string(directory.path().join("flashweir-run.1")).expect("a page");
    assert!(page.starts_with(".ie") && page.contains("\\-\\-state\\-file"), "{page}");
    assert!(page.contains("go on refusing"), "the text of a rare option: {page}");
    for (shell, begin) in [("bash", "_flashweir()"), ("zsh", "#compdef flashweir"), ("fish", "# Print")] {
        let output = flashweir(&["completions", shell]);
        let text = String::from_utf8(output.stdout).expect("output is text");
        assert!(
            text.starts_with(begin) && text.contains("state-file") && text.contains("demo-hot"),
            "{text}"
        );
    }
    let said = flashweir(&["manual", "/nowhere"]).stderr;
    assert_eq!(
        String::from_utf8_lossy(&said),
        "flashweir: cannot write manual pages into /nowhere: No such file or directory (os error 2)\n"
    );
}
