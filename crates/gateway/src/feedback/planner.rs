//! Decides for one service, on the control thread: what to ask of the nodes in front, what to discard here,
//! and what each worker may send to the upstream.
//!
//! *Without nodes in front nothing is asked*: where no node in front was heard of in the last seconds the
//! ladder discards nothing, since the sentry alone refuses better. *The min rule*: where the upstream asks
//! this gateway for less than its own ladder would ask for, that is what the nodes in front are asked for.
//! *All other clients*: clients that are no nodes count as one, so neither they nor the nodes can take all.

use super::inbox::UpstreamDatagram;
use super::keys::{HmacKey, ring};
use super::orders::{EVERYBODY_ELSE, Orders, SenderOrders};
use super::report::FeedbackReport;
use super::upstreams::UpstreamLimits;
use super::worker::{HeardNode, NodeSample, SenderCounts};
use flashweir_admission::gapping::Restriction;
use flashweir_admission::ladder::{
    self, LadderGate, LadderInput, LadderPlanner, Rungs, Scheme, in_order, level_us, rungs_of_plan, wait_us,
};
use flashweir_admission::sentry::{Plan, Sample};
use flashweir_config::Feedback;
use flashweir_core::limits::{CLASSES, FEEDBACK_DATAGRAMS_SENT, FEEDBACK_NODES};
use flashweir_core::{Duration, Instant, Rate};
use flashweir_feedback::{Advertisement, Advertiser, Datagram, FieldError, Judged, Senders, Taken};
use http::HeaderValue;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Interval between two plans of the ladder, and between two refreshes of the feedback sent (ALGORITHMS
/// §5.2).
const REFRESH: Duration = Duration::from_millis(100);
/// Lifetime of a message: several responses to any sender that sends at all may be lost.
const TTL: Duration = Duration::from_secs(2);
/// A node in front that has sent nothing for this long is notified by datagrams, and again after this time:
/// several within the time to live.
const QUIET_AFTER: Duration = Duration::from_millis(500);
const _: () = assert!(QUIET_AFTER.as_millis() * 3 < TTL.as_millis());
/// The time over which the part of a node's requests that is beyond its share is averaged.
const BEYOND_OVER_S: f64 = 0.3;
/// The rank of requests that every limit applies to.
const LIMITED: u8 = u8::MAX;
/// The rank of requests that are limited only where all are.
const MOST_IMPORTANT: u8 = 0;

/// State of the decisions for one service.
pub(crate) struct NodePlanner {
    service: String,
    feedback: Arc<Feedback>,
    /// This gateway's name.
    name: String,
    planner: LadderPlanner,
    gate: Option<LadderGate>,
    /// The thresholds within which the backlog is held, while nodes in front are asked for less because of
    /// it.
    holds: Option<Rungs>,
    advertiser: Advertiser<HmacKey>,
    upstreams: UpstreamLimits,
    /// At most [`FEEDBACK_NODES`].
    senders: HashMap<u64, SenderState>,
    /// By worker, thousandths of usual requests.
    backlog_milli: Vec<u64>,
    arrived: [u64; CLASSES],
    completed_milli: u64,
    /// Requests waited or were refused since the last plan.
    is_short: bool,
    /// The sentry refused requests since the last plan.
    is_refusing: bool,
    capacity: Rate,
    planned_at: Instant,
    last: Orders,
    report: FeedbackReport,
}

#[derive(Debug)]
struct SenderState {
    name: Arc<str>,
    address: Option<IpAddr>,
    judged: Option<Judged>,
    /// Time at which it last sent something, or was sent a datagram.
    sent_at: Instant,
    /// Requests of the limited ranks, and those of them beyond the share, averaged.
    limited: f64,
    beyond: f64,
}

/// Fault of an upstream's field, or how the field was taken.
pub(crate) type FieldOutcome = Result<Taken, FieldError>;

/// Observation of an upstream's responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldReport {
    /// A field that was not there before.
    Field(FieldOutcome),
    /// This many responses without a field, while a limit is in force.
    Missing(u32),
}

