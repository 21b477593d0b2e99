//! Reading whole logs: what is kept, counted, refused.

use super::*;
use std::io::Cursor;

const STRICT: Options = Options { methods: Methods::SafeOnly, stamps: Stamps::Spread, strict: true };

/// A line of the common format, `second` seconds after 10:05:00.
fn line(second: u32, request: &str) -> String {
    format!("192.0.2.77 - - [17/May/2015:10:05:{second:02} +0000] \"{request}\" 200 17\n")
}

fn get(second: u32, path: &str) -> String {
    line(second, &format!("GET {path} HTTP/1.1"))
}

fn read(text: impl AsRef<[u8]>) -> Result<Recording, RecordingError> {
    Recording::read(text.as_ref(), Format::Combined, &Options::default())
}

fn check_error(text: impl AsRef<[u8]>, options: &Options, wanted: &str) {
    let error = Recording::read(text.as_ref(), Format::Combined, options).unwrap_err().to_string();
    assert_eq!(error, wanted);
}

#[test]
fn lines_that_do_not_parse_are_counted_and_the_first_five_shown() {
    let mut text = get(1, "/a") + "\n\r\n";
    for _ in 0..7 {
        text += "garbage\n";
    }
    text += &get(2, "nowhere");
    text += get(3, "/b").trim_end();
    let recording = read(text).unwrap();
    assert_eq!(recording.moments().len(), 2);
    assert_eq!((recording.problems().unparsed, recording.lines()), (8, 10));
    let shown: Vec<_> = recording.problems().first_unparsed.iter().map(ToString::to_string).collect();
    assert_eq!(shown.len(), 5);
    // The two empty lines count as lines of the file, as an editor shows them.
    assert_eq!(shown[0], "line 4: no time in brackets, such as [17/May/2015:10:05:03 +0000]");
    assert_eq!(shown[4], "line 8: no time in brackets, such as [17/May/2015:10:05:03 +0000]");
}

#[test]
fn messages_never_name_the_client() {
    for wrong in [
        line(1, "-"),
        get(1, "nowhere"),
        get(1, "/").replace("May", "Mai"),
        get(1, "/").replace(" 200", " OK"),
        get(1, "/").replace('"', ""),
        "192.0.2.77 and nothing else\n".to_owned(),
        get(1, &"/".repeat(9_000)),
        get(1, &"/".repeat(70_000)),
        get(1, "/").replace("2015", "2035"),
    ] {
        let recording = read(get(0, "/a") + &wrong).unwrap();
        let [unparsed] = &recording.problems().first_unparsed[..] else { panic!("{wrong}") };
        assert!(!unparsed.to_string().contains("192."), "{unparsed}");
    }
    assert!(!format!("{:?}", read(get(0, "/a")).unwrap()).contains("192."));
}

#[test]
fn strict_reading_fails_at_the_first_problem() {
    check_error(
        get(1, "/a") + &get(1, "b"),
        &STRICT,
        "line 2: what is asked for is not a path (which begins with /): \"b\"",
    );
    check_error(get(9, "/a") + &get(2, "/b"), &STRICT, "line 2: 7 s before the latest time above it");
    let fine = get(1, "/a") + "\n" + &line(1, "POST /a HTTP/1.1") + &get(1, "/b");
    assert!(Recording::read(fine.as_bytes(), Format::Combined, &STRICT).is_ok());
}

#[test]
fn times_that_go_backwards_are_played_at_the_latest_time_seen() {
    let text = get(5, "/a") + &get(3, "/b") + &get(7, "/c") + &get(6, "/d") + &get(7, "/e");
    let options = Options { stamps: Stamps::AsWritten, ..Options::default() };
    let recording = Recording::read(text.as_bytes(), Format::Combined, &options).unwrap();
    assert_eq!(recording.moments()[..], [0, 0, 2, 2, 2].map(Duration::from_secs));
    assert_eq!(recording.documents()[..], [0, 1, 2, 3, 4]);
    let [first, second] = &recording.problems().first_backwards[..] else { panic!() };
    assert_eq!(*first, Backwards { location: RecordLocation::Line(2), by_s: 2 });
    assert_eq!(*second, Backwards { location: RecordLocation::Line(4), by_s: 1 });
    assert_eq!(recording.problems().backwards, 2);
    assert_eq!(recording.problems().unparsed, 0);
}

