//! When people come, from the options that say so.

use super::values::{Step, duration, positive, step};
use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use flashweir_load::Schedule;
use flashweir_workload::profile_csv::read_profile;
use flashweir_workload::{ArrivalProcess, Column, RateProfile, Segment, crowd};
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

/// Length of a run at a plain rate.
const DEFAULT_LENGTH: Duration = Duration::from_secs(10);

/// When people come.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("shape").required(true).args(["rate", "profile", "crowd"]))]
pub(crate) struct ArrivalArgs {
    /// So many people a second.
    #[arg(long, value_name = "N", value_parser = positive)]
    rate: Option<f64>,
    /// From then on so many people a second; may be repeated, later steps after earlier ones.
    #[arg(long, value_name = "N@TIME", value_parser = step, requires = "rate", conflicts_with_all = ["profile", "crowd"])]
    step: Vec<Step>,
    /// As many as a table counts for each stretch of time: one line each, `#` begins a comment.
    #[arg(long, value_name = "CSV", requires = "column")]
    profile: Option<PathBuf>,
    /// Which column counts, by name or by place (the first is 1).
    #[arg(long, value_name = "NAME|PLACE", requires = "profile")]
    column: Option<String>,
    /// How long a line of the table stands for.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration, requires = "profile")]
    bin: Duration,
    /// The 1998 World Cup semi-final's evening, built in: 260 minutes, tenfold; say how high with --peak.
    #[arg(long, requires = "peak")]
    crowd: bool,
    /// Time runs so many times faster; everybody still comes, so rates rise too.
    #[arg(long, value_name = "F", value_parser = positive, conflicts_with = "rate")]
    squeeze: Option<f64>,
    /// So many times as many people.
    #[arg(long, value_name = "F", value_parser = positive, conflicts_with_all = ["rate", "peak"])]
    scale: Option<f64>,
    /// The busiest stretch has so many people a second, the others in proportion.
    #[arg(long, value_name = "N", value_parser = positive, conflicts_with = "rate")]
    peak: Option<f64>,
    /// Length of the run: 10s for a rate, the whole of a profile unless told.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Independently of each other, or evenly spaced.
    #[arg(long, value_enum, default_value_t = Arrivals::Poisson)]
    arrivals: Arrivals,
}

/// How people fall at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Arrivals {
    /// Independently of each other.
    Poisson,
    /// Evenly spaced.
    Constant,
}

impl ArrivalArgs {
    /// The schedule these options and the seed describe.
    ///
    /// # Errors
    /// A table that cannot be read, steps out of order, numbers that make no profile.
    pub(crate) fn schedule(&self, seed: u64) -> anyhow::Result<Schedule> {
        let profile = self.profile()?;
        let process = match self.arrivals {
            Arrivals::Poisson => ArrivalProcess::Poisson(profile),
            Arrivals::Constant => ArrivalProcess::Constant(profile),
        };
        Ok(Schedule::Drawn { process, seed })
    }

    fn profile(&self) -> anyhow::Result<RateProfile> {
        if let Some(rate) = self.rate {
            return self.steps(rate);
        }
        let mut profile = match (&self.profile, &self.column) {
            (Some(path), Some(column)) => {
                let file =
                    File::open(path).with_context(|| format!("{} cannot be opened", path.display()))?;
                read_profile(file, &Column::parse(column), self.bin)
                    .with_context(|| path.display().to_string())?
            }
            _ => crowd::world_cup_semi_final(),
        };
        if let Some(factor) = self.squeeze {
            profile = profile.squeeze(factor)?;
        }
        if let Some(factor) = self.scale {
            profile = profile.scale(factor)?;
        }
        if let Some(rate) = self.peak {
            profile = profile.peak(rate)?;
        }
        Ok(match self.duration {
            Some(duration) => profile.cut(duration)?,
            None => profile,
        })
    }

    fn steps(&self, rate: f64) -> anyhow::Result<RateProfile> {
        let length = self.duration.unwrap_or(DEFAULT_LENGTH);
        let first = Step { rate_per_s: rate, at: Duration::ZERO };
        let steps: Vec<_> = std::iter::once(first).chain(self.step.iter().copied()).collect();
        let mut ends = steps.iter().skip(1).map(|step| step.at).chain([length]);
        if !steps.is_sorted_by(|one, next| one.at < next.at) {
            bail!("--step: each step must come later than the one before");
        }
        ensure!(steps.iter().all(|step| step.at < length), "--step: a step comes after the end of the run");
        let segments = steps.iter().filter_map(|step| {
            let end = ends.next()?;
            Some(Segment { length: end - step.at, rate_per_s: step.rate_per_s })
        });
        Ok(RateProfile::new(segments.collect::<Vec<_>>())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::io::Write;

    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        arrivals: ArrivalArgs,
    }

    fn profile(options: &str) -> Result<RateProfile, String> {
        let words = ["load"].into_iter().chain(options.split_whitespace());
        let options = Options::try_parse_from(words).map_err(|error| error.to_string())?;
        options.arrivals.profile().map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn steps_follow_one_another_to_the_end() {
        let profile = profile("--rate 50 --step 500@10s --step 0@20s --duration 30s").unwrap();
        let stretches: Vec<_> =
            profile.segments().iter().map(|segment| (segment.rate_per_s, segment.length.as_secs())).collect();
        assert_eq!(stretches, [(50.0, 10), (500.0, 10), (0.0, 10)]);
    }

    #[test]
    fn the_crowd_is_squeezed_and_raised() {
        let profile = profile("--crowd --squeeze 520 --peak 1000").unwrap();
        assert_eq!(profile.length().as_secs_f64().round(), 30.0);
        assert!((profile.peak_rate() - 1000.0).abs() < 1e-6);
    }

    #[test]
    fn a_table_is_read_and_cut() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"minute,requests\n1,60\n2,120\n3,600\n").unwrap();
        let path = file.path().display();
        let options =
            format!("--profile {path} --column requests --bin 60s --squeeze 60 --scale 2 --duration 2s");
        let profile = profile(&options).unwrap();
        assert_eq!(profile.length(), Duration::from_secs(2));
        assert!((profile.expected_arrivals() - 360.0).abs() < 1e-6);
    }

    #[test]
    fn options_that_make_no_run_are_refused_by_name() {
        let check = |options: &str, wanted: &str| {
            let message = profile(options).unwrap_err();
            assert!(message.contains(wanted), "{options}: {message:?} lacks {wanted:?}");
        };
        check("", "--rate");
        check("--rate 0", "above zero");
        check("--rate 5 --crowd --peak 3", "cannot be used with");
        check("--rate 5 --peak 3", "cannot be used with");
        check("--crowd", "--peak");
        check("--profile x.csv", "--column");
        check("--profile not-there.csv --column 1", "not-there.csv cannot be opened");
        check("--rate 5 --step 1@2s --step 1@1s", "later");
        check("--rate 5 --step 1@10s", "after the end");
    }
}
