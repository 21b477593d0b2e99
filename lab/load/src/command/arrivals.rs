//! Arrivals, from the options that describe them.

mod replay;
mod shapes;
#[cfg(test)]
mod tests;
mod workers;

use super::inputs::Inputs;
use super::recorded::RecordedArgs;
use super::values::{RateAt, absurd, rate, rate_at};
use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use flashweir_config::command::numbers::positive;
use flashweir_core::limits::LOAD_RATE_PER_S;
use flashweir_workload::duration_text;
use flashweir_workload::recording::Recording;
use flashweir_workload::{ArrivalProcess, RateProfile, SelfSimilarity};
use std::path::PathBuf;
use std::time::Duration;
use workers::Timing;

/// Length of a run that nothing else gives a length.
const DEFAULT_LENGTH: Duration = Duration::from_secs(10);

/// When people come.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "When people come")]
#[group(skip)]
#[command(group = clap::ArgGroup::new("shape").args(["rate", "profile", "crowd", "replay", "workers"]))]
pub(crate) struct ArrivalArgs {
    /// People a second.
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = rate)]
    rate: Option<f64>,
    /// Changes the rate to N people a second from TIME on; may be repeated, later steps after earlier ones.
    #[arg(long, value_name = "N@TIME", value_parser = rate_at, requires = "rate")]
    step: Vec<RateAt>,
    /// The rate changes evenly from --rate to N over TIME and stays there.
    #[arg(long, value_name = "N@TIME", value_parser = rate_at, requires = "rate", conflicts_with = "step", hide_short_help = true)]
    ramp: Option<RateAt>,
    /// On top of --rate, a flash crowd: at TIME the rate jumps to N, from where it dies away to --rate.
    #[arg(long, value_name = "N@TIME", value_parser = rate_at, requires_all = ["rate", "half_life"],
          conflicts_with_all = ["step", "ramp"])]
    spike: Option<RateAt>,
    /// Half of a spike is gone after TIME, half of the rest after as long again, and so on.
    #[arg(long, value_name = "TIME", value_parser = duration_text::parse, requires = "spike")]
    half_life: Option<Duration>,
    /// As many as a table counts for each stretch of time.
    ///
    /// Comma-separated, one stretch a line; a header line is fine, `#` begins a comment. `-` is standard
    /// input.
    #[arg(long, value_name = "CSV", requires = "column", hide_short_help = true, hide_short_help = true)]
    profile: Option<PathBuf>,
    /// Which column of the table counts, by name or by place (the first is 1).
    #[arg(long, value_name = "NAME|PLACE", requires = "profile", hide_short_help = true)]
    column: Option<String>,
    /// How long a line of the table stands for.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration_text::parse,
          requires = "profile", hide_short_help = true)]
    bin: Duration,
    /// The 1998 World Cup semi-final's evening, built in: 260 minutes, tenfold; say how high with --peak.
    #[arg(long, requires = "peak", hide_short_help = true)]
    crowd: bool,
    /// A web server's log again: its requests, at the times it has.
    ///
    /// People ask for the log's own paths, below the host of the URL. Its format is recognised (see
    /// --format), as is compression by gzip or zstd. `-` is standard input.
    #[arg(long, value_name = "LOG",
          conflicts_with_all = ["path", "url_list", "zipf", "documents", "popularity", "sizes"])]
    replay: Option<PathBuf>,
    /// N workers instead of people, paced as --timing says.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires = "timing", hide_short_help = true)]
    workers: Option<u32>,
    /// How workers send: as benchmark tools do, so that the difference to a crowd can be seen.
    ///
    /// The four methods of R. Esser's thesis on flash crowds.
    #[arg(long, value_enum, requires = "workers", hide_short_help = true)]
    timing: Option<Timing>,
    /// Machines that colliding workers run on [default: 2].
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..), requires = "workers", hide_short_help = true)]
    machines: Option<u32>,
    /// Time runs F times faster. All people still come, so rates rise too.
    #[arg(long, allow_negative_numbers = true, value_name = "F", visible_alias = "speed-up",
          value_parser = positive, requires = "shape", conflicts_with_all = ["rate", "workers"], hide_short_help = true)]
    squeeze: Option<f64>,
    /// F times as many people as in the table.
    #[arg(long, allow_negative_numbers = true, value_name = "F", value_parser = positive,
          requires = "shape", conflicts_with_all = ["rate", "workers", "peak"], hide_short_help = true)]
    scale: Option<f64>,
    /// The busiest stretch has N people a second, the others in proportion.
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = rate,
          requires = "shape", conflicts_with_all = ["rate", "workers"], hide_short_help = true)]
    peak: Option<f64>,
    /// Length of the run: 10s by default, or the whole of a table or log.
    ///
    /// With --classes also of the classes that say themselves when their people come, but not how long.
    #[arg(long, value_name = "TIME", value_parser = duration_text::parse)]
    pub(super) duration: Option<Duration>,
    /// How people fall at a rate.
    #[arg(long, value_enum, default_value_t = Spread::Poisson, requires = "shape",
          conflicts_with_all = ["replay", "workers"], hide_short_help = true)]
    arrivals: Spread,
    /// Self-similar arrivals: Pareto shape of the sessions' lengths, 1.05 to 1.95 [default: 1.4]. The Hurst
    /// parameter is (3 − A)/2.
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "A",
        requires = "arrivals",
        hide_short_help = true
    )]
    pareto_alpha: Option<f64>,
    /// Self-similar arrivals: time between two requests of a session, at the mean rate [default: 100ms].
    #[arg(long, value_name = "TIME", value_parser = duration_text::parse, requires = "arrivals", hide_short_help = true)]
    gap: Option<Duration>,
}

