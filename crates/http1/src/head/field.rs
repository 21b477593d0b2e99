//! Fields of a head as places in the bytes it was read from.

use super::known::{FieldSet, KnownField};
use alloc::vec::Vec;

/// Range of bytes within a message. Offsets of 32 bits: a head has at most 1 MiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    pub(crate) const EMPTY: Self = Self { start: 0, end: 0 };

    #[inline]
    pub(crate) const fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }

    /// Bytes of the span; empty where `bytes` are not those it was made from.
    #[inline]
    pub(crate) fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// Place of one field line. 20 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldSpan {
    pub(crate) name: Span,
    /// Without the white space around it.
    pub(crate) value: Span,
    pub(crate) known: KnownField,
    /// The line is `name ":" SP value CRLF`: it may be copied as it is.
    pub(crate) is_plain: bool,
    /// The name has signs other than the hyphen, so a server could take it for another one.
    pub(crate) has_odd_name: bool,
}

/// Fields of a usual head: room for them is made at once.
const USUAL_FIELDS: usize = 16;

/// Fields of the head that was read last. Its memory is reused: it grows to the largest head of its
/// connection, at most 20 bytes for each field that the limits allow.
#[derive(Debug, Default)]
pub(crate) struct FieldTable {
    spans: Vec<FieldSpan>,
    present: FieldSet,
}

impl FieldTable {
    pub(crate) const NONE: Self = Self { spans: Vec::new(), present: FieldSet::EMPTY };

    pub(crate) fn clear(&mut self) {
        self.spans.clear();
        self.present = FieldSet::EMPTY;
    }

    #[inline]
    pub(crate) fn push(&mut self, span: FieldSpan) {
        if self.spans.capacity() == 0 {
            self.spans.reserve(USUAL_FIELDS);
        }
        self.present.insert(span.known);
        self.spans.push(span);
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Releases the memory: for a connection that falls idle.
    pub(crate) fn release(&mut self) {
        *self = Self::default();
    }
}

/// View of the fields of a head or of trailers, over the bytes they were read from.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'b> {
    bytes: &'b [u8],
    table: &'b FieldTable,
}

/// One field of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'b> {
    /// Name as it was sent.
    pub name: &'b [u8],
    /// Value without the white space around it.
    pub value: &'b [u8],
    /// The name, if it is known.
    pub known: KnownField,
    /// The name has signs other than the hyphen (see [`KnownField::of_respelt`]).
    pub has_odd_name: bool,
}

impl<'b> Fields<'b> {
    pub(crate) fn new(bytes: &'b [u8], table: &'b FieldTable) -> Self {
        Self { bytes, table }
    }

    /// Number of field lines.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.spans.len()
    }

    /// Returns whether there is no field.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.spans.is_empty()
    }

    /// Known fields that occur.
    #[must_use]
    pub fn present(&self) -> FieldSet {
        self.table.present
    }

    /// All fields in their order.
    pub fn iter(&self) -> impl Iterator<Item = Field<'b>> + use<'b> {
        let bytes = self.bytes;
        self.table.spans.iter().map(move |span| span.of(bytes))
    }

    /// Value of the first field of this name. Cost: one comparison where there is none.
    #[must_use]
    pub fn get(&self, known: KnownField) -> Option<&'b [u8]> {
        self.all(known).next()
    }

    /// Values of all fields of this name, in their order.
    pub fn all(&self, known: KnownField) -> impl Iterator<Item = &'b [u8]> + use<'b> {
        let spans = if self.table.present.contains(known) { &self.table.spans[..] } else { &[] };
        let bytes = self.bytes;
        spans.iter().filter(move |span| span.known == known).map(move |span| span.value.of(bytes))
    }

    pub(crate) fn bytes(&self) -> &'b [u8] {
        self.bytes
    }

    pub(crate) fn spans(&self) -> &'b [FieldSpan] {
        &self.table.spans
    }
}

impl FieldSpan {
    #[inline]
    pub(crate) fn of<'b>(&self, bytes: &'b [u8]) -> Field<'b> {
        Field {
            name: self.name.of(bytes),
            value: self.value.of(bytes),
            known: self.known,
            has_odd_name: self.has_odd_name,
        }
    }
}

const _: () = assert!(size_of::<FieldSpan>() == 20);