#[test]
fn an_absurd_time_does_not_stretch_the_recording() {
    let recording = read(get(1, "/a") + &get(2, "/b").replace("2015", "2095") + &get(3, "/c")).unwrap();
    assert_eq!(recording.length(), Duration::from_secs(3));
    assert_eq!(
        recording.problems().first_unparsed[0].to_string(),
        "line 2: the time is more than 3650 days after the first"
    );
}

#[test]
fn only_safe_methods_are_kept_unless_told() {
    let text = line(1, "POST /order HTTP/1.1") + &get(2, "/a") + &line(2, "HEAD /a HTTP/1.1");
    let recording = read(&text).unwrap();
    assert_eq!((recording.moments().len(), recording.problems().left_out, recording.lines()), (2, 1, 3));
    let all = Options { methods: Methods::All, ..Options::default() };
    let recording = Recording::read(text.as_bytes(), Format::Combined, &all).unwrap();
    let documents: Vec<_> = recording.document_table().map(|it| (it.method, it.path)).collect();
    assert_eq!(documents, [("POST", "/order"), ("GET", "/a"), ("HEAD", "/a")]);
    check_error(
        line(1, "POST /order HTTP/1.1"),
        &Options::default(),
        "none of its 1 requests is a GET or HEAD, and only those are replayed unless all methods are asked for",
    );
}

#[test]
fn nothing_to_play_is_an_error_that_says_why() {
    check_error("", &Options::default(), "the log is empty");
    check_error("\n\r\n\n", &Options::default(), "the log is empty");
    check_error(
        "a,b\n1,2\n",
        &Options::default(),
        "none of its 2 lines or records is a request; line 1: no time in brackets, such as \
         [17/May/2015:10:05:03 +0000]",
    );
    let tsv = "host\tlogname\ttime\tmethod\turl\tresponse\tbytes\n";
    let error = Recording::read(tsv.as_bytes(), Format::NasaTsv, &Options::default()).unwrap_err();
    assert!(matches!(error, RecordingError::Empty), "{error}");
}

#[test]
fn logs_of_other_compressors_are_named_with_any_format() {
    for format in Format::all() {
        let xz = [0xfd, b'7', b'z', b'X', b'Z', 0, 0, 4];
        let error = Recording::read(&xz[..], format, &Options::default()).unwrap_err();
        assert_eq!(error.to_string(), "it is xz-compressed: pipe it through `xz -dc`");
    }
    let error = Recording::read_detecting(&b"BZh91AY"[..], &Options::default()).unwrap_err();
    assert_eq!(error.to_string(), "it is bzip2-compressed: pipe it through `bzip2 -dc`");
}

#[test]
fn the_format_is_told_from_the_beginning() {
    let options = Options::default();
    let (format, recording) = Recording::read_detecting(get(1, "/a").as_bytes(), &options).unwrap();
    assert_eq!((format, recording.moments().len()), (Format::Combined, 1));
    let error = Recording::read_detecting(&b"a,b\n1,2\n"[..], &options).unwrap_err();
    assert!(matches!(error, RecordingError::UnknownFormat { .. }), "{error}");
}

