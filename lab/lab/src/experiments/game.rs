//! Games whose requests, counted by the minute, give a crowd.
//!
//! The counts of the minutes that the runs need are in the repository (`news/*.csv`, with their source). A
//! log of the whole day, which is not, can take their place.
//!
//! The paper on NEWS played "4,000 seconds of log" of one game in its simulations and 2,000 s of another on
//! its testbed, each with the crowd beginning at 1,000 s, when the game began. So the rule is: kick-off is
//! the onset, a second of the log is a second of the run (unless the run is compressed), and nothing is left
//! out. Its log was that of one of the site's servers and rose sixfold and fivefold within minutes; the whole
//! site's rises more slowly, so the stretches before and after kick-off are scaled separately, each to the
//! mean that the paper gives.

use crate::experiments::Crowd;
use crate::experiments::crowd::between;
use flashweir_core::limits::PROFILE_BINS;
use flashweir_workload::RateProfile;
use std::time::Duration;

/// A game, its counts in the repository, and the name of its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Game {
    /// The name of the log's file.
    pub file: &'static str,
    /// The teams, and the date.
    pub name: &'static str,
    /// The minute of kick-off, as the log writes it (GMT).
    kick_off: &'static str,
    before: Duration,
    after: Duration,
    /// The file of the repository with the requests of each minute that is needed, and its text.
    counts: (&'static str, &'static str),
}

/// The game of NEWS's simulations (§7.1). The paper dates it 30 April; it was played on 10 June.
pub const OPENING_MATCH: Game = Game {
    file: "wc98_brazil_scotland_19980610.csv",
    name: "the opening match, Brazil–Scotland, 10 June 1998",
    kick_off: "1998-06-10T15:30:00Z",
    before: Duration::from_secs(1_000),
    after: Duration::from_secs(3_000),
    counts: ("lab/lab/src/experiments/news/opening_match.csv", include_str!("news/opening_match.csv")),
};
/// The game of NEWS's testbed (§8.1).
pub const SEMI_FINAL: Game = Game {
    file: "wc98_brazil_netherlands_19980707.csv",
    name: "the semi-final, Brazil–Netherlands, 7 July 1998",
    kick_off: "1998-07-07T19:00:00Z",
    before: Duration::from_secs(1_000),
    after: Duration::from_secs(1_000),
    counts: ("lab/lab/src/experiments/news/semi_final.csv", include_str!("news/semi_final.csv")),
};

/// The text is not the log of the game.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct LogError {
    /// Line of the file, the first being 1.
    pub line: u64,
    /// The fault there.
    pub problem: String,
}

impl Game {
    /// The crowd of the counts in the repository.
    #[must_use]
    pub fn counted(&self) -> Crowd {
        let (file, text) = self.counts;
        // Holds because the file is part of the program, and a test reads it.
        self.read(&format!("the counts in {file}"), text).expect("counts of the match")
    }

    /// The crowd of a log: comma-separated text with the header `minute_gmt,requests`, then a line for each
    /// minute, none left out. Lines before the header that begin with `#` are comments.
    ///
    /// # Errors
    /// The first line that is not as expected; the last one, where the log does not reach far enough around
    /// kick-off; that of kick-off, where there is no request before it or after it.
    pub fn crowd(&self, text: &str) -> Result<Crowd, LogError> {
        self.read(&format!("the log {}", self.file), text)
    }

    fn read(&self, source: &str, text: &str) -> Result<Crowd, LogError> {
        let log = Log::read(text)?;
        let wrong = |line, problem| Err(LogError { line, problem });
        let first_line = log.last_line + 1 - log.stamps.len() as u64;
        let Some(place) = log.stamps.iter().position(|stamp| stamp == self.kick_off) else {
            return wrong(log.last_line, format!("the log ends without {}, kick-off", self.kick_off));
        };
        let kick_off = MINUTE * place as u32;
        let end = MINUTE * log.requests.len() as u32;
        if kick_off < self.before || end - kick_off < self.after {
            let (before, after) = (self.before.as_secs(), self.after.as_secs());
            let problem = format!(
                "the log ends, and goes from {} s before {} (kick-off) to {} s after it; expected {before} s and \
                 {after} s at least",
                kick_off.as_secs(),
                self.kick_off,
                (end - kick_off).as_secs()
            );
            return wrong(log.last_line, problem);
        }
        // Holds because every line is a minute, and there is at least that of kick-off.
        let profile = RateProfile::from_bins(MINUTE, log.requests).expect("counts make a profile");
        let stretch =
            |from, to| between(&profile, from, to).filter(|stretch| stretch.expected_arrivals() > 0.0);
        let (quiet, crowd) =
            (stretch(kick_off - self.before, kick_off), stretch(kick_off, kick_off + self.after));
        let (Some(quiet), Some(crowd)) = (quiet, crowd) else {
            return wrong(
                first_line + place as u64,
                "no request came before kick-off here, or after it".to_owned(),
            );
        };
        let (before, after) = (self.before.as_secs(), self.after.as_secs());
        let name =
            format!("{source} of {}, from {before} s before kick-off to {after} s after it", self.name);
        Ok(Crowd::new(name, quiet, crowd))
    }
}

