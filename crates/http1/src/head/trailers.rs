//! Reads the trailer section of a chunked body (RFC 9112 §7.1.2), by the same rules as a head's fields.

use super::cursor::LineCursor;
use super::field::{FieldTable, Fields};
use super::limits::HeadLimits;
use super::line;
use crate::violation::FramingViolation;

/// Reader of one trailer section at a time.
#[derive(Debug, Default)]
pub(crate) struct TrailerReader {
    cursor: LineCursor,
    fields: FieldTable,
}

impl TrailerReader {
    pub(crate) fn restart(&mut self) {
        self.cursor = LineCursor::default();
        self.fields.clear();
    }

    pub(crate) fn release(&mut self) {
        self.fields.release();
    }

    /// Reads on: `bytes` are all that have come since the section's first byte. Returns the section's length
    /// once it is whole.
    ///
    /// # Errors
    /// [`FramingViolation::BareLf`] for a line without CR; [`FramingViolation::Trailer`] for any other fault,
    /// and for more bytes or fields than a head may have.
    #[inline]
    pub(crate) fn read(
        &mut self,
        bytes: &[u8],
        limits: HeadLimits,
    ) -> Result<Option<usize>, FramingViolation> {
        let within = limits.within(bytes);
        loop {
            let Some(line) = self.cursor.take_line(within) else {
                return if bytes.len() > limits.bytes_max {
                    Err(FramingViolation::Trailer)
                } else {
                    Ok(None)
                };
            };
            if line.is_bare {
                return Err(FramingViolation::BareLf);
            }
            if line.start == line.end {
                return Ok(Some(self.cursor.at()));
            }
            let span =
                line::judge_line(within, line.start, line.end).map_err(|_| FramingViolation::Trailer)?;
            self.fields.push(span);
            if line::FRAMING.contains(span.known) || self.fields.len() > limits.fields_max {
                return Err(FramingViolation::Trailer);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fields.len() == 0
    }

    pub(crate) fn fields<'b>(&'b self, bytes: &'b [u8]) -> Fields<'b> {
        Fields::new(bytes, &self.fields)
    }
}
