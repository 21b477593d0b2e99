//! Traces as counts: what their files hold, and how many lines of it make one count.

/// Format of the lines of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// Counts, in this column (from 0) between commas.
    Counts(usize),
    /// Requests, with seconds since some moment in this column between tabs.
    Seconds(usize),
    /// Requests, with a date and a time of day, `2023-11-16 18:17:03.9`, in the first column between commas.
    Times,
}

/// A file of real traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Its name; `.gz` where it is compressed.
    pub file: &'static str,
    /// Format of its lines.
    pub lines: Lines,
    /// Number of bins, or seconds, whose counts are added to one.
    pub together: usize,
}

impl Trace {
    /// Every trace that the bench plays. Sites as quiet as NASA's have a minute put into each count; of the
    /// trace of a language model's requests, which lasts an hour, ten seconds.
    pub const ALL: [Self; 8] = [
        Self::new("wc98_brazil_scotland_19980610.csv", Lines::Counts(1), 1),
        Self::new("wc98_brazil_netherlands_19980707.csv", Lines::Counts(1), 1),
        Self::new("wc98_abrupt_burst_19980512.csv", Lines::Counts(1), 1),
        Self::new("nasa_sts70_launch_19950713_0500_1400_per_second.csv.gz", Lines::Counts(1), 60),
        Self::new("nasa_jul95_requests_per_second.txt.gz", Lines::Counts(0), 60),
        Self::new("nasa_19950801_requests.tsv.gz", Lines::Seconds(2), 60),
        Self::new("nab_twitter_volume_AAPL_5min.csv.gz", Lines::Counts(1), 1),
        Self::new("azure_llm_2023_code.csv.gz", Lines::Times, 10),
    ];

    const fn new(file: &'static str, lines: Lines, together: usize) -> Self {
        Self { file, lines, together }
    }

    /// Its name without what follows the first dot.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.file.split('.').next().unwrap_or(self.file)
    }

    /// Its counts; lines that hold none (headers, comments) are left out.
    #[must_use]
    pub fn counts(self, text: &str) -> Vec<f64> {
        match self.lines {
            Lines::Counts(column) => {
                let counts = text.lines().filter_map(|line| line.split(',').nth(column)?.trim().parse().ok());
                let counts: Vec<f64> = counts.collect();
                counts.chunks_exact(self.together).map(|bins| bins.iter().sum()).collect()
            }
            Lines::Seconds(column) => self
                .counted(text.lines().filter_map(|line| line.split('\t').nth(column)?.trim().parse().ok())),
            Lines::Times => self.counted(text.lines().filter_map(seconds_of_day)),
        }
    }

    /// Requests at these seconds, counted; the last bin is not full and left out.
    fn counted(self, seconds: impl Iterator<Item = u64>) -> Vec<f64> {
        let mut seconds: Vec<u64> = seconds.collect();
        seconds.sort_unstable();
        let Some((&first, &last)) = seconds.first().zip(seconds.last()) else { return Vec::new() };
        let bin = |second: u64| usize::try_from(second - first).unwrap_or(usize::MAX) / self.together;
        let mut counts = vec![0.0; bin(last)];
        for second in seconds {
            if let Some(count) = counts.get_mut(bin(second)) {
                *count += 1.0;
            }
        }
        counts
    }
}

/// Of a line that begins with a date and a time.
fn seconds_of_day(line: &str) -> Option<u64> {
    let time = line.split(',').next()?.split(' ').nth(1)?;
    let mut parts = time.split(':').map(|part| part.split('.').next()?.parse::<u64>().ok());
    let [hours, minutes, seconds] = [parts.next()??, parts.next()??, parts.next()??];
    Some(hours * 3_600 + minutes * 60 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(lines: Lines, together: usize, text: &str) -> Vec<f64> {
        Trace::new("a.csv.gz", lines, together).counts(text)
    }

    #[test]
    fn counts_are_put_together_and_headers_left_out() {
        assert_eq!(counts(Lines::Counts(1), 2, "minute,requests\n1,4\n2,5\n3,6\n4,7\n5,9\n"), [9.0, 13.0]);
        assert_eq!(counts(Lines::Counts(0), 1, "# a comment\n3\n0\n"), [3.0, 0.0]);
        assert_eq!(Trace::ALL[3].name(), "nasa_sts70_launch_19950713_0500_1400_per_second");
    }

    #[test]
    fn requests_are_counted_by_their_seconds() {
        let log = "host\t-\ttime\na\t-\t100\nb\t-\t109\nc\t-\t121\nd\t-\t130\n";
        assert_eq!(counts(Lines::Seconds(2), 10, log), [2.0, 0.0, 1.0]);
        let times =
            "TIMESTAMP,Tokens\n2023-11-16 18:59:59.97,4\n2023-11-16 19:00:00.02,5\n2023-11-16 19:00:01.5,5\n";
        assert_eq!(counts(Lines::Times, 1, times), [1.0, 1.0]);
        assert_eq!(counts(Lines::Times, 1, "nothing\n"), [0.0; 0]);
    }
}