#[test]
fn overlong_lines_are_skipped_and_endless_ones_given_up() {
    let path_of_length = |length: usize| {
        let rest = get(1, "/").len() - 1;
        get(1, &format!("/{}", "a".repeat(length - rest)))
    };
    // Both are too long for a path; only the second is for a line.
    let text = path_of_length(65_536) + &path_of_length(65_537) + &get(2, "/b");
    let recording = read(text).unwrap();
    let defects: Vec<_> =
        recording.problems().first_unparsed.iter().map(|it| (it.location, it.defect)).collect();
    assert_eq!(
        defects,
        [(RecordLocation::Line(1), Defect::PathTooLong), (RecordLocation::Line(2), Defect::TooLong)]
    );
    assert_eq!(recording.moments().len(), 1);
    let error = Recording::read(std::io::repeat(b'a'), Format::Combined, &Options::default()).unwrap_err();
    assert!(matches!(error, RecordingError::EndlessLine(RecordLocation::Line(1))), "{error}");
}

/// Gives what it has and then fails.
struct Failing(Cursor<Vec<u8>>);

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(std::io::Error::other("the disk is gone")),
            read => Ok(read),
        }
    }
}

#[test]
fn a_reader_that_fails_is_an_error_with_its_line() {
    // None, a few, and more than the beginning by which the format is recognised.
    for lines in [0, 3, 2_000] {
        let failing = Failing(Cursor::new(get(1, "/a").repeat(lines).into()));
        let error = Recording::read_detecting(failing, &Options::default()).unwrap_err();
        assert_eq!(error.to_string(), format!("line {}: cannot be read", lines + 1));
        assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "the disk is gone");
    }
}

#[test]
fn a_binary_log_may_end_inside_a_record() {
    let record = |second: u8, object: u8| {
        [0x35, 0x7e, 0x9d, second, 0, 0, 0, 7, 0, 0, 0, object, 0, 0, 0x10, 0, 0, 0x82, 1, 0x21]
    };
    let mut bytes: Vec<u8> = [record(1, 5), record(1, 6), record(3, 5)].concat();
    let unknown_method = bytes.len() + 16;
    bytes.extend(record(4, 4));
    bytes[unknown_method] = 99;
    bytes.extend(&record(9, 9)[..13]);
    let recording = Recording::read(bytes.as_slice(), Format::WorldCupBinary, &Options::default()).unwrap();
    assert_eq!(recording.moments()[..], [250, 750, 2_500].map(Duration::from_millis));
    assert_eq!(recording.document(0).unwrap(), Document { method: "GET", path: "/object/5", bytes: 4_096 });
    assert_eq!(recording.popularity_counts(), [2, 1]);
    let shown: Vec<_> = recording.problems().first_unparsed.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "record 4: 99 is not the code of a method (0 to 7)",
            "record 5: the file ends inside a record (of 20 bytes)"
        ]
    );
}

#[test]
fn squeezing_keeps_order_and_everybody() {
    let recording = read(get(0, "/a") + &get(0, "/b") + &get(9, "/a")).unwrap().squeeze(10.0).unwrap();
    assert_eq!(recording.moments()[..], [25, 75, 950].map(Duration::from_millis));
    assert_eq!(recording.length(), Duration::from_secs(1));
    assert_eq!(recording.counts_per_bin(Duration::from_millis(500)).unwrap(), [2, 1]);
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(recording.clone().squeeze(wrong), Err(RecordingError::NotAFactor(_))));
    }
    for wrong in [1e-30, 1e30] {
        assert!(matches!(recording.clone().squeeze(wrong), Err(RecordingError::Squeezed(_))));
    }
}

#[test]
fn counts_per_bin_cover_the_whole_length() {
    let recording = read(get(0, "/a") + &get(1, "/b") + &get(5, "/a") + &get(6, "/a")).unwrap();
    let counts = |bin_s| recording.counts_per_bin(Duration::from_secs(bin_s)).unwrap();
    assert_eq!(counts(1), [1, 1, 0, 0, 0, 1, 1]);
    assert_eq!(counts(2), [2, 0, 1, 1]);
    assert_eq!(counts(7), [4]);
    assert_eq!(counts(99), [4]);
    for wrong in [Duration::ZERO, Duration::from_nanos(1)] {
        assert!(matches!(recording.counts_per_bin(wrong), Err(RecordingError::Bins(_))));
    }
}
