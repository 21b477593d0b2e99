//! Goal: wrong input is reported at once, in one clear message, with exit code 64 (or 1 when the world is
//! at fault). Method: the real binary, loopback only.

use crate::binary::{command, load, text};
use std::io::Write;
use std::net::TcpListener;
use std::process::Stdio;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The binary answers within this; far more than needed, so that only a hang fails.
const PATIENT: Duration = Duration::from_secs(20);
/// No server is asked: all of these fail before the first connection.
const URL: &str = "http://127.0.0.1:1/";

#[test]
fn traces_that_cannot_be_read_or_are_empty_are_named() {
    let empty = file("");
    let garbage = file("what is this\nno log\n");
    let compressed = bytes_file(&[0x1f, 0x8b, 8, 0, 0, 0]);
    let directory = std::env::temp_dir();
    let directory = directory.to_str().unwrap();
    refused(&["--replay", "not-there.log"], "not-there.log cannot be opened");
    refused(&["--replay", directory], "is a directory");
    refused(&["--replay", name(&empty)], "the log is empty");
    refused(&["--replay", name(&garbage)], "its beginning is of no log format known here (har, ");
    refused(&["--replay", name(&garbage)], "; line 1: \"what is this\"");
    refused(&["--replay", name(&garbage), "--format", "combined"], "line 1: no time in brackets");
    refused(&["--replay", name(&compressed)], "line 1: cannot be read");
    refused(&["--profile", name(&empty), "--column", "1"], "it holds no counts");
    refused(&["--profile", name(&compressed), "--column", "1"], "gzip -dc");
    refused(&["--profile", "not-there.csv", "--column", "1"], "not-there.csv cannot be opened");
    refused(&["--url-list", name(&empty), "--rate", "5"], "holds no paths");
    refused(&["--popularity", name(&empty), "--rate", "5"], "the log is empty");
    let bad_list = file("/a\nnot a path\n");
    refused(&["--url-list", name(&bad_list), "--rate", "5"], "line 2: \"not a path\": expected /PATH");
}

