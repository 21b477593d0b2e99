//! The distinct documents of a log, each held once and known by a number.

use crate::recording::entry::EntryTarget;
use crate::recording::path::{push_path, push_path_and_query};
use crate::recording::problem::Defect;
use flashweir_core::limits::RECORDED_DOCUMENTS;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{BuildHasherDefault, DefaultHasher};

/// A document of a log: what is asked for and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'a> {
    /// The method it is asked for with; the same path with another method is another document.
    pub method: &'a str,
    /// Path and query, in characters that can be sent as they are.
    pub path: &'a str,
    /// The largest answer seen, bytes: shorter ones were cut off, or said that nothing had changed.
    pub bytes: u64,
}

/// A document as it is kept: `GET /path` and its size.
#[derive(Clone, Debug, Default)]
pub(super) struct Named {
    name: Box<str>,
    bytes: u64,
}

/// Gives each distinct document a number, in order of appearance.
#[derive(Debug)]
pub(super) struct DocumentTable {
    documents_most: usize,
    text_bytes_most: usize,
    // A fixed hash keeps reading free of randomness; numbers depend on order alone.
    numbers: HashMap<Box<str>, u32, BuildHasherDefault<DefaultHasher>>,
    bytes: Vec<u64>,
    text_bytes: usize,
    /// The name being looked up, kept for its memory.
    name: String,
}

/// Reason for which a document gets no number.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoNumber {
    /// It cannot be asked for.
    Defect(Defect),
    /// There are as many as may be.
    TooMany,
    /// There is as much text as may be.
    TooMuchText,
}

impl Named {
    pub(super) fn document(&self) -> Document<'_> {
        // A method has no spaces and a path follows it: `number` has put them so.
        let (method, path) = self.name.split_once(' ').unwrap_or_default();
        Document { method, path, bytes: self.bytes }
    }
}

impl DocumentTable {
    /// An empty table, with a maximum of documents and of text altogether.
    pub(super) fn new(documents_most: usize, text_bytes_most: usize) -> Self {
        Self {
            documents_most,
            text_bytes_most,
            numbers: HashMap::default(),
            bytes: Vec::new(),
            text_bytes: 0,
            name: String::new(),
        }
    }

    /// The number of a document, a new one if it is new. O(length of its path).
    pub(super) fn number(
        &mut self,
        method: &str,
        target: &EntryTarget<'_>,
        bytes: u64,
    ) -> Result<u32, NoNumber> {
        self.name.clear();
        self.name.push_str(method);
        self.name.push(' ');
        match target {
            EntryTarget::Text(text, escapes) => {
                push_path(text, *escapes, &mut self.name).map_err(NoNumber::Defect)?;
            }
            EntryTarget::Split { path, query } => {
                push_path_and_query(path, query.as_deref(), &mut self.name).map_err(NoNumber::Defect)?;
            }
            // Writing into a string cannot fail.
            EntryTarget::Object(id) => write!(self.name, "/object/{id}").unwrap_or_default(),
        }
        if let Some(number) = self.numbers.get(self.name.as_str()) {
            let largest = &mut self.bytes[*number as usize];
            *largest = bytes.max(*largest);
            return Ok(*number);
        }
        if self.bytes.len() == self.documents_most {
            return Err(NoNumber::TooMany);
        }
        self.text_bytes += self.name.len();
        if self.text_bytes > self.text_bytes_most {
            return Err(NoNumber::TooMuchText);
        }
        let number = self.bytes.len() as u32;
        self.numbers.insert(self.name.as_str().into(), number);
        self.bytes.push(bytes);
        Ok(number)
    }

    /// The documents in the order of their numbers.
    pub(super) fn into_documents(self) -> Vec<Named> {
        let mut documents = vec![Named::default(); self.bytes.len()];
        for (name, number) in self.numbers {
            let number = number as usize;
            documents[number] = Named { name, bytes: self.bytes[number] };
        }
        documents
    }
}

/// Every number of a document fits the 32 bits it is kept in.
const _: () = assert!(RECORDED_DOCUMENTS <= u32::MAX as usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_document_has_the_same_number_and_its_largest_size() {
        let mut table = DocumentTable::new(9, 99);
        assert_eq!(table.number("GET", &EntryTarget::plain(b"/a"), 5), Ok(0));
        assert_eq!(table.number("GET", &EntryTarget::plain(b"/b c"), 1), Ok(1));
        assert_eq!(table.number("HEAD", &EntryTarget::plain(b"/a"), 0), Ok(2));
        assert_eq!(table.number("GET", &EntryTarget::escaped(br"/b\x20c"), 9), Ok(1));
        assert_eq!(table.number("GET", &EntryTarget::plain(b"http://elsewhere/a"), 2), Ok(0));
        assert_eq!(table.number("GET", &EntryTarget::Object(7), 3), Ok(3));
        assert_eq!(
            table.number("GET", &EntryTarget::plain(b"*"), 3),
            Err(NoNumber::Defect(Defect::NotAPath))
        );
        let documents = table.into_documents();
        let wanted = [("GET", "/a", 5), ("GET", "/b%20c", 9), ("HEAD", "/a", 0), ("GET", "/object/7", 3)];
        assert!(documents.iter().map(Named::document).eq(wanted.map(|(method, path, bytes)| Document {
            method,
            path,
            bytes
        })));
    }

    #[test]
    fn it_is_bounded_and_known_documents_still_have_their_number() {
        let mut table = DocumentTable::new(2, 99);
        assert_eq!(table.number("GET", &EntryTarget::plain(b"/a"), 5), Ok(0));
        assert_eq!(table.number("GET", &EntryTarget::plain(b"/b"), 5), Ok(1));
        assert_eq!(table.number("GET", &EntryTarget::plain(b"/c"), 5), Err(NoNumber::TooMany));
        assert_eq!(table.number("GET", &EntryTarget::plain(b"/b"), 5), Ok(1));
        let mut table = DocumentTable::new(9, "GET /aGET /b".len());
        assert_eq!(table.number("GET", &EntryTarget::plain(b"/a"), 5), Ok(0));
        assert_eq!(table.number("GET", &EntryTarget::plain(b"/b"), 5), Ok(1));
        assert_eq!(table.number("GET", &EntryTarget::plain(b"/"), 5), Err(NoNumber::TooMuchText));
    }
}
