//! Writes what planners see and decide to a file, from its own thread.
//!
//! The caller never waits: it hands a copy over through a queue of [`RECORDS_QUEUED`]; what does not fit is
//! lost, counted, and named in the recording, so that a replay says why it may part from there on. The file
//! is written every second at the latest. A full segment is renamed to `FILE.0`, `FILE.1` and so on, and the
//! oldest beyond [`RECORDING_SEGMENTS`] are removed.

use crate::recording::{END, Event, Head, Planned, Record, Stream, Writer};
use flashweir_admission::{flash_crowd, sentry};
use flashweir_core::Instant;
use flashweir_core::limits::{
    RECORDING_SEGMENT_BYTES, RECORDING_SEGMENTS, RECORDING_STREAMS, RECORDS_QUEUED, WORKERS,
};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A crash of the machine loses at most this much of a recording.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);
/// A frame is written once it is this long.
const FRAME_BYTES: usize = 64 << 10;

/// Takes records without ever waiting. Dropped, it writes what is left and ends.
pub struct Recorder {
    /// Taken only by the drop.
    records: Option<SyncSender<Record>>,
    lost: Arc<AtomicU64>,
    lost_ever: AtomicU64,
    streams: AtomicU64,
    writer: Option<JoinHandle<()>>,
}

/// A sample for a recorder.
pub trait RecordedSample: Clone {
    /// As an event.
    fn into_event(self) -> Event;
}

/// A plan for a recorder.
pub trait RecordedPlan: Clone {
    /// As an event.
    fn into_event(self) -> Event;
}

impl RecordedSample for flash_crowd::Sample {
    fn into_event(self) -> Event {
        Event::FlashCrowdSample(self)
    }
}

impl RecordedSample for sentry::Sample {
    fn into_event(self) -> Event {
        Event::SentrySample(self)
    }
}

impl RecordedPlan for flash_crowd::Plan {
    fn into_event(self) -> Event {
        Event::FlashCrowdPlan(self)
    }
}

impl RecordedPlan for sentry::Plan {
    fn into_event(self) -> Event {
        Event::SentryPlan(self)
    }
}

impl Recorder {
    /// Begins to write to `file`, in place of what was there. `failed` is called once if writing fails;
    /// recording then ends, and nothing else does. The segment in `head` is where it begins.
    ///
    /// # Errors
    /// If the file cannot be created, or the thread not be started.
    pub fn start(file: &Path, head: Head, failed: impl Fn(&io::Error) + Send + 'static) -> io::Result<Self> {
        Self::of(Segments::create(file, head, RECORDING_SEGMENT_BYTES)?, RECORDS_QUEUED, failed)
    }

