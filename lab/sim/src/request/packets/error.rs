//! Errors in the description of a network, by the place where they are.

use crate::network::NetworkError;
use crate::request::ScenarioError;
use std::fmt::Display;

/// An error at one place of the description.
pub(super) fn wrong<T>(key: impl Display, problem: impl Into<String>) -> Result<T, ScenarioError> {
    Err(ScenarioError { key: format!("network.{key}"), problem: problem.into() })
}

/// Says at which place of the description the network met an error.
pub(super) fn at(key: impl Display) -> impl FnOnce(NetworkError) -> ScenarioError {
    move |error| ScenarioError { key: format!("network.{key}"), problem: error.to_string() }
}
