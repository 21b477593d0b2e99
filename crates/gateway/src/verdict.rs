//! Says why load is as it is, and who limits whom: the verdict in `/status` and in the metrics, and one line
//! a minute and service in the log for as long as requests are refused there.

use crate::shared::{Live, Shared};
use flashweir_admission::pipeline::{LoadCause, LoadVerdict, Situation, StageName, VerdictKeeper};
use flashweir_config::{FlashCrowdMode, Service};
use flashweir_core::{Duration, Instant, Reason, Shortage};
use flashweir_runtime::tell_verdict;
use serde_json::{Value, json};
use std::sync::Arc;

/// Between two lines about refusals of one service.
const TELLS_EVERY: Duration = Duration::from_secs(60);

/// Keeps the verdict; lives on the control thread.
#[derive(Debug, Default)]
pub(crate) struct VerdictTask {
    keeper: VerdictKeeper,
    refused: [u64; Reason::ALL.len()],
    services: Vec<ServiceSeen>,
}

/// State of the refusals of one service.
#[derive(Clone, Debug)]
struct ServiceSeen {
    name: String,
    /// Counts when the last line was logged, or nothing had been refused: offered, and refused by reason.
    offered: u64,
    refused: [u64; Reason::ALL.len()],
    counted_at: Instant,
    is_refusing: bool,
    /// Refused at the last look, of all reasons.
    refused_before: u64,
    /// Cause of the load when requests were last refused, where one was known.
    refused_in: Option<LoadCause>,
}

impl VerdictTask {
    /// Looks at all stages; to be called after the plan of NEWS.
    pub(crate) fn look(&mut self, shared: &Shared) {
        let now = shared.clock.now();
        let live = shared.live.load();
        let counted =
            Reason::ALL.map(|reason| shared.telemetry.sum(|worker| worker.requests.shed.value(reason)));
        let verdict = self.keeper.judge(now, &self.situation(shared, &live, &counted));
        let before = shared.verdict.load_full();
        if *before != verdict {
            tell_verdict(&shared.warnings, now, [before.cause.as_str(), verdict.cause.as_str()]);
            shared.verdict.store(Arc::new(verdict));
        }
        shared.telemetry.control().publish_verdict(verdict.cause);
        self.refused = counted;
        self.tell(now, shared, &live, &verdict);
    }

    fn situation(&self, shared: &Shared, live: &Live, counted: &[u64]) -> Situation {
        let mut refused = [0; StageName::COUNT];
        for ((reason, now), before) in Reason::ALL.into_iter().zip(counted).zip(self.refused) {
            // A caller's deadline says how long the caller waits, and nothing of what is short here.
            if reason != Reason::CallerDeadline {
                refused[StageName::of(reason) as usize] += now.saturating_sub(before);
            }
        }
        let plan = shared.plan.load();
        let acts = |sentry: &Option<_>, service: &Service| sentry.is_some() && !service.sentry.shadow;
        let mut owned = live.sentries.iter().zip(&live.config.services);
        let waits = |sentry: &Arc<crate::sentry::Sentry>| {
            (0..sentry.names.classes.len()).any(|class| sentry.common.held(class) > 0)
        };
        Situation {
            news: plan.explanation.cause,
            has_ceiling: plan.explanation.ceiling_rps.is_some() && !live.config.flash_crowd.shadow,
            judges_whole: live.config.flash_crowd.mode != FlashCrowdMode::Repaired
                || owned.any(|(sentry, service)| !acts(sentry, service)),
            waits_for_origin: live.sentries.iter().flatten().any(waits),
            refused,
            over_share: over_share(counted).saturating_sub(over_share(&self.refused)),
        }
    }

