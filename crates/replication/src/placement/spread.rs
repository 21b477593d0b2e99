//! The repaired offload: the fewest copies with which the router *can* make the loads even.
//!
//! ```text
//! achievable loads = each document poured over its hosts, those with one host first (their rate × 6)
//! while a server's achievable load is above its fair part:
//!     take its documents by decreasing rate, a prefix of which covers the excess;
//!     pour each over the servers that have room (fair part, at most 0.9·HW) and get a copy
//! ```
//!
//! Three differences to the published rule, each a repair of a fault:
//! * The goal is the fair part, not LW, so the movement ends where the loads are even.
//! * The relief of a copy is what the router can move, not half: the router has no fixed split, it follows the loads.
//! * A prefix sum decides, so a tail of small documents moves in bulk as one large document does.
//!
//! The factor on documents with one host is room for the router: they are what it cannot move, and with
//! exactly the fair part of them on one server each fluctuation would stay there.
//!
//! Nothing is decided by a threshold of popularity, so a least popularity for a copy (R_create = 3·D, 12
//! requests/s) has no place here: it would leave the tail where it is.

use super::Watermarks;
use crate::distribution::fill;
use crate::servers::ServerIndex;
use alloc::vec::Vec;

/// Weight of a document with one host: of two servers, one has 0.3 of its fair part in such documents at
/// most. Chosen with sixteen redirectors and 400/s on two servers, of which single seconds were judged (the
/// scenario of lab/sim/tests/sim/replicas.rs, seeds 101 to 120, which it does not judge): the worst second's
/// max/mean was 1.049 with 3, 1.041 with 6, and 1.044 with 10, which makes a third more copies.
const EXCLUSIVE_FACTOR: f64 = 6.0;
/// No target is filled beyond this part of HW: room for what fluctuates.
pub(crate) const TARGET_PART: f64 = 0.9;
/// Excess over the fair part that starts a movement: below it, estimates of rates differ by chance.
const TOLERANCE: f64 = 1.02;

/// A document, its offered rate, and its hosts.
#[derive(Clone, Copy, Debug)]
pub struct DocumentLoad<'a> {
    /// Its place in the redirector's table.
    pub document: usize,
    /// Requests per second offered, refused ones included.
    pub rate_rps: f64,
    /// Its usable hosts.
    pub hosts: &'a [ServerIndex],
}

/// A copy to be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewCopy {
    /// The document's place in the redirector's table.
    pub document: usize,
    /// The server that gives load away.
    pub source: ServerIndex,
    /// The server that gets the copy.
    pub target: ServerIndex,
    /// Requests per second that are expected to move.
    pub moved_rps: f64,
}

