//! One request to one HTTP/1.1 upstream.

use super::error::{UpstreamError, UpstreamErrorKind};
use super::pool::{Choice, Http1Connection, Http1Pool};
use super::request_head;
use super::response_body::UpstreamBody;
use super::shared::InFlight;
use super::{Outgoing, RequestBody, STALE_MAX, Upstreams};
use crate::head::Answer;
use std::future::poll_fn;
use std::rc::Rc;
use tokio::time::Instant;

impl<B: RequestBody> Upstreams<B> {
    pub(super) async fn send_http1(
        &self,
        pool: &Rc<Http1Pool<B>>,
        outgoing: &mut Outgoing<'_, B>,
        mut in_flight: InFlight,
    ) -> Result<Answer<UpstreamBody<B>>, UpstreamError> {
        let (index, settings) = (in_flight.index(), self.shared.settings());
        let target = self.shared.target(index);
        let body = outgoing.unsent.as_ref().expect("an attempt begins with a request that was not sent");
        request_head::adapt(&mut outgoing.head, body, target);
        let may_repeat = !outgoing.is_repeat && outgoing.head.method().is_idempotent();
        let mut kept = if may_repeat { (self.copy)(body) } else { None };
        let mut stale = 0;
        // One for all rounds: a client waits no longer for being unlucky.
        let mut deadline = None;
        loop {
            let choice = match &kept {
                _ if outgoing.is_repeat => Choice::New,
                Some(_) => Choice::Any,
                None => Choice::Asked,
            };
            let asked = Instant::now();
            let mut connection = pool.check_out(asked, target, choice).await?;
            let is_reused = connection.is_reused();
            let sent = if is_reused { asked } else { Instant::now() };
            let deadline = *deadline.get_or_insert(sent + settings.response_header_timeout);
            let body = outgoing.unsent.take().expect("a round begins with a request that was not sent");
            connection.exchange.begin(&outgoing.head, body)?;
            let limit = (deadline, settings.response_header_timeout);
            let answer = poll_fn(|cx| connection.exchange.poll_response_until(cx, outgoing.interims, limit));
            let error = match answer.await {
                Some(Ok(head)) => {
                    in_flight.answered(head.status(), settings.learns_response_times().then_some(sent));
                    let idle_timeout = settings.body_idle_timeout;
                    let body = UpstreamBody::of_http1(connection, pool, in_flight, idle_timeout);
                    return Ok(Answer::new(head, body));
                }
                Some(Err(error)) => error,
                None => {
                    in_flight.timed_out();
                    return Err(UpstreamError::new(UpstreamErrorKind::HeaderTimeout, Some(index)));
                }
            };
            outgoing.unsent = connection.exchange.take_unsent();
            if outgoing.unsent.is_some() {
                // A pooled connection the upstream had closed meanwhile. Its contemporaries are suspect too,
                // so the next round dials.
                if !is_reused || stale == STALE_MAX {
                    return Err(error);
                }
                stale += 1;
                pool.close_idle();
                self.count(|counts| &mut counts.retries);
                continue;
            }
            if !is_lost(&connection, &error, is_reused) {
                return Err(error);
            }
            pool.lost(&connection);
            outgoing.unsent = kept.take().filter(|_| self.grants_repeat(index));
            if outgoing.unsent.is_none() {
                return Err(error);
            }
            outgoing.is_repeat = true;
        }
    }
}

/// Returns whether a used connection ended under the request, and no byte of an answer had come.
fn is_lost<B: RequestBody>(connection: &Http1Connection<B>, error: &UpstreamError, is_reused: bool) -> bool {
    error.kind == UpstreamErrorKind::Reset && is_reused && !connection.exchange.has_answer()
}
