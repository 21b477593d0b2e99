//! Messages of KEDA's contract; `proto/externalscaler.proto` has them with their meaning.

use std::collections::HashMap;

/// ScaledObject that asks.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ScaledObjectRef {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its namespace.
    #[prost(string, tag = "2")]
    pub namespace: String,
    /// Metadata of its trigger.
    #[prost(map = "string, string", tag = "3")]
    pub scaler_metadata: HashMap<String, String>,
}

/// Answer that says if there is anything to scale for.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct IsActiveResponse {
    /// False: the target may be scaled to nothing.
    #[prost(bool, tag = "1")]
    pub result: bool,
}

/// A number that is offered, and its target for each replica.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MetricSpec {
    /// Its name.
    #[prost(string, tag = "1")]
    pub metric_name: String,
    /// The target for each replica, for older versions.
    #[prost(int64, tag = "2")]
    pub target_size: i64,
    /// The same.
    #[prost(double, tag = "3")]
    pub target_size_float: f64,
}

/// All numbers that are offered.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetMetricSpecResponse {
    /// One.
    #[prost(message, repeated, tag = "1")]
    pub metric_specs: Vec<MetricSpec>,
}

/// Asks for a number.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetMetricsRequest {
    /// The object that asks.
    #[prost(message, optional, tag = "1")]
    pub scaled_object_ref: Option<ScaledObjectRef>,
    /// For which.
    #[prost(string, tag = "2")]
    pub metric_name: String,
}

/// A number.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MetricValue {
    /// Its name.
    #[prost(string, tag = "1")]
    pub metric_name: String,
    /// Its value, for older versions.
    #[prost(int64, tag = "2")]
    pub metric_value: i64,
    /// The same.
    #[prost(double, tag = "3")]
    pub metric_value_float: f64,
}

/// The numbers that were asked for.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetMetricsResponse {
    /// One.
    #[prost(message, repeated, tag = "1")]
    pub metric_values: Vec<MetricValue>,
}
