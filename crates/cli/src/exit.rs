//! Errors of the commands that mean a wrong configuration: the exit code is that of wrong usage.

use std::process::ExitCode;

use flashweir_agent::AgentError;
use flashweir_config::ConfigError;
use flashweir_config::command::exit;
use flashweir_control::ControlError;
use flashweir_egress::EgressError;
use flashweir_gateway::GatewayError;

/// Prints the error in one line.
pub(crate) fn after_failure(error: &anyhow::Error) -> ExitCode {
    let is_configuration = error.is::<ConfigError>()
        || error.downcast_ref::<GatewayError>().is_some_and(GatewayError::is_configuration)
        || error.downcast_ref::<ControlError>().is_some_and(ControlError::is_configuration)
        || error.downcast_ref::<EgressError>().is_some_and(EgressError::is_configuration)
        || error.downcast_ref::<AgentError>().is_some_and(AgentError::is_configuration)
        || is_configuration_of_router(error)
        || is_configuration_of_kubernetes(error);
    exit::after_failure(error, is_configuration)
}

#[cfg(feature = "kubernetes")]
fn is_configuration_of_kubernetes(error: &anyhow::Error) -> bool {
    use flashweir_control::kubernetes::KubernetesError;
    error.downcast_ref::<KubernetesError>().is_some_and(KubernetesError::is_configuration)
}

#[cfg(not(feature = "kubernetes"))]
fn is_configuration_of_kubernetes(_error: &anyhow::Error) -> bool {
    false
}

#[cfg(feature = "kernel")]
fn is_configuration_of_router(error: &anyhow::Error) -> bool {
    use flashweir_router::RouterError;
    error.downcast_ref::<RouterError>().is_some_and(RouterError::is_configuration)
}

#[cfg(not(feature = "kernel"))]
fn is_configuration_of_router(_error: &anyhow::Error) -> bool {
    false
}
