//! Reason for the load, in one word for people: demand rose or did not, and one resource is short or none.
//!
//! | demand | the origin is short | delivery is short | nothing is short |
//! |---|---|---|---|
//! | up | `popular` | `congested_link` | `surge_ok` |
//! | up, by clients over a fair share | `abusive` | `congested_link` | `surge_ok` |
//! | not up | `slow_backend` | `congested_link` | `calm` |
//!
//! *Short* is the word of the resource's owner: the sentry's of the origin, which refuses or lets requests
//! wait for a second on end, the ladder's likewise, and that of an upstream which asks for less; NEWS's of
//! delivery, whose fastest responses are worse than usual. Where no sentry owns the origin NEWS cannot
//! distinguish the two, and says `popular` or `slow_backend` as its authors do. A bound of the configuration
//! that refuses is `bound`. So the verdict is never `calm` while a request is refused.
//!
//! Demand is up by clients over a fair share when most of the requests that were refused lately came after
//! the others for it ([`fairness`](crate::fairness)): if they had not come, the others would fit.
//!
//! A verdict enters at once when a request is refused, otherwise when it has been true for a second on end;
//! it gives way to `calm` and `too_few_samples` only when it has not been true for five.

use super::{Resource, StageName};
use crate::flash_crowd::Cause;
use flashweir_core::{Duration, Instant};

/// Reason for the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LoadCause {
    /// Too few responses came back to judge by, and no request is refused.
    #[default]
    TooFewSamples,
    /// As usual.
    Calm,
    /// More people than usual, served as usual.
    SurgeOk,
    /// More people than the origin can serve.
    Popular,
    /// More requests than the origin can serve, most of those refused from clients over a fair share.
    Abusive,
    /// No more people than usual, and the origin is short all the same.
    SlowBackend,
    /// The path to the clients carries less than is asked for.
    CongestedLink,
    /// A bound of the configuration refuses, while origin and delivery have room.
    Bound,
}

impl LoadCause {
    /// All of them, in the order of their discriminants.
    pub const ALL: [Self; 8] = [
        Self::TooFewSamples,
        Self::Calm,
        Self::SurgeOk,
        Self::Popular,
        Self::Abusive,
        Self::SlowBackend,
        Self::CongestedLink,
        Self::Bound,
    ];

    /// The one spelling used in metrics, logs and `/status`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooFewSamples => "too_few_samples",
            Self::Calm => "calm",
            Self::SurgeOk => "surge_ok",
            Self::Popular => "popular",
            Self::Abusive => "abusive",
            Self::SlowBackend => "slow_backend",
            Self::CongestedLink => "congested_link",
            Self::Bound => "bound",
        }
    }
}

/// State of all stages at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// Cause that the flash-crowd stage sees.
    pub news: Cause,
    /// It has a ceiling.
    pub has_ceiling: bool,
    /// There is a service whose origin no sentry owns, so NEWS judges whole responses.
    pub judges_whole: bool,
    /// Requests wait for some origin.
    pub waits_for_origin: bool,
    /// Requests refused since the last time, by the stage that is charged.
    pub refused: [u64; StageName::COUNT],
    /// Of those, requests that came after the others because their clients were over a fair share.
    pub over_share: u64,
}

/// A verdict in force.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadVerdict {
    /// Reason for the load.
    pub cause: LoadCause,
    /// The stage that limits; none while nothing is short.
    pub limits: Option<StageName>,
    /// Time at which it came into force.
    pub since: Instant,
}

impl LoadVerdict {
    /// Resource that is short, if any.
    #[must_use]
    pub fn short_of(&self) -> Option<Resource> {
        self.limits.map(StageName::resource)
    }
}

/// Requests that wait are a shortage when they have done so for this long on end; what is no refusal comes
/// into force when it has been true for this long.
const CONFIRMED_AFTER: Duration = Duration::from_secs(1);
/// A verdict that is no longer true leaves after this long.
const HELD_FOR: Duration = Duration::from_secs(5);
/// Decay factor of the earlier refusals at each evaluation; at ten evaluations a second their memory is two
/// seconds.
const LATELY_KEEP: f64 = 0.95;
/// Parts of the refused that are most of them.
const MOST_ENTERS: f64 = 0.6;
const MOST_STAYS: f64 = 0.4;
const BOUNDS: usize = StageName::Bounds as usize;
const FLASH_CROWD: usize = StageName::FlashCrowd as usize;
const LADDER: usize = StageName::Ladder as usize;
const GAPPING: usize = StageName::Gapping as usize;
const SENTRY: usize = StageName::Sentry as usize;
const UPSTREAM: usize = StageName::Upstream as usize;

/// Keeps the verdict. Cost: a few comparisons.
#[derive(Debug, Default)]
pub struct VerdictKeeper {
    verdict: LoadVerdict,
    /// The verdict was last true then.
    true_at: Instant,
    /// Another cause that has been true without a break, and since when.
    rival: Option<(LoadCause, Instant)>,
    waiting_since: Option<Instant>,
    /// Requests refused, and those of clients over a fair share, decayed.
    refused_lately: f64,
    over_share_lately: f64,
}

