//! The rest of a refused request: its body is taken in where that keeps the connection, and left where
//! reading would invite it.

use crate::body::Body;
use crate::client::Client;
use crate::refusal::{Refusal, count_refusal};
use crate::shared::Shared;
use flashweir_core::{Duration, Instant};
use flashweir_http::head::Answer;
use flashweir_http::serve::IncomingBody;
use flashweir_http1::head::FieldsView;
use flashweir_telemetry::WorkerMetrics;
use http::{Method, Version};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Limited};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::task::spawn_local;

/// A refused request's body up to this size is taken in when it has arrived already, to keep the connection.
const SMALL_BODY_BYTES: u64 = 16 << 10;
/// How long the body of a refused HTTP/2 request may take to arrive; a round trip to anywhere is shorter.
const LATE_BODY_WAIT: Duration = Duration::from_secs(1);

/// Properties of a request that its refusal needs.
pub(crate) struct Refused<'a> {
    pub(crate) fields: FieldsView<'a>,
    pub(crate) method: &'a Method,
    pub(crate) version: Version,
    pub(crate) expects_continue: bool,
    pub(crate) since: Instant,
}

/// Says no. The connection stays open unless it is one too many, or an unwanted body is under way.
pub(crate) fn refuse(
    (shared, metrics): (&Shared, &WorkerMetrics),
    client: &Client,
    refusal: &Refusal,
    asked: &Refused<'_>,
    body: Option<IncomingBody>,
) -> Answer<Body> {
    let is_http1 = asked.version < Version::HTTP_2;
    // Reading would invite the client to send the body it announced.
    let unread = body.and_then(|mut body| {
        let is_read = body.is_end_stream() || (!asked.expects_continue && take_in_small(&mut body));
        (!is_read).then_some(body)
    });
    let body_unread = unread.is_some();
    if is_http1 && body_unread && !asked.expects_continue {
        client.left_body_unread.set(true);
    }
    if let Some(body) = unread.filter(|_| !is_http1) {
        // Dropping it would reset the stream, which some clients (curl 7.88) take for a failure of the
        // answer.
        spawn_local(take_in_late(body, asked.expects_continue));
    }
    let is_last = client.full.is_some() || refusal.is_impatient;
    if !is_http1 && is_last {
        client.end_wanted.notify_one();
    }
    let close = is_http1 && (body_unread || is_last || shared.is_draining());
    let answer = refusal.respond(asked.method, asked.fields, close);
    count_refusal(metrics, refusal.status(), shared.clock.now().saturating_since(asked.since));
    answer.map(Body::own)
}

/// Takes in a small body that is still arriving, for a while; one that awaits `100 Continue` is only held,
/// for reading it would ask for it.
async fn take_in_late(body: IncomingBody, expects_continue: bool) {
    if expects_continue {
        tokio::time::sleep(LATE_BODY_WAIT).await;
        return;
    }
    let bytes = usize::try_from(SMALL_BODY_BYTES).unwrap_or(usize::MAX);
    // Too large, too late, broken: then the stream is reset after all.
    let _ = tokio::time::timeout(LATE_BODY_WAIT, Limited::new(body, bytes).collect()).await;
}

/// Takes in a small body that has arrived; false when some of it is still to come.
fn take_in_small(body: &mut IncomingBody) -> bool {
    if body.size_hint().upper().is_none_or(|bytes| bytes > SMALL_BODY_BYTES) {
        return false;
    }
    // Without waiting: a part that has not arrived by now is not waited for.
    let mut now = Context::from_waker(Waker::noop());
    loop {
        match Pin::new(&mut *body).poll_frame(&mut now) {
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(None) => return true,
            Poll::Ready(Some(Err(_))) | Poll::Pending => return false,
        }
    }
}
