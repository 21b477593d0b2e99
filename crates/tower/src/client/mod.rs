//! The caller's half of overload control, as a library: for a program that calls a service which protects
//! itself with Flashweir, or any service that sends the field `Flashweir-Overload` (docs/feedback.md).
//!
//! When the service is overloaded, it asks each of its callers for less. A caller with this library sends
//! what it was asked for, more important requests first; others wait a quarter of a second at most, and the
//! rest is refused here, before any work was done for it. A service that answers nothing gets one trial
//! request at a time instead of the whole load.
//!
//! ```
//! use flashweir_tower::client::{Caller, Node, NodeSettings, OverloadLayer, Rank};
//! use http::{Request, Response};
//! use tower_layer::Layer as _;
//! use tower_service::Service as _;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! // One node for each server; both ends know the two names and, better, a key (see `Keys::load`).
//! let node = Node::new(NodeSettings::new("shop", "api"), Default::default());
//! let layer = OverloadLayer::new(Caller::new(node.clone()));
//! // Any client that is a tower `Service` over `http` types; here one that answers by itself.
//! let client = Answering;
//! let mut client = layer.layer(client);
//!
//! let mut request = Request::get("http://api.internal/checkout").body(()).unwrap();
//! request.extensions_mut().insert(Rank(0));
//! let response = client.call(request).await.unwrap();
//! assert_eq!(response.status(), 200);
//! assert_eq!(node.report().sent, 1);
//! # }
//! # #[derive(Clone)]
//! # struct Answering;
//! # impl tower_service::Service<Request<()>> for Answering {
//! #     type Response = Response<()>;
//! #     type Error = std::convert::Infallible;
//! #     type Future = std::future::Ready<Result<Response<()>, Self::Error>>;
//! #     fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
//! #         std::task::Poll::Ready(Ok(()))
//! #     }
//! #     fn call(&mut self, _: Request<()>) -> Self::Future {
//! #         std::future::ready(Ok(Response::new(())))
//! #     }
//! # }
//! ```
//!
//! [`Node`] is what the layer is made of, for clients that are no tower services: ask it before a request is
//! sent, tell it what came. The sidecar `flashweir egress` is made of the same. The rules are in
//! `flashweir_feedback::caller`, which is pure.

mod body;
mod caller;
mod fields;
mod keys;
mod layer;
mod log;
mod node;
#[cfg(test)]
mod tests;

pub use body::WatchedBody;
pub use caller::{Ask, Caller, Draw, Refused, Why};
pub use fields::{Fields, SENDER, retry_after};
pub use flashweir_admission::gapping::{Reason, Settings as GappingSettings};
pub use flashweir_feedback::caller::{
    BudgetSettings, Condition, DEADLINE, DEADLINE_MAX, EndpointSettings, FeedbackOutcome, GRPC_TIMEOUT,
    Report, deadline_text, grpc_timeout_text, parse_deadline, parse_grpc_timeout, trace_id, urgency,
};
pub use flashweir_feedback::{DATAGRAM_BYTES, Datagram};
pub use keys::{HmacKey, Keys, KeysError};
pub use layer::{Attempt, Deadline, Overload, OverloadError, OverloadLayer, Rank};
pub use node::{Node, NodeSettings, Pass};