    fn tell(&mut self, now: Instant, shared: &Shared, live: &Live, verdict: &LoadVerdict) {
        self.services.retain(|seen| live.config.services.iter().any(|service| service.name == seen.name));
        for (service, sentry) in live.config.services.iter().zip(&live.sentries) {
            let (offered, refused) = counts(shared, service);
            let place = self.services.iter().position(|seen| seen.name == service.name);
            let place = place.unwrap_or_else(|| {
                self.services.push(ServiceSeen {
                    name: service.name.clone(),
                    offered,
                    refused,
                    counted_at: now,
                    is_refusing: false,
                    refused_before: refused.iter().sum(),
                    refused_in: None,
                });
                self.services.len() - 1
            });
            let seen = &mut self.services[place];
            let news: u64 =
                refused.iter().zip(seen.refused).map(|(now, before)| now.saturating_sub(before)).sum();
            seen.follow(refused.iter().sum(), verdict.cause);
            let span = now.saturating_since(seen.counted_at);
            let is_due = !seen.is_refusing || span >= TELLS_EVERY;
            if news == 0 {
                if is_due {
                    (seen.offered, seen.counted_at, seen.is_refusing) = (offered, now, false);
                }
                continue;
            }
            if !is_due {
                continue;
            }
            let most = Reason::ALL.into_iter().zip(refused).zip(seen.refused);
            let most = most.max_by_key(|((_, now), before)| now.saturating_sub(*before));
            let reason = most.map_or("", |((reason, _), _)| reason.as_str());
            // Some of those refused waited, and were offered before.
            let offered_news = offered.saturating_sub(seen.offered).max(news);
            tracing::warn!(
                event = "refusing",
                service = service.name,
                refused = news,
                offered = offered_news,
                reason,
                seconds = span.as_secs_f64().round(),
                verdict = seen.refused_in.map(LoadCause::as_str),
                machine_short_of = shared.machines.load().short_of(now, &service.name).map(Shortage::as_str),
                limit = sentry.as_ref().map(|sentry| sentry.plan.load().limit),
                guarantees_infeasible =
                    sentry.as_ref().map(|sentry| sentry.plan.load().explanation.guarantees_infeasible),
                ceiling_rps = shared.plan.load().explanation.ceiling_rps.map(f64::round),
                "{news} of {offered_news} requests were refused, most for the reason {reason}. {}",
                seen.refused_in.map_or("", sentence),
            );
            (seen.offered, seen.refused, seen.counted_at, seen.is_refusing) = (offered, refused, now, true);
            seen.refused_in = None;
        }
    }
}

impl ServiceSeen {
    /// Remembers the cause of the load while requests are refused. Calm is none: a verdict ends a moment
    /// before the last refusal of those who waited, or follows the first.
    fn follow(&mut self, refused: u64, cause: LoadCause) {
        let is_calm = matches!(cause, LoadCause::Calm | LoadCause::TooFewSamples);
        if refused > self.refused_before && !is_calm {
            self.refused_in = Some(cause);
        }
        self.refused_before = refused;
    }
}

/// Refusals of requests that came after the others because their clients were over a fair share.
fn over_share(by_reason: &[u64]) -> u64 {
    let counts = Reason::ALL.into_iter().zip(by_reason);
    counts.filter(|(reason, _)| *reason == Reason::FairShare).map(|(_, count)| count).sum()
}

/// Offered to a service, and refused by reason, over all workers.
fn counts(shared: &Shared, service: &Service) -> (u64, [u64; Reason::ALL.len()]) {
    let control = shared.telemetry.control();
    let (mut offered, mut refused) = (0, [0; Reason::ALL.len()]);
    for class in &service.classes {
        let slot = control.class_slot(&service.name, &class.name);
        offered += shared.telemetry.sum(|worker| worker.classes.of(slot).offered.value());
        for (count, reason) in refused.iter_mut().zip(Reason::ALL) {
            *count += shared.telemetry.sum(|worker| worker.classes.of(slot).shed.value(reason));
        }
    }
    (offered, refused)
}

