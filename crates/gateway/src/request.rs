//! A request's way: its head is judged and classified, it is looked up and admitted, sent, and its response
//! completed. One file for each phase: `arrival`, `cache/decide`, `send`, `forward`, `finish`.

use crate::arrival::Arrival;
use crate::cache::{Decision, Traveller};
use crate::connection::{Body, Client};
use crate::context::WorkerContext;
use crate::feedback::OVERLOAD;
use crate::refuse::refuse;
use crate::send::send;
use flashweir_admission::pipeline::ServiceKey;
use flashweir_core::Instant;
use flashweir_http::serve::{Connection, IncomingBody};
use flashweir_telemetry::StatusClass;
use http::{Request, Response, request};
use std::convert::Infallible;
use std::rc::Rc;

/// Answers one request. Never fails: every error has an answer.
pub(crate) async fn handle(
    worker: Rc<WorkerContext>,
    client: Rc<Client>,
    connection: Connection,
    mut request: Request<IncomingBody>,
) -> Result<Response<Body>, Infallible> {
    let now = worker.shared.clock.now();
    client.count_bytes(&worker);
    if let Err(circle) = worker.replication.arrive(&mut request) {
        worker.metrics.responses.by_class.increment(StatusClass::ServerError);
        return Ok(*circle);
    }
    let (head, body) = request.into_parts();
    let counted = worker.replication.begin(&worker, &head);
    let response = answer(worker, client, connection, (head, body), now).await;
    if let Some(counted) = counted {
        counted.answered(&response);
    }
    Ok(response)
}

async fn answer(
    worker: Rc<WorkerContext>,
    client: Rc<Client>,
    connection: Connection,
    (head, body): (request::Parts, IncomingBody),
    now: Instant,
) -> Response<Body> {
    let current = worker.current();
    let mut sender_name = None;
    let mut arrival = match Arrival::of_head((&worker, &current, &client), head, now, &mut sender_name) {
        Ok(arrival) => arrival,
        Err(response) => return *response,
    };
    let mut body = match arrival.gather(&connection, body).await {
        Ok(body) => body,
        Err(response) => return *response,
    };
    // The time until now was the client's own.
    let now = if body.was_waited_for() { worker.shared.clock.now() } else { now };
    let has_body = !body.is_none();
    let route = arrival.route(now, has_body);
    let node = arrival.node();
    let may_answer = worker.cache.is_on() && !arrival.is_refused_anyway();
    let mut traveller = Traveller {
        worker: &worker,
        current: &current,
        client: &client,
        hop: arrival.hop,
        head: &arrival.head,
        is_prepared: arrival.is_prepared(),
        classified: &arrival.classified,
        sender: arrival.sender,
        is_beyond_sender_share: false,
        key: arrival.key(),
        subscriber: arrival.subscriber,
        received: now,
        version: arrival.version,
        stream: connection.stream_cut(),
    };
    let response = match traveller.decide(&client, route, (may_answer, has_body)).await {
        Decision::Answered(response) => return response,
        Decision::Refused(refusal) => {
            refuse((&worker.shared, &worker.metrics), &client, &refusal, &arrival, now, body.take_rest())
        }
        Decision::Admitted(permit, miss) => {
            if let Some(miss) = miss.filter(|miss| traveller.renews_copy(miss)) {
                return Box::pin(traveller.fetch_copy(permit, &miss)).await;
            }
            let stream = traveller.stream.take();
            send((&worker, &current, &client), &connection, arrival, body, (permit, stream), now).await
        }
    };
    tell_overload(&worker, node, response)
}

/// Adds the overload field for a node in front to every response to it.
fn tell_overload(
    worker: &WorkerContext,
    node: Option<(ServiceKey, u64)>,
    mut response: Response<Body>,
) -> Response<Body> {
    if let Some((service, sender)) = node
        && let Some(field) = worker.pipeline.overload_field(service, sender)
    {
        response.headers_mut().insert(OVERLOAD, field);
    }
    response
}