const MINUTE: Duration = Duration::from_secs(60);
const HEADER: [&str; 2] = ["minute_gmt", "requests"];

/// A log as written.
struct Log {
    stamps: Vec<String>,
    /// Per second, in each minute.
    requests: Vec<f64>,
    last_line: u64,
}

impl Log {
    fn read(text: &str) -> Result<Self, LogError> {
        let mut log = Self { stamps: Vec::new(), requests: Vec::new(), last_line: 1 };
        let mut has_header = false;
        for (line, text) in (1..).zip(text.lines()) {
            let problem_at = |problem| LogError { line, problem };
            let fields: Vec<&str> = text.split(',').map(str::trim).collect();
            if !has_header {
                if text.starts_with('#') {
                    continue;
                }
                if fields != HEADER {
                    return Err(problem_at(format!(
                        "\"{}\" is not the header {}",
                        short(text),
                        HEADER.join(",")
                    )));
                }
                (has_header, log.last_line) = (true, line);
                continue;
            }
            log.take(&fields).map_err(problem_at)?;
            log.last_line = line;
        }
        Ok(log)
    }

    fn take(&mut self, fields: &[&str]) -> Result<(), String> {
        let &[stamp, requests] = fields else {
            return Err(format!("{} fields instead of 2: a minute and its requests", fields.len()));
        };
        let Some(minute) = minute_of_day(stamp) else {
            return Err(format!("\"{}\" is not a minute such as 1998-06-10T15:30:00Z", short(stamp)));
        };
        if let Some(before) = self.stamps.last()
            // Holds because only minutes are kept.
            && minute != (minute_of_day(before).expect("a minute") + 1) % MINUTES_OF_DAY
        {
            return Err(format!("{stamp} comes after {before}: the log has a hole"));
        }
        let Ok(requests) = requests.parse::<u32>() else {
            return Err(format!("\"{}\" is not a count of requests", short(requests)));
        };
        if self.stamps.len() == PROFILE_BINS {
            return Err(format!("more than {PROFILE_BINS} minutes"));
        }
        self.stamps.push(stamp.to_owned());
        self.requests.push(f64::from(requests) / MINUTE.as_secs_f64());
        Ok(())
    }
}

const MINUTES_OF_DAY: u32 = 24 * 60;

/// Minute of the day of a time stamp: `1998-06-10T15:30:00Z` is minute 930. The date is left alone, as
/// consecutive minutes lead through consecutive days.
fn minute_of_day(stamp: &str) -> Option<u32> {
    let (date, time) = stamp.split_once('T')?;
    let digits = |text: &str, many| text.len() == many && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_date = date.split('-').zip([4, 2, 2]).all(|(part, many)| digits(part, many));
    let (hour, minute) = time.strip_suffix(":00Z")?.split_once(':')?;
    let is_valid = is_date && date.len() == 10 && digits(hour, 2) && digits(minute, 2);
    let (hour, minute): (u32, u32) = (hour.parse().ok()?, minute.parse().ok()?);
    (is_valid && hour < 24 && minute < 60).then_some(hour * 60 + minute)
}

