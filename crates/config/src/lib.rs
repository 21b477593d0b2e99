//! The configuration file: what was written, checked into what cannot be wrong.
//!
//! Each section is one module of `sections`: what may be written (the doc comments are the manual, and the
//! JSON schema and `docs/config.md` are generated from them), its check, and the settings that a component
//! gets. [`Config`] is what the rest of Flashweir reads: plain data, typed units, every range checked. Every
//! fault ends in one [`ConfigError`] that names file, line and key.
//!
//! ```
//! use flashweir_config::Config;
//! let config = Config::from_toml("[upstream]\nurls = ['http://127.0.0.1:3000']", "shop.toml").unwrap();
//! assert_eq!(config.listen.addresses[0].to_string(), "127.0.0.1:8080");
//! let error = Config::from_toml("[upstream]\nurls = ['ftp://x']", "shop.toml").unwrap_err();
//! assert!(error.to_string().starts_with("shop.toml:2: upstream.urls[0]: "));
//! ```
//!
//! [`command`] is for the programs that read it: exit codes, numbers of options, the environment.

mod checks;
pub mod command;
pub mod error;
mod files_read;
mod load;
pub mod location;
mod networks;
mod one_or_many;
pub mod overrides;
pub mod reference;
mod restart;
pub mod schema;
mod sections;
#[cfg(test)]
mod tests;
mod text;

pub use error::ConfigError;
pub use one_or_many::OneOrMany;
pub use overrides::{Overrides, ReplicaFlags};
pub use sections::*;
pub use text::{DurationText, RateText, SizeText};
