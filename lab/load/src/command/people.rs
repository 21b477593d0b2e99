//! Options for the behaviour of people.

use crate::ClassPlan;
use anyhow::ensure;
use flashweir_config::command::numbers::within;
use flashweir_workload::duration_text;
use flashweir_workload::people::{Failures, Habits, Pace, Retry, Session, SessionLength, Wait};
use std::num::NonZeroU32;
use std::time::Duration;

/// Options for the behaviour of people.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "What people do")]
#[group(id = "people")]
pub(crate) struct PeopleArgs {
    /// An answer completed within TIME of its moment is goodput.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration_text::parse)]
    target: Duration,
    /// The client gives a try up after TIME, and may try again: timed out.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration_text::parse)]
    timeout: Duration,
    /// A person leaves for good when a request, over all its tries, takes longer: abandoned.
    ///
    /// `2s`, `exp:2s` (exponential with that mean) or `uniform:1s-3s`, drawn once for each person. Without
    /// this option only the timeout ends a try.
    #[arg(long, value_name = "WAIT")]
    patience: Option<Wait>,
    /// Requests a person makes one after the other: N, geometric:MEAN or endless [default: 1].
    ///
    /// A person who is not served leaves. No request begins after the end of the run.
    #[arg(long, value_name = "LENGTH")]
    session: Option<SessionLength>,
    /// Time from an answer to the person's next request: 2s, exp:2s or uniform:1s-3s [default: 0s].
    #[arg(long, value_name = "WAIT", requires = "session", hide_short_help = true)]
    think: Option<Wait>,
    /// People try again when they fail, after a wait [default: they do not].
    ///
    /// `at-once`, `fixed:1s`, `backoff:100ms-10s` (doubling, with full jitter) or `retry-after:5s` (what the
    /// answer's Retry-After says, else 5s).
    #[arg(long, value_name = "PACE")]
    retry: Option<Pace>,
    /// The chance that a person tries again after a failed try, 0 to 1.
    #[arg(long, allow_negative_numbers = true, value_name = "P", default_value_t = 1.0,
          value_parser = within(0.0, 1.0), requires = "retry", hide_short_help = true)]
    retry_share: f64,
    /// Tries of one request at most, the first included.
    #[arg(long, value_name = "N", default_value = "3", requires = "retry", hide_short_help = true)]
    tries: NonZeroU32,
    /// Failures after which people try again: some of refusal,timeout,error.
    #[arg(
        long,
        value_name = "LIST",
        default_value = "refusal,timeout",
        requires = "retry",
        hide_short_help = true
    )]
    retry_on: Failures,
}

impl PeopleArgs {
    /// Makes the people of a class behave so; in a closed loop, as the workers of a benchmark tool.
    ///
    /// # Errors
    /// A closed loop with sessions of their own.
    pub(crate) fn apply(&self, in_closed_loop: bool, class: &mut ClassPlan) -> anyhow::Result<()> {
        let has_sessions = self.session.is_some();
        ensure!(!(in_closed_loop && has_sessions), "--session: workers in a closed loop never stop asking");
        let usual = Session::default();
        let usual_length = if in_closed_loop { SessionLength::Endless } else { usual.requests };
        let session = Session {
            requests: self.session.unwrap_or(usual_length),
            think: self.think.unwrap_or(usual.think),
        };
        let retry = self.retry.map(|pace| Retry {
            share: self.retry_share,
            pace,
            tries_most: self.tries.get(),
            on: self.retry_on,
        });
        class.habits = Habits { patience: self.patience, session, retry };
        class.goes_on_unserved = in_closed_loop;
        class.timeout = self.timeout;
        class.good_within = self.target;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ClassPlan;
    use crate::command::class::tests::class;
    use flashweir_workload::people::{Habits, Pace, SessionLength};
    use std::time::Duration;

    const URL: &str = "http://127.0.0.1:8080/";

    fn people(options: &str) -> Result<ClassPlan, String> {
        class(URL, options).map(|class| class.plan)
    }

    #[test]
    fn people_ask_once_and_give_up_after_two_seconds_unless_told() {
        let plan = people("--rate 5").unwrap();
        assert_eq!(plan.habits, Habits::default());
        let second = Duration::from_secs(1);
        assert_eq!((plan.timeout, plan.good_within, plan.goes_on_unserved), (2 * second, second, false));
    }

    #[test]
    fn every_habit_may_be_set() {
        let plan = people(
            "--rate 5 --session geometric:5 --think exp:8s --patience uniform:1s-3s --timeout 500ms --target 200ms \
             --retry fixed:1s --retry-share 0.5 --tries 4 --retry-on refusal",
        )
        .unwrap();
        assert_eq!(plan.habits.session.requests.to_string(), "geometric:5");
        assert_eq!(plan.habits.session.think.to_string(), "exp:8s");
        assert_eq!(plan.habits.patience.unwrap().to_string(), "uniform:1s-3s");
        assert_eq!(plan.timeout, Duration::from_millis(500));
        assert_eq!(plan.good_within, Duration::from_millis(200));
        let retry = plan.habits.retry.unwrap();
        assert_eq!((retry.share, retry.tries_most), (0.5, 4));
        assert_eq!(retry.pace, Pace::Fixed(Duration::from_secs(1)));
        assert_eq!(retry.on.to_string(), "refusal");
        let usual = people("--rate 5 --retry at-once").unwrap().habits.retry.unwrap();
        assert_eq!(
            (usual.share, usual.tries_most, usual.on.to_string().as_str()),
            (1.0, 3, "refusal,timeout")
        );
    }

    #[test]
    fn workers_in_a_closed_loop_never_stop() {
        let plan = people("--workers 3 --timing closed").unwrap();
        assert_eq!(plan.habits.session.requests, SessionLength::Endless);
        assert_eq!(plan.habits.session.think.mean(), Duration::ZERO);
        assert!(plan.goes_on_unserved);
        assert!(!people("--workers 3 --timing random").unwrap().goes_on_unserved);
    }

    #[test]
    fn habits_nobody_has_are_refused_by_name() {
        let check = |options: &str, wanted: &str| {
            let message = people(options).unwrap_err();
            assert!(message.contains(wanted), "{options}: {message:?} lacks {wanted:?}");
        };
        check("--rate 5 --timeout 2", "500ms");
        check("--rate 5 --session 0", "is not a number of requests");
        check("--rate 5 --think 1s", "--session");
        check("--rate 5 --patience soon", "is not a wait");
        check("--rate 5 --tries 3", "--retry");
        check("--rate 5 --retry often", "is not a pace");
        check("--rate 5 --retry at-once --tries 0", "--tries");
        check("--rate 5 --retry at-once --retry-share 1.5", "from 0 to 1");
        check("--rate 5 --retry at-once --retry-on 503", "is not a list of failures");
        check("--workers 3 --timing closed --session 3", "closed loop");
    }
}