/// How people fall at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Spread {
    /// Independently of each other, as people do.
    Poisson,
    /// Evenly spaced.
    Constant,
    /// Bursty at every time scale, as web traffic is (M/G/infinity).
    SelfSimilar,
}

/// Plan of the arrivals: their process, and the behaviour that their options imply.
#[derive(Debug)]
pub(crate) struct ArrivalPlan {
    pub(crate) arrivals: ArrivalProcess,
    /// The log that is replayed.
    pub(crate) recording: Option<Recording>,
    /// Workers who send as soon as they are answered, after any answer.
    pub(crate) in_closed_loop: bool,
}

impl ArrivalArgs {
    /// Arrivals; `None` if no option describes them.
    ///
    /// # Errors
    /// A file that cannot be read, numbers that make no schedule, an absurd rate.
    pub(crate) fn arrival_plan(
        &self,
        recorded: &RecordedArgs,
        inputs: &mut Inputs,
    ) -> anyhow::Result<Option<ArrivalPlan>> {
        let arrivals = if let Some(workers) = self.workers {
            self.paced(workers)?
        } else if let Some(path) = &self.replay {
            let recording = recorded.read(path, inputs)?;
            return self.replayed(recording).with_context(|| super::inputs::name(path)).map(Some);
        } else if let Some(profile) = self.shape(inputs)? {
            self.spread(profile)?
        } else {
            return Ok(None);
        };
        let in_closed_loop = self.workers.is_some() && self.timing == Some(Timing::Closed);
        Ok(Some(ArrivalPlan { arrivals, recording: None, in_closed_loop }))
    }

    fn spread(&self, profile: RateProfile) -> anyhow::Result<ArrivalProcess> {
        ensure!(profile.peak_rate() <= LOAD_RATE_PER_S, absurd(profile.peak_rate()));
        if self.arrivals == Spread::SelfSimilar {
            let usual = SelfSimilarity::default();
            // The default's shape has no getter; it is the Hurst parameter turned round.
            let alpha = self.pareto_alpha.unwrap_or(3.0 - 2.0 * usual.hurst());
            let similarity = SelfSimilarity::new(alpha, self.gap.unwrap_or(usual.gap()))?;
            return Ok(ArrivalProcess::self_similar(profile, similarity)?);
        }
        if self.pareto_alpha.is_some() || self.gap.is_some() {
            bail!("--pareto-alpha and --gap shape self-similar arrivals: add --arrivals self-similar");
        }
        Ok(match self.arrivals {
            Spread::Constant => ArrivalProcess::Constant(profile),
            _ => ArrivalProcess::Poisson(profile),
        })
    }
}
