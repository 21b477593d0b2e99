//! Access logs: every line is accounted for, times never fall, every request has its document; and a log written from what
//! was read is read as the same requests.

use flashweir_workload::recording::{Format, Methods, Options, Recording, Stamps};
use std::fmt::Write as _;

pub(crate) fn run(data: &[u8]) {
    let options = Options { methods: Methods::All, stamps: Stamps::AsWritten, strict: false };
    for format in [Format::Combined, Format::NasaTsv, Format::WorldCupBinary] {
        if let Ok(recording) = Recording::read(data, format, &options) {
            check(&recording);
            again(&recording, &options);
        }
    }
    if let Ok((format, detected)) = Recording::read_detecting(data, &options) {
        let read = Recording::read(data, format, &options).expect("the format that was detected");
        assert_eq!((read.moments(), read.documents()), (detected.moments(), detected.documents()));
    }
    let strict = Recording::read(data, Format::Combined, &Options { strict: true, ..options });
    if let Ok(strict) = strict {
        assert_eq!(strict.problems().unparsed, 0);
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
        let second = moment.as_secs();
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        let (method, path, bytes) = (document.method, document.path, document.bytes);
        // Writing to a string cannot fail.
        let _ = writeln!(
            log,
            "h - - [17/May/2015:{hour:02}:{minute:02}:{second:02} +0000] \"{method} {path} HTTP/1.1\" 200 {bytes}"
        );
    }
    let read = Recording::read(log.as_bytes(), Format::Combined, options)
        .unwrap_or_else(|error| panic!("{error}: {log}"));
    assert_eq!(read.problems().unparsed, 0, "{log}");
    assert_eq!((read.moments(), read.documents()), (recording.moments(), recording.documents()), "{log}");
    let documents = |recording: &Recording| {
        recording
            .document_table()
            .map(|one| (one.method.to_owned(), one.path.to_owned(), one.bytes))
            .collect::<Vec<_>>()
    };
    assert_eq!(documents(&read), documents(recording));
}
