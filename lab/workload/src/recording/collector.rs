//! Gathers the requests of a log as they are read, in little memory, and makes the recording of them.

use crate::recording::document_table::{DocumentTable, NoNumber};
use crate::recording::entry::{Entry, Flaw};
use crate::recording::format::Order;
use crate::recording::problem::{Backwards, Defect, Problems, RecordLocation, Unparsed};
use crate::recording::{Methods, Options, Recording, RecordingError, Stamps};
use flashweir_core::limits::{
    LOG_LINES, LOG_REORDERED_S, RECORDED_DOCUMENTS, RECORDED_REQUESTS, RECORDED_SPAN_S, RECORDED_TEXT_BYTES,
};
use std::sync::Arc;
use std::time::Duration;

const NANOSECONDS: i64 = 1_000_000_000;

/// The requests so far: 12 bytes each.
#[derive(Debug)]
pub(super) struct Collector<'a> {
    options: &'a Options,
    bounds: Bounds,
    order: Order,
    table: DocumentTable,
    problems: Problems,
    /// The second of the first request, since 1970.
    first_second: Option<i64>,
    /// Nanoseconds since then; negative for requests that came before the first that is written.
    offsets_ns: Vec<i64>,
    latest_ns: i64,
    /// No offset falls.
    is_in_order: bool,
    /// Some stamp has a fraction of a second.
    is_exact: bool,
    documents: Vec<u32>,
}

