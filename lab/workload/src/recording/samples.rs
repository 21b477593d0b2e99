//! A log of each format, with lines that are odd: what is played of it. The logs in `samples` are written by
//! hand from the vendors' documentation; all begin at about 2026-05-17 10:05:03 UTC.

use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::fmt::Write as _;
use std::io::Write as _;

/// Every sample, with the format that is recognised.
pub(super) const SAMPLES: [(&[u8], Format); 10] = [
    (include_bytes!("samples/alb.log"), Format::Alb),
    (include_bytes!("samples/cloudfront.log"), Format::CloudFront),
    (include_bytes!("samples/iis.log"), Format::W3c),
    (include_bytes!("samples/haproxy.log"), Format::Haproxy),
    (include_bytes!("samples/envoy.log"), Format::Envoy),
    (include_bytes!("samples/envoy.jsonl"), Format::EnvoyJson),
    (include_bytes!("samples/caddy.jsonl"), Format::Caddy),
    (include_bytes!("samples/traefik.jsonl"), Format::Traefik),
    (include_bytes!("samples/nginx.jsonl"), Format::NginxJson),
    (include_bytes!("samples/session.har"), Format::Har),
];

/// The requests of a log as lines of milliseconds, method, path and bytes, and what was wrong in it.
fn played(log: &[u8], format: Format) -> String {
    let options = Options { stamps: Stamps::AsWritten, ..Options::default() };
    let (detected, recording) = Recording::read_detecting(log, &options).unwrap();
    assert_eq!(detected, format);
    table(&recording)
}

fn table(recording: &Recording) -> String {
    let mut table = String::new();
    for (moment, number) in recording.moments().iter().zip(recording.documents().iter()) {
        let Document { method, path, bytes } = recording.document(*number).unwrap();
        writeln!(table, "{} {method} {path} {bytes}", moment.as_millis()).unwrap();
    }
    let problems = recording.problems();
    for unparsed in &problems.first_unparsed {
        writeln!(table, "{unparsed}").unwrap();
    }
    for (count, what) in [(problems.left_out, "left out"), (problems.elsewhere, "elsewhere")] {
        if count > 0 {
            writeln!(table, "{what}: {count}").unwrap();
        }
    }
    for backwards in &problems.first_backwards {
        writeln!(table, "{backwards}").unwrap();
    }
    table
}

fn check(sample: usize, wanted: &[&str]) {
    let (log, format) = SAMPLES[sample];
    assert_eq!(played(log, format).lines().collect::<Vec<_>>(), wanted);
}

#[test]
fn a_load_balancer_of_aws() {
    check(
        0,
        &[
            "200 GET /slow 170",
            "1750 GET /a?q=b%20c 366",
            "line 3: no request in quotes after the time: \"- http://shop.example:80- -\"",
            "left out: 1",
        ],
    );
}

#[test]
fn cloudfront() {
    check(
        1,
        &[
            "0 GET /a%20b?q=c%20d 366",
            "0 GET /slow 170",
            "line 5: fewer columns than the #Fields: line above it names",
        ],
    );
}

#[test]
fn iis_with_a_mark_and_columns_that_change() {
    check(
        2,
        &[
            "0 GET /a?b=c&d=%22 0",
            "1000 GET /what%3F 0",
            "7000 HEAD /a 170",
            "line 7: fewer columns than the #Fields: line above it names",
        ],
    );
}

#[test]
fn haproxy() {
    check(
        3,
        &[
            "100 GET /slow 170",
            "655 GET /a%22b?q=c%20d 2750",
            "line 1: HAProxy's httplog has a time such as [17/May/2015:10:05:03.250]",
            "line 4: no request in quotes after the time: \"<BADREQ>\"",
        ],
    );
}

#[test]
fn envoy_and_istio() {
    check(
        4,
        &[
            "110 GET /slow 12",
            "1310 GET /a?q=b%20c 171",
            "2000 GET /gone 0",
            "4500 GET /a?q=b%20c 171",
            "line 4: no request in quotes after the time: \"- - HTTP/1.1\"",
        ],
    );
    check(5, &["110 GET /slow 12", "1310 GET /a?q=b%20c 170", "line 3: path is missing"]);
}

#[test]
fn caddy() {
    check(
        6,
        &[
            "600 GET /slow%22 0",
            "1500 GET /a?q=b%20c 170",
            "3000 GET /a?q=b%20c 170",
            "line 1: request.uri is missing",
        ],
    );
}

#[test]
fn traefik() {
    check(
        7,
        &[
            "600 GET /slow?%22 12",
            "1500 GET /a?q=b%20c 170",
            "3000 GET /a?q=b%20c 170",
            "line 3: RequestPath is missing",
        ],
    );
}

#[test]
fn json_of_nginx() {
    check(
        8,
        &[
            "600 GET /slow%22 0",
            "1500 GET /a?q=b%20c 170",
            "line 3: not a JSON object",
            "line 4: request or request_uri is missing",
        ],
    );
}

#[test]
fn a_browsers_archive() {
    check(
        9,
        &[
            "100 GET /a?q=b%20c 170",
            "5000 GET /b 120",
            "record 4: what is asked for is not a URL of http or https",
            "left out: 1",
            "elsewhere: 2",
        ],
    );
}

