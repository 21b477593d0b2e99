//! KEDA's external scaler: how many replicas a policy wants, for clusters where KEDA owns replicas.
//!
//! The metric is the number of replicas itself with a target of 1 for each replica, so that the autoscaler
//! that KEDA makes sets exactly that number. A ScaledObject names its policy by `policy` in the trigger's
//! metadata; the policy is in the ScaledObject's namespace. Where nothing is known yet the answer is
//! `UNAVAILABLE`, and the autoscaler keeps what there is.

pub mod messages;

use crate::kubernetes::desired::DesiredTable;
use futures::stream::{self, BoxStream, StreamExt as _};
use http::{Request, Response};
use messages::{
    GetMetricSpecResponse, GetMetricsRequest, GetMetricsResponse, IsActiveResponse, MetricSpec, MetricValue,
    ScaledObjectRef,
};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tonic::Status;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, ServerStreamingService, UnaryService};
use tonic_prost::ProstCodec;
use tower_service::Service;

/// The only metric.
pub const METRIC: &str = "flashweir-replicas";
/// The key of a trigger's metadata that names a policy.
const POLICY: &str = "policy";
/// A question is some hundred bytes.
const QUESTION_BYTES: usize = 64 << 10;

type Answer<T> = Pin<Box<dyn Future<Output = Result<tonic::Response<T>, Status>> + Send>>;

/// Answers KEDA.
#[derive(Clone, Debug)]
pub struct ExternalScaler {
    desired: Arc<DesiredTable>,
}

impl ExternalScaler {
    /// Reads the policies' wanted replicas from this table.
    #[must_use]
    pub fn new(desired: Arc<DesiredTable>) -> Self {
        Self { desired }
    }

    fn replicas(&self, object: &ScaledObjectRef) -> Result<u32, Status> {
        let Some(policy) = object.scaler_metadata.get(POLICY) else {
            return Err(Status::invalid_argument(
                "metadata of the trigger: expected `policy`, the name of an OverloadPolicy",
            ));
        };
        let Some(desired) = self.desired.of(&object.namespace, policy) else {
            return Err(Status::not_found(format!(
                "no OverloadPolicy {policy} in namespace {}",
                object.namespace
            )));
        };
        let unknown = || Status::unavailable(format!("OverloadPolicy {policy} is still measured"));
        desired.replicas.ok_or_else(unknown)
    }

    fn is_active(&self, object: &ScaledObjectRef) -> Result<IsActiveResponse, Status> {
        Ok(IsActiveResponse { result: self.replicas(object)? > 0 })
    }

    fn metric_spec() -> GetMetricSpecResponse {
        let spec = MetricSpec { metric_name: METRIC.to_owned(), target_size: 1, target_size_float: 1.0 };
        GetMetricSpecResponse { metric_specs: vec![spec] }
    }

    fn metrics(&self, request: &GetMetricsRequest) -> Result<GetMetricsResponse, Status> {
        let object = request.scaled_object_ref.as_ref();
        let object = object.ok_or_else(|| Status::invalid_argument("expected scaledObjectRef"))?;
        let replicas = self.replicas(object)?;
        let value = MetricValue {
            metric_name: METRIC.to_owned(),
            metric_value: replicas.into(),
            metric_value_float: replicas.into(),
        };
        Ok(GetMetricsResponse { metric_values: vec![value] })
    }

    /// Stream of the policy's activity, true if it wants replicas: now, and at each change.
    fn activity(self, object: ScaledObjectRef) -> BoxStream<'static, Result<IsActiveResponse, Status>> {
        let mut changes = self.desired.changes();
        changes.mark_changed();
        let state = (self, object, changes, None);
        let answers = stream::unfold(state, |(scaler, object, mut changes, sent)| async move {
            loop {
                changes.changed().await.ok()?;
                // An object whose replicas are not known yet is reported when they are.
                let Ok(answer) = scaler.is_active(&object) else { continue };
                if sent != Some(answer.result) {
                    return Some((Ok(answer), (scaler, object, changes, Some(answer.result))));
                }
            }
        });
        answers.boxed()
    }
}

struct IsActive(ExternalScaler);
struct StreamIsActive(ExternalScaler);
struct GetMetricSpec;
struct GetMetrics(ExternalScaler);

fn answered<T: Send + 'static>(answer: Result<T, Status>) -> Answer<T> {
    Box::pin(std::future::ready(answer.map(tonic::Response::new)))
}

