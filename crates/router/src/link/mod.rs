//! A link that is divided fairly: reads the classifier in the kernel four times a second, decides, and writes
//! what follows.
//!
//! If the kernel does not hand over its counts or does not take orders the router ends, and the classifier
//! with it. Three seconds after the last order it lets everything pass by itself.

mod control;
mod report;

pub(crate) use report::LinkReport;

use crate::admin::Known;
use crate::error::RouterError;
use crate::interface;
use control::{LinkControl, LinkDecision};
use flashweir_config::{Link, LinkFlow, LinkSide};
use flashweir_core::kernel_counts::LinkCounts;
use flashweir_core::{Duration, Instant};
use flashweir_kernel::link::{FlowKey, LinkAttachment, LinkClassifier, LinkOrders, Side};
use flashweir_telemetry::Happening;
use std::sync::Arc;

/// Time between two readings: short beside the second over which rates are averaged, and some 200 µs of work
/// each.
const PERIOD: Duration = Duration::from_millis(250);

/// The classifier of one link and what drives it. Dropping it leaves the link as it was.
pub(crate) struct LinkDriver {
    link: Link,
    /// Decides and shows, and drops and marks nothing.
    shadow: bool,
    /// Before the classifier: it goes first.
    attachment: Option<LinkAttachment>,
    classifier: LinkClassifier,
    control: LinkControl,
    counts: LinkCounts,
    overflowed_packets: u64,
    due_at: Instant,
    known: Arc<Known>,
}

impl LinkDriver {
    /// Loads the classifier; it stands nowhere yet.
    pub(crate) fn load(link: &Link, shadow: bool, known: Arc<Known>) -> Result<Self, RouterError> {
        interface::check(std::slice::from_ref(&link.interface))?;
        let key = match link.flow {
            LinkFlow::FiveTuple => FlowKey::FiveTuple,
            LinkFlow::Source => FlowKey::Source,
            LinkFlow::SourcePrefix => FlowKey::SourcePrefix,
        };
        let now = known.clock.now();
        Ok(Self {
            attachment: None,
            classifier: LinkClassifier::load(key)?,
            control: LinkControl::new(link, now),
            counts: LinkCounts::default(),
            overflowed_packets: 0,
            due_at: now + PERIOD,
            link: link.clone(),
            shadow,
            known,
        })
    }

    /// Stands before the link from now on.
    pub(crate) fn attach(&mut self) -> Result<(), RouterError> {
        self.classifier.apply(LinkOrders::default())?;
        self.attachment = Some(self.attachment_now()?);
        self.show(&LinkDecision::default());
        Ok(())
    }

    /// Time of the next work.
    pub(crate) fn due_at(&self) -> Instant {
        self.due_at
    }

    /// Does what is due. Calling early is harmless.
    pub(crate) fn wake(&mut self) -> Result<(), RouterError> {
        let now = self.known.clock.now();
        if now < self.due_at {
            return Ok(());
        }
        // Late periods are not caught up with: the next one is longer.
        self.due_at = (self.due_at + PERIOD).max(now + PERIOD / 2);
        self.look_after(now);
        let reading = self.classifier.read()?;
        self.counts = self.counts.plus(reading.counts);
        let queue = self.attachment.as_mut().and_then(LinkAttachment::read_queue).unwrap_or_default();
        self.overflowed_packets += queue.dropped;
        let decision = self.control.take(now, &reading, queue.backlog_bytes);
        let orders = match self.shadow {
            true => LinkOrders::default(),
            false => LinkOrders { mark: decision.mark, cuts: &decision.cuts },
        };
        self.classifier.apply(orders)?;
        self.show(&decision);
        Ok(())
    }

    /// An interface that is gone is reported once, and divided again as soon as one of its name is back.
    fn look_after(&mut self, now: Instant) {
        let interface = self.link.interface.as_str();
        if self.attachment.as_ref().is_some_and(|attachment| !attachment.is_there()) {
            self.attachment = None;
            // Reported even if other errors were reported lately: an operator has to act.
            let _ = self.known.telemetry.warnings().count(now, Happening::Kernel);
            tracing::error!(
                interface,
                "the link's interface is gone: nothing is divided there until it is back"
            );
        }
        if self.attachment.is_none()
            && let Ok(attachment) = self.attachment_now()
        {
            self.attachment = Some(attachment);
            tracing::warn!(interface, "the link's interface is back and divided again");
        }
    }

    fn attachment_now(&self) -> Result<LinkAttachment, RouterError> {
        let side = match self.link.side {
            LinkSide::Egress => Side::Egress,
            LinkSide::Ingress => Side::Ingress,
        };
        Ok(self.classifier.attach(&self.link.interface, side)?)
    }

    fn show(&self, decision: &LinkDecision) {
        let report = LinkReport {
            link: self.link.clone(),
            shadow: self.shadow,
            is_attached: self.attachment.is_some(),
            counts: self.counts,
            overflowed_packets: self.overflowed_packets,
            decision: decision.clone(),
        };
        self.known.telemetry.control().publish_link(report.figures());
        self.known.link.store(Some(Arc::new(report)));
    }
}
