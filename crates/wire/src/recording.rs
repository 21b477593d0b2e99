//! Samples and plans of planners, as bytes of a file.
//!
//! ```text
//! "FWREC" version | frame: run, segment, build, configuration, its hash | frame: records | frame: records | …
//! frame:  length (4 bytes) checksum (4 bytes, CRC-32) contents, deflated (RFC 1951), each frame by itself
//! record: stream, kind, time since the last record, a change of the stream's last value of that kind
//! ```
//!
//! An empty frame ends a segment, so that one that is cut off between two frames is known as well. A frame
//! that is cut off or damaged ends the recording with one clear error; everything before it was read. Each
//! segment is read by itself: it begins by naming its streams and with whole values.

mod crc;
mod record;
mod state;

pub use record::{Event, Planned, Record, Stream};
pub(crate) use record::{fingerprint, orders_same, sentry_orders_same};

use crate::field::put_number;
use crate::reader::{Fault, Reader};
pub(crate) use crc::crc32;
use flashweir_core::Hasher64;
use flashweir_core::limits::{RECORDING_ABOUT_BYTES, RECORDING_FRAME_BYTES, RECORDING_NAME_BYTES};
use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use state::State;

/// The name of the planner of a candidate of the flash-crowd stage in recordings.
pub const FLASH_CROWD_CANDIDATE: &str = "flash_crowd.candidate";
/// The version of the file format, which names the encoding of messages as well: raised by a change of
/// either.
pub const FORMAT: u8 = 4;
const MAGIC: &[u8; 5] = b"FWREC";
const FRAME_HEAD: usize = 8;
/// Of deflate: beyond it frames of a few kilobytes hardly become shorter.
const LEVEL: u8 = 6;

/// Head of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Identity of the run; segments of one run share it.
    pub run: u64,
    /// Number of the segment within the run, from 0.
    pub segment: u64,
    /// The version of the program that wrote it.
    pub build: String,
    /// Configuration of its planners, in words.
    pub configuration: String,
}

impl Head {
    /// A hash of the configuration, to distinguish two at a glance.
    #[must_use]
    pub fn configuration_hash(&self) -> u64 {
        Hasher64::new(0, 0).hash(&[self.configuration.as_bytes()])
    }
}

/// Reason for which a recording cannot be read, or no further.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordingError {
    /// Some other file.
    #[error("this is no recording: it does not begin with FWREC")]
    NoRecording,
    /// Another version of the format.
    #[error("version {value} of the format of recordings; this build reads version {FORMAT}")]
    Version {
        /// Version in the file.
        value: u8,
    },
    /// The file ends within a frame.
    #[error("the recording ends within the frame at byte {at} (truncated?)")]
    Truncated {
        /// Position of the frame.
        at: u64,
    },
    /// A frame is not what was written.
    #[error("the frame at byte {at} is damaged: its checksum is wrong")]
    Damaged {
        /// Position of the frame.
        at: u64,
    },
    /// A frame's contents cannot be unpacked, or would be more than [`RECORDING_FRAME_BYTES`].
    #[error("the frame at byte {at} cannot be unpacked")]
    Packed {
        /// Position of the frame.
        at: u64,
    },
    /// A frame holds what cannot be.
    #[error("the frame at byte {at}, {fault}")]
    Fault {
        /// Position of the frame.
        at: u64,
        /// The problem, and where it is in the frame.
        fault: Fault,
    },
}

/// Writes one segment.
#[derive(Debug, Default)]
pub struct Writer {
    state: State,
    frame: Vec<u8>,
}

impl Writer {
    /// A segment's first bytes.
    #[must_use]
    pub fn begin(head: &Head) -> Vec<u8> {
        let mut contents = Vec::new();
        put_number(head.run, &mut contents);
        put_number(head.segment, &mut contents);
        put_text(&head.build, RECORDING_NAME_BYTES, &mut contents);
        put_text(&head.configuration, RECORDING_ABOUT_BYTES, &mut contents);
        let mut bytes = [&MAGIC[..], &[FORMAT]].concat();
        put_frame(&contents, &mut bytes);
        bytes
    }

    /// Adds a record to the frame under way.
    pub fn push(&mut self, record: &Record) {
        self.state.put(record, &mut self.frame);
    }