impl NodePlanner {
    /// Of a service of the gateway `name`; `epoch` is larger in each later run.
    pub(crate) fn new(
        name: &str,
        service: &str,
        feedback: Arc<Feedback>,
        workers: usize,
        epoch: u32,
    ) -> Self {
        let advertiser = Advertiser::new(epoch, TTL, ring(&feedback.keys), Senders::new());
        Self {
            service: service.to_owned(),
            name: name.to_owned(),
            planner: LadderPlanner::new(),
            gate: None,
            holds: None,
            advertiser: advertiser.expect("the time to live is within its range"),
            upstreams: UpstreamLimits::new(workers),
            senders: HashMap::new(),
            backlog_milli: vec![0; workers],
            arrived: [0; CLASSES],
            completed_milli: 0,
            is_short: false,
            is_refusing: false,
            capacity: Rate::ZERO,
            planned_at: Instant::ZERO,
            last: Orders::default(),
            report: FeedbackReport::default(),
            feedback,
        }
    }

    /// Other settings from now on, keys among them.
    pub(crate) fn configure(&mut self, feedback: &Arc<Feedback>) {
        if *self.feedback == **feedback {
            return;
        }
        self.feedback = feedback.clone();
        self.advertiser.set_keys(ring(&feedback.keys));
        self.upstreams.set_keys(|| ring(&feedback.keys));
    }