impl UnaryService<ScaledObjectRef> for IsActive {
    type Response = IsActiveResponse;
    type Future = Answer<Self::Response>;

    fn call(&mut self, request: tonic::Request<ScaledObjectRef>) -> Self::Future {
        answered(self.0.is_active(request.get_ref()))
    }
}

impl UnaryService<ScaledObjectRef> for GetMetricSpec {
    type Response = GetMetricSpecResponse;
    type Future = Answer<Self::Response>;

    fn call(&mut self, _: tonic::Request<ScaledObjectRef>) -> Self::Future {
        answered(Ok(ExternalScaler::metric_spec()))
    }
}

impl UnaryService<GetMetricsRequest> for GetMetrics {
    type Response = GetMetricsResponse;
    type Future = Answer<Self::Response>;

    fn call(&mut self, request: tonic::Request<GetMetricsRequest>) -> Self::Future {
        answered(self.0.metrics(request.get_ref()))
    }
}

impl ServerStreamingService<ScaledObjectRef> for StreamIsActive {
    type Response = IsActiveResponse;
    type ResponseStream = BoxStream<'static, Result<IsActiveResponse, Status>>;
    type Future = Answer<Self::ResponseStream>;

    fn call(&mut self, request: tonic::Request<ScaledObjectRef>) -> Self::Future {
        answered(Ok(self.0.clone().activity(request.into_inner())))
    }
}

impl NamedService for ExternalScaler {
    const NAME: &'static str = "externalscaler.ExternalScaler";
}

fn grpc<Request, Response>() -> Grpc<ProstCodec<Response, Request>>
where
    Request: prost::Message + Default + Send + 'static,
    Response: prost::Message + Default + Send + 'static,
{
    Grpc::new(ProstCodec::default()).max_decoding_message_size(QUESTION_BYTES)
}

impl Service<Request<Body>> for ExternalScaler {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let scaler = self.clone();
        Box::pin(async move {
            let method = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
            Ok(match method.as_str() {
                "IsActive" => grpc().unary(IsActive(scaler), request).await,
                "StreamIsActive" => grpc().server_streaming(StreamIsActive(scaler), request).await,
                "GetMetricSpec" => grpc().unary(GetMetricSpec, request).await,
                "GetMetrics" => grpc().unary(GetMetrics(scaler), request).await,
                _ => Status::unimplemented("no such method").into_http(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::desired::DesiredReplicas;
    use std::collections::{BTreeMap, HashMap};
    use tonic::Code;

    fn table(replicas: Option<u32>) -> BTreeMap<(String, String), DesiredReplicas> {
        BTreeMap::from([(("shop".to_owned(), "web".to_owned()), DesiredReplicas { replicas })])
    }

    fn object(policy: &str) -> ScaledObjectRef {
        let scaler_metadata = HashMap::from([(POLICY.to_owned(), policy.to_owned())]);
        ScaledObjectRef { name: "keda".to_owned(), namespace: "shop".to_owned(), scaler_metadata }
    }

    #[test]
    fn the_metric_is_the_number_of_replicas() {
        let desired = Arc::new(DesiredTable::default());
        let scaler = ExternalScaler::new(desired.clone());
        let ask = |policy| {
            let request =
                GetMetricsRequest { scaled_object_ref: Some(object(policy)), metric_name: METRIC.to_owned() };
            scaler.metrics(&request).map(|answer| answer.metric_values[0].metric_value)
        };
        assert_eq!(ask("web").unwrap_err().code(), Code::NotFound);
        desired.replace(table(None));
        assert_eq!(ask("web").unwrap_err().code(), Code::Unavailable);
        desired.replace(table(Some(7)));
        assert_eq!(ask("web").unwrap(), 7);
        assert!(scaler.is_active(&object("web")).unwrap().result);
        desired.replace(table(Some(0)));
        assert!(!scaler.is_active(&object("web")).unwrap().result);
        let nameless = ScaledObjectRef::default();
        assert_eq!(scaler.is_active(&nameless).unwrap_err().code(), Code::InvalidArgument);
    }

    #[tokio::test]
    async fn activity_is_told_at_once_and_at_each_change() {
        let desired = Arc::new(DesiredTable::default());
        desired.replace(table(Some(2)));
        let mut answers = ExternalScaler::new(desired.clone()).activity(object("web"));
        assert!(answers.next().await.unwrap().unwrap().result);
        desired.replace(table(Some(3)));
        desired.replace(table(Some(0)));
        assert!(!answers.next().await.unwrap().unwrap().result, "more replicas are no change of activity");
    }
}
