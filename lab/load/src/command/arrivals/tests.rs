use crate::Paths;
use crate::command::class::tests::{class, class_and_notes};
use flashweir_workload::documents::Popularity;
use flashweir_workload::{ArrivalProcess, RateProfile};
use std::io::Write;
use std::time::Duration;

const URL: &str = "http://127.0.0.1:8080/";
const SECOND: Duration = Duration::from_secs(1);

fn arrivals(options: &str) -> Result<ArrivalProcess, String> {
    class(URL, options).map(|class| class.arrivals.expect("arrivals"))
}

fn profile(options: &str) -> Result<RateProfile, String> {
    arrivals(options).map(|arrivals| arrivals.profile().expect("a profile").clone())
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn log_line(second: u32, request: &str) -> String {
    format!("h - - [17/May/2015:10:05:{second:02} +0000] \"{request} HTTP/1.1\" 200 17\n")
}

#[test]
fn steps_follow_one_another_to_the_end() {
    let profile = profile("--rate 50 --step 500@10s --step 0@20s --duration 30s").unwrap();
    let stretches: Vec<_> =
        profile.segments().iter().map(|segment| (segment.from_per_s, segment.length.as_secs())).collect();
    assert_eq!(stretches, [(50.0, 10), (500.0, 10), (0.0, 10)]);
    assert_eq!(self::profile("--rate 0 --step 5@1s").unwrap().expected_arrivals(), 45.0);
}

#[test]
fn a_ramp_rises_and_a_spike_dies_away() {
    let ramp = profile("--rate 0 --ramp 100@10s --duration 15s").unwrap();
    assert_eq!([0, 4, 12].map(|at| ramp.rate_at(at * SECOND)), [0.0, 40.0, 100.0]);
    let spike = profile("--rate 100 --spike 900@5s --half-life 2s --duration 60s").unwrap();
    assert_eq!([4, 5, 7].map(|at| spike.rate_at(at * SECOND)), [100.0, 900.0, 500.0]);
    assert_eq!(spike.length(), 60 * SECOND);
}

#[test]
fn the_crowd_is_squeezed_and_raised() {
    let profile = profile("--crowd --squeeze 520 --peak 1000").unwrap();
    assert_eq!(profile.length().as_secs_f64().round(), 30.0);
    assert!((profile.peak_rate() - 1000.0).abs() < 1e-6);
}

#[test]
fn a_table_is_read_and_cut() {
    let file = file("minute,requests\n1,60\n2,120\n3,600\n");
    let path = file.path().display();
    let options =
        format!("--profile {path} --column requests --bin 60s --speed-up 60 --scale 2 --duration 2s");
    let profile = profile(&options).unwrap();
    assert_eq!(profile.length(), 2 * SECOND);
    assert!((profile.expected_arrivals() - 360.0).abs() < 1e-6);
}

#[test]
fn people_fall_at_the_rate_as_told() {
    assert!(matches!(arrivals("--rate 5").unwrap(), ArrivalProcess::Poisson(_)));
    assert!(matches!(arrivals("--rate 5 --arrivals constant").unwrap(), ArrivalProcess::Constant(_)));
    let bursty = arrivals("--rate 5 --arrivals self-similar").unwrap();
    assert_eq!(bursty, arrivals("--rate 5 --arrivals self-similar --pareto-alpha 1.4 --gap 100ms").unwrap());
    assert_ne!(bursty, arrivals("--rate 5 --arrivals self-similar --pareto-alpha 1.2").unwrap());
}

#[test]
fn a_log_is_replayed_with_its_times_and_paths() {
    let log = file(&[log_line(3, "GET /a"), log_line(3, "GET /b"), log_line(5, "GET /a")].concat());
    let option = format!("--replay {}", log.path().display());
    let replayed = class(URL, &option).unwrap();
    let arrivals = replayed.arrivals.unwrap();
    assert_eq!(arrivals.length(), 3 * SECOND);
    assert!(arrivals.moments(1).eq([250, 750, 2500].map(Duration::from_millis)));
    assert_eq!(replayed.plan.popularity, Popularity::Recorded([0, 1, 0].into()));
    assert!(
        matches!(&replayed.plan.paths, Paths::Table(paths) if paths.iter().map(|path| &**path).eq(["/a", "/b"]))
    );

    let faster = self::arrivals(&format!("{option} --squeeze 2 --stamps as-written")).unwrap();
    assert_eq!(faster.length(), 1500 * SECOND / 1000);
    assert!(faster.moments(1).eq([0, 0, 1000].map(Duration::from_millis)));
    let cut = self::arrivals(&format!("{option} --duration 1s")).unwrap();
    assert_eq!((cut.length(), cut.moments(1).count()), (SECOND, 2));
}

#[test]
fn what_is_wrong_in_a_log_is_told_or_strictly_refused() {
    let mut text = log_line(9, "GET /a") + &log_line(3, "GET /b") + &log_line(9, "POST /order");
    (0..6).for_each(|n| text += &format!("garbage {n}\n"));
    let log = file(&text);
    let option = format!("--replay {}", log.path().display());
    let (class, notes) = class_and_notes(URL, &option).unwrap();
    assert_eq!(class.arrivals.unwrap().expected(), 2.0);
    let [format, unparsed, backwards, left_out] = &notes[..] else { panic!("four notes: {notes:?}") };
    assert!(format.contains("read as combined") && format.contains("--patience"), "{format}");
    assert!(unparsed.contains("lines that do not parse: 6 of 9"), "{unparsed}");
    let shown: Vec<_> = unparsed.lines().skip(1).collect();
    assert!(
        shown.len() == 6 && shown[0].starts_with("  line 4: ") && shown[4].starts_with("  line 8: "),
        "{shown:?}"
    );
    assert_eq!(shown[5], "  ...");
    assert!(
        backwards.contains("times that go backwards: 1") && backwards.contains("line 2: 6 s before"),
        "{backwards}"
    );
    assert!(left_out.contains("requests other than GET and HEAD: 1"), "{left_out}");
    assert!(arrivals(&format!("{option} --strict")).unwrap_err().contains("line 2: 6 s before"));
    assert_eq!(arrivals(&format!("{option} --methods all")).unwrap().expected(), 3.0);
}

#[test]
fn workers_are_paced_in_four_ways() {
    let closed = arrivals("--workers 3 --timing closed --duration 5s").unwrap();
    assert_eq!(closed.length(), 5 * SECOND);
    assert!(closed.moments(1).eq([Duration::ZERO; 3]));
    let colliding = arrivals("--workers 4 --timing colliding --machines 2 --duration 1s").unwrap();
    assert!(colliding.moments(1).eq([0, 0, 500, 500].map(Duration::from_millis)));
    assert_eq!(colliding, arrivals("--workers 4 --timing colliding --duration 1s").unwrap());
    let interleaved = arrivals("--workers 4 --timing interleaved").unwrap();
    assert_eq!((interleaved.length(), interleaved.expected()), (10 * SECOND, 40.0));
    assert!(matches!(arrivals("--workers 1 --timing random").unwrap(), ArrivalProcess::RandomTiming(_)));
}

#[test]
fn options_that_make_no_run_are_refused_by_name() {
    let check = |options: &str, wanted: &str| {
        let message = arrivals(options).unwrap_err();
        assert!(message.contains(wanted), "{options}: {message:?} lacks {wanted:?}");
    };
    check("--rate 0", "above zero");
    check("--rate -1", "zero or more");
    check("--rate 1e8", "absurd");
    check("--rate 5 --step 1e8@1s", "absurd");
    check("--crowd --peak 1e8", "absurd");
    check("--crowd --peak 1e7 --squeeze 0", "above zero");
    check("--rate 5 --crowd --peak 3", "cannot be used with");
    check("--rate 5 --peak 3", "cannot be used with");
    check("--crowd", "--peak");
    check("--squeeze 5", "--rate");
    check("--profile x.csv", "--column");
    check("--profile not-there.csv --column 1", "not-there.csv cannot be opened");
    check("--rate 5 --step 1@2s --step 1@1s", "later");
    check("--rate 5 --step 1@10s", "after the end");
    check("--rate 5 --ramp 50@11s", "not over when the run ends");
    check("--rate 5 --spike 50@1s", "--half-life");
    check("--rate 5 --spike 50@10s --half-life 1s", "after the end");
    check("--rate 5 --spike 5@1s --half-life 1s", "above --rate");
    check("--rate 5 --spike 5@1s --half-life 1s --step 1@1s", "cannot be used with");
    check("--rate 5 --gap 1s", "--arrivals");
    check("--rate 5 --arrivals constant --gap 1s", "self-similar");
    check("--rate 5 --arrivals self-similar --pareto-alpha 2", "1.05 to 1.95");
    check("--rate 5 --strict", "--replay");
    check("--workers 3", "--timing");
    check("--workers 3 --timing closed --machines 2", "--machines");
    check("--workers 3 --timing colliding --machines 4", "4 machines");
    check("--workers 2000000 --timing closed", "too many");
    check("--workers 3 --timing random --arrivals constant", "cannot be used with");
    let empty = file("");
    let option = |option: &str| format!("{option} {}", empty.path().display());
    check(&(option("--profile") + " --column 1"), "it holds no counts");
    check(&option("--replay"), "the log is empty");
    let log = file(&log_line(3, "GET /a"));
    let replay = format!("--replay {}", log.path().display());
    check(&format!("{replay} --peak 5"), "--scale and --peak cannot");
    check(&format!("{replay} --zipf 1"), "cannot be used with");
    check(&format!("{replay} --squeeze 1e9"), "absurd");
    check(&format!("{replay} --duration 1ms"), "nobody comes");
    check(&format!("{replay} --format nasa-tsv"), "is a request");
    assert!(class("http://127.0.0.1:8080/shop", &replay).unwrap_err().contains("without a path"));
    assert!(class(URL, "").unwrap().arrivals.is_none());
}