/// The most even loads that a router can make with these copies, documents with few hosts first; rates of
/// documents with one host are multiplied by `exclusive_factor`. Also the part of each document's rate at
/// each of its hosts, in the order of `documents`. O(documents · hosts · log hosts).
#[must_use]
pub fn achievable_loads(
    documents: &[DocumentLoad<'_>],
    weights: &[f64],
    exclusive_factor: f64,
) -> (Vec<f64>, Vec<Vec<f64>>) {
    let mut loads = alloc::vec![0.0; weights.len()];
    let mut parts: Vec<Vec<f64>> = alloc::vec![Vec::new(); documents.len()];
    let mut order: Vec<usize> = (0..documents.len()).collect();
    order.sort_by_key(|&place| documents[place].hosts.len());
    for place in order {
        let DocumentLoad { rate_rps, hosts, .. } = documents[place];
        let rate_rps = if hosts.len() == 1 { rate_rps * exclusive_factor } else { rate_rps };
        let at = |server: ServerIndex| (loads[usize::from(server)], weights[usize::from(server)]);
        let bases: Vec<(f64, f64)> = hosts.iter().map(|&server| at(server)).collect();
        parts[place] = fill(&bases, rate_rps);
        for (&server, part) in hosts.iter().zip(&parts[place]) {
            loads[usize::from(server)] += part;
        }
    }
    (loads, parts)
}

/// The copies to make, most `copies_max`. `weights` are zero for servers that are out; `room_rps` is how much
/// load each may still get before 0.9·HW, by the reports.
///
/// Room for the router comes first: documents with one host count more than they are. Where that needs no
/// copy, the loads that the router can make have to be even as they are: with three servers and more,
/// documents with two hosts may keep them from it.
#[must_use]
pub fn spread(
    documents: &[DocumentLoad<'_>],
    weights: &[f64],
    room_rps: &[f64],
    copies_max: usize,
) -> Vec<NewCopy> {
    let counted = |factor| spread_counted(documents, weights, room_rps, copies_max, factor);
    let copies = counted(EXCLUSIVE_FACTOR);
    if copies.is_empty() { counted(1.0) } else { copies }
}

/// The same with documents with one host counted `exclusive_factor` times. Sources are taken in the order of
/// their excess.
fn spread_counted(
    documents: &[DocumentLoad<'_>],
    weights: &[f64],
    room_rps: &[f64],
    copies_max: usize,
    exclusive_factor: f64,
) -> Vec<NewCopy> {
    let (loads, parts) = achievable_loads(documents, weights, exclusive_factor);
    let fair = loads.iter().sum::<f64>() / weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let (room_rps, copies) = (room_rps.to_vec(), Vec::new());
    let mut plan = Plan { loads, weights, fair, room_rps, copies, copies_max, exclusive_factor };
    let mut sources: Vec<usize> = (0..weights.len()).filter(|&server| weights[server] > 0.0).collect();
    sources.sort_by(|&one, &other| plan.excess(other).total_cmp(&plan.excess(one)).then(one.cmp(&other)));
    let mut by_rate: Vec<usize> = (0..documents.len()).collect();
    by_rate.sort_by(|&one, &other| documents[other].rate_rps.total_cmp(&documents[one].rate_rps));
    for source in sources {
        if plan.excess(source) <= (TOLERANCE - 1.0) * fair * weights[source] {
            break;
        }
        for &place in &by_rate {
            if plan.excess(source) <= 0.0 || plan.copies.len() >= copies_max {
                break;
            }
            let hosts = documents[place].hosts;
            if let Some(at) = hosts.iter().position(|&host| usize::from(host) == source) {
                plan.pour(&documents[place], source, parts[place][at]);
            }
        }
    }
    plan.copies
}

/// The plan so far.
struct Plan<'a> {
    loads: Vec<f64>,
    weights: &'a [f64],
    fair: f64,
    room_rps: Vec<f64>,
    copies: Vec<NewCopy>,
    copies_max: usize,
    exclusive_factor: f64,
}

impl Plan<'_> {
    /// Load above the fair part.
    fn excess(&self, server: usize) -> f64 {
        self.loads[server] - self.fair * self.weights[server]
    }

    /// Moves up to `available_rps` of a document from the source to servers that have room, least loaded
    /// first.
    fn pour(&mut self, document: &DocumentLoad<'_>, source: usize, available_rps: f64) {
        // Parts of documents with one host are counted larger than they are.
        let counted = if document.hosts.len() == 1 { self.exclusive_factor } else { 1.0 };
        let mut left_rps = available_rps.min(self.excess(source));
        let mut new_hosts: Vec<usize> = Vec::new();
        while left_rps > 0.0 && self.copies.len() < self.copies_max {
            let may = |server: &usize| {
                self.weights[*server] > 0.0
                    && !document.hosts.iter().any(|&host| usize::from(host) == *server)
                    && !new_hosts.contains(server)
            };
            let room = |server: usize| (-self.excess(server)).min(self.room_rps[server] * counted);
            let relative = |server: usize| room(server) / self.weights[server];
            let targets = (0..self.weights.len()).filter(may);
            let best = targets.max_by(|&one, &other| relative(one).total_cmp(&relative(other)));
            let Some(target) = best.filter(|&target| room(target) > 0.0) else { return };
            let moved_rps = left_rps.min(room(target));
            self.loads[source] -= moved_rps;
            self.loads[target] += moved_rps;
            self.room_rps[target] -= moved_rps / counted;
            left_rps -= moved_rps;
            new_hosts.push(target);
            let (source, target) = (source as ServerIndex, target as ServerIndex);
            let moved_rps = moved_rps / counted;
            self.copies.push(NewCopy { document: document.document, source, target, moved_rps });
        }
    }
}

/// Room of a server up to 0.9·HW.
pub(crate) fn room_rps(load_rps: f64, weight: f64, watermarks: &Watermarks) -> f64 {
    (TARGET_PART * watermarks.high_rps * weight - load_rps).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents<'a>(rates: &[f64], hosts: &'a [ServerIndex]) -> Vec<DocumentLoad<'a>> {
        let of = |(document, &rate_rps)| DocumentLoad { document, rate_rps, hosts };
        rates.iter().enumerate().map(of).collect()
    }

    /// Goal: a prefix that covers the excess, not every document.
    #[test]
    fn a_prefix_of_the_popular_documents_is_copied() {
        let documents = documents(&[50.0, 300.0, 100.0, 50.0], &[0]);
        let copies = spread(&documents, &[1.0, 1.0], &[0.0, 270.0], 10);
        let places: Vec<usize> = copies.iter().map(|copy| copy.document).collect();
        // Counted six times, 3,000 have to be 1,500 on each: the first document has 1,800.
        assert_eq!(places, [1]);
        assert_eq!(copies[0].moved_rps, 250.0);
    }

    /// Goal: a tail without a single popular document moves in bulk.
    #[test]
    fn a_tail_moves_in_bulk() {
        let rates = [0.5; 400];
        let copies = spread(&documents(&rates, &[0]), &[1.0, 1.0], &[0.0, 270.0], 1_000);
        let moved: f64 = copies.iter().map(|copy| copy.moved_rps).sum();
        assert!(copies.len() > 100 && (moved - 100.0).abs() < 1.0, "{} copies, {moved}", copies.len());
    }

    /// Goal: one document hotter than a server gets as many copies as it needs, in one round.
    #[test]
    fn one_document_may_need_several_copies() {
        let copies = spread(&documents(&[800.0], &[0]), &[1.0; 4], &[0.0, 270.0, 270.0, 270.0], 10);
        let mut targets: Vec<ServerIndex> = copies.iter().map(|copy| copy.target).collect();
        targets.sort_unstable();
        assert_eq!(targets, [1, 2, 3]);
    }

    #[test]
    fn nothing_moves_where_loads_can_be_even_or_nobody_has_room() {
        let everywhere: [ServerIndex; 2] = [0, 1];
        assert!(spread(&documents(&[500.0], &everywhere), &[1.0, 1.0], &[0.0, 20.0], 10).is_empty());
        assert!(spread(&documents(&[800.0], &[0]), &[1.0, 1.0], &[0.0, 0.0], 10).is_empty());
        assert!(spread(&documents(&[800.0], &[0]), &[1.0, 0.0], &[0.0, 270.0], 10).is_empty());
    }
}