/// The verdict in `/status`, with the numbers it rests on.
pub(crate) fn status(shared: &Shared) -> Value {
    let (verdict, plan) = (shared.verdict.load(), shared.plan.load());
    let why = &plan.explanation;
    let machines = shared.machines.load();
    let now = shared.clock.now();
    let service = blamed(shared);
    let short_of = service.as_deref().and_then(|service| machines.short_of(now, service));
    let said = service.as_deref().and_then(|service| machines.explanation(now, service));
    json!({
        "cause": verdict.cause.as_str(),
        "limited_by": verdict.limits.map(StageName::as_str),
        "short_of": verdict.short_of().map(flashweir_admission::pipeline::Resource::as_str),
        "machine_short_of": short_of.map(Shortage::as_str),
        "explanation": explanation(&verdict, service.as_deref().zip(short_of).zip(said)),
        "for_s": now.saturating_since(verdict.since).as_secs_f64(),
        "offered_rps": why.offered_rps,
        "admitted_rps": why.admitted_rps,
        "unique_offered_rps": why.unique_offered_rps,
        "unique_offered_usual_rps": why.unique_offered_reference_rps,
    })
}

/// The service whose machines the verdict speaks of: one for which requests wait, else one whose machines are
/// short of something, else the first that has agents.
fn blamed(shared: &Shared) -> Option<String> {
    let (live, machines, now) = (shared.live.load(), shared.machines.load(), shared.clock.now());
    let known = live.config.services.iter().zip(&live.sentries).filter_map(|(service, sentry)| {
        let short_of = machines.short_of(now, &service.name)?;
        let waits = sentry
            .as_ref()
            .is_some_and(|sentry| (0..sentry.names.classes.len()).any(|class| sentry.common.held(class) > 0));
        Some((service, (waits, short_of != Shortage::Nothing)))
    });
    // The last of equals is the maximum, and the first is wanted.
    known.rev().max_by_key(|(_, reasons)| *reasons).map(|(service, _)| service.name.clone())
}

/// Cause of load, in a sentence.
fn sentence(cause: LoadCause) -> &'static str {
    match cause {
        LoadCause::TooFewSamples => "Too few responses came back to judge by, and no request is refused.",
        LoadCause::Calm => "Load is as usual.",
        LoadCause::SurgeOk => "More requests than usual, served as usual.",
        LoadCause::Popular => "More requests than the origin can serve.",
        LoadCause::Abusive => {
            "More requests than the origin can serve, most of those refused from clients over a fair share."
        }
        LoadCause::SlowBackend => "No more requests than usual, and the origin is short all the same.",
        LoadCause::CongestedLink => "The path to the clients carries less than is asked for.",
        LoadCause::Bound => "A bound of the configuration refuses, while origin and delivery have room.",
    }
}

/// Cause of the present load, in a sentence or two.
fn explanation(verdict: &LoadVerdict, machine: Option<((&str, Shortage), &str)>) -> String {
    let cause = sentence(verdict.cause);
    match machine {
        None => cause.to_owned(),
        Some(((service, Shortage::Nothing), said)) => {
            format!("{cause} The machines of service {service} are short of nothing. {said}")
        }
        Some(((service, short_of), said)) => {
            format!("{cause} The machines of service {service} are short of: {}. {said}", short_of.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> ServiceSeen {
        ServiceSeen {
            name: "shop".to_owned(),
            offered: 0,
            refused: [0; Reason::ALL.len()],
            counted_at: Instant::ZERO,
            is_refusing: false,
            refused_before: 0,
            refused_in: None,
        }
    }

    /// The line of a minute is written when the crowd may have gone: it names the cause of its refusals.
    #[test]
    fn a_line_names_the_cause_at_the_time_of_the_refusals_and_never_calm() {
        let mut seen = seen();
        for (refused, cause) in [(0, LoadCause::Calm), (7, LoadCause::Popular), (9, LoadCause::Calm)] {
            seen.follow(refused, cause);
        }
        assert_eq!(seen.refused_in, Some(LoadCause::Popular));
        seen.follow(9, LoadCause::Bound);
        assert_eq!(seen.refused_in, Some(LoadCause::Popular), "nothing was refused under this cause");
        seen.refused_in = None;
        for cause in [LoadCause::Calm, LoadCause::TooFewSamples] {
            seen.follow(seen.refused_before + 1, cause);
        }
        assert_eq!(seen.refused_in, None);
    }
}
