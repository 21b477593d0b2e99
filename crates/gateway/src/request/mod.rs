//! A request's way: from its head to its answer, one phase after the other.

mod admit;
mod received;
mod send;

use crate::access_log::Entry;
use crate::bad_request::answer_unsent;
use crate::body::Body;
use crate::cache::Decision;
use crate::client::Client;
use crate::context::WorkerContext;
use crate::current::CurrentConfig;
use crate::feedback::{OVERLOAD, Sender};
use crate::redirect::redirect;
use crate::upload::PartialBody;
use admit::admit;
use flashweir_core::Instant;
use flashweir_http::head::Answer;
use flashweir_http::serve::{Connection, IncomingBody, IncomingRequest};
use flashweir_telemetry::StatusClass;
use received::ReceivedRequest;
use send::send;
use std::convert::Infallible;
use std::rc::Rc;

/// The worker, the configuration and the connection that a request belongs to.
#[derive(Clone, Copy)]
struct RequestContext<'a> {
    worker: &'a Rc<WorkerContext>,
    current: &'a Rc<CurrentConfig>,
    client: &'a Rc<Client>,
    connection: &'a Connection,
    /// Its line in the access log, where there is one.
    entry: Option<&'a Entry>,
}

impl RequestContext<'_> {
    /// Returns true if every request is refused.
    fn refuses_all(self) -> bool {
        self.client.full.is_some() || self.worker.shared.refuses_new_work()
    }
}

/// Answers one request. Never fails: every error has an answer.
pub(crate) async fn handle(
    worker: Rc<WorkerContext>,
    client: Rc<Client>,
    connection: Connection,
    request: IncomingRequest,
) -> Result<Answer<Body>, Infallible> {
    let now = worker.shared.clock.now();
    client.count_bytes(&worker.metrics);
    let IncomingRequest { mut head, body } = request;
    let log = worker.access_log.as_ref();
    let entry = log.map(|log| Box::new(Entry::begin(log, now, client.peer.ip(), &head)));
    if client.redirects
        && let Some(answer) = redirect(&worker, &head)
    {
        return Ok(logged(entry, answer.into()));
    }
    if let Err(circle) = worker.replication.arrive(&mut head) {
        worker.metrics.responses.by_class.increment(StatusClass::ServerError);
        return Ok(logged(entry, circle.map(Body::own).into()));
    }
    let current = worker.current();
    let at = RequestContext {
        worker: &worker,
        current: &current,
        client: &client,
        connection: &connection,
        entry: entry.as_deref(),
    };
    let counted = worker.replication.begin(&head);
    let mut answer = match ReceivedRequest::of(at, head, now) {
        Ok(mut request) => decide(at, &mut request, body, now).await,
        Err(answer) => answer.into(),
    };
    if let Some(counted) = counted {
        counted.answered(answer.head.parts_mut());
    }
    Ok(logged(entry, answer))
}

/// The answer, whose end writes the request's line in the access log.
fn logged(entry: Option<Box<Entry>>, answer: Answer<Body>) -> Answer<Body> {
    let Some(entry) = entry else { return answer };
    entry.answered(answer.head.status(), answer.body.source());
    let offers_pipes = answer.offers_pipes();
    let logged = answer.map(|body| body.logged(entry));
    if offers_pipes { logged.in_pipes() } else { logged }
}

async fn decide(
    at: RequestContext<'_>,
    request: &mut ReceivedRequest,
    body: IncomingBody,
    now: Instant,
) -> Answer<Body> {
    // Reading would invite a client that asks first to send what may be refused.
    let gathered = match request.expects_continue || at.refuses_all() {
        true => Ok(PartialBody::untouched(body)),
        false => request.upload(at).gather(body, false).await,
    };
    let mut body = match gathered {
        Ok(body) => body,
        Err(error) => {
            let ReceivedRequest { version, method, .. } = &*request;
            return answer_unsent(&at.worker.metrics, at.client, at.connection, error, *version, method)
                .into();
        }
    };
    // The time until now was the client's own.
    let now = if body.was_waited_for() { at.worker.shared.clock.now() } else { now };
    let sender_name = request.sender_name.take();
    let sender = at.current.senders.recognise(at.client.peer.ip(), sender_name.as_ref());
    let (route, offered) = request.offer(at, sender, now, !body.is_none());
    let mut answer = match admit(at, request, &offered, sender, route, now, !body.is_none()).await {
        Decision::Answer(answer) => return answer,
        Decision::Refuse(refusal) => request.refuse(at, &refusal, now, body.take_rest()),
        Decision::Admit(permit) => send(at, request, &offered, body, permit, now).await,
    };
    if let Sender::Node(node) = sender
        && let Some(field) = at.worker.pipeline.overload_field(request.key(at), node.key)
    {
        answer.head.parts_mut().headers.insert(OVERLOAD, field);
    }
    answer
}
