//! Errors of an experiment.

use flashweir_sim::request::{RunError, senders};

/// An experiment cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// Nothing is called so.
    #[error("there is no experiment `{id}`; there are {known}")]
    Unknown {
        /// The requested name.
        id: String,
        /// All there are.
        known: String,
    },
    /// No simulation shows it.
    #[error("{id} is measured, not simulated: {command}")]
    Elsewhere {
        /// Its name.
        id: &'static str,
        /// The command that measures it.
        command: &'static str,
    },
    /// Lengths, seeds or threads that make no run.
    #[error("{what} is {value}; expected {expected}")]
    Option {
        /// Name of the option.
        what: &'static str,
        /// The value given.
        value: String,
        /// The accepted values.
        expected: &'static str,
    },
    /// A simulation failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A simulation of a pool of servers failed.
    #[error(transparent)]
    Pool(#[from] flashweir_sim::pool::PoolError),
    /// A simulation of servers with copies failed.
    #[error(transparent)]
    Replicas(#[from] flashweir_sim::replicas::RunError),
    /// A network could not be built, or met a bound.
    #[error(transparent)]
    Network(#[from] flashweir_sim::network::NetworkError),
    /// A simulation with senders failed.
    #[error(transparent)]
    Senders(#[from] senders::RunError),
    /// A chart could not be drawn.
    #[error(transparent)]
    Report(#[from] flashweir_load::report::ReportError),
    /// Numbers could not be written as CSV.
    #[error("numbers cannot be written as CSV: {0}")]
    Csv(#[from] csv::Error),
}
