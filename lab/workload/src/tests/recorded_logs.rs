//! Real logs, and bytes that are none. The logs lie beside the repository and are no part of it.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::recording::{
    Backwards, Format, Methods, Options, RecordLocation, Recording, RecordingError, Stamps,
};
use flashweir_testkit::{require_program, skip};
use proptest::prelude::*;

/// Goal: an Apache log of 2015 is understood to its last line (one lacks its very last quote). Expected
/// numbers are those of a count with other tools over the same file. Its times were altered and jump back
/// and forth.
#[test]
fn an_apache_log_of_ten_thousand_lines() {
    let name = "an_apache_log_of_ten_thousand_lines";
    let Some(text) = log("semicomplete_apache_combined_10k.log.gz", name) else { return };
    let (format, recording) = Recording::read_detecting(text.as_slice(), &Options::default()).unwrap();
    assert_eq!(format, Format::Combined);
    let problems = recording.problems();
    assert_eq!((recording.lines(), recording.moments().len()), (10_000, 9_994));
    assert_eq!((problems.unparsed, problems.left_out, problems.backwards), (0, 6, 9_441));
    let steps_back = [(4, 35), (5, 40), (6, 13)]
        .map(|(line, by_s)| Backwards { location: RecordLocation::Line(line), by_s });
    assert_eq!(problems.first_backwards[..3], steps_back);
    assert_eq!(recording.length(), Duration::from_secs(298_857));
    assert_eq!(recording.document_table().len(), 1_512);
    assert_eq!(most_asked_for(&recording), ("GET /favicon.ico".to_owned(), 799, 3_638));

    let all = Options { methods: Methods::All, ..Options::default() };
    let recording = Recording::read(text.as_slice(), Format::Combined, &all).unwrap();
    assert_eq!((recording.moments().len(), recording.problems().left_out), (10_000, 0));

    let strict = Options { strict: true, ..Options::default() };
    let error = Recording::read(text.as_slice(), Format::Combined, &strict).unwrap_err();
    assert_eq!(error.to_string(), "line 4: 35 s before the latest time above it");
}

/// Goal: the NASA log as tab-separated values, read whole. Expected numbers are those of a count with other
/// tools.
#[test]
fn the_nasa_log_of_a_day() {
    let Some(text) = log("nasa_19950801_requests.tsv.gz", "the_nasa_log_of_a_day") else { return };
    let (format, recording) = Recording::read_detecting(text.as_slice(), &Options::default()).unwrap();
    assert_eq!(format, Format::NasaTsv);
    let problems = recording.problems();
    assert_eq!((recording.lines(), recording.moments().len()), (30_969, 30_968));
    assert_eq!((problems.unparsed, problems.left_out, problems.backwards), (0, 1, 0));
    assert_eq!(recording.length(), Duration::from_secs(46_322));
    assert_eq!(recording.document_table().len(), 2_111);
    assert_eq!(most_asked_for(&recording), ("GET /images/NASA-logosmall.gif".to_owned(), 2_129, 786));

    // A minute in a second: the same people come in each sixtieth of it.
    let squeezed = recording.clone().squeeze(60.0).unwrap().counts_per_bin(Duration::from_secs(1)).unwrap();
    let real = recording.counts_per_bin(Duration::from_secs(60)).unwrap();
    assert_eq!(squeezed, real);
    assert_eq!(real.iter().sum::<u64>(), 30_968);
}

#[test]
fn a_compressed_log_is_read_as_it_is() {
    let file = traces().join("nasa_19950801_requests.tsv.gz");
    let Ok(bytes) = std::fs::read(file) else {
        return skip("a_compressed_log_is_read_as_it_is", "../shared/traces is missing");
    };
    let (format, recording) = Recording::read_detecting(bytes.as_slice(), &Options::default()).unwrap();
    assert_eq!((format, recording.moments().len()), (Format::NasaTsv, 30_968));
}

/// The log, uncompressed, or `None` after a loud line.
fn log(file: &str, test: &str) -> Option<Vec<u8>> {
    let path = traces().join(file);
    if !path.exists() {
        skip(test, &format!("../shared/traces/{file} is missing"));
        return None;
    }
    let gzip = require_program("gzip", test)?;
    let output = Command::new(gzip).arg("-dc").arg(path).output().expect("gzip");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(output.stdout)
}

fn traces() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces")
}

/// Method and path, times asked for, size.
fn most_asked_for(recording: &Recording) -> (String, u64, u64) {
    let counts = recording.popularity_counts();
    let (document, count) =
        recording.document_table().zip(counts).max_by_key(|(_, count)| *count).expect("one");
    (format!("{} {}", document.method, document.path), count, document.bytes)
}

const FORMATS: [Format; 3] = [Format::Combined, Format::NasaTsv, Format::WorldCupBinary];

