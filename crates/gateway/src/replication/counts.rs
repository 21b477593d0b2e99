//! Counts of documents that one worker keeps between two samples.

use super::document::Document;
use flashweir_core::limits::REPLICATION_COUNTED;
use std::collections::HashMap;

/// Of one document.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DocumentCount {
    /// Host and target, unless too long.
    pub(super) name: Option<Box<str>>,
    /// Requests since the last sample, refused ones included.
    pub(super) offered: u32,
    /// Requests whose answer has not begun.
    pub(super) in_flight: u32,
    /// The version that was answered last; zero: unknown.
    pub(super) validator: u64,
}

/// Of all documents of one worker.
#[derive(Debug, Default)]
pub(super) struct DocumentCounts {
    documents: HashMap<u64, DocumentCount>,
    /// By target: requests sent there since the last sample.
    sent: Vec<u32>,
}

/// A sample for the control thread. The worker's number separates its requests in flight from others'.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(super) worker: usize,
    pub(super) documents: Vec<(u64, DocumentCount)>,
    pub(super) sent: Vec<u32>,
}

impl DocumentCounts {
    /// Counts a request; false where the table is full.
    pub(super) fn offer(&mut self, key: u64, document: &Document<'_>) -> bool {
        if self.documents.len() >= REPLICATION_COUNTED && !self.documents.contains_key(&key) {
            return false;
        }
        let count = self
            .documents
            .entry(key)
            .or_insert_with(|| DocumentCount { name: document.name(), ..DocumentCount::default() });
        count.offered = count.offered.saturating_add(1);
        true
    }

    /// Its answer is under way.
    pub(super) fn begin(&mut self, key: u64) {
        if let Some(count) = self.documents.get_mut(&key) {
            count.in_flight += 1;
        }
    }

    /// Its answer has begun, with this version of the document where it is known.
    pub(super) fn end(&mut self, key: u64, validator: u64) {
        if let Some(count) = self.documents.get_mut(&key) {
            count.in_flight = count.in_flight.saturating_sub(1);
            if validator != 0 {
                count.validator = validator;
            }
        }
    }

    /// A request was sent to a target.
    pub(super) fn sent(&mut self, target: usize) {
        if self.sent.len() <= target {
            self.sent.resize(target + 1, 0);
        }
        self.sent[target] = self.sent[target].saturating_add(1);
    }

    /// The counts since the last call; none where there are none. Documents with requests in flight stay.
    pub(super) fn drain(&mut self, worker: usize) -> Option<Sample> {
        if self.documents.is_empty() && self.sent.is_empty() {
            return None;
        }
        let mut documents = Vec::with_capacity(self.documents.len());
        self.documents.retain(|&key, count| {
            documents.push((key, count.clone()));
            count.offered = 0;
            count.in_flight > 0
        });
        Some(Sample { worker, documents, sent: std::mem::take(&mut self.sent) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Uri;

    #[test]
    fn requests_in_flight_stay_over_samples() {
        let url: Uri = "http://a/b?c".parse().unwrap();
        let document = Document::of_url(&url).unwrap();
        let mut counts = DocumentCounts::default();
        assert!(counts.drain(0).is_none());
        assert!(counts.offer(5, &document) && counts.offer(5, &document));
        counts.begin(5);
        counts.sent(2);
        let sample = counts.drain(0).expect("counted");
        let expected = DocumentCount { name: Some("a/b?c".into()), offered: 2, in_flight: 1, validator: 0 };
        assert_eq!((sample.documents, sample.sent), (vec![(5, expected)], vec![0, 0, 1]));
        counts.end(5, 9);
        let sample = counts.drain(0).expect("still there");
        assert_eq!((sample.documents[0].1.in_flight, sample.documents[0].1.validator), (0, 9));
        assert!(counts.drain(0).is_none());
        (0..REPLICATION_COUNTED as u64).for_each(|key| assert!(counts.offer(key, &document)));
        assert!(!counts.offer(u64::MAX, &document) && counts.offer(1, &document));
    }
}
