//! Observations of one proxy in one case, and the questions that judgements ask of them. Pure.

use flashweir_testkit::{Message, Received};

/// Event at the client, in order of time.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A whole response; interim ones count.
    Response(Message),
    /// The connection ended inside a response.
    Cut,
    /// The connection ended in order.
    Closed,
    /// The connection was reset, or could not be written to.
    Reset,
    /// Nothing came in time.
    Silence,
    /// The connection stayed open although its end was waited for.
    StaysOpen,
    /// Bytes that no response begins with.
    NotHttp,
    /// Head of an HTTP/2 response.
    Status(u16),
    /// An HTTP/2 stream was reset with this error code.
    StreamReset(u32),
    /// Result of a flood of frames.
    Flood(Flood),
}

/// Result of a flood of frames on one HTTP/2 connection.
#[derive(Clone, Debug)]
pub(crate) struct Flood {
    pub(crate) frames: u64,
    pub(crate) ended: Option<FloodEnd>,
    /// Processor time of the proxy during the flood, for each frame.
    pub(crate) micros_per_frame: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloodEnd {
    /// GOAWAY with this error code.
    Goaway(u32),
    Closed,
}

/// Both sides of one case.
#[derive(Debug)]
pub(crate) struct Observation {
    pub(crate) events: Vec<Event>,
    pub(crate) origin: Received,
}

impl Observation {
    /// Responses at the client, interim ones included.
    pub(crate) fn responses(&self) -> impl Iterator<Item = &Message> {
        self.events.iter().filter_map(|event| match event {
            Event::Response(message) => Some(message),
            _ => None,
        })
    }

    /// Final response that came last.
    pub(crate) fn last(&self) -> Option<&Message> {
        self.responses().filter(|response| response.status() >= 200).last()
    }

    /// Status of the final response that came last; 0 where none came.
    pub(crate) fn status(&self) -> u16 {
        self.last().map_or(0, Message::status)
    }

    /// Statuses of all responses, in order.
    pub(crate) fn statuses(&self) -> Vec<u16> {
        self.events.iter().filter_map(Event::status).collect()
    }

    /// Number of responses with this status.
    pub(crate) fn count(&self, status: u16) -> usize {
        self.statuses().into_iter().filter(|known| *known == status).count()
    }

    /// The request that reached the origin last.
    pub(crate) fn arrived(&self) -> Option<&Message> {
        self.origin.requests.last()
    }

    /// Head of the request that reached the origin last, as text.
    pub(crate) fn arrived_head(&self) -> String {
        self.arrived().map(|request| String::from_utf8_lossy(&request.head).into_owned()).unwrap_or_default()
    }

    /// Field of the request that reached the origin last.
    pub(crate) fn arrived_field(&self, name: &str) -> Option<&str> {
        self.arrived().and_then(|request| request.field(name))
    }

    /// The request was refused here: by a status of class 4 or 5 or by closing, and no request reached the
    /// origin.
    pub(crate) fn is_refused(&self) -> bool {
        let by_status = (400..600).contains(&self.status());
        let by_closing =
            matches!(self.events.first(), Some(Event::Closed | Event::Reset | Event::StreamReset(_)));
        self.origin.requests.is_empty() && (by_status || by_closing)
    }

    /// The proxy closes the connection, or says that it does: it may read on for a while so that its answer
    /// is not lost.
    pub(crate) fn ends_connection(&self) -> bool {
        let says_close = |response: &Message| {
            response.field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
        };
        matches!(self.events.last(), Some(Event::Closed | Event::Reset))
            || self.last().is_some_and(says_close)
    }

    /// The client can see that the response is broken.
    pub(crate) fn is_broken(&self) -> bool {
        let is_failure = |event: &Event| matches!(event, Event::Cut | Event::Reset | Event::StreamReset(_));
        self.events.iter().any(is_failure) || self.status() >= 500
    }

    /// Number of start lines at the origin that occur more than once.
    pub(crate) fn repeated(&self) -> usize {
        let mut lines: Vec<&str> =
            self.origin.requests.iter().map(|request| request.start.as_str()).collect();
        lines.sort_unstable();
        lines.windows(2).filter(|pair| pair[0] == pair[1]).count()
    }

    /// Number of times that the start line which arrived most often arrived.
    pub(crate) fn most_often(&self) -> usize {
        let requests = &self.origin.requests;
        let count = |line: &str| requests.iter().filter(|request| request.start == line).count();
        requests.iter().map(|request| count(&request.start)).max().unwrap_or(0)
    }

    /// Events in a few words: in order where they are few, else counted.
    pub(crate) fn summary(&self) -> String {
        let labels: Vec<String> = self.events.iter().map(Event::label).collect();
        if labels.len() <= SUMMARY_IN_ORDER {
            return labels.join(", ");
        }
        let mut kinds: Vec<(String, usize)> = Vec::new();
        for label in labels {
            match kinds.iter_mut().find(|(known, _)| *known == label) {
                Some((_, count)) => *count += 1,
                None => kinds.push((label, 1)),
            }
        }
        let counted: Vec<String> =
            kinds.into_iter().map(|(label, count)| format!("{count} × {label}")).collect();
        counted.join(", ")
    }

    /// The summary, and the number of requests at the origin.
    pub(crate) fn with_count(&self) -> String {
        match self.origin.requests.len() {
            0 => format!("{}; nothing reached the origin", self.summary()),
            1 => self.summary(),
            count => format!("{}; {count} requests at the origin", self.summary()),
        }
    }
}

/// Events up to this number are shown in order.
const SUMMARY_IN_ORDER: usize = 5;

impl Event {
    /// Status of a response.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Response(message) => Some(message.status()),
            Self::Status(status) => Some(*status),
            _ => None,
        }
    }

    /// The event in a word or two.
    pub(crate) fn label(&self) -> String {
        match self {
            Self::Response(message) => message.status().to_string(),
            Self::Status(status) => status.to_string(),
            Self::Cut => "response cut".to_owned(),
            Self::Closed => "closed".to_owned(),
            Self::Reset => "reset".to_owned(),
            Self::Silence => "silence".to_owned(),
            Self::StaysOpen => "stays open".to_owned(),
            Self::NotHttp => "bytes that are no response".to_owned(),
            Self::StreamReset(code) => format!("stream reset ({code})"),
            Self::Flood(flood) => flood.label(),
        }
    }
}

impl Flood {
    fn label(&self) -> String {
        let frames = match self.frames {
            count if count < 10_000 => count.to_string(),
            count => format!("{} thousand", count / 1_000),
        };
        match self.ended {
            Some(FloodEnd::Goaway(code)) => format!("GOAWAY ({code}) after {frames} frames"),
            Some(FloodEnd::Closed) => format!("closed after {frames} frames"),
            None => {
                format!("no end: {frames} frames, {:.2} µs of processor time each", self.micros_per_frame)
            }
        }
    }
}
