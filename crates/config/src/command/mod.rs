//! The part that the commands `flashweir`, `flashweir-load` and `flashweir-lab` share: exit codes with the
//! one line on standard error that goes with them, numbers of options, their help, the environment, and where
//! the other two programs are.

pub mod environment;
pub mod exit;
pub mod help;
pub mod numbers;
pub mod program;