    fn of(
        mut segments: Segments,
        queued: usize,
        failed: impl Fn(&io::Error) + Send + 'static,
    ) -> io::Result<Self> {
        let (records, queue) = sync_channel(queued);
        let lost = Arc::new(AtomicU64::new(0));
        let lost_before = lost.clone();
        let thread = thread::Builder::new().name("recorder".to_owned());
        let writer = thread.spawn(move || {
            if let Err(error) = segments.run(&queue, &lost_before) {
                failed(&error);
            }
        })?;
        let (lost_ever, streams) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Self { records: Some(records), lost, lost_ever, streams, writer: Some(writer) })
    }

    /// There is a planner from now on, for this service or other purpose.
    pub fn begin(&self, now: Instant, name: &str, planner: Planned) -> Stream {
        // Beyond the bound all share the last number, and their records count as lost.
        let number = self.streams.fetch_add(1, Ordering::Relaxed).min(RECORDING_STREAMS as u64);
        let stream = Stream(number as u16);
        self.record(now, stream, Event::Begin { name: name.to_owned(), planner, goes_on: false });
        stream
    }

    /// The planner is given a sample.
    pub fn record_sample(&self, now: Instant, stream: Stream, sample: &impl RecordedSample) {
        self.record(now, stream, sample.clone().into_event());
    }

    /// The planner was asked at `now`, and made this plan.
    pub fn record_plan(&self, now: Instant, stream: Stream, plan: &impl RecordedPlan) {
        self.record(now, stream, plan.clone().into_event());
    }

    /// Number of records lost because the writer did not keep up, or has failed.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost_ever.load(Ordering::Relaxed)
    }

    fn record(&self, at: Instant, stream: Stream, event: Event) {
        let fits = match &event {
            Event::FlashCrowdSample(sample) => sample.gate < WORKERS,
            _ => true,
        };
        let is_known = usize::from(stream.0) < RECORDING_STREAMS;
        let record = Record { at, stream, event };
        let is_taken =
            fits && is_known && self.records.as_ref().is_some_and(|records| records.try_send(record).is_ok());
        if !is_taken {
            self.lost.fetch_add(1, Ordering::Relaxed);
            self.lost_ever.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.records = None;
        if let Some(writer) = self.writer.take() {
            // Its panic, if there was one, was reported.
            let _ = writer.join();
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("lost", &self.lost()).finish_non_exhaustive()
    }
}

/// The writing end.
struct Segments {
    path: PathBuf,
    head: Head,
    segment_bytes: u64,
    file: File,
    written: u64,
    writer: Writer,
    /// Name and planner of each stream, for the beginning of the next segment.
    begun: BTreeMap<Stream, (String, Planned)>,
    /// Time at which records were last written, by their own time.
    written_at: Instant,
    /// Samples of the sentry's gates that no plan rests on yet: its planner adds them up as well.
    gathered: BTreeMap<Stream, sentry::Sample>,
}

impl Segments {
    fn create(path: &Path, head: Head, segment_bytes: u64) -> io::Result<Self> {
        let mut file = File::create(path)?;
        let first = Writer::begin(&head);
        file.write_all(&first)?;
        Ok(Self {
            path: path.to_owned(),
            head,
            segment_bytes,
            file,
            written: first.len() as u64,
            writer: Writer::default(),
            begun: BTreeMap::new(),
            written_at: Instant::ZERO,
            gathered: BTreeMap::new(),
        })
    }

    fn run(&mut self, queue: &Receiver<Record>, lost: &AtomicU64) -> io::Result<()> {
        let mut last = Instant::ZERO;
        loop {
            match queue.recv_timeout(WRITE_INTERVAL) {
                Ok(record) => {
                    last = record.at;
                    self.take(record)?;
                }
                Err(RecvTimeoutError::Timeout) => self.write()?,
                Err(RecvTimeoutError::Disconnected) => {
                    self.note_lost(last, lost);
                    self.write()?;
                    return self.file.write_all(&END);
                }
            }
            self.note_lost(last, lost);
        }
    }

    fn note_lost(&mut self, at: Instant, lost: &AtomicU64) {
        let count = lost.swap(0, Ordering::Relaxed);
        if count > 0 {
            self.writer.push(&Record { at, stream: Stream(0), event: Event::Lost(count) });
        }
    }

    fn take(&mut self, record: Record) -> io::Result<()> {
        match &record.event {
            Event::SentrySample(sample) => {
                self.gathered.entry(record.stream).or_default().merge(sample);
                return Ok(());
            }
            Event::Begin { name, planner, .. } => {
                self.begun.insert(record.stream, (name.clone(), planner.clone()));
            }
            _ => {}
        }
        // The planner does not ask when it was given which; the time of the plan takes a byte, that of a
        // sample four.
        if let Some(sample) = self.gathered.remove(&record.stream) {
            let Record { at, stream, .. } = record;
            self.writer.push(&Record { at, stream, event: Event::SentrySample(sample) });
        }
        self.writer.push(&record);
        let is_due = record.at.saturating_since(self.written_at) >= WRITE_INTERVAL;
        if !is_due && self.writer.pending() < FRAME_BYTES {
            return Ok(());
        }
        self.written_at = record.at;
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        let frame = self.writer.take_frame();
        self.file.write_all(&frame)?;
        self.written += frame.len() as u64;
        if self.written >= self.segment_bytes { self.rotate() } else { Ok(()) }
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.file.write_all(&END)?;
        let of = |segment: u64| segment_path(&self.path, segment);
        std::fs::rename(&self.path, of(self.head.segment))?;
        if let Some(oldest) = self.head.segment.checked_sub(RECORDING_SEGMENTS) {
            // Someone may have moved it away.
            let _ = std::fs::remove_file(of(oldest));
        }
        self.head.segment += 1;
        let next = Self::create(&self.path, self.head.clone(), self.segment_bytes)?;
        (self.file, self.written, self.writer) = (next.file, next.written, next.writer);
        for (&stream, (name, planner)) in &self.begun {
            let event = Event::Begin { name: name.clone(), planner: planner.clone(), goes_on: true };
            self.writer.push(&Record { at: Instant::ZERO, stream, event });
        }
        Ok(())
    }
}

/// Path of a full segment of the recording in `file`.
#[must_use]
pub fn segment_path(file: &Path, segment: u64) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{segment}"));
    name.into()
}

#[cfg(test)]
#[path = "recorder_tests.rs"]
mod tests;
