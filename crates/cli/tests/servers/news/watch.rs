//! Looks at the gateway's verdict while something happens.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use flashweir_testkit::StatusWatch;
use serde_json::Value;

/// Often enough to see every state that lasts.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Status of the gateway at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Instant,
    pub(crate) mode: String,
    pub(crate) cause: String,
    pub(crate) rule: String,
    /// `open`, `all` or `hot_spots`.
    pub(crate) limit: String,
    pub(crate) ceiling_rps: Option<f64>,
    /// Verdict on the load and its cause, by all stages.
    pub(crate) verdict: String,
    /// The rule and the limit of the first service's sentry, if it has one.
    pub(crate) sentry: Option<(String, u64)>,
}

/// Asks for the status until it is stopped.
pub(crate) struct Watch(StatusWatch<Seen>);

impl Watch {
    pub(crate) fn start(admin: SocketAddr) -> Self {
        Self(StatusWatch::start(admin, LOOK_EVERY, look))
    }

    /// Everything that was seen, in its order.
    pub(crate) fn stop(self) -> Vec<Seen> {
        self.0.stop().into_iter().map(|(at, seen)| Seen { at, ..seen }).collect()
    }
}

fn look(status: &Value) -> Seen {
    let plan = &status["plan"];
    let sentry = &status["services"][0]["sentry"]["plan"];
    let text = |key: &str| plan[key].as_str().unwrap_or_default().to_owned();
    Seen {
        at: Instant::now(),
        mode: text("mode"),
        verdict: status["verdict"]["cause"].as_str().unwrap_or_default().to_owned(),
        cause: text("cause"),
        rule: text("rule"),
        limit: plan["limit"]["kind"].as_str().unwrap_or_default().to_owned(),
        ceiling_rps: plan["ceiling_rps"].as_f64(),
        sentry: sentry["rule"].as_str().map(ToOwned::to_owned).zip(sentry["limit"].as_u64()),
    }
}

/// The different verdicts in their order, to be read by a person when a test fails.
pub(crate) fn story(seen: &[Seen]) -> String {
    let Some(first) = seen.first() else { return "nothing was seen".to_owned() };
    let mut lines = Vec::new();
    let mut last = None;
    for look in seen {
        let state = (look.mode.as_str(), look.cause.as_str(), look.rule.as_str());
        if last != Some(state) {
            let after = look.at.duration_since(first.at).as_secs_f64();
            lines.push(format!("{after:6.2} s {} {} {} {:?}", state.0, state.1, state.2, look.ceiling_rps));
        }
        last = Some(state);
    }
    // The flicker between neighbouring verdicts is endless in a long run; its beginning and end tell enough.
    const KEPT: usize = 60;
    if lines.len() > 2 * KEPT {
        lines.splice(KEPT..lines.len() - KEPT, ["...".to_owned()]);
    }
    lines.join("\n")
}
