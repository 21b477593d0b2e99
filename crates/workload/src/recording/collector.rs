//! Gathers the requests of a log as they are read, in little memory, and makes the recording of them.

use crate::recording::document_table::{DocumentTable, NoNumber};
use crate::recording::entry::{Entry, Flaw};
use crate::recording::problem::{Backwards, Defect, Place, Problems, Unparsed};
use crate::recording::{Methods, Options, Recording, RecordingError, Stamps};
use flashweir_core::limits::{
    LOG_LINES, RECORDED_DOCUMENTS, RECORDED_REQUESTS, RECORDED_SPAN_S, RECORDED_TEXT_BYTES,
};
use std::sync::Arc;
use std::time::Duration;

/// The requests so far: 8 bytes each.
#[derive(Debug)]
pub(super) struct Collector<'a> {
    options: &'a Options,
    bounds: Bounds,
    table: DocumentTable,
    problems: Problems,
    /// When the first request came, seconds since 1970.
    first_second: Option<i64>,
    /// Seconds since the first request, never falling.
    seconds: Vec<u32>,
    documents: Vec<u32>,
}

/// How much is taken at most; an argument so that tests need not fill the memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    lines: u64,
    requests: usize,
    documents: usize,
    text_bytes: usize,
}

impl Bounds {
    /// The bounds that are named, and documented, for all of Flashweir.
    pub(super) const NAMED: Self = Self {
        lines: LOG_LINES,
        requests: RECORDED_REQUESTS,
        documents: RECORDED_DOCUMENTS,
        text_bytes: RECORDED_TEXT_BYTES,
    };
}

impl<'a> Collector<'a> {
    pub(super) fn new(options: &'a Options, bounds: Bounds) -> Self {
        Self {
            options,
            bounds,
            table: DocumentTable::new(bounds.documents, bounds.text_bytes),
            problems: Problems::default(),
            first_second: None,
            seconds: Vec::new(),
            documents: Vec::new(),
        }
    }

    /// Takes one line or record, parsed or not. O(length of its path).
    pub(super) fn take(
        &mut self,
        place: Place,
        parsed: Result<Entry<'_>, Flaw<'_>>,
    ) -> Result<(), RecordingError> {
        if self.lines() == self.bounds.lines {
            return Err(RecordingError::TooManyLines(place));
        }
        match parsed.and_then(|entry| self.check_time(entry)) {
            Ok((entry, _)) if !self.options.methods.keep(entry.method) => {
                self.problems.left_out += 1;
                Ok(())
            }
            Ok((entry, since_first_s)) => self.keep(place, &entry, since_first_s),
            Err(flaw) => self.reject(place, flaw),
        }
    }

    /// All of it as a recording.
    pub(super) fn finish(self) -> Result<Recording, RecordingError> {
        let Some(last) = self.seconds.last() else {
            return Err(self.nothing());
        };
        Ok(Recording {
            length: Duration::from_secs(u64::from(*last) + 1),
            moments: moments(&self.seconds, self.options.stamps),
            documents: self.documents.into(),
            table: self.table.into_documents().into(),
            problems: self.problems,
        })
    }

    /// Seconds from the first request that is kept; negative for one that is written later and came before.
    fn check_time<'e>(&self, entry: Entry<'e>) -> Result<(Entry<'e>, i64), Flaw<'e>> {
        let since_first_s = entry.second - self.first_second.unwrap_or(entry.second);
        if since_first_s > i64::from(RECORDED_SPAN_S) {
            return Err(Defect::TooFarAhead.at(b""));
        }
        Ok((entry, since_first_s))
    }

    fn keep(&mut self, place: Place, entry: &Entry<'_>, since_first_s: i64) -> Result<(), RecordingError> {
        if self.seconds.len() == self.bounds.requests {
            return Err(RecordingError::TooManyRequests(place));
        }
        // A method is a token, so it is text: `checked_method` and the World Cup's table see to it.
        let method = str::from_utf8(entry.method).unwrap_or_default();
        let document = match self.table.number(method, &entry.target, entry.bytes.unwrap_or(0)) {
            Ok(number) => number,
            Err(NoNumber::Defect(defect)) => return self.reject(place, defect.at(entry.target.shown())),
            Err(NoNumber::TooMany) => return Err(RecordingError::TooManyDocuments(place)),
            Err(NoNumber::TooMuchText) => return Err(RecordingError::TooMuchText(place)),
        };
        let latest = self.seconds.last().copied().unwrap_or(0);
        // Within the span, or negative: `check_time` has seen to it.
        let second = u32::try_from(since_first_s).unwrap_or(0);
        if since_first_s < i64::from(latest) {
            let by_s = i64::from(latest).abs_diff(since_first_s);
            self.note_backwards(Backwards { place, by_s })?;
        }
        self.first_second.get_or_insert(entry.second);
        self.seconds.push(second.max(latest));
        self.documents.push(document);
        Ok(())
    }

    fn reject(&mut self, place: Place, flaw: Flaw<'_>) -> Result<(), RecordingError> {
        let unparsed = Unparsed::new(place, flaw.defect, flaw.part);
        if self.options.strict {
            return Err(RecordingError::NotParsed(unparsed));
        }
        self.problems.note_unparsed(unparsed);
        Ok(())
    }

    fn note_backwards(&mut self, backwards: Backwards) -> Result<(), RecordingError> {
        if self.options.strict {
            return Err(RecordingError::TimeWentBack(backwards));
        }
        self.problems.note_backwards(backwards);
        Ok(())
    }

    fn lines(&self) -> u64 {
        self.seconds.len() as u64 + self.problems.unparsed + self.problems.left_out
    }

    /// Why there is nothing to play.
    fn nothing(self) -> RecordingError {
        let Problems { unparsed, first_unparsed, left_out, .. } = self.problems;
        match first_unparsed.into_iter().next() {
            _ if left_out > 0 => RecordingError::AllLeftOut { left_out },
            Some(first) => RecordingError::NothingParsed { unparsed, first },
            None => RecordingError::Empty,
        }
    }
}

