//! The origins whose requests differ, their kinds of request, and how much of each kind is offered in each
//! phase.

use crate::trials::origins::TARGET;
use serde::{Deserialize, Serialize};

/// Length of the calm, seconds: the long polls that are in flight at its end have reached their usual number.
pub const CALM_S: u64 = 25;

/// Length of the crowd, seconds.
pub const CROWD_S: u64 = 15;

/// An origin; each has its own program beside the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Node with long polls beside pages.
    Polls,
    /// Python's asyncio with long polls and requests of 6 s beside pages.
    Asyncio,
    /// Node with server-sent events and WebSockets beside pages.
    Streams,
    /// Python WSGI with reports that compute and exports that wait beside pages.
    Exports,
    /// Node that stands still for 0.4 s in every 2 s.
    Pauses,
    /// PHP-FPM whose pages wait for another service.
    Api,
    /// A model server: every request takes seconds.
    Model,
}

/// A stretch of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Well below the capacity.
    Calm,
    /// Pages over the capacity, or a step that the origin can carry.
    Crowd,
    /// Part of the capacity is gone.
    Loss,
}

/// Way in which part of the capacity goes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Another program competes for the core.
    Neighbour,
    /// Half of the worker processes stand still.
    HalfOfTheWorkers,
}

/// Rate at which requests of a kind are offered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Offered {
    /// A multiple of the pages that the origin completes in a closed loop.
    OfCapacity(f64),
    /// Requests a second, as a Poisson process.
    Rps(f64),
    /// Requests a second at equal distances: clients that ask again as soon as they are answered.
    Evenly(f64),
}

/// Protocol of a kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// A request and its response.
    Http,
    /// Server-sent events until the run ends.
    Events,
    /// A WebSocket until the run ends.
    WebSocket,
}

/// One kind of request.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name in the tables.
    pub name: &'static str,
    /// Path and query; `{document}` stands for the number of the request.
    pub path: &'static str,
    /// Protocol of the client.
    pub speaks: Speaks,
    /// Time that it takes at an idle origin, at most, seconds.
    pub own_s: f64,
    /// Rates in calm, in the crowd, and during the loss.
    pub offered: [Offered; 3],
}

impl Kind {
    /// Requests of this kind in flight for long: in calm, of streams at the end of the crowd; 0 of pages.
    #[must_use]
    pub fn long_in_flight(&self) -> f64 {
        let rps = |phase: Phase| match self.offered[phase as usize] {
            Offered::OfCapacity(_) => 0.0,
            Offered::Rps(rps) | Offered::Evenly(rps) => rps,
        };
        if self.speaks == Speaks::Http {
            return rps(Phase::Calm) * self.own_s;
        }
        // Streams stay.
        rps(Phase::Calm) * CALM_S as f64 + rps(Phase::Crowd) * CROWD_S as f64
    }

    /// A response within this time is in time, and clients leave after it, seconds.
    #[must_use]
    pub const fn allowed_s(&self) -> f64 {
        self.own_s + TARGET.as_secs() as f64
    }
}

/// Pages that cost milliseconds of the core: far below the capacity, three times the capacity, and all of it.
const PAGES: Kind = Kind {
    name: "pages",
    path: "/page",
    speaks: Speaks::Http,
    own_s: 0.0,
    offered: [Offered::OfCapacity(0.4), Offered::OfCapacity(3.0), Offered::OfCapacity(1.0)],
};

const fn steady(name: &'static str, path: &'static str, own_s: f64, rps: f64) -> Kind {
    Kind { name, path, speaks: Speaks::Http, own_s, offered: [Offered::Evenly(rps); 3] }
}

const fn step(name: &'static str, path: &'static str, own_s: f64, rps: f64) -> Kind {
    let offered = [Offered::Rps(rps), Offered::Rps(3.0 * rps), Offered::Rps(3.0 * rps)];
    Kind { name, path, speaks: Speaks::Http, own_s, offered }
}

const fn stream(name: &'static str, path: &'static str, speaks: Speaks) -> Kind {
    let offered = [Offered::Evenly(1.0), Offered::Evenly(0.4), Offered::Evenly(0.4)];
    Kind { name, path, speaks, own_s: 0.0, offered }
}

