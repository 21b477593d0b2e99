//! Access logs: every line is accounted for, times never fall, every request has its document; and a log
//! written from what was read is read as the same requests.

use flashweir_workload::recording::{Document, Format, Methods, Options, Pattern, Recording, Stamps};
use std::fmt::Write as _;

pub(crate) fn run(data: &[u8]) {
    let options = Options { methods: Methods::All, stamps: Stamps::AsWritten, strict: false };
    for format in Format::all() {
        if let Ok(recording) = Recording::read(data, format, &options) {
            check(&recording);
            again(&recording, &options);
        }
    }
    if let Ok((format, detected)) = Recording::read_detecting(data, &options) {
        let read = Recording::read(data, format, &options).expect("the format that was detected");
        assert_eq!((read.moments(), read.documents()), (detected.moments(), detected.documents()));
    }
    by_pattern(data, &options);
    let strict = Recording::read(data, Format::Combined, &Options { strict: true, ..options });
    if let Ok(strict) = strict {
        assert_eq!(strict.problems().unparsed, 0);
    }
}

/// The first line as a pattern, the others as a log of it.
fn by_pattern(data: &[u8], options: &Options) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (first, rest) = data.split_at(end);
    let pattern = str::from_utf8(first).ok().and_then(|text| text.parse::<Pattern>().ok());
    if let Some(recording) = pattern.and_then(|pattern| Recording::read_pattern(rest, &pattern, options).ok())
    {
        check(&recording);
        again(&recording, options);
    }
}

fn check(recording: &Recording) {
    let (moments, documents) = (recording.moments(), recording.documents());
    assert_eq!(moments.len(), documents.len());
    assert!(moments.is_sorted(), "time goes back");
    assert!(moments.iter().all(|moment| *moment <= recording.length()));
    assert!(documents.iter().all(|document| recording.document(*document).is_some()));
    assert_eq!(recording.popularity_counts().iter().sum::<u64>(), documents.len() as u64);
    for document in recording.document_table() {
        assert!(document.path.starts_with('/'), "{}", document.path);
        assert!(document.path.bytes().all(|byte| byte.is_ascii_graphic()), "{:?}", document.path);
    }
}

/// As lines of the common format, a day and its seconds at a time.
fn again(recording: &Recording, options: &Options) {
    const DAY_S: u64 = 86_400;
    if recording.length().as_secs() > DAY_S {
        return;
    }
    let mut log = String::new();
    for (moment, number) in recording.moments().iter().zip(recording.documents().iter()) {
        let document = recording.document(*number).expect("a document");
        let (second, nanosecond) = (moment.as_secs(), moment.subsec_nanos());
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        let (method, path, bytes) = (document.method, document.path, document.bytes);
        // Writing to a string cannot fail.
        let _ = writeln!(
            log,
            "h - - [17/May/2015:{hour:02}:{minute:02}:{second:02}.{nanosecond:09} +0000] \"{method} {path} HTTP/1.1\" 200 {bytes}"
        );
    }
    let read = Recording::read(log.as_bytes(), Format::Combined, options)
        .unwrap_or_else(|error| panic!("{error}: {log}"));
    assert_eq!(read.problems().unparsed, 0, "{log}");
    assert_eq!(read.moments(), recording.moments(), "{log}");
    // Documents have their numbers in the order of the log's lines, which is not always that of the requests.
    assert_eq!(requests(&read), requests(recording), "{log}");
    assert_eq!(read.document_table().len(), recording.document_table().len(), "{log}");
}

fn requests(recording: &Recording) -> Vec<Document<'_>> {
    recording.documents().iter().map(|number| recording.document(*number).expect("a document")).collect()
}
