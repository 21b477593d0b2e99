//! Reads what was written, and says where and what is wrong.

use core::fmt::{self, Write as _};

/// Bytes under way to a value.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The field that is being read, in what it is.
    path: Vec<Step>,
    /// Of a list of changes that is being read: the item after the last one.
    next_item: usize,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Field(&'static str),
    Item(usize),
}

/// Reason for which bytes are no value, and its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {byte}{}{field}: {problem}", if field.is_empty() { "" } else { ", " })]
pub struct Fault {
    /// Position from the first byte.
    pub byte: usize,
    /// The field that was being read, with the names of what it is in; empty outside any.
    pub field: String,
    /// The problem.
    pub problem: Problem,
}

/// Problem with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// They end too early.
    #[error("the bytes end here (truncated?)")]
    End,
    /// They go on after the value.
    #[error("{count} bytes too many follow")]
    Rest {
        /// Number of surplus bytes.
        count: usize,
    },
    /// Another version of the encoding.
    #[error("version {value} of the encoding; this build reads version {known}")]
    Version {
        /// Version in the bytes.
        value: u64,
        /// Version that this build reads.
        known: u64,
    },
    /// Something else than what is wanted.
    #[error("kind {value}, where {wanted} is wanted")]
    Kind {
        /// Kind in the bytes.
        value: u64,
        /// Name of the message that is wanted.
        wanted: &'static str,
    },
    /// A number that its field does not hold.
    #[error("{value} is too high, at most {most} are accepted")]
    TooHigh {
        /// Number in the bytes.
        value: u64,
        /// Maximum.
        most: u64,
    },
    /// A value that does not exist.
    #[error("there is no value {value}")]
    NoSuch {
        /// Value in the bytes.
        value: u64,
    },
    /// A list whose changes do not fit it.
    #[error("the changed items do not fit the list")]
    NoSuchItem,
    /// A change of a field that does not exist.
    #[error("more fields changed than there are")]
    NoSuchField,
    /// Cells that are not in order.
    #[error("cells are not in order")]
    Order,
    /// Text that is not UTF-8.
    #[error("the text is not UTF-8")]
    Text,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, path: Vec::new(), next_item: 0 }
    }

    pub(crate) fn fault(&self, problem: Problem) -> Fault {
        let mut field = String::new();
        for step in &self.path {
            // Writing to a string does not fail.
            let _: fmt::Result = match step {
                Step::Field(name) if field.is_empty() => write!(field, "{name}"),
                Step::Field(name) => write!(field, ".{name}"),
                Step::Item(at) => write!(field, "[{at}]"),
            };
        }
        Fault { byte: self.at, field, problem }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// # Errors
    /// If bytes are left.
    pub(crate) fn end(&self) -> Result<(), Fault> {
        let count = self.bytes.len() - self.at;
        if count == 0 { Ok(()) } else { Err(self.fault(Problem::Rest { count })) }
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Fault> {
        let byte = self.bytes.get(self.at).copied().ok_or_else(|| self.fault(Problem::End))?;
        self.at += 1;
        Ok(byte)
    }

    pub(crate) fn bytes<const COUNT: usize>(&mut self) -> Result<[u8; COUNT], Fault> {
        let bytes = self.bytes[self.at..].first_chunk().copied().ok_or_else(|| self.fault(Problem::End))?;
        self.at += COUNT;
        Ok(bytes)
    }

    pub(crate) fn text(&mut self, most: usize) -> Result<String, Fault> {
        let len = self.length(most)?;
        let bytes = self.bytes[self.at..].get(..len).ok_or_else(|| self.fault(Problem::End))?;
        let text = core::str::from_utf8(bytes).map_err(|_| self.fault(Problem::Text))?.to_owned();
        self.at += len;
        Ok(text)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Fault> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            // The tenth byte has room for one bit.
            if shift == 63 && byte > 1 {
                return Err(self.fault(Problem::TooHigh { value: u64::MAX, most: u64::MAX }));
            }
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.fault(Problem::TooHigh { value: u64::MAX, most: u64::MAX }))
    }

    pub(crate) fn length(&mut self, most: usize) -> Result<usize, Fault> {
        let value = self.number()?;
        let length = usize::try_from(value).ok().filter(|&length| length <= most);
        length.ok_or_else(|| self.fault(Problem::TooHigh { value, most: most as u64 }))
    }

    pub(crate) fn within<T>(
        &mut self,
        field: &'static str,
        read: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.step(Step::Field(field), read)
    }

    pub(crate) fn within_item<T>(
        &mut self,
        at: usize,
        read: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.step(Step::Item(at), read)
    }

    /// An error ends all reading, so the path needs no repair then.
    fn step<T>(&mut self, step: Step, read: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        let outer = core::mem::take(&mut self.next_item);
        self.path.push(step);
        let value = read(self)?;
        self.path.pop();
        self.next_item = outer;
        Ok(value)
    }

    pub(crate) fn next_item(&self) -> usize {
        self.next_item
    }

    pub(crate) fn set_next_item(&mut self, next_item: usize) {
        self.next_item = next_item;
    }
}