    /// A worker's sample. `report` hears of each new field of an upstream how it was taken, and of fields
    /// that are missing.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        worker: usize,
        sample: &Sample,
        heard: Option<&NodeSample>,
        plan: &Plan,
        mut report: impl FnMut(FieldReport),
    ) {
        let cost_milli = |class: usize| match (plan.costs.usual_us, plan.costs.by_class_us.get(class)) {
            (usual @ 1.., Some(&cost @ 1..)) => u64::from(cost) * 1_000 / u64::from(usual),
            _ => 1_000,
        };
        let mut backlog_milli = 0;
        for (class, counts) in sample.classes.iter().enumerate() {
            let rank = plan.classes.get(class).map_or(0, |class| usize::from(class.rank));
            self.arrived[rank.min(CLASSES - 1)] += counts.offered;
            self.completed_milli += counts.completed * cost_milli(class);
            backlog_milli += u64::from(counts.held + counts.in_flight) * cost_milli(class);
        }
        self.backlog_milli[worker] = backlog_milli;
        self.is_short |= sample.held > 0 || sample.shed > 0;
        self.is_refusing |= sample.shed > 0;
        self.upstreams.observe_offered(worker, sample.offered);
        let Some(heard) = heard else { return };
        for node in &heard.senders {
            self.hear(now, node);
        }
        // Where there are only such clients, no sender can be asked for less.
        if !self.senders.is_empty() && heard.others != SenderCounts::default() {
            let (key, name, counts) = (EVERYBODY_ELSE, Arc::from(""), heard.others);
            self.hear(now, &HeardNode { key, name, address: None, counts });
        }
        if let Some(reset) = heard.quota {
            self.upstreams.hear_quota(now, reset);
        }
        for &(upstream, count) in &heard.missing {
            if self.upstreams.is_limited(now, upstream) {
                report(FieldReport::Missing(count));
            }
        }
        for (upstream, field) in &heard.fields {
            let of_service = || {
                let node = self.feedback.upstream_names.get(&self.service).unwrap_or(&self.service);
                (ring(&self.feedback.keys), context(&self.name, node))
            };
            report(FieldReport::Field(self.upstreams.hear(now, *upstream, field, of_service)));
        }
    }

    /// Decides; the orders where they are others than before.
    pub(crate) fn plan(&mut self, now: Instant, plan: &Plan) -> Option<Orders> {
        // The first refusal is not waited out: every moment of it costs refusals.
        let is_first = self.is_refusing && self.advertiser.asks().is_none() && !self.senders.is_empty();
        let is_due = is_first || now.saturating_since(self.planned_at) >= REFRESH;
        if is_due {
            self.refresh(now, plan);
        }
        let ladder = self.discards();
        if !is_due && ladder == self.last.ladder {
            return None;
        }
        let were_none = self.last.are_none();
        self.last.ladder = ladder;
        if is_due {
            self.last.from_rank = self.advertiser.asks().map_or(0, |asks| asks.from_rank);
            self.last.restrictions = self.upstreams.restrictions(now);
            self.last.senders = self.sender_orders(now);
        }
        (!were_none || !self.last.are_none()).then(|| self.last.clone())
    }

    /// The sentry's plan as it is in force while the ladder holds the backlog; none while it does not.
    pub(crate) fn in_order(&self, plan: &Plan) -> Option<Plan> {
        self.holds.as_ref().map(|rungs| in_order(plan, rungs, self.capacity))
    }

    /// Snapshot for `/status` and the metrics.
    pub(crate) fn report(&self) -> &FeedbackReport {
        &self.report
    }

    /// A datagram of an upstream came.
    pub(crate) fn take_datagram(&mut self, now: Instant, datagram: &UpstreamDatagram) -> FieldOutcome {
        let node = self.feedback.upstream_names.get(&self.service).unwrap_or(&self.service);
        let signed_for = Datagram::context(&self.name, node, datagram.address);
        let of_service = || (ring(&self.feedback.keys), context(&self.name, node));
        let signed = (&*datagram.field, &*signed_for);
        self.upstreams.hear_datagram(now, datagram.upstream, signed, of_service)
    }

    /// Datagrams for nodes in front that were asked for less, whose names have a port for them, and that have
    /// sent nothing for a while: no response carries the field to them. `address` is that of this gateway for
    /// nodes in front. At most [`FEEDBACK_DATAGRAMS_SENT`]. To be asked after each plan.
    pub(crate) fn datagrams(&mut self, now: Instant, address: SocketAddr) -> Vec<(SocketAddr, Vec<u8>)> {
        if self.feedback.datagram_ports.is_empty() || self.last.senders.is_empty() {
            return Vec::new();
        }
        let mut datagrams = Vec::new();
        for state in self.senders.values_mut() {
            if datagrams.len() == FEEDBACK_DATAGRAMS_SENT {
                break;
            }
            let (Some(to), Some(judged)) = (state.address, state.judged) else { continue };
            let Some(&port) = self.feedback.datagram_ports.get(&*state.name) else { continue };
            if now.saturating_since(state.sent_at) < QUIET_AFTER {
                continue;
            }
            let signed_for = Datagram::context(&state.name, &self.name, address);
            let Some(field) = self.advertiser.datagram_field(now, judged.slot, &signed_for) else { continue };
            state.sent_at = now;
            let bytes = Datagram::write(&state.name, &self.name, address, &field);
            datagrams.push((SocketAddr::new(to, port), bytes));
        }
        datagrams
    }

    /// Requests of one node came since the last sample of a worker.
    fn hear(&mut self, now: Instant, node: &HeardNode) {
        let HeardNode { key, ref name, address, counts } = *node;
        let weight = self.feedback.weights.get(&**name).copied().unwrap_or(1);
        if self.senders.len() >= FEEDBACK_NODES && !self.senders.contains_key(&key) {
            // The advertiser's table is full as well: it is asked for nothing until one of the others is
            // forgotten.
            return;
        }
        let state = self.senders.entry(key).or_insert_with(|| SenderState {
            name: name.clone(),
            address,
            judged: None,
            sent_at: now,
            limited: 0.0,
            beyond: 0.0,
        });
        state.sent_at = now;
        if counts.others > 0 {
            state.judged = Some(self.advertiser.hear(now, key, weight, MOST_IMPORTANT));
        }
        for _ in 0..counts.limited {
            let judged = self.advertiser.hear(now, key, weight, LIMITED);
            state.limited += 1.0;
            state.beyond += f64::from(u8::from(judged.is_over_share));
            state.judged = Some(judged);
        }
    }

    fn refresh(&mut self, now: Instant, plan: &Plan) {
        let span_s = now.saturating_since(self.planned_at).as_secs_f64();
        self.planned_at = now;
        let input = LadderInput {
            backlog_milli: self.backlog_milli.iter().sum(),
            rungs: rungs_of_plan(plan),
            capacity_rps: plan.explanation.capacity_rps,
            arrived: std::mem::take(&mut self.arrived),
            completed_milli: std::mem::take(&mut self.completed_milli),
            wait_us: wait_us(plan),
            is_short: std::mem::take(&mut self.is_short),
            is_refusing: std::mem::take(&mut self.is_refusing),
        };
        let of_ladder = self.planner.plan(now, &input);
        self.capacity = of_ladder.capacity;
        self.holds = of_ladder.holds.filter(|_| !self.senders.is_empty());
        match (of_ladder.rungs, &mut self.gate) {
            (None, gate) => *gate = None,
            (Some(rungs), Some(gate)) => gate.set_rungs(rungs),
            (Some(rungs), gate) => *gate = Some(LadderGate::new(Scheme::Combined, rungs, &[])),
        }
        let own = of_ladder.asks.map(|(from_rank, rate)| Advertisement {
            from_rank,
            severity: of_ladder.severity,
            rate,
        });
        let asks = least(own, self.upstreams.asked(now));
        self.advertiser.refresh(now, asks);
        let kept = (-span_s / BEYOND_OVER_S).exp();
        let advertiser = &self.advertiser;
        self.senders.retain(|&key, state| {
            (state.limited, state.beyond) = (state.limited * kept, state.beyond * kept);
            advertiser.find(key).is_some()
        });
        self.report = FeedbackReport {
            asks,
            senders: self.senders.keys().filter(|&&key| key != EVERYBODY_ELSE).count(),
            ladder: Some(of_ladder.explanation),
            upstreams: self.upstreams.reports(now),
            quota: self.upstreams.quota(now),
        };
    }

    /// Requests that the ladder discards at the present level: none where there is no node in front that
    /// could have been asked.
    fn discards(&mut self) -> ladder::Orders {
        let level = level_us(self.backlog_milli.iter().sum(), self.capacity);
        match &mut self.gate {
            Some(gate) if !self.senders.is_empty() => {
                gate.observe(level);
                gate.orders()
            }
            _ => ladder::Orders::default(),
        }
    }

    fn sender_orders(&mut self, now: Instant) -> Arc<HashMap<u64, SenderOrders>> {
        let mut orders = HashMap::new();
        for (&key, state) in &self.senders {
            let Some(judged) = state.judged else { continue };
            let field = match key {
                EVERYBODY_ELSE => None,
                _ => self.advertiser.field(now, judged.slot, &context(&state.name, &self.name)),
            };
            // A field's bytes are base64 between colons.
            let field = field.and_then(|field| HeaderValue::from_bytes(field.as_bytes()).ok());
            let beyond_share_milli = match state.limited {
                // So few say nothing, and one that is not limited is beyond no share.
                ..1.0 => 0,
                limited => (state.beyond / limited * 1e3) as u16,
            };
            if field.is_some() || beyond_share_milli > 0 {
                orders.insert(key, SenderOrders { field, beyond_share_milli });
            }
        }
        if orders.is_empty() && self.last.senders.is_empty() {
            return self.last.senders.clone();
        }
        Arc::new(orders)
    }
}

/// Context that both ends of a message know: see docs/feedback.md.
fn context(sender: &str, node: &str) -> Vec<u8> {
    format!("{sender}>{node}").into_bytes()
}

/// The lower of what the ladder and what the upstream asks for.
fn least(own: Option<Advertisement>, of_upstream: Option<Restriction>) -> Option<Advertisement> {
    let of_upstream = of_upstream.map(|Restriction { from_rank, severity, rate }| Advertisement {
        from_rank,
        severity: severity.max(1),
        rate,
    });
    match (own, of_upstream) {
        (Some(own), Some(other)) => Some(if other.rate < own.rate { other } else { own }),
        (own, other) => own.or(other),
    }
}