/// Maximum amounts that are taken; an argument, so that tests need not fill the memory.
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
    pub(super) fn new(options: &'a Options, bounds: Bounds, order: Order) -> Self {
        Self {
            options,
            bounds,
            order,
            table: DocumentTable::new(bounds.documents, bounds.text_bytes),
            problems: Problems::default(),
            first_second: None,
            offsets_ns: Vec::new(),
            latest_ns: 0,
            is_in_order: true,
            is_exact: false,
            documents: Vec::new(),
        }
    }

    /// Takes one line or record, parsed or not. O(length of its path).
    pub(super) fn take(
        &mut self,
        location: RecordLocation,
        parsed: Result<Entry<'_>, Flaw<'_>>,
    ) -> Result<(), RecordingError> {
        if self.lines() == self.bounds.lines {
            return Err(RecordingError::TooManyLines(location));
        }
        match parsed.and_then(|entry| self.check_time(entry)) {
            Ok((entry, _)) if !self.options.methods.keep(&entry.method) => {
                self.problems.left_out += 1;
                Ok(())
            }
            Ok((entry, since_first_s)) => self.keep(location, &entry, since_first_s),
            Err(flaw) => self.reject(location, flaw),
        }
    }

    /// Counts a request that did not go to the server whose log this is.
    pub(super) fn pass_over(&mut self, location: RecordLocation) -> Result<(), RecordingError> {
        if self.lines() == self.bounds.lines {
            return Err(RecordingError::TooManyLines(location));
        }
        self.problems.elsewhere += 1;
        Ok(())
    }

    /// All of it as a recording. O(requests · log(requests)) if they have to be put in order, else
    /// O(requests).
    pub(super) fn finish(mut self) -> Result<Recording, RecordingError> {
        if !self.is_in_order {
            let mut pairs: Vec<_> = self.offsets_ns.drain(..).zip(self.documents.drain(..)).collect();
            pairs.sort_by_key(|(offset_ns, _)| *offset_ns);
            (self.offsets_ns, self.documents) = pairs.into_iter().unzip();
        }
        let (Some(first_ns), Some(last_ns)) = (self.offsets_ns.first(), self.offsets_ns.last()) else {
            return Err(self.nothing());
        };
        // The beginning of the first second.
        let begin_ns = first_ns.div_euclid(NANOSECONDS) * NANOSECONDS;
        let last_s = (last_ns - begin_ns) / NANOSECONDS;
        let stamps = if self.is_exact { Stamps::AsWritten } else { self.options.stamps };
        Ok(Recording {
            length: Duration::from_secs(last_s.unsigned_abs() + 1),
            moments: moments(&self.offsets_ns, begin_ns, stamps),
            documents: self.documents.into(),
            table: self.table.into_documents().into(),
            problems: self.problems,
        })
    }

    /// Seconds from the first request that is kept; negative for one that is written later and came before.
    fn check_time<'e>(&self, entry: Entry<'e>) -> Result<(Entry<'e>, i64), Flaw<'e>> {
        let second = entry.time.second;
        let since_first_s = second.saturating_sub(self.first_second.unwrap_or(second));
        if since_first_s > i64::from(RECORDED_SPAN_S) {
            return Err(Defect::TooFarAhead.unshown());
        }
        Ok((entry, since_first_s.max(-i64::from(RECORDED_SPAN_S))))
    }

    fn keep(
        &mut self,
        location: RecordLocation,
        entry: &Entry<'_>,
        since_first_s: i64,
    ) -> Result<(), RecordingError> {
        if self.offsets_ns.len() == self.bounds.requests {
            return Err(RecordingError::TooManyRequests(location));
        }
        // A method is a token, so it is text: `checked_method` and the World Cup's table see to it.
        let method = str::from_utf8(&entry.method).unwrap_or_default();
        let document = match self.table.number(method, &entry.target, entry.bytes.unwrap_or(0)) {
            Ok(number) => number,
            Err(NoNumber::Defect(defect)) => return self.reject(location, defect.at(entry.target.shown())),
            Err(NoNumber::TooMany) => return Err(RecordingError::TooManyDocuments(location)),
            Err(NoNumber::TooMuchText) => return Err(RecordingError::TooMuchText(location)),
        };
        // Ten years of nanoseconds fit: `check_time` has seen to the span.
        let mut offset_ns = since_first_s * NANOSECONDS + i64::from(entry.time.nanosecond.unwrap_or(0));
        let back_ns = self.latest_ns - offset_ns;
        if back_ns > 0 && !self.offsets_ns.is_empty() {
            if self.order == Order::ByEnd && back_ns <= LOG_REORDERED_S as i64 * NANOSECONDS {
                self.is_in_order = false;
            } else {
                let by_s = back_ns.unsigned_abs().div_ceil(NANOSECONDS as u64);
                self.note_backwards(Backwards { location, by_s })?;
                offset_ns = self.latest_ns;
            }
        }
        self.first_second.get_or_insert(entry.time.second);
        self.latest_ns = self.latest_ns.max(offset_ns);
        self.is_exact |= entry.time.nanosecond.is_some();
        self.offsets_ns.push(offset_ns);
        self.documents.push(document);
        Ok(())
    }

    fn reject(&mut self, location: RecordLocation, flaw: Flaw<'_>) -> Result<(), RecordingError> {
        let unparsed = Unparsed::new(location, flaw.defect, &flaw.part);
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
        self.offsets_ns.len() as u64
            + self.problems.unparsed
            + self.problems.left_out
            + self.problems.elsewhere
    }

    /// Reason for which there is nothing to play.
    fn nothing(self) -> RecordingError {
        let Problems { unparsed, first_unparsed, left_out, elsewhere, .. } = self.problems;
        match first_unparsed.into_iter().next() {
            _ if left_out > 0 => RecordingError::AllLeftOut { left_out },
            Some(first) => RecordingError::NothingParsed { unparsed, first },
            None if elsewhere > 0 => RecordingError::AllElsewhere { elsewhere },
            None => RecordingError::Empty,
        }
    }
}

impl Methods {
    fn keep(self, method: &[u8]) -> bool {
        self == Self::All || matches!(method, b"GET" | b"HEAD")
    }
}

