//! Sends payloads and judges what became of them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use flashweir_fuzz::reference::{End, Kind, Message, lenient, strict};
use flashweir_testkit::Client;

use crate::desync::http2::{Outcome2, Payload2};
use crate::desync::payload::{Payload, owner};

/// Payloads on their way at once.
const CLIENTS: usize = 16;
/// A payload that the gateway waits for the rest of is given up after this time.
const GIVEN_UP_AFTER: Duration = Duration::from_millis(400);

/// Outcome of one payload.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// All that the client was answered.
    pub(crate) answers: Vec<u8>,
    /// The client left before the gateway closed.
    pub(crate) is_given_up: bool,
}

/// Outcome of all payloads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    /// The outer request did not reach the upstream.
    pub(crate) refused: usize,
    /// It did, once.
    pub(crate) forwarded: usize,
    /// The gateway waited for more of it.
    pub(crate) waited_for: usize,
}

/// Sends all payloads, each on its own connection.
pub(crate) fn run_all(gateway: SocketAddr, payloads: &[Payload]) -> Vec<Outcome> {
    in_parallel(payloads, |payload| send(gateway, &payload.bytes))
}

/// Applies `run` to all items on some threads, results in the items' order.
pub(crate) fn in_parallel<T: Sync, R: Send>(items: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let index = next.fetch_add(1, Ordering::Relaxed)
            && let Some(item) = items.get(index)
        {
            done.push((index, run(item)));
        }
        done
    };
    let mut results: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a client")).collect()
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

fn send(gateway: SocketAddr, bytes: &[u8]) -> Outcome {
    let mut client = Client::connect(gateway);
    // The gateway may close before it has read everything.
    let _ = client.try_send(bytes);
    let mut outcome = Outcome::default();
    loop {
        if !client.is_answered_within(GIVEN_UP_AFTER) {
            // Either the end, which reads as nothing, or silence.
            outcome.is_given_up = client.is_quiet_for(Duration::from_millis(1));
            return outcome;
        }
        match client.read_some(64 << 10) {
            Ok(bytes) if !bytes.is_empty() => outcome.answers.extend(bytes),
            _ => return outcome,
        }
    }
}

/// Requests that arrived, by payload, in their order on each connection.
fn by_payload(connections: &[Vec<Message>]) -> BTreeMap<usize, Vec<&Message>> {
    let mut arrived: BTreeMap<usize, Vec<&Message>> = BTreeMap::new();
    for request in connections.iter().flatten() {
        let Some((_, number)) = owner(request.target()) else {
            // A target without the payload's own text is one that a byte was put into.
            continue;
        };
        arrived.entry(number).or_default().push(request);
    }
    arrived
}

