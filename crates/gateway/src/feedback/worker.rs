//! A worker's part: it counts what each node in front sends, and keeps what upstreams say until the next
//! sample takes it along.

use super::orders::SenderOrders;
use super::senders::Node;
use flashweir_core::Duration;
use flashweir_core::limits::FEEDBACK_SENDERS;
use std::collections::HashMap;
use std::mem;
use std::net::IpAddr;
use std::sync::Arc;

/// A node in front that sent nothing for this many samples is forgotten; it is heard of at once when it sends
/// again.
const SILENT_SAMPLES: u16 = 250;
/// A field that is longer than any message is no message; this much of it is kept, so that it is seen to be
/// none.
const FIELD_BYTES_MAX: usize = 64;

/// Feedback that one worker received for one service.
#[derive(Debug, Default)]
pub(crate) struct Hearing {
    senders: HashMap<u64, Heard>,
    /// All clients that are no nodes in front.
    others: Heard,
    /// By upstream, as far as one sent a field.
    fields: Vec<NewestField>,
    /// For how long an answer said that the quota is spent, since the last sample: the longest.
    quota: Option<Duration>,
    overflows: u64,
}

/// Newest field in the responses of one upstream.
#[derive(Debug, Default)]
struct NewestField {
    value: Box<[u8]>,
    /// The control thread does not have it yet.
    is_news: bool,
    /// Responses without the field since the last sample.
    missing: u32,
}

#[derive(Debug, Default)]
struct Heard {
    name: Arc<str>,
    address: Option<IpAddr>,
    counts: SenderCounts,
    /// Requests beyond the share that are still to be called so, thousandths.
    owed_milli: u32,
    silent_samples: u16,
}

/// Requests of one node in front since the last sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SenderCounts {
    /// Of the ranks that are limited, or would be.
    pub(crate) limited: u32,
    /// Of the others.
    pub(crate) others: u32,
}

/// One node in front, and what it sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeardNode {
    pub(crate) key: u64,
    pub(crate) name: Arc<str>,
    pub(crate) address: Option<IpAddr>,
    pub(crate) counts: SenderCounts,
}

/// Feedback that one worker received since the last sample.
#[derive(Debug, Default)]
pub(crate) struct NodeSample {
    /// Nodes in front that sent any.
    pub(crate) senders: Vec<HeardNode>,
    /// Of all other clients.
    pub(crate) others: SenderCounts,
    /// By upstream: fields that were not there before.
    pub(crate) fields: Vec<(usize, Box<[u8]>)>,
    /// By upstream that sent fields before: responses without one.
    pub(crate) missing: Vec<(usize, u32)>,
    /// For how long the quota of the upstream is spent.
    pub(crate) quota: Option<Duration>,
}

impl Hearing {
    /// A request of a node in front arrives; whether it is beyond that node's share.
    pub(crate) fn hear(&mut self, node: Node<'_>, is_limited: bool, orders: Option<&SenderOrders>) -> bool {
        let is_full = self.senders.len() >= FEEDBACK_SENDERS;
        if is_full && !self.senders.contains_key(&node.key) {
            // It counts with those that are no nodes, and is not asked for less.
            self.overflows += 1;
            return self.hear_other(is_limited, None);
        }
        let new = || Heard { name: node.name.into(), address: Some(node.address), ..Heard::default() };
        let heard = self.senders.entry(node.key).or_insert_with(new);
        heard.count(is_limited, orders)
    }

    /// A request of any other client arrives; whether it is beyond the share of all those.
    pub(crate) fn hear_other(&mut self, is_limited: bool, orders: Option<&SenderOrders>) -> bool {
        self.others.count(is_limited, orders)
    }

    /// An upstream's response carried this field, or none. A comparison, unless it is news.
    pub(crate) fn hear_upstream(&mut self, upstream: usize, field: Option<&[u8]>) {
        let Some(field) = field else {
            let known = self.fields.get_mut(upstream).filter(|known| !known.value.is_empty());
            known.into_iter().for_each(|known| known.missing += 1);
            return;
        };
        let field = &field[..field.len().min(FIELD_BYTES_MAX)];
        if self.fields.get(upstream).is_some_and(|last| *last.value == *field) {
            return;
        }
        if self.fields.len() <= upstream {
            // There are at most `limits::UPSTREAM_ADDRESSES`.
            self.fields.resize_with(upstream + 1, NewestField::default);
        }
        let known = &mut self.fields[upstream];
        (known.value, known.is_news) = (field.into(), true);
    }

    /// An answer of the upstream said that the quota is spent for this long.
    pub(crate) fn hear_quota(&mut self, reset: Duration) {
        self.quota = self.quota.max(Some(reset));
    }

