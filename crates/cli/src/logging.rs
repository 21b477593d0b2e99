//! Messages on standard error.

use std::io::IsTerminal as _;

use flashweir_config::{Log, LogFormat, LogLevel};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

/// Sends events to standard error from now on. Libraries beside our own are heard from warnings on, because
/// their lower levels name clients.
pub(crate) fn start(log: &Log) {
    let level = match log.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let filter = Targets::new().with_default(level.min(LevelFilter::WARN)).with_target("flashweir", level);
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    let lines = match log.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    // Fails only when a subscriber is set already, and then messages are heard all the same.
    let _set_before = tracing_subscriber::registry().with(lines.with_filter(filter)).try_init();
}