/// Lines that nearly are what they should be: good ones of either text format with a few bytes changed.
fn nearly_lines() -> impl Strategy<Value = Vec<u8>> {
    let method = prop_oneof![Just("GET"), Just("HEAD"), Just("POST"), Just("-"), Just("\\x16\\x03")];
    let path =
        prop_oneof![Just("/a"), Just("/b?c=\\\"d"), Just("*"), Just("http://h/x y"), Just("/\u{e9}\\x4")];
    let line = (0u32..60, method, path, any::<bool>()).prop_map(|(second, method, path, is_tsv)| {
        if is_tsv {
            format!("h\t-\t8072568{second:02}\t{method}\t{path}\t200\t{second}\t\t\n")
        } else {
            format!(
                "::1 - - [17/May/2015:10:05:{second:02} +0000] \"{method} {path} HTTP/1.1\" 200 {second}\n"
            )
        }
    });
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (proptest::collection::vec(line, 1..30), changes).prop_map(|(lines, changes)| {
        let mut text = lines.concat().into_bytes();
        for (at, byte) in changes {
            let at = at.index(text.len());
            text[at] = byte;
        }
        text
    })
}

fn options() -> impl Strategy<Value = Options> {
    let methods = prop_oneof![Just(Methods::SafeOnly), Just(Methods::All)];
    let stamps = prop_oneof![Just(Stamps::Spread), Just(Stamps::AsWritten)];
    (methods, stamps, any::<bool>()).prop_map(|(methods, stamps, strict)| Options { methods, stamps, strict })
}

/// For any input, every line is accounted for and the recording is whole.
fn check_read(bytes: &[u8], format: Format, options: &Options) {
    let lines = match format {
        Format::WorldCupBinary => bytes.len().div_ceil(20) as u64,
        _ => {
            let lines =
                bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
            lines.filter(|line| !line.is_empty()).count() as u64
        }
    };
    match Recording::read(bytes, format, options) {
        Ok(recording) => check_whole(&recording, lines),
        Err(RecordingError::Empty) => assert_eq!(lines, 0),
        Err(RecordingError::NothingParsed { unparsed, .. }) => assert_eq!(unparsed, lines),
        Err(RecordingError::AllLeftOut { left_out }) => assert!((1..=lines).contains(&left_out)),
        Err(RecordingError::NotParsed(_) | RecordingError::TimeWentBack(_)) => assert!(options.strict),
        // Random bytes may begin as a compressed file does.
        Err(RecordingError::Compressed { .. }) => assert!(matches!(bytes[0], b'B' | 0xfd)),
        Err(RecordingError::Unreadable { .. }) => assert!(matches!(bytes[0], 0x1f | 0x28 | 0x50..=0x5f)),
        Err(other) => panic!("{other}"),
    }
}

fn check_whole(recording: &Recording, lines: u64) {
    let problems = recording.problems();
    let requests = recording.moments().len() as u64;
    assert_eq!(requests + problems.unparsed + problems.left_out, lines);
    assert!(problems.backwards < requests);
    assert_eq!(problems.first_unparsed.len() as u64, problems.unparsed.min(5));
    assert_eq!(problems.first_backwards.len() as u64, problems.backwards.min(5));
    assert_eq!(recording.documents().len() as u64, requests);
    assert!(recording.moments().is_sorted());
    assert!(recording.moments().iter().all(|moment| *moment < recording.length()));
    assert_eq!(recording.popularity_counts().iter().sum::<u64>(), requests);
    assert!(recording.popularity_counts().iter().all(|count| *count > 0));
    for document in recording.document_table() {
        assert!(document.path.starts_with('/') && document.path.bytes().all(|byte| byte.is_ascii_graphic()));
        assert!(!document.method.is_empty() && document.method.bytes().all(|byte| byte.is_ascii_graphic()));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused_and_all_accounted_for(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        options in options(),
    ) {
        for format in FORMATS {
            check_read(&bytes, format, &options);
        }
        let _found_or_not = Format::detect(&bytes);
    }

    #[test]
    fn lines_with_a_few_wrong_bytes_are_all_accounted_for(bytes in nearly_lines(), options in options()) {
        for format in FORMATS {
            check_read(&bytes, format, &options);
        }
    }

    /// However the bytes arrive, in crumbs or at once, the same is read.
    #[test]
    fn small_reads_give_the_same_recording(bytes in nearly_lines(), crumb in 1..50usize) {
        struct Crumbs<'a>(&'a [u8], usize);
        impl std::io::Read for Crumbs<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                let length = self.1.min(buffer.len()).min(self.0.len());
                let (now, later) = self.0.split_at(length);
                buffer[..length].copy_from_slice(now);
                self.0 = later;
                Ok(length)
            }
        }
        let options = Options::default();
        for format in FORMATS {
            let crumbs = Recording::read(Crumbs(&bytes, crumb), format, &options);
            let at_once = Recording::read(bytes.as_slice(), format, &options);
            prop_assert_eq!(format!("{crumbs:?}"), format!("{at_once:?}"));
        }
    }

    #[test]
    fn squeezing_keeps_everybody_in_order_and_within(bytes in nearly_lines(), factor in 0.001..1e6f64) {
        let Ok(recording) = Recording::read(bytes.as_slice(), Format::Combined, &Options::default()) else {
            return Ok(());
        };
        let squeezed = recording.clone().squeeze(factor).unwrap();
        prop_assert_eq!(squeezed.moments().len(), recording.moments().len());
        prop_assert!(squeezed.moments().is_sorted());
        prop_assert!(squeezed.moments().iter().all(|moment| *moment <= squeezed.length()));
        let counts = squeezed.counts_per_bin(squeezed.length() / 7 + Duration::from_nanos(1)).unwrap();
        prop_assert_eq!(counts.iter().sum::<u64>(), squeezed.moments().len() as u64);
    }
}