/// Enough of a field to find it by.
fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::crowd::Stretched;

    /// A log with this many requests in each minute from 14:50 on.
    fn log(requests: impl IntoIterator<Item = u32>) -> String {
        let minutes = (890..).zip(requests);
        let line = |(minute, requests): (u32, u32)| {
            format!("1998-06-10T{:02}:{:02}:00Z,{requests}\n", minute / 60 % 24, minute % 60)
        };
        format!("minute_gmt,requests\n{}", minutes.map(line).collect::<String>())
    }

    fn requests() -> impl Iterator<Item = u32> {
        // Kick-off is 40 minutes in; 4 requests a second before it and 10 after it, 20 in the last of 50
        // minutes.
        (0..90).map(|minute| if minute < 40 { 240 } else { 600 * (1 + minute / 89) })
    }

    fn error(text: &str) -> String {
        OPENING_MATCH.crowd(text).unwrap_err().to_string()
    }

    #[test]
    fn kick_off_is_the_onset_and_both_sides_get_the_means_asked_for() {
        let crowd = OPENING_MATCH.crowd(&log(requests())).unwrap();
        let stretched = |length_s, mean| Stretched { length: Duration::from_secs(length_s), mean };
        let arrivals = crowd.arrivals(stretched(1_000, 35.0), stretched(3_000, 210.0));
        assert!((arrivals.expected_arrivals() - 665_000.0).abs() < 1e-3);
        let at = |second| arrivals.rate_at(Duration::from_secs(second));
        assert!((at(0) - 35.0).abs() < 1e-9 && (at(999) - 35.0).abs() < 1e-9);
        // 49 minutes of one part, one of two: 50 minutes make 51 parts.
        let part = 210.0 * 50.0 / 51.0;
        assert!((at(1_000) - part).abs() < 1e-9 && (at(3_999) - 2.0 * part).abs() < 1e-9);
        assert!(crowd.name().starts_with("the log wc98_brazil_scotland_19980610.csv of the opening match"));
    }

    /// Goal: the repository has the minutes that the runs need, with their source, and names the file they
    /// come from. Method: read both files, check the rates at the ends against the log's counts (60,586
    /// requests in the minute of 15:13 and 119,743 in that of 16:19; 26,338 and 79,709), and that a copy of
    /// the file is read as a log.
    #[test]
    fn the_counts_in_the_repository_are_the_matches() {
        for (game, ends) in [(OPENING_MATCH, [60_586.0, 119_743.0]), (SEMI_FINAL, [26_338.0, 79_709.0])] {
            let (file, text) = game.counts;
            assert!(text.starts_with("# Requests per minute") && text.contains("Internet Traffic Archive"));
            let crowd = game.counted();
            assert!(crowd.name().starts_with(&format!("the counts in {file} of ")), "{}", crowd.name());
            let stretched = |length, mean| Stretched { length, mean };
            let (quiet_per_s, crowd_per_s) = (1_000.0, 2_000.0);
            let arrivals =
                crowd.arrivals(stretched(game.before, quiet_per_s), stretched(game.after, crowd_per_s));
            let counts: Vec<f64> = Log::read(text).unwrap().requests;
            let rate_over_count = |second: Duration, count: f64| arrivals.rate_at(second) / (count / 60.0);
            let last = game.before + game.after - Duration::from_secs(1);
            let (first, last) = (rate_over_count(Duration::ZERO, ends[0]), rate_over_count(last, ends[1]));
            let kick_off = rate_over_count(game.before, counts[17] * 60.0);
            // The quiet is scaled by one factor, the crowd by another.
            let before_kick_off = rate_over_count(game.before - Duration::from_secs(1), counts[16] * 60.0);
            assert!((first / before_kick_off - 1.0).abs() < 1e-9 && (last / kick_off - 1.0).abs() < 1e-9);
            let as_log = game.crowd(text).unwrap();
            assert!(as_log.name().starts_with(&format!("the log {} of ", game.file)), "{}", as_log.name());
        }
    }

    #[test]
    fn comments_stand_before_the_header_only() {
        let good = log(requests());
        let commented = format!("# of the archive\n#\n{good}");
        assert_eq!(OPENING_MATCH.crowd(&commented).unwrap(), OPENING_MATCH.crowd(&good).unwrap());
        assert_eq!(
            error(&commented.replacen("14:51:00Z,240", "14:51:00Z,many", 1)),
            "line 5: \"many\" is not a count of requests"
        );
        assert_eq!(
            error(&good.replacen('\n', "\n# late\n", 1)),
            "line 2: 1 fields instead of 2: a minute and its requests"
        );
    }

    #[test]
    fn what_is_no_log_is_told_by_its_line() {
        let good = log(requests());
        assert_eq!(error("a,b\n"), "line 1: \"a,b\" is not the header minute_gmt,requests");
        assert_eq!(error(""), "line 1: the log ends without 1998-06-10T15:30:00Z, kick-off");
        assert_eq!(
            error(&good.replacen("1998-06-10T14:52:00Z,240\n", "", 1)),
            "line 4: 1998-06-10T14:53:00Z comes after 1998-06-10T14:51:00Z: the log has a hole"
        );
        assert_eq!(
            error(&good.replacen("14:51:00Z,240", "14:51:00Z,many", 1)),
            "line 3: \"many\" is not a count of requests"
        );
        assert_eq!(
            error(&good.replacen("14:51:00Z,240", "14:51:00Z", 1)),
            "line 3: 1 fields instead of 2: a minute and its requests"
        );
        assert_eq!(
            error(&good.replacen("1998-06-10T14:51", "yesterday 14:51", 1)),
            "line 3: \"yesterday 14:51:00Z\" is not a minute such as 1998-06-10T15:30:00Z"
        );
        assert_eq!(
            error(&good.replacen('\n', "\n\n", 1)),
            "line 2: 1 fields instead of 2: a minute and its requests"
        );
        assert_eq!(
            error(&log(requests().take(80))),
            "line 81: the log ends, and goes from 2400 s before 1998-06-10T15:30:00Z (kick-off) to 2400 s after it; \
             expected 1000 s and 3000 s at least"
        );
        let no_arrivals = log(requests().map(|requests| if requests < 600 { 0 } else { requests }));
        assert_eq!(error(&no_arrivals), "line 42: no request came before kick-off here, or after it");
    }

    #[test]
    fn minutes_lead_through_midnight() {
        assert_eq!(minute_of_day("1998-07-08T00:00:00Z"), Some(0));
        for wrong in
            ["1998-07-08T24:00:00Z", "1998-07T00:00:00Z", "1998-07-08T00:60:00Z", "1998-07-08T00:00:01Z", ""]
        {
            assert_eq!(minute_of_day(wrong), None, "{wrong}");
        }
        let night = "minute_gmt,requests\n1998-06-09T23:59:00Z,1\n1998-06-10T00:00:00Z,2\n";
        assert!(error(night).starts_with("line 3: the log ends without"), "{}", error(night));
    }
}
