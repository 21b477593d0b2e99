//! ACDN's offload as published: each overloaded server sheds its most popular documents, one by one.
//!
//! ```text
//! pred = load;  for each document by decreasing rate:  stop if pred ≤ LW
//!     target = the least loaded server that does not host it, by the redirector's table
//!     add a copy there;  pred −= rate/2;  the table: source −= rate/2, target += rate/2
//! ```
//!
//! Esser §4.1 and §4.2.4: half of a document's requests is the crude estimate of a copy's relief. Whether the
//! table is corrected is not in the text; with it the settled experiments of the thesis settle and the
//! unstable ones do not, so it is.
//!
//! **The faults.** The goal is an absolute load, LW, not an even one: at 400 requests/s and LW = 100 half of
//! *all* documents goes to one server. Popularity is looked at document by document, so a long tail never
//! moves; and nothing moves at all below HW, however uneven the loads are. The rule that a target accepts
//! only up to LW ([`Acceptance::BelowLow`]) ends the movement and leaves the loads uneven.

use super::Watermarks;

/// Condition on which a redirector accepts a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// Always: Esser's system.
    Any,
    /// Only if the target's predicted load stays at or below LW: ACDN's own rule (Esser §4.2.5).
    BelowLow,
}

impl Acceptance {
    /// Returns whether a target with this load takes `relief_rps` more.
    #[must_use]
    pub fn accepts(self, load_rps: f64, relief_rps: f64, watermarks: &Watermarks) -> bool {
        self == Self::Any || load_rps + relief_rps <= watermarks.low_rps
    }
}

/// Rule by which a redirector answers a server that asks for copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishedRule {
    /// Condition on which a target is accepted.
    pub acceptance: Acceptance,
    /// True if the table of loads is corrected by the relief of each copy; otherwise it is as reported until
    /// the next report, and all copies of a round go to one server.
    pub has_load_correction: bool,
}

impl PublishedRule {
    /// Esser's system, as far as its figures say.
    pub const ESSER: Self = Self { acceptance: Acceptance::Any, has_load_correction: true };
}

/// The part of a document's requests that a copy takes over, as published.
pub const RELIEF: f64 = 0.5;

/// Asks for a copy of each document in turn until the predicted load of the source is at LW; gives the copies
/// made and the predicted load. `documents` are those of one report, key and requests per second, sorted here
/// by decreasing rate; `ask` asks the document's redirector and says whether it made a copy. O(n · log n).
pub fn offload(
    load_rps: f64,
    documents: &mut [(u64, f64)],
    watermarks: &Watermarks,
    mut ask: impl FnMut(u64, f64) -> bool,
) -> (usize, f64) {
    documents.sort_unstable_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    let (mut predicted_rps, mut copies) = (load_rps, 0);
    for &(document, rate_rps) in documents.iter() {
        if predicted_rps <= watermarks.low_rps {
            break;
        }
        let relief_rps = RELIEF * rate_rps;
        if ask(document, relief_rps) {
            predicted_rps -= relief_rps;
            copies += 1;
        }
    }
    (copies, predicted_rps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn the_most_popular_go_first_until_the_low_watermark() {
        let mut documents = [(1, 40.0), (2, 200.0), (3, 110.0)];
        let mut asked = Vec::new();
        let (copies, predicted) =
            offload(350.0, &mut documents, &Watermarks::default(), |document, relief| {
                asked.push((document, relief));
                true
            });
        assert_eq!((copies, predicted), (2, 195.0));
        assert_eq!(asked, [(2, 100.0), (3, 55.0)]);
    }

    #[test]
    fn acdns_targets_stay_at_the_low_watermark() {
        let watermarks = Watermarks::default();
        assert!(Acceptance::BelowLow.accepts(150.0, 50.0, &watermarks));
        assert!(!Acceptance::BelowLow.accepts(150.0, 51.0, &watermarks));
        assert!(Acceptance::Any.accepts(400.0, 51.0, &watermarks));
    }
}