impl VerdictKeeper {
    /// The verdict in force from `now` on.
    pub fn judge(&mut self, now: Instant, seen: &Situation) -> LoadVerdict {
        let (cause, limits) = self.cause(now, seen);
        if cause == self.verdict.cause {
            (self.true_at, self.rival) = (now, None);
            self.verdict.limits = limits;
            return self.verdict;
        }
        let since = match self.rival {
            Some((rival, since)) if rival == cause => since,
            _ => now,
        };
        self.rival = Some((cause, since));
        let is_refusing = seen.refused.iter().any(|&refused| refused > 0);
        let is_quiet = matches!(cause, LoadCause::Calm | LoadCause::TooFewSamples);
        let enters = match is_quiet {
            true => now.saturating_since(self.true_at) >= HELD_FOR,
            false => is_refusing || now.saturating_since(since) >= CONFIRMED_AFTER,
        };
        if enters {
            self.verdict = LoadVerdict { cause, limits, since: now };
            (self.true_at, self.rival) = (now, None);
        }
        self.verdict
    }

    /// Cause at this moment, and the stage that limits.
    fn cause(&mut self, now: Instant, seen: &Situation) -> (LoadCause, Option<StageName>) {
        self.waiting_since = seen.waits_for_origin.then(|| self.waiting_since.unwrap_or(now));
        let has_waited =
            self.waiting_since.is_some_and(|since| now.saturating_since(since) >= CONFIRMED_AFTER);
        let has_risen = seen.has_ceiling || matches!(seen.news, Cause::Popular | Cause::SurgeOk);
        let of_origin = match (has_risen, self.is_by_over_share(seen)) {
            (true, true) => LoadCause::Abusive,
            (true, false) => LoadCause::Popular,
            (false, _) => LoadCause::SlowBackend,
        };
        let is_worse = seen.has_ceiling || matches!(seen.news, Cause::Popular | Cause::SlowBackend);
        if seen.refused[SENTRY] > 0 || has_waited {
            return (of_origin, Some(StageName::Sentry));
        }
        if seen.refused[LADDER] > 0 {
            return (of_origin, Some(StageName::Ladder));
        }
        if seen.refused[GAPPING] > 0 {
            return (of_origin, Some(StageName::Gapping));
        }
        if seen.refused[FLASH_CROWD] > 0 || is_worse {
            let cause = if seen.judges_whole { of_origin } else { LoadCause::CongestedLink };
            return (cause, Some(StageName::FlashCrowd));
        }
        if seen.refused[UPSTREAM] > 0 {
            return (LoadCause::Bound, Some(StageName::Upstream));
        }
        if seen.refused[BOUNDS] > 0 {
            return (LoadCause::Bound, Some(StageName::Bounds));
        }
        match seen.news {
            Cause::SurgeOk => (LoadCause::SurgeOk, None),
            Cause::TooFewSamples => (LoadCause::TooFewSamples, None),
            _ => (LoadCause::Calm, None),
        }
    }