const POLLS: [Kind; 2] = [PAGES, steady("long polls of 20 s", "/poll?s=20", 20.0, 2.0)];
const ASYNCIO: [Kind; 3] = [
    PAGES,
    steady("long polls of 20 s", "/poll?s=20", 20.0, 2.0),
    steady("requests of 6 s", "/poll?s=6", 6.0, 1.0),
];
const STREAMS: [Kind; 3] = [
    PAGES,
    stream("server-sent events", "/events", Speaks::Events),
    stream("WebSockets", "/socket", Speaks::WebSocket),
];
const EXPORTS: [Kind; 3] = [
    Kind { offered: [Offered::OfCapacity(0.3), PAGES.offered[1], PAGES.offered[2]], ..PAGES },
    // 1.5 s of the core's time each, 0.3 of the core together; 9 s beside pages that have five sixths of it.
    steady("reports of 1.5 s of work", "/report", 9.0, 0.2),
    steady("exports that wait 5 s", "/export", 5.0, 0.3),
];
const PAUSES: [Kind; 1] = [PAGES];
const API: [Kind; 1] = [step("pages that wait 0.8 s", "/page", 0.8, 8.0)];
const MODEL: [Kind; 2] = [
    step("answers of 1 to 3 s", "/complete?half=0&n={document}", 3.1, 1.0),
    step("answers of 4 to 12 s", "/complete?half=1&n={document}", 11.8, 1.0),
];

impl Origin {
    /// Every origin, in the order of the tables.
    pub const ALL: [Self; 7] =
        [Self::Polls, Self::Asyncio, Self::Streams, Self::Exports, Self::Pauses, Self::Api, Self::Model];

    /// The word that `ONLY` takes.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Polls => "polls",
            Self::Asyncio => "asyncio",
            Self::Streams => "streams",
            Self::Exports => "exports",
            Self::Pauses => "pauses",
            Self::Api => "api",
            Self::Model => "model",
        }
    }

    /// Its name in the tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Polls => "Node, long polls",
            Self::Asyncio => "Python asyncio, long polls and requests of 6 s",
            Self::Streams => "Node, event streams and WebSockets",
            Self::Exports => "Python WSGI, reports and exports",
            Self::Pauses => "Node that pauses",
            Self::Api => "PHP-FPM before a slow API",
            Self::Model => "model server",
        }
    }

    /// Its kinds of request.
    #[must_use]
    pub const fn kinds(self) -> &'static [Kind] {
        match self {
            Self::Polls => &POLLS,
            Self::Asyncio => &ASYNCIO,
            Self::Streams => &STREAMS,
            Self::Exports => &EXPORTS,
            Self::Pauses => &PAUSES,
            Self::Api => &API,
            Self::Model => &MODEL,
        }
    }

    /// Returns whether its crowd is bounded by its core. The others wait only, and their crowd is a step that
    /// they carry.
    #[must_use]
    pub const fn is_work(self) -> bool {
        !matches!(self, Self::Api | Self::Model)
    }

    /// Loss of capacity in the last phase; `None` without that phase.
    #[must_use]
    pub const fn loss(self) -> Option<Loss> {
        match self {
            Self::Polls => Some(Loss::Neighbour),
            Self::Exports | Self::Api => Some(Loss::HalfOfTheWorkers),
            Self::Asyncio | Self::Streams | Self::Pauses | Self::Model => None,
        }
    }

    /// Long requests in flight, of all kinds: a static limit must be above it.
    #[must_use]
    pub fn long_in_flight(self) -> f64 {
        self.kinds().iter().map(Kind::long_in_flight).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forty_polls_are_in_flight_in_calm() {
        assert_eq!(Origin::Polls.long_in_flight(), 40.0);
        assert_eq!(Origin::Asyncio.long_in_flight(), 46.0);
        assert_eq!(Origin::Streams.long_in_flight(), 62.0);
        assert_eq!(Origin::Pauses.long_in_flight(), 0.0);
    }

    #[test]
    fn each_origin_has_its_own_key() {
        let mut keys = Origin::ALL.map(Origin::key).to_vec();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), Origin::ALL.len());
    }

    #[test]
    fn what_waits_only_has_no_pages_over_the_capacity() {
        for origin in Origin::ALL {
            let over = origin.kinds().iter().any(|kind| matches!(kind.offered[1], Offered::OfCapacity(_)));
            assert_eq!(over, origin.is_work(), "{origin:?}");
        }
    }
}
