//! Exit codes, and the one line on standard error that goes with them.

use core::fmt;
use std::process::ExitCode;

use flashweir_agent::AgentError;
use flashweir_config::ConfigError;
use flashweir_control::ControlError;
use flashweir_egress::EgressError;
use flashweir_gateway::GatewayError;

/// `EX_USAGE` of sysexits.h: what was asked for cannot be done as written, so trying again will not help.
const USAGE: u8 = 64;

/// A wrong argument that only a command itself can find.
#[derive(Debug)]
pub(crate) struct UsageError(String);

impl UsageError {
    /// With a message that names the argument and what is expected.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// Prints help or the parser's complaint. Help that was asked for is a success.
pub(crate) fn after_parsing(error: &clap::Error) -> ExitCode {
    // No reader is left when standard error is closed.
    let _unheard = error.print();
    if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
}

/// Prints the error in one line.
pub(crate) fn after_failure(error: &anyhow::Error) -> ExitCode {
    eprintln!("flashweir: {}", one_line(error));
    let is_usage = error.is::<UsageError>()
        || error.is::<ConfigError>()
        || error.downcast_ref::<GatewayError>().is_some_and(GatewayError::is_configuration)
        || error.downcast_ref::<ControlError>().is_some_and(ControlError::is_configuration)
        || error.downcast_ref::<EgressError>().is_some_and(EgressError::is_configuration)
        || error.downcast_ref::<AgentError>().is_some_and(AgentError::is_configuration)
        || is_configuration_of_router(error)
        || is_configuration_of_kubernetes(error);
    if is_usage { ExitCode::from(USAGE) } else { ExitCode::FAILURE }
}

#[cfg(feature = "kubernetes")]
fn is_configuration_of_kubernetes(error: &anyhow::Error) -> bool {
    use flashweir_kubernetes::KubernetesError;
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

/// The error and its causes. Many errors end with their cause's text already; it is not said twice.
fn one_line(error: &anyhow::Error) -> String {
    error.chain().skip(1).map(ToString::to_string).fold(error.to_string(), |line, cause| {
        if line.ends_with(&cause) { line } else { format!("{line}: {cause}") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let cause = || anyhow::anyhow!("refused");
        assert_eq!(one_line(&cause().context("cannot connect")), "cannot connect: refused");
        assert_eq!(one_line(&cause().context("cannot connect: refused")), "cannot connect: refused");
    }

    #[test]
    fn what_the_caller_wrote_wrong_is_64_and_all_else_is_1() {
        let config = flashweir_config::Config::from_toml("", "a.toml").unwrap_err();
        assert_eq!(after_failure(&anyhow::Error::new(config).context("at start")), ExitCode::from(64));
        assert_eq!(after_failure(&UsageError::new("--rate").into()), ExitCode::from(64));
        assert_eq!(after_failure(&anyhow::anyhow!("broken pipe")), ExitCode::FAILURE);
    }
}