    /// Returns true if most of the requests refused lately were of clients over a fair share.
    fn is_by_over_share(&mut self, seen: &Situation) -> bool {
        self.refused_lately = self.refused_lately * LATELY_KEEP + seen.refused.iter().sum::<u64>() as f64;
        self.over_share_lately = self.over_share_lately * LATELY_KEEP + seen.over_share as f64;
        let is_now = self.verdict.cause == LoadCause::Abusive;
        // Two bars, or chance would decide between two words ten times a second.
        let most = if is_now { MOST_STAYS } else { MOST_ENTERS };
        self.over_share_lately > most * self.refused_lately
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Situation = Situation {
        news: Cause::Calm,
        has_ceiling: false,
        judges_whole: false,
        waits_for_origin: false,
        refused: [0; StageName::COUNT],
        over_share: 0,
    };

    fn refused(stage: StageName, seen: Situation) -> Situation {
        let mut refused = [0; StageName::COUNT];
        refused[stage as usize] = 1;
        Situation { refused, ..seen }
    }

    /// The verdict after this has been seen ten times a second for seven seconds.
    fn settled(seen: &Situation) -> (LoadCause, Option<StageName>) {
        let mut keeper = VerdictKeeper::default();
        let verdicts = (0..70).map(|tick| keeper.judge(Instant::from_millis(tick * 100), seen));
        verdicts.last().map(|verdict| (verdict.cause, verdict.limits)).expect("some")
    }

    #[test]
    fn the_table_of_demand_and_of_what_is_short() {
        let risen = Situation { news: Cause::SurgeOk, ..QUIET };
        let (worse, both) =
            (Situation { news: Cause::SlowBackend, ..QUIET }, Situation { news: Cause::Popular, ..QUIET });
        let sentry = |seen| settled(&refused(StageName::Sentry, seen));
        assert_eq!(sentry(risen), (LoadCause::Popular, Some(StageName::Sentry)));
        assert_eq!(sentry(QUIET), (LoadCause::SlowBackend, Some(StageName::Sentry)));
        for seen in [worse, both, Situation { has_ceiling: true, ..QUIET }] {
            assert_eq!(settled(&seen), (LoadCause::CongestedLink, Some(StageName::FlashCrowd)), "{seen:?}");
        }
        assert_eq!(settled(&risen), (LoadCause::SurgeOk, None));
        assert_eq!(settled(&QUIET), (LoadCause::Calm, None));
        let whole = |seen| settled(&Situation { judges_whole: true, ..seen }).0;
        assert_eq!((whole(worse), whole(both)), (LoadCause::SlowBackend, LoadCause::Popular));
        let waits = Situation { waits_for_origin: true, ..QUIET };
        assert_eq!(settled(&waits), (LoadCause::SlowBackend, Some(StageName::Sentry)));
    }

    /// Goal: a crowd of which a crawler is most is called so, and the word does not come and go. Method:
    /// nine of ten requests refused are of clients over a fair share, then about half of them, then none.
    #[test]
    fn demand_that_is_up_by_clients_over_a_fair_share_is_abusive() {
        let seen = |over_share: u64, news: Cause| {
            let mut refused = [0; StageName::COUNT];
            refused[StageName::Sentry as usize] = 10;
            Situation { news, refused, over_share, ..QUIET }
        };
        let mut keeper = VerdictKeeper::default();
        let mut tick = 0;
        let mut judge = |keeper: &mut VerdictKeeper, seen: &Situation| {
            tick += 1;
            keeper.judge(Instant::from_millis(tick * 100), seen).cause
        };
        assert_eq!(judge(&mut keeper, &seen(9, Cause::SurgeOk)), LoadCause::Abusive);
        // Between four and six of ten by turns: the word stays.
        for look in 0..200 {
            let over_share = if look / 10 % 2 == 0 { 4 } else { 7 };
            assert_eq!(judge(&mut keeper, &seen(over_share, Cause::SurgeOk)), LoadCause::Abusive, "{look}");
        }
        // Then people alone: the word changes once.
        let mut changes = 0;
        let mut last = LoadCause::Abusive;
        for _ in 0..60 {
            let cause = judge(&mut keeper, &seen(0, Cause::SurgeOk));
            changes += u32::from(cause != last);
            last = cause;
        }
        assert_eq!((changes, last), (1, LoadCause::Popular));
        // Without more demand than usual it is the origin that is slow, even if clients over a fair share are
        // refused.
        assert_eq!(settled(&seen(10, Cause::Calm)).0, LoadCause::SlowBackend);
        assert_eq!(
            settled(&Situation { over_share: 9, ..refused(StageName::Bounds, QUIET) }).0,
            LoadCause::Bound
        );
    }

    /// Goal: while any stage refuses a request, the verdict is not calm, from that very moment.
    #[test]
    fn a_refusal_is_never_calm() {
        for stage in StageName::ALL {
            for news in Cause::ALL {
                let mut keeper = VerdictKeeper::default();
                for tick in 0..100 {
                    keeper.judge(Instant::from_millis(tick * 100), &QUIET);
                }
                let seen = refused(stage, Situation { news: *news, ..QUIET });
                let verdict = keeper.judge(Instant::from_secs(10), &seen);
                assert!(
                    !matches!(verdict.cause, LoadCause::Calm | LoadCause::TooFewSamples | LoadCause::SurgeOk),
                    "{stage:?} {news:?}: {verdict:?}"
                );
                assert!(verdict.limits.is_some() && verdict.short_of().is_some());
            }
        }
    }

    #[test]
    fn what_comes_and_goes_within_a_second_is_no_news_and_a_verdict_stays_for_five() {
        let mut keeper = VerdictKeeper::default();
        let worse = Situation { news: Cause::SlowBackend, ..QUIET };
        for tick in 0..100 {
            keeper.judge(Instant::from_millis(tick * 100), &QUIET);
        }
        // Worse for half a second of each.
        for tick in 100..200 {
            let seen = if tick % 10 < 5 { worse } else { QUIET };
            assert_eq!(keeper.judge(Instant::from_millis(tick * 100), &seen).cause, LoadCause::Calm);
        }
        let crowd = refused(StageName::Sentry, Situation { news: Cause::SurgeOk, ..QUIET });
        assert_eq!(keeper.judge(Instant::from_secs(20), &crowd).cause, LoadCause::Popular);
        assert_eq!(keeper.judge(Instant::from_millis(24_900), &QUIET).cause, LoadCause::Popular);
        assert_eq!(keeper.judge(Instant::from_millis(25_000), &QUIET).cause, LoadCause::Calm);
    }
}