/// Panics where a payload was read in two ways, with its name.
pub(crate) fn check_http1(
    payloads: &[Payload],
    outcomes: &[Outcome],
    connections: &[Vec<Message>],
) -> Totals {
    let arrived = by_payload(connections);
    let (mut totals, mut wrong) = (Totals::default(), Vec::new());
    for (number, (payload, outcome)) in payloads.iter().zip(outcomes).enumerate() {
        let arrived = arrived.get(&number).map_or(&[][..], Vec::as_slice);
        let has_outer = arrived.iter().any(|request| owner(request.target()) == Some(('o', number)));
        match (has_outer, outcome.is_given_up) {
            (true, _) => totals.forwarded += 1,
            (false, true) => totals.waited_for += 1,
            (false, false) => totals.refused += 1,
        }
        if let Err(fault) = check_one(payload, outcome, arrived, has_outer) {
            let answers = outcome.answers.escape_ascii();
            wrong.push(format!(
                "{}: {fault}: {} answered {answers}",
                payload.name,
                payload.bytes.escape_ascii()
            ));
        }
    }
    assert!(wrong.is_empty(), "{} payloads: {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
    totals
}

fn check_one(
    payload: &Payload,
    outcome: &Outcome,
    arrived: &[&Message],
    has_outer: bool,
) -> Result<(), String> {
    if payload.must_refuse && has_outer {
        return Err("it was forwarded".to_owned());
    }
    for request in arrived {
        check_framing_fields(request)?;
    }
    let (sent, _) = lenient(&payload.bytes);
    check_order(&sent, arrived)?;
    // The answers are those of the requests that arrived, in their order, and at most one refusal at the end.
    let methods: Vec<String> = sent.iter().map(|request| request.method().to_owned()).collect();
    let (answers, end) = strict(&outcome.answers, Kind::Responses(&methods));
    if matches!(end, End::Bad(_)) {
        return Err(format!("the answers are {end:?}"));
    }
    let finals: Vec<&Message> = answers.iter().filter(|answer| answer.status() >= 200).collect();
    let served: Vec<&&Message> = finals.iter().filter(|answer| answer.status() == 200).collect();
    if !outcome.is_given_up && served.len() != arrived.len() {
        return Err(format!("{} requests arrived and {} were answered", arrived.len(), served.len()));
    }
    for (answer, request) in served.iter().zip(arrived) {
        if request.method() != "HEAD" && answer.body != request.target().as_bytes() {
            return Err(format!("the answer to {} went to another", request.target()));
        }
    }
    let refusals = finals.len() - served.len();
    if refusals > sent.len().max(1) {
        return Err(format!("{refusals} refusals"));
    }
    Ok(())
}

/// Each request that arrived is one that a reader finds in what the client sent, in order, with the same
/// body.
fn check_order(sent: &[Message], arrived: &[&Message]) -> Result<(), String> {
    let mut sent = sent.iter();
    for request in arrived {
        let is_it = |sent: &&Message| {
            let target = sent.target();
            let path = target
                .split_once("://")
                .map_or(target, |(_, rest)| &rest[rest.find('/').unwrap_or(rest.len())..]);
            sent.method() == request.method() && path == request.target() && sent.body == request.body
        };
        if !sent.any(|sent| is_it(&sent)) {
            return Err(format!("{} arrived otherwise than it was sent", request.target()));
        }
    }
    Ok(())
}

/// No other spelling of what frames a request goes through: some server reads it as the real one.
pub(crate) fn check_framing_fields(request: &Message) -> Result<(), String> {
    for (name, _) in &request.fields {
        // As servers do that make environment variables of fields.
        let meant = name.replace(|sign: char| !sign.is_ascii_alphanumeric(), "-");
        if ["content-length", "transfer-encoding"].contains(&meant.as_str()) && meant != *name {
            return Err(format!("the field {name} was passed on"));
        }
    }
    Ok(())
}

/// The same for HTTP/2: one request of HTTP/1.1 for each stream that was served.
pub(crate) fn check_http2(
    payloads: &[Payload2],
    outcomes: &[Outcome2],
    connections: &[Vec<Message>],
) -> Totals {
    let arrived = by_payload(connections);
    let (mut totals, mut wrong) = (Totals::default(), Vec::new());
    for (number, (payload, outcome)) in payloads.iter().zip(outcomes).enumerate() {
        let arrived = arrived.get(&number).map_or(&[][..], Vec::as_slice);
        match (arrived.is_empty(), outcome.is_silent()) {
            (false, _) => totals.forwarded += 1,
            (true, true) => totals.waited_for += 1,
            (true, false) => totals.refused += 1,
        }
        let mut faults: Vec<String> =
            arrived.iter().filter_map(|one| check_framing_fields(one).err()).collect();
        if arrived.len() > 1 {
            faults.push(format!("{} requests for one stream", arrived.len()));
        }
        if payload.must_refuse && !arrived.is_empty() {
            faults.push("it was forwarded".to_owned());
        }
        if arrived.iter().any(|request| owner(request.target()).is_none_or(|(kind, _)| kind != 'o')) {
            faults.push("the hidden request was read".to_owned());
        }
        if let [request] = arrived
            && request.body != payload.body
        {
            faults.push("another body".to_owned());
        }
        if outcome.is_served() == arrived.is_empty() {
            faults.push(format!("{outcome:?}, and {} arrived", arrived.len()));
        }
        wrong.extend(
            faults.into_iter().map(|fault| format!("{}: {fault}: {:?}", payload.name, payload.fields)),
        );
    }
    assert!(wrong.is_empty(), "{} payloads: {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
    totals
}