#[test]
fn lines_that_do_not_parse_are_counted_and_the_first_five_shown() {
    let mut log = line(3, "/a");
    (0..7).for_each(|n| log += &format!("garbage {n}\n"));
    let log = file(&log);
    let (url, server) = serve(1);
    let output = load(&[&url, "--replay", name(&log), "--json"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("lines that do not parse: 7 of 8"), "{said}");
    let shown: Vec<_> = said.lines().filter(|line| line.starts_with("  line ")).collect();
    assert_eq!(shown.len(), 5, "{said}");
    assert!(shown[0].starts_with("  line 2: ") && shown[4].starts_with("  line 6: "), "{said}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["offered"], 1, "{result}");
    assert_eq!(server.join().unwrap(), ["GET /a HTTP/1.1"]);

    refused(&["--replay", name(&log), "--strict"], "line 2: no time in brackets");
}

#[test]
fn a_log_of_another_server_is_recognised_and_what_it_lacks_is_printed() {
    let line = "haproxy[1]: 192.0.2.1:5 [17/May/2015:10:05:03.250] web app/one 0/0/0/1/1 200 9 - - ---- 1/1/0/0/0 0/0 \"GET /a HTTP/1.1\"\n";
    let log = file(line);
    let (url, server) = serve(1);
    let output = load(&[&url, "--replay", name(&log)]);
    let said = text(&output.stderr);
    assert_eq!(server.join().unwrap(), ["GET /a HTTP/1.1"], "{said}");
    let wanted = "read as haproxy (HAProxy's httplog); its times have no zone and count as UTC; no log says how long people wait";
    assert!(said.contains(wanted), "{said}");
    let with = |format, wanted| refused(&["--replay", name(&log), "--format", format], wanted);
    with("apache", "\"apache\" is not a log format: expected har, cloudfront");
    with("$request", "the pattern has no time");
    with(
        "[$time_local] $request",
        "line 1: a text of the pattern is missing, or not where the pattern has it: \"[\"",
    );
    let (url, server) = serve(1);
    let pattern = "haproxy[1]: $remote_addr [$time_local] web app/one $x $status $bytes_sent - - ---- $x $x \"$request\"";
    let own = file(&line.replace(".250]", " +0000]"));
    let output = load(&[&url, "--replay", name(&own), "--format", pattern]);
    assert_eq!(server.join().unwrap(), ["GET /a HTTP/1.1"], "{}", text(&output.stderr));
}

#[test]
fn times_that_go_backwards_are_told() {
    let log = file(&[line(9, "/a"), line(3, "/b")].concat());
    let (url, server) = serve(2);
    let output = load(&[&url, "--replay", name(&log), "--duration", "1s"]);
    let said = text(&output.stderr);
    assert!(said.contains("times that go backwards: 1") && said.contains("line 2: 6 s before"), "{said}");
    server.join().unwrap();
    refused(&["--replay", name(&log), "--strict"], "line 2: 6 s before");
}

#[test]
fn a_log_may_come_through_a_pipe_once() {
    let (url, server) = serve(1);
    let mut child = command(&[&url, "--replay", "-", "--json"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(line(3, "/piped").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(server.join().unwrap(), ["GET /piped HTTP/1.1"]);
    refused(&["--profile", "-", "--column", "1", "--url-list", "-"], "it holds no counts");
}

#[test]
fn rates_nobody_means_are_refused() {
    refused(&["--rate", "1e9"], "absurd");
    refused(&["--rate", "inf"], "absurd");
    refused(&["--rate", "nan"], "expected a number");
    refused(&["--rate", "0"], "above zero");
    refused(&["--rate=-5"], "zero or more");
    refused(&["--crowd", "--peak", "1e9"], "absurd");
    refused(&["--rate", "5", "--duration", "0s"], "above zero");
    refused(&["--rate", "5", "--duration", "10000h"], "a run lasts at most");
    refused(&["--workers", "2000000", "--timing", "random"], "2000000 workers");
    refused(&["--rate", "5", "--threads", "1000"], "threads must be 1 to 256");
}

#[test]
fn options_that_do_not_fit_are_refused_by_name() {
    refused(&[], "nothing says when people come");
    refused(&["--rate", "5", "--shard", "3/2"], "like 2/3");
    refused(&["--rate", "5", "--start-at", "soon"], "2026-11-21T20:00:00Z");
    refused(&["--rate", "5", "--crowd-window", "5s-2s"], "ends before it begins");
    refused(&["--rate", "5", "--crowd-window", "5s-20s"], "the run lasts 10 s");
    refused(&["--rate", "5", "--insecure"], "about https://");
    refused(&["--rate", "5", "--source-network", "ten", "--sources", "2"], "--source-network ten");
    refused(&["--rate", "5", "--sources", "300", "--source-network", "127.1.0.0/24"], "127.1.0.0/24 has");
    refused(&["--rate", "5", "--http2", "--connections", "new"], "cannot be used with");
    let https = load(&["https://127.0.0.1:1/", "--rate", "5", "--ca", "not-there.pem"]);
    assert!([Some(64), Some(1)].contains(&https.status.code()), "{https:?}");
    let both = load(&[URL, "--rate", "5", "merge", "a.json"]);
    assert_eq!(both.status.code(), Some(64), "{both:?}");
}

#[test]
fn a_wrong_class_file_is_told_with_its_line() {
    let check = |text: &str, options: &[&str], wanted: &str| {
        let classes = file(text);
        let all = [&["--classes", name(&classes)], options].concat();
        let wanted = wanted.replace("FILE", name(&classes));
        refused(&all, &wanted);
    };
    check("[[class]]\nname = 'a'\nrat = 5\n", &[], "FILE:3: class \"a\": unknown key \"rat\"");
    check("[[class]]\nname = 'a'\nrate = 0\n", &[], "FILE:1: class \"a\": --rate 0");
    check("[[class]]\nname = 'a'\nweight = 1\n", &[], "no option says when they come");
    check("[[class]]\nname = 'a'\nrate = 1\n", &["--rate", "5"], "no class of the file has a weight");
    check("[[class]]\nname = 'a'\nrate = 1\n", &["--think", "5s"], "cannot be used with");
    check(
        "[[class]]\nname = 'a'\nweight = 1\n",
        &["--workers", "5", "--timing", "closed"],
        "workers of its own",
    );
    refused(&["--classes", "not-there.toml"], "not-there.toml cannot be opened");
}

#[test]
fn classes_share_people_or_have_their_own() {
    let classes = file(
        "[[class]]\nname = 'readers'\nweight = 3\npath = '/read'\n\n\
         [[class]]\nname = 'buyers'\nweight = 1\nmethod = 'POST'\n\n\
         [[class]]\nname = 'robots'\nrate = 20\narrivals = 'constant'\nduration = '1s'\npath = '/robot/{document}'\n",
    );
    // Poisson: at most 80 of 20 + 20 come, by far.
    let (url, server) = serve(80);
    let options = ["--classes", name(&classes), "--rate", "20", "--duration", "1s", "--json"];
    let output = load(&[&[url.as_str()], &options[..]].concat());
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("about 40 people in 1.0 s"), "{said}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let offered = |class: &str| result["classes"][class]["offered"].as_u64().unwrap();
    assert_eq!(offered("robots"), 20, "{result}");
    assert!(offered("readers") > offered("buyers"), "{result}");
    assert_eq!(result["offered"], offered("robots") + offered("readers") + offered("buyers"));
    // Ends the server: its listener ends after this number of connections.
    finish(&url, 80 - result["offered"].as_u64().unwrap());
    let asked = server.join().unwrap();
    let count = |start: &str| asked.iter().filter(|line| line.starts_with(start)).count() as u64;
    assert_eq!(count("GET /robot/"), 20);
    assert_eq!((count("GET /read "), count("POST / ")), (offered("readers"), offered("buyers")));
}

#[test]
fn nobody_listening_is_told_at_once() {
    let address = flashweir_testkit::reserve_address();
    let begun = Instant::now();
    for scheme in ["http", "https"] {
        let output = load(&[&format!("{scheme}://{address}/"), "--rate", "5", "--duration", "1h"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(text(&output.stderr).contains(&format!("{address} cannot be reached")), "{output:?}");
    }
    assert!(begun.elapsed() < PATIENT);
}

#[test]
fn the_help_is_a_manual() {
    let help = text(&load(&["--help-all"]).stdout);
    let headings = [
        "When people come",
        "What they ask for",
        "What people do",
        "Connections",
        "Several machines",
        "Results",
    ];
    let mut rest = help.as_str();
    for heading in headings {
        let at = rest.find(&format!("\n{heading}:\n")).unwrap_or_else(|| panic!("{heading}: {rest}"));
        rest = &rest[at..];
    }
    assert!(rest.contains("Examples:"), "{help}");
    let short = text(&load(&["--help"]).stdout);
    assert!(short.lines().count() < help.lines().count() && !short.contains("Examples:"), "{short}");
}

/// Refused with exit code 64, and one message that says so.
fn refused(options: &[&str], wanted: &str) {
    let output = load(&[&[URL], options].concat());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(64), "{options:?}: {said}");
    assert!(said.contains(wanted), "{options:?}: {said:?} lacks {wanted:?}");
    assert!(output.stdout.is_empty());
}

/// A server that answers this number of connections, one request each, and returns the request lines. The one
/// connection that the load tool makes first, to see whether a server listens, is not counted.
fn serve(connections: usize) -> (String, JoinHandle<Vec<String>>) {
    use std::io::{BufRead, BufReader};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let mut asked = Vec::new();
        while asked.len() < connections {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let Some(Ok(first)) = lines.next() else { continue };
            lines.take_while(|line| line.as_ref().is_ok_and(|line| !line.is_empty())).for_each(drop);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            asked.push(first);
        }
        asked
    });
    (url, server)
}

/// Makes the rest of the connections a server waits for.
fn finish(url: &str, connections: u64) {
    for _ in 0..connections {
        let mut stream = std::net::TcpStream::connect(url.trim_start_matches("http://")).unwrap();
        stream.write_all(b"enough\r\n\r\n").unwrap();
    }
}

fn line(second: u32, path: &str) -> String {
    format!("h - - [17/May/2015:10:05:{second:02} +0000] \"GET {path} HTTP/1.1\" 200 17\n")
}

fn file(text: &str) -> tempfile::NamedTempFile {
    bytes_file(text.as_bytes())
}

fn bytes_file(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn name(file: &tempfile::NamedTempFile) -> &str {
    file.path().to_str().unwrap()
}
