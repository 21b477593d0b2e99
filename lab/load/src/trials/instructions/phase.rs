//! Phases of a request and stages of the pipeline, by their functions.

use super::{Calls, Profile};

/// Functions, by a part of their path and their last names; all functions of a module where there are none.
type Functions = (&'static str, &'static [&'static str]);

/// Functions whose inclusive cost is of interest: what one calls counts with it, what it is called by does
/// not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Its name in tables and in the budget.
    pub name: &'static str,
    functions: &'static [Functions],
}

/// Work that depends on time and not on requests: plans and samples, ten and fifty times a second, and the
/// sweep that follows acknowledgements, every 10 ms.
pub(super) const TIMERS: Phase = Phase {
    name: "timers",
    functions: &[
        ("gateway::worker::sample", &["{closure}"]),
        ("gateway::worker::sweep", &["{closure}"]),
        ("gateway::replication", &["sample::{closure}"]),
        ("gateway::pipeline::attend", &["attend::{closure}"]),
        ("admission::fairness::shares::Counts", &["::end_period"]),
    ],
};

/// Tasks: connections of clients and of upstream servers, and timers.
pub(super) const TASKS: Phase =
    Phase { name: "tasks", functions: &[("tokio::runtime::task::raw", &["::poll"])] };

/// Phases and stages in the order of the tables: from the client's bytes to the end of the request. Several
/// contain others.
pub const PHASES: [Phase; 24] = [
    Phase { name: "accept", functions: &[("gateway::accept", &["accept_all::{closure}"])] },
    Phase {
        name: "client's connection, all of it",
        functions: &[("flashweir_http::serve::Server", &["::serve::{closure}"])],
    },
    Phase {
        name: "HTTP/1: a request's head read",
        functions: &[("flashweir_http::serve::http1::Http1", &["::poll_head"])],
    },
    Phase {
        name: "request: from its head to its answer",
        functions: &[
            ("gateway::request::handle", &["handle::{closure}"]),
            ("gateway::request::answer", &["answer::{closure}"]),
        ],
    },
    Phase {
        name: "received: head, service, class, client",
        functions: &[("gateway::request::received::ReceivedRequest", &["::of"])],
    },
    Phase { name: "- classify", functions: &[("flashweir_classify", &["::classify"])] },
    Phase {
        name: "offered: route, signs",
        functions: &[("gateway::request::received::ReceivedRequest", &["::offer"])],
    },
    Phase { name: "- signs of clients", functions: &[("flashweir_classify", &["::signs"])] },
    Phase { name: "replication", functions: &[("flashweir_gateway::replication", &[])] },
    Phase {
        name: "feedback",
        functions: &[("flashweir_gateway::feedback", &[]), ("flashweir_feedback", &[])],
    },
    Phase { name: "cache look-up", functions: &[("gateway::cache::lookup", &["::look_up"])] },
    Phase { name: "admit", functions: &[("gateway::pipeline::admit", &["::ask"])] },
    Phase { name: "- arrive (pipeline)", functions: &[("flashweir_admission::pipeline", &["::arrive"])] },
    Phase { name: "- fairness", functions: &[("flashweir_admission::fairness", &[])] },
    Phase { name: "send", functions: &[("gateway::request::send::send", &["{closure}"])] },
    Phase {
        name: "- head for upstream",
        functions: &[("flashweir_http::fields", &["::prepare_next_request"])],
    },
    Phase {
        name: "- upstream: choose, connect, exchange",
        functions: &[("flashweir_http::upstream::Upstreams", &["::send_with::{closure}"])],
    },
    Phase {
        name: "- upstream: request out, response's head in",
        functions: &[("flashweir_http::upstream::connection::Connection", &["::poll_response"])],
    },
    Phase { name: "answer relayed", functions: &[("gateway::forward", &["::relay"])] },
    Phase { name: "refuse", functions: &[("flashweir_gateway::refuse", &["::refuse"])] },
    Phase {
        name: "HTTP/1: a response written",
        functions: &[("flashweir_http::serve::http1::Http1", &["::begin_response", "::poll_send"])],
    },
    Phase { name: "finish", functions: &[("gateway::finish::Watch", &["::finish"])] },
    Phase {
        name: "- end (pipeline)",
        functions: &[("flashweir_admission::pipeline", &["::end_at_origin", "::finish", "::deliver"])],
    },
    Phase { name: "metrics", functions: &[("flashweir_telemetry", &[])] },
];

impl Phase {
    /// Returns true for its functions.
    #[must_use]
    pub fn has(&self, function: &str) -> bool {
        // Of `<a::B as c::D>::e` only the type has a say.
        let owner = function.split_once(" as ").map_or(function, |(owner, _)| owner);
        let is_of = |(part, ends): &Functions| {
            owner.contains(part) && (ends.is_empty() || ends.iter().any(|end| function.ends_with(end)))
        };
        self.functions.iter().any(is_of) && !function.starts_with("core::ptr::drop_in_place")
    }

    /// Its calls and their inclusive cost; timers only if it is the timers.
    #[must_use]
    pub(super) fn calls(&self, profile: &Profile) -> Calls {
        profile.calls(|function| self.has(function) && (*self == TIMERS || !TIMERS.has(function)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(function: &str) -> Vec<&'static str> {
        PHASES.iter().filter(|phase| phase.has(function)).map(|phase| phase.name).collect()
    }

    #[test]
    fn phases_are_found_by_their_functions() {
        assert_eq!(
            phase(
                "flashweir_admission::pipeline::order::<impl flashweir_admission::pipeline::Pipeline<T>>::arrive"
            ),
            ["- arrive (pipeline)"]
        );
        assert_eq!(phase("flashweir_admission::sentry::candidate::CandidateGate::arrive"), [""; 0]);
        assert_eq!(
            phase("flashweir_gateway::request::received::ReceivedRequest::of"),
            ["received: head, service, class, client"]
        );
        assert_eq!(
            phase("flashweir_http::serve::http1::Http1<Io,S,F,B>::poll_head"),
            ["HTTP/1: a request's head read"]
        );
        assert_eq!(phase("core::ptr::drop_in_place<flashweir_telemetry::Table>"), [""; 0]);
    }

    #[test]
    fn timers_are_no_replication() {
        let sample = "flashweir_gateway::replication::reporter::sample::{closure}";
        assert!(TIMERS.has(sample) && TIMERS.has("flashweir_gateway::worker::sweep::{closure}"));
        let text = format!("events: Ir\nfl=???\nfn=a\n0 1\ncfn={sample}\ncalls=3 0\n0 30\n");
        let profile = Profile::parse(&text).expect("a profile");
        assert_eq!(TIMERS.calls(&profile).cost.instructions, 30);
        let replication = PHASES.iter().find(|phase| phase.name == "replication").expect("a phase");
        assert_eq!(replication.calls(&profile), Calls::default());
    }
}