/// The moment of each request, of which none comes before the one above it, as an offset from `begin_ns`.
fn moments(offsets_ns: &[i64], begin_ns: i64, stamps: Stamps) -> Arc<[Duration]> {
    let mut same = offsets_ns.chunk_by(|one, next| one == next).map(|same| same.len() as u64);
    let (mut place, mut count) = (0, 0);
    // One pass over a slice, so that the memory is asked for once and in its final size.
    let spread = offsets_ns.iter().map(|offset_ns| {
        let written = Duration::from_nanos((offset_ns - begin_ns).unsigned_abs());
        if stamps == Stamps::AsWritten {
            return written;
        }
        if place == count {
            count = same.next().unwrap_or(1);
            place = 0;
        }
        place += 1;
        // Below a second, as a second has more halves of nanoseconds than there are requests.
        written + Duration::from_nanos((2 * place - 1) * NANOSECONDS.unsigned_abs() / (2 * count))
    });
    spread.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::entry::EntryTarget;
    use crate::recording::log_time::Stamp;

    fn seconds(seconds: &[i64]) -> Vec<i64> {
        seconds.iter().map(|second| second * NANOSECONDS).collect()
    }

    #[test]
    fn requests_of_one_second_are_spread_evenly_over_it() {
        let spread = moments(&seconds(&[-1, -1, 2, 2, 2, 2, 8]), -NANOSECONDS, Stamps::Spread);
        let wanted = [250, 750, 3_125, 3_375, 3_625, 3_875, 9_500].map(Duration::from_millis);
        assert_eq!(*spread, wanted);
        let written = moments(&seconds(&[0, 0, 3, 9]), 0, Stamps::AsWritten);
        assert_eq!(*written, [0, 0, 3, 9].map(Duration::from_secs));
    }

    #[test]
    fn a_million_requests_of_one_second_stay_in_it_and_in_order() {
        let spread = moments(&vec![7 * NANOSECONDS; 1_000_000], 0, Stamps::Spread);
        assert!(spread.is_sorted_by(|one, next| one < next));
        assert_eq!(spread[0], Duration::new(7, 500));
        assert_eq!(spread[999_999], Duration::new(7, 999_999_500));
    }

    fn entry(time: Stamp, path: &str) -> Entry<'_> {
        Entry { time, method: b"GET".into(), target: EntryTarget::plain(path.as_bytes()), bytes: None }
    }

    /// The recording of requests that came these milliseconds after a moment.
    fn recording(order: Order, came_ms: &[i64]) -> Recording {
        let options = Options::default();
        let mut collector = Collector::new(&options, Bounds::NAMED, order);
        for (came_ms, line) in came_ms.iter().zip(1..) {
            let nanosecond = Some(came_ms.rem_euclid(1_000) as u32 * 1_000_000);
            let time = Stamp { second: 1_431_857_103 + came_ms.div_euclid(1_000), nanosecond };
            collector.take(RecordLocation::Line(line), Ok(entry(time, &format!("/{came_ms}")))).unwrap();
        }
        collector.finish().unwrap()
    }

    #[test]
    fn fractions_of_a_second_are_kept_and_not_spread() {
        let recording = recording(Order::AsWritten, &[250, 250, 900, 2_000]);
        assert_eq!(recording.moments()[..], [250, 250, 900, 2_000].map(Duration::from_millis));
        assert_eq!(recording.length(), Duration::from_secs(3));
    }

    #[test]
    fn a_log_in_the_order_of_ends_is_put_into_that_of_beginnings() {
        let recording = recording(Order::ByEnd, &[250, -1_500, 900, 900, -3_000]);
        assert_eq!(recording.moments()[..], [0, 1_500, 3_250, 3_900, 3_900].map(Duration::from_millis));
        assert_eq!(recording.documents()[..], [3, 1, 0, 2, 2]);
        assert_eq!(recording.length(), Duration::from_secs(4));
        assert_eq!(recording.problems().backwards, 0);
    }

    #[test]
    fn a_clock_set_back_is_no_order_of_ends() {
        let hour_ms = 3_600_000;
        let recording = recording(Order::ByEnd, &[500, -hour_ms, 700, 700 - hour_ms]);
        assert_eq!(
            recording.moments()[..],
            [700, 3_600_500, 3_600_500, 3_600_700].map(Duration::from_millis)
        );
        assert_eq!(
            recording.problems().first_backwards,
            [Backwards { location: RecordLocation::Line(2), by_s: 3_601 }]
        );
    }

    /// Reads paths until one is refused.
    fn check_refused(bounds: Bounds, paths: &[&str], wanted: &str) {
        let options = Options::default();
        let mut collector = Collector::new(&options, bounds, Order::AsWritten);
        let mut taken = paths
            .iter()
            .zip(1..)
            .map(|(path, line)| collector.take(RecordLocation::Line(line), Ok(entry(Stamp::whole(7), path))));
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
