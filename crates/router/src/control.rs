//! Runs a router: builds it in the order in which things may fail, then waits for what is due and for signals.

use crate::admin::{Known, routes};
use crate::driver::Driver;
use crate::error::RouterError;
use crate::guard::Guard;
use crate::reload::changed;
use crate::settings;
use crate::status::Told;
use arc_swap::ArcSwap;
use flashweir_admission::flash_crowd::Baseline;
use flashweir_config::{Overrides, RouterConfig};
use flashweir_core::Hasher64;
use flashweir_runtime::{AdminListener, Clock, random_u64};
use flashweir_telemetry::{Outcome, Telemetry};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::signal::unix::{SignalKind, signal};

/// A router to run.
#[derive(Clone, Debug)]
pub struct Launch {
    /// What was configured, checked.
    pub config: RouterConfig,
    /// The file it came from: read again on SIGHUP.
    pub config_file: Option<PathBuf>,
    /// The flags that win over the file, at every reload too.
    pub overrides: Overrides,
}

/// Guards until SIGTERM or SIGINT, on this thread. However it ends, the network is then as it was, but for a pinned gate,
/// which SIGTERM and a crash leave where it is.
///
/// # Errors
/// [`RouterError`] naming what cannot be had; before anything is attached, if it was so from the beginning.
pub fn run(launch: Launch) -> Result<(), RouterError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(RouterError::Start)?;
    runtime.block_on(guard(launch))
}

async fn guard(launch: Launch) -> Result<(), RouterError> {
    let listen_for = |kind| signal(kind).map_err(RouterError::Start);
    let mut terminate = listen_for(SignalKind::terminate())?;
    let mut interrupt = listen_for(SignalKind::interrupt())?;
    let mut hang_up = listen_for(SignalKind::hangup())?;
    let Launch { config, .. } = &launch;
    let guard = Guard::load(&config.kernel, settings::reading(config.flash_crowd.mode))?;
    let address = config.admin.address;
    let admin_error = |source| RouterError::AdminListen { address, source };
    let admin = AdminListener::bind(address).map_err(admin_error)?;
    let admin_address = admin.address().map_err(admin_error)?;
    let known = Arc::new(Known {
        clock: Clock::start(),
        // It decides by itself, as a gateway with one worker would; what workers count of requests stays zero.
        telemetry: Telemetry::router(env!("CARGO_PKG_VERSION")),
        told: ArcSwap::from_pointee(Told::of(config, Baseline::default())),
        decisions: Mutex::default(),
    });
    let mut driver = Driver::new(config.clone(), guard, random_hasher(), known.clone())?;
    driver.attach()?;
    tokio::spawn(admin.serve(routes(known.clone()), config.admin.hosts.clone()));
    tracing::info!(
        interfaces = ?config.kernel.interfaces,
        protect = ?config.kernel.protect,
        admin = %admin_address,
        mode = config.flash_crowd.mode.as_str(),
        interval_s = config.flash_crowd.interval.as_secs_f64(),
        shadow = settings::is_shadow(config),
        "flashweir {} guards",
        env!("CARGO_PKG_VERSION"),
    );
    let is_terminated = loop {
        tokio::select! {
            _ = terminate.recv() => break true,
            _ = interrupt.recv() => break false,
            _ = hang_up.recv() => reload(&launch, &mut driver, &known)?,
            () = tokio::time::sleep_until(known.clock.timer_at(driver.due_at())) => driver.wake()?,
        }
    };
    if let Some(file) = settings::state_file(driver.config()) {
        file.save_or_tell(known.clock.now(), &driver.baseline(), &known.telemetry);
    }
    if is_terminated && driver.leave()? {
        tracing::info!("the gate stays, pinned, for the router that comes next");
    } else {
        tracing::info!("detached: everything passes as before");
    }
    Ok(())
}

/// Takes over a changed configuration file, or keeps everything as it was.
fn reload(launch: &Launch, driver: &mut Driver, known: &Known) -> Result<(), RouterError> {
    let outcome = match changed(launch, driver.config()) {
        Ok(config) => {
            driver.reconfigure(config)?;
            tracing::info!("the configuration was reloaded");
            Outcome::Ok
        }
        Err(error) => {
            tracing::error!("{error}; the configuration in force is kept");
            Outcome::Failed
        }
    };
    known.telemetry.control().config_reloads.increment(outcome);
    Ok(())
}

/// Under a key drawn at start.
fn random_hasher() -> Hasher64 {
    Hasher64::new(random_u64(), random_u64())
}