    /// Bytes of the frame under way.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.frame.len()
    }

    /// Ends the frame under way; nothing if it is empty.
    pub fn take_frame(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if !self.frame.is_empty() {
            put_frame(&self.frame, &mut bytes);
            self.frame.clear();
        }
        bytes
    }
}

/// A segment's last bytes: an empty frame.
pub(crate) const END: [u8; FRAME_HEAD] = [0; FRAME_HEAD];

/// Reads one segment, frame by frame.
#[derive(Debug)]
pub struct Segment<'a> {
    bytes: &'a [u8],
    at: usize,
    state: State,
    head: Head,
    is_ended: bool,
}

impl<'a> Segment<'a> {
    /// Reads what the segment says of itself.
    ///
    /// # Errors
    /// [`RecordingError`] if it is none that this build reads.
    pub fn open(bytes: &'a [u8]) -> Result<Self, RecordingError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(RecordingError::NoRecording)?;
        let version = *rest.first().ok_or(RecordingError::Truncated { at: 0 })?;
        if version != FORMAT {
            return Err(RecordingError::Version { value: version });
        }
        let (at, state, head) = (MAGIC.len() + 1, State::default(), Head::default());
        let mut segment = Self { bytes, at, state, head, is_ended: false };
        let at = segment.at as u64;
        let contents = segment.frame()?.ok_or(RecordingError::Truncated { at })?;
        segment.head = read_head(&contents).map_err(|fault| RecordingError::Fault { at, fault })?;
        Ok(segment)
    }

    /// Head of the segment.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Returns whether its writer came to its end. If not, the segment was cut off, or is still being
    /// written.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// The next frame's records; `None` at the end.
    ///
    /// # Errors
    /// [`RecordingError`] if the frame is not whole. Nothing after it can be read.
    pub fn records(&mut self) -> Result<Option<Vec<Record>>, RecordingError> {
        let at = self.at as u64;
        let Some(contents) = self.frame()? else { return Ok(None) };
        let (mut from, mut records) = (Reader::new(&contents), Vec::new());
        while !from.is_at_end() {
            let record = self.state.take(&mut from).map_err(|fault| RecordingError::Fault { at, fault })?;
            records.push(record);
        }
        Ok(Some(records))
    }

    fn frame(&mut self) -> Result<Option<Vec<u8>>, RecordingError> {
        let at = self.at as u64;
        let rest = &self.bytes[self.at..];
        if rest.is_empty() {
            return Ok(None);
        }
        let truncated = RecordingError::Truncated { at };
        let (head, rest) = rest.split_first_chunk::<FRAME_HEAD>().ok_or(truncated.clone())?;
        let [l0, l1, l2, l3, c0, c1, c2, c3] = *head;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let packed = rest.get(..length).ok_or(truncated)?;
        if crc32(packed) != u32::from_le_bytes([c0, c1, c2, c3]) {
            return Err(RecordingError::Damaged { at });
        }
        self.is_ended = packed.is_empty();
        let contents = match self.is_ended {
            true => None,
            false => Some(
                decompress_to_vec_with_limit(packed, RECORDING_FRAME_BYTES)
                    .map_err(|_| RecordingError::Packed { at })?,
            ),
        };
        self.at += FRAME_HEAD + length;
        Ok(contents)
    }
}

fn read_head(contents: &[u8]) -> Result<Head, Fault> {
    let mut from = Reader::new(contents);
    let run = from.within("run", Reader::number)?;
    let segment = from.within("segment", Reader::number)?;
    let build = from.within("build", |from| from.text(RECORDING_NAME_BYTES))?;
    let configuration = from.within("configuration", |from| from.text(RECORDING_ABOUT_BYTES))?;
    from.end()?;
    Ok(Head { run, segment, build, configuration })
}

fn put_frame(contents: &[u8], out: &mut Vec<u8>) {
    let packed = compress_to_vec(contents, LEVEL);
    // Frames are far shorter than 4 GiB.
    out.extend((packed.len() as u32).to_le_bytes());
    out.extend(crc32(&packed).to_le_bytes());
    out.extend(packed);
}

/// A text, cut down to what may be written.
fn put_text(text: &str, most: usize, out: &mut Vec<u8>) {
    let text = &text[..text.floor_char_boundary(most)];
    put_number(text.len() as u64, out);
    out.extend(text.as_bytes());
}
