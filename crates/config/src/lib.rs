//! The configuration file: what was written, checked into what cannot be wrong.
//!
//! [`mod@file`] holds the serde structs of what may be written; their doc comments are the manual, and the
//! JSON schema and `docs/config.md` are generated from them. [`Config`] is what the rest of Flashweir reads:
//! plain data, typed units, every range checked. Whatever is wrong ends in one [`ConfigError`] that names
//! file, line and key.
//!
//! ```
//! use flashweir_config::Config;
//! let config = Config::from_toml("[upstream]\nurls = ['http://127.0.0.1:3000']", "shop.toml").unwrap();
//! assert_eq!(config.listen.addresses[0].to_string(), "127.0.0.1:8080");
//! let error = Config::from_toml("[upstream]\nurls = ['ftp://x']", "shop.toml").unwrap_err();
//! assert!(error.to_string().starts_with("shop.toml:2: upstream.urls[0]: "));
//! ```

pub mod checked;
pub mod error;
pub mod file;
mod files_read;
pub mod location;
pub mod overrides;
pub mod reference;
pub mod schema;
mod text;

pub use checked::{
    ActiveHealth, Admin, ApiKeys, Bounds, Candidate, Class, ClassRules, Client, Config, CookieRule, FairBy,
    FieldRule, FlashCrowd, Gateway, Glob, Health, HostPattern, Kernel, KernelTiers, KeyPlace, LadderStep,
    Listen, Log, RouterConfig, Sentry, Service, State, Tls, Upstream,
};
pub use error::ConfigError;
pub use file::{FlashCrowdMode, KernelHook, KernelRefusal, LogFormat, LogLevel, Policing, Protocol};
pub use overrides::Overrides;
