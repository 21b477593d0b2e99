//! The queue before an interface: the books of its queueing discipline.

use std::io;

use super::route_netlink::{
    ALL, GET_QUEUES, RouteNetlink, attribute, number_at, traffic_answer, traffic_question,
};
use flashweir_core::kernel_counts::QueueCounts;

/// Attributes of a queueing discipline (linux/rtnetlink.h), and of its statistics (linux/gen_stats.h).
const KIND: u16 = 1;
const STATISTICS: u16 = 7;
const BASIC: u16 = 1;
const QUEUE: u16 = 3;
const OWN: u16 = 4;
const PACKETS: u16 = 8;
/// Parent of an interface's outermost discipline.
const ROOT: u32 = u32::MAX;

/// One interface's queue.
#[derive(Debug)]
pub(crate) struct Queue {
    netlink: RouteNetlink,
    interface: i32,
    before: QueueCounts,
}

impl Queue {
    /// The queue of an interface of this thread's network namespace, from now on.
    pub(crate) fn of(interface: i32) -> io::Result<Self> {
        let mut queue = Self { netlink: RouteNetlink::open()?, interface, before: QueueCounts::default() };
        queue.before = queue.total()?.ok_or_else(|| io::Error::other("no queue"))?;
        Ok(queue)
    }

    pub(super) fn interface(&self) -> i32 {
        self.interface
    }

    /// Counts since the last reading; `None` where the kernel reports nothing, as of an interface that is
    /// gone.
    pub(crate) fn read(&mut self) -> Option<QueueCounts> {
        let total = self.total().ok()??;
        // Another discipline was put in its place, which counts from zero.
        let began_anew = total.packets < self.before.packets || total.dropped < self.before.dropped;
        let before = if began_anew { QueueCounts::default() } else { self.before };
        self.before = total;
        Some(QueueCounts { backlog_bytes: total.backlog_bytes, ..total.with(before, u64::saturating_sub) })
    }

    /// Since the discipline is there. What the outermost one says includes those inside, but for their marks.
    fn total(&mut self) -> io::Result<Option<QueueCounts>> {
        let mut root = None;
        let mut marked = 0;
        let question = traffic_question(self.interface, 0);
        let interface = self.interface;
        self.netlink.ask(GET_QUEUES, ALL, &question, |_, answer| {
            let Some((of, parent, attributes)) = traffic_answer(answer) else { return };
            // The kernel reports every interface.
            if of == interface {
                marked += marks(attributes);
                if parent == ROOT {
                    root = counts(attributes);
                }
            }
        })?;
        Ok(root.map(|counts| QueueCounts { marked, ..counts }))
    }
}

/// Returns whether a discipline is of a kind, by its attributes.
pub(super) fn is_kind(attributes: &[u8], kind: &str) -> bool {
    attribute(attributes, KIND).is_some_and(|name| name.strip_suffix(&[0]) == Some(kind.as_bytes()))
}

fn counts(attributes: &[u8]) -> Option<QueueCounts> {
    let statistics = attribute(attributes, STATISTICS)?;
    let queue = attribute(statistics, QUEUE)?;
    // Beyond 32 bits the number of packets is given a second time, whole.
    let packets =
        attribute(statistics, PACKETS).and_then(|whole| whole.try_into().ok()).map(u64::from_ne_bytes);
    let few_packets = || number_at(attribute(statistics, BASIC)?, 8).map(u64::from);
    Some(QueueCounts {
        packets: packets.or_else(few_packets)?,
        dropped: number_at(queue, 8)?.into(),
        marked: 0,
        backlog_bytes: number_at(queue, 4)?.into(),
    })
}

/// Packets that one discipline marked, by its own statistics (linux/pkt_sched.h: where in them `ecn_mark` or
/// `marked` is). Disciplines that keep no such count, or keep it otherwise (CAKE: for each tin), count as
/// none.
fn marks(attributes: &[u8]) -> u64 {
    const AT: [(&str, usize); 4] = [("fq_codel", 12), ("codel", 24), ("red", 12), ("pie", 36)];
    let at = AT.iter().find(|(kind, _)| is_kind(attributes, kind)).map(|(_, at)| *at);
    let own = attribute(attributes, STATISTICS).and_then(|statistics| attribute(statistics, OWN));
    at.zip(own).and_then(|(at, own)| number_at(own, at)).unwrap_or(0).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut attribute = [(4 + value.len() as u16).to_ne_bytes(), kind.to_ne_bytes()].concat();
        attribute.extend(value);
        attribute.resize(attribute.len().next_multiple_of(4), 0);
        attribute
    }

    fn numbers(numbers: &[u32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
    }

    /// As the kernel writes them: `tc -s qdisc` shows the same numbers.
    fn discipline(kind: &str, own: &[u32], whole_packets: Option<u64>) -> Vec<u8> {
        let mut statistics = nested(BASIC, &numbers(&[1_000_000, 0, 700, 0]));
        statistics.extend(whole_packets.iter().flat_map(|packets| nested(PACKETS, &packets.to_ne_bytes())));
        statistics.extend(nested(QUEUE, &numbers(&[3, 4_500, 17, 1, 2])));
        statistics.extend(nested(OWN, &numbers(own)));
        let kind = [kind.as_bytes(), &[0]].concat();
        [nested(KIND, &kind), nested(STATISTICS, &statistics)].concat()
    }

    #[test]
    fn the_books_are_found_among_the_attributes() {
        let fq_codel = discipline("fq_codel", &[0, 1, 2, 99, 4], None);
        let expected = QueueCounts { packets: 700, dropped: 17, marked: 0, backlog_bytes: 4_500 };
        assert_eq!((counts(&fq_codel), marks(&fq_codel)), (Some(expected), 99));
        let large = discipline("red", &[1, 2, 3, 5], Some(1 << 40));
        assert_eq!((counts(&large).map(|counts| counts.packets), marks(&large)), (Some(1 << 40), 5));
        assert_eq!(marks(&discipline("tbf", &[9; 16], None)), 0);
    }

    #[test]
    fn what_is_cut_off_or_of_another_kind_says_nothing() {
        let whole = discipline("pie", &[7; 10], None);
        for length in 0..whole.len() {
            // No panic; a discipline without its statistics has no books.
            let _ = (counts(&whole[..length]), marks(&whole[..length]));
        }
        assert_eq!((counts(&[]), marks(&[])), (None, 0));
        assert!(is_kind(&whole, "pie") && !is_kind(&whole, "pi") && !is_kind(&[], "pie"));
    }
}