#[test]
fn an_archive_that_is_cut_off_is_played_as_far_as_it_goes() {
    let (log, format) = SAMPLES[9];
    let cut = log.windows(4).position(|window| window == b"data").unwrap();
    let wanted = [
        "100 GET /a?q=b%20c 170",
        "record 4: the archive is no JSON from here on, or ends too early",
        "elsewhere: 2",
    ];
    assert_eq!(played(&log[..cut], format).lines().collect::<Vec<_>>(), wanted);
}

#[test]
fn the_common_format_with_fractions_of_a_second() {
    let log = include_bytes!("samples/fractions.log");
    let wanted = [
        "250 GET /a?q=b%20c 171",
        "750 GET /old%22quote 0",
        "750 GET /late 5",
        "2000 GET /a?q=b%20c 171",
        "line 4: not a time such as [17/May/2015:10:05:03 +0000]: \"[17/May/2026:12:05:04. +0200]\"",
        "line 3: 1 s before the latest time above it",
    ];
    assert_eq!(played(log, Format::Combined).lines().collect::<Vec<_>>(), wanted);
}

#[test]
fn a_pattern_reads_what_no_format_fits() {
    let log = b"192.0.2.1|1779012303.750|0.250|GET /a HTTP/1.1|17\n2001:db8::1|1779012304.000|1.000|GET /b HTTP/1.1|-\n";
    let error = Recording::read_detecting(&log[..], &Options::default()).unwrap_err().to_string();
    let begins = "its beginning is of no log format known here (har, cloudfront, w3c, iis, caddy, traefik, envoy-json, \
                  nginx-json, haproxy, envoy, alb, combined, common, nasa-tsv, world-cup); name a pattern, such as ";
    assert!(error.starts_with(begins), "{error}");
    assert!(error.ends_with("line 1: \"192.0.2.1|1779012303.750|0.250|GET /a HTTP/1.1|17\""), "{error}");
    let pattern = "$remote_addr|$msec|$request_time|$request|$body_bytes_sent".parse().unwrap();
    let recording = Recording::read_pattern(&log[..], &pattern, &Options::default()).unwrap();
    assert_eq!(table(&recording), "0 GET /b 0\n500 GET /a 17\n");
}

#[test]
fn compressed_logs_are_read_as_they_are() {
    for (log, format) in SAMPLES {
        let plain = played(log, format);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(log).unwrap();
        let gzip = gzip.finish().unwrap();
        assert_eq!(played(&gzip, format), plain);
        assert_eq!(played(&compress_to_vec(log, CompressionLevel::Fastest), format), plain);
        let twice = compress_to_vec(gzip.as_slice(), CompressionLevel::Fastest);
        let error = Recording::read(twice.as_slice(), format, &Options::default()).unwrap_err().to_string();
        assert_eq!(error, "it is gzip-compressed: pipe it through `gzip -dc`");
    }
}

/// Kilobytes that become a line of gigabytes cost time and no memory.
#[test]
fn a_compressed_line_without_an_end_is_given_up() {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    let piece = vec![b'a'; 1 << 20];
    (0..66).for_each(|_| gzip.write_all(&piece).unwrap());
    let gzip = gzip.finish().unwrap();
    assert!(gzip.len() < 1 << 20, "{}", gzip.len());
    let error = Recording::read(gzip.as_slice(), Format::Combined, &Options::default()).unwrap_err();
    assert!(matches!(error, RecordingError::EndlessLine(RecordLocation::Line(1))), "{error}");
}

#[test]
fn no_sample_names_its_clients() {
    for (log, format) in SAMPLES {
        let recording = Recording::read(log, format, &Options::default()).unwrap();
        let shown = format!("{recording:?}");
        assert!(!shown.contains("192.0.2") && !shown.contains("2001:db8"), "{shown}");
    }
}

mod any_bytes {
    use super::*;
    use proptest::prelude::*;

    /// A sample with some of its bytes exchanged, taken out or doubled, and cut off anywhere.
    fn changed() -> impl Strategy<Value = Vec<u8>> {
        let change = (any::<prop::sample::Index>(), any::<u8>(), 0..3_u8);
        let changes = prop::collection::vec(change, 0..20);
        (0..SAMPLES.len(), changes, any::<prop::sample::Index>()).prop_map(|(sample, changes, end)| {
            let mut bytes = SAMPLES[sample].0.to_vec();
            for (place, byte, kind) in changes {
                let at = place.index(bytes.len());
                match kind {
                    0 => bytes[at] = byte,
                    1 if bytes.len() > 1 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, bytes[at]),
                }
            }
            bytes.truncate(end.index(bytes.len()) + 1);
            bytes
        })
    }

    fn read_by_all(bytes: &[u8]) {
        let options = Options { methods: Methods::All, ..Options::default() };
        for format in Format::all() {
            if let Ok(recording) = Recording::read(bytes, format, &options) {
                assert!(recording.moments().is_sorted());
                assert_eq!(recording.moments().len(), recording.documents().len());
            }
        }
        let _ = Recording::read_detecting(bytes, &options);
    }

    proptest! {
        #[test]
        fn make_no_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            read_by_all(&bytes);
        }

        #[test]
        fn of_a_sample_make_no_parser_panic(bytes in changed()) {
            read_by_all(&bytes);
        }

        #[test]
        fn make_no_pattern_panic(text in "[$a-z_{}\" |]{0,40}", line in prop::collection::vec(any::<u8>(), 0..200)) {
            let text = format!("$msec {text} $request");
            if let Ok(pattern) = text.parse::<Pattern>() {
                let _ = Recording::read_pattern(line.as_slice(), &pattern, &Options::default());
            }
        }
    }
}