    /// The feedback received since the last call; none where there was none.
    pub(crate) fn drain(&mut self) -> Option<Box<NodeSample>> {
        let (others, quota) = (mem::take(&mut self.others.counts), self.quota.take());
        let mut sample = NodeSample { others, quota, ..NodeSample::default() };
        self.senders.retain(|&key, heard| {
            let counts = mem::take(&mut heard.counts);
            let is_silent = counts == SenderCounts::default();
            heard.silent_samples = if is_silent { heard.silent_samples + 1 } else { 0 };
            if !is_silent {
                let (name, address) = (heard.name.clone(), heard.address);
                sample.senders.push(HeardNode { key, name, address, counts });
            }
            heard.silent_samples < SILENT_SAMPLES
        });
        for (upstream, newest) in self.fields.iter_mut().enumerate() {
            if mem::take(&mut newest.is_news) {
                sample.fields.push((upstream, newest.value.clone()));
            }
            if newest.missing > 0 {
                sample.missing.push((upstream, mem::take(&mut newest.missing)));
            }
        }
        let is_any = !sample.senders.is_empty()
            || !sample.fields.is_empty()
            || !sample.missing.is_empty()
            || sample.quota.is_some()
            || sample.others != SenderCounts::default();
        is_any.then(|| Box::new(sample))
    }

    /// Requests of nodes for which there was no room, since the last time.
    pub(crate) fn take_overflows(&mut self) -> u64 {
        mem::take(&mut self.overflows)
    }
}

impl Heard {
    fn count(&mut self, is_limited: bool, orders: Option<&SenderOrders>) -> bool {
        if !is_limited {
            self.counts.others += 1;
            return false;
        }
        self.counts.limited += 1;
        self.owed_milli += orders.map_or(0, |orders| u32::from(orders.beyond_share_milli));
        let is_beyond = self.owed_milli >= 1_000;
        self.owed_milli -= if is_beyond { 1_000 } else { 0 };
        is_beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn shop(key: u64) -> Node<'static> {
        Node { key, name: "shop", address: ADDRESS }
    }

    #[test]
    fn requests_beyond_the_share_are_spread_evenly() {
        let mut hearing = Hearing::default();
        let orders = SenderOrders { field: None, beyond_share_milli: 250 };
        let beyond: Vec<bool> = (0..8).map(|_| hearing.hear(shop(7), true, Some(&orders))).collect();
        assert_eq!(beyond, [false, false, false, true, false, false, false, true]);
        assert!((0..50).all(|_| !hearing.hear(shop(7), false, Some(&orders))), "ranks that are not limited");
        let sample = hearing.drain().expect("requests");
        let counts = SenderCounts { limited: 8, others: 50 };
        let heard = HeardNode { key: 7, name: "shop".into(), address: Some(ADDRESS), counts };
        assert_eq!(sample.senders, [heard]);
        assert!(hearing.drain().is_none());
    }

    #[test]
    fn a_field_is_reported_once_and_a_silent_node_is_forgotten() {
        let mut hearing = Hearing::default();
        hearing.hear(shop(7), true, None);
        hearing.hear_upstream(1, None);
        (0..3).for_each(|_| hearing.hear_upstream(1, Some(b":a:")));
        hearing.hear_upstream(0, Some(&[b'a'; 1_000]));
        let sample = hearing.drain().expect("news");
        let too_long = [b'a'; FIELD_BYTES_MAX].into();
        assert_eq!(sample.fields, [(0, too_long), (1, (*b":a:").into())]);
        assert_eq!(sample.missing, [], "none is missed before the first");
        hearing.hear_upstream(1, Some(b":a:"));
        assert!(hearing.drain().is_none());
        (0..2).for_each(|_| hearing.hear_upstream(1, None));
        assert_eq!(hearing.drain().expect("responses without").missing, [(1, 2)]);
        hearing.hear_upstream(1, Some(b":b:"));
        assert_eq!(hearing.drain().expect("news").fields.len(), 1);
        (0..SILENT_SAMPLES).for_each(|_| drop(hearing.drain()));
        assert!(hearing.senders.is_empty());
    }

    #[test]
    fn the_longest_quota_of_a_sample_is_reported_once() {
        let mut hearing = Hearing::default();
        [2, 5, 1].into_iter().for_each(|seconds| hearing.hear_quota(Duration::from_secs(seconds)));
        assert_eq!(hearing.drain().expect("news").quota, Some(Duration::from_secs(5)));
        assert!(hearing.drain().is_none());
    }

    #[test]
    fn a_full_table_counts_further_nodes_with_the_others() {
        let mut hearing = Hearing::default();
        for key in 0..FEEDBACK_SENDERS as u64 + 5 {
            hearing.hear(shop(key), true, None);
        }
        let sample = hearing.drain().expect("requests");
        assert_eq!((sample.senders.len(), sample.others.limited), (FEEDBACK_SENDERS, 5));
        assert_eq!(hearing.take_overflows(), 5);
    }
}