impl Methods {
    fn keep(self, method: &[u8]) -> bool {
        self == Self::All || matches!(method, b"GET" | b"HEAD")
    }
}

/// The moment of each request as an offset from the first second's beginning.
fn moments(seconds: &[u32], stamps: Stamps) -> Arc<[Duration]> {
    const NANOSECONDS: u64 = 1_000_000_000;
    let mut same_second = seconds.chunk_by(|one, next| one == next).map(|same| same.len() as u64);
    let (mut place, mut count) = (0, 0);
    // One pass over a slice, so that the memory is asked for once and in its final size.
    let spread = seconds.iter().map(|second| {
        if place == count {
            count = same_second.next().unwrap_or(1);
            place = 0;
        }
        let nanoseconds = (2 * place + 1) * NANOSECONDS / (2 * count);
        place += 1;
        Duration::new(u64::from(*second), nanoseconds as u32)
    });
    match stamps {
        Stamps::Spread => spread.collect(),
        Stamps::AsWritten => seconds.iter().map(|second| Duration::from_secs(u64::from(*second))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::entry::Target;

    #[test]
    fn requests_of_one_second_are_spread_evenly_over_it() {
        let spread = moments(&[0, 0, 3, 3, 3, 3, 9], Stamps::Spread);
        let wanted = [250, 750, 3_125, 3_375, 3_625, 3_875, 9_500].map(Duration::from_millis);
        assert_eq!(*spread, wanted);
        let written = moments(&[0, 0, 3, 9], Stamps::AsWritten);
        assert_eq!(*written, [0, 0, 3, 9].map(Duration::from_secs));
    }

    #[test]
    fn a_million_requests_of_one_second_stay_in_it_and_in_order() {
        let spread = moments(&vec![7; 1_000_000], Stamps::Spread);
        assert!(spread.is_sorted_by(|one, next| one < next));
        assert_eq!(spread[0], Duration::new(7, 500));
        assert_eq!(spread[999_999], Duration::new(7, 999_999_500));
    }

    /// Reads paths until one is refused.
    fn check_refused(bounds: Bounds, paths: &[&str], wanted: &str) {
        let options = Options::default();
        let mut collector = Collector::new(&options, bounds);
        let mut taken = paths.iter().zip(1..).map(|(path, line)| {
            let target = Target::Plain(path.as_bytes());
            let entry = Entry { second: 7, method: b"GET", target, bytes: None };
            collector.take(Place::Line(line), Ok(entry))
        });
        let error = taken.find_map(Result::err).expect("a bound").to_string();
        assert!(error.starts_with(wanted), "{error}");
    }

    #[test]
    fn everything_is_bounded() {
        let few = Bounds { lines: 3, ..Bounds::NAMED };
        check_refused(few, &["/a", "no path", "/c", "/d"], "line 4: more than 200000000 lines");
        let few = Bounds { requests: 2, ..Bounds::NAMED };
        check_refused(few, &["/a", "no path", "/a", "/a"], "line 4: more than 20000000 requests;");
        let few = Bounds { documents: 1, ..Bounds::NAMED };
        check_refused(few, &["/a", "/a", "/b"], "line 3: more than 4000000 distinct documents;");
        let few = Bounds { text_bytes: 12, ..Bounds::NAMED };
        check_refused(
            few,
            &["/a", "/a", "/long"],
            "line 3: the distinct documents have more than 536870912 bytes",
        );
    }
}
