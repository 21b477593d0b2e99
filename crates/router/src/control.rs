//! Runs a router: builds it in the order in which things may fail, then waits for what is due and for
//! signals.

use crate::admin::{Known, routes};
use crate::driver::Driver;
use crate::error::RouterError;
use crate::guard::Guard;
use crate::launch::Launch;
use crate::link::LinkDriver;
use crate::reload::changed;
use crate::settings;
use crate::status::RouterStatus;
use arc_swap::{ArcSwap, ArcSwapOption};
use flashweir_admission::flash_crowd::Baseline;
use flashweir_config::RouterConfig;
use flashweir_core::Hasher64;
use flashweir_runtime::{AdminListener, Clock, outlive_user_signals, random_u64};
use flashweir_telemetry::{Outcome, Telemetry};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::signal::unix::{SignalKind, signal};

/// Guards until SIGTERM or SIGINT, on this thread. However it ends, the network is then as it was, but for a
/// pinned gate, which SIGTERM and a crash leave where it is.
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
    outlive_user_signals().map_err(RouterError::Start)?;
    let Launch { config, ready_file, .. } = &launch;
    let guard = match config.kernel.interfaces.is_empty() {
        true => None,
        false => {
            let reading = settings::reading(config.flash_crowd.mode);
            Some(Guard::load(&config.kernel, reading, config.link.is_some())?)
        }
    };
    let address = config.admin.address;
    let admin_error = |source| RouterError::AdminListen { address, source };
    let admin = AdminListener::bind(address).map_err(admin_error)?;
    let admin_address = admin.address().map_err(admin_error)?;
    let known = Arc::new(Known {
        clock: Clock::start(),
        // It decides by itself, as a gateway with one worker would; what workers count of requests stays
        // zero.
        telemetry: Telemetry::router(env!("CARGO_PKG_VERSION")),
        status: ArcSwap::from_pointee(RouterStatus::of(config, Baseline::default())),
        link: ArcSwapOption::empty(),
        decisions: Mutex::default(),
    });
    let shadow = settings::is_shadow(config);
    let link = config.link.as_ref().map(|link| LinkDriver::load(link, shadow, known.clone()));
    let mut link = link.transpose()?;
    let mut driver = match guard {
        Some(guard) => Some(Driver::new(config.clone(), guard, random_hasher(), known.clone())?),
        None => None,
    };
    if let Some(link) = &mut link {
        link.attach()?;
    }
    // Nothing that may fail comes after it: a gate that was found pinned is this router's from then on.
    if let Some(driver) = &mut driver {
        driver.attach()?;
    }
    let admin = admin.asking_for(config.admin.token.clone());
    tokio::spawn(admin.serve(routes(known.clone()), config.admin.hosts.clone()));
    if let Some(file) = ready_file {
        file.write(&[("admin", &[admin_address])]).map_err(RouterError::Start)?;
    }
    tell_start(config, admin_address);
    let is_terminated = loop {
        let due = [driver.as_ref().map(Driver::due_at), link.as_ref().map(LinkDriver::due_at)];
        let Some(due) = due.into_iter().flatten().min() else { break false };
        tokio::select! {
            _ = terminate.recv() => break true,
            _ = interrupt.recv() => break false,
            _ = hang_up.recv() => reload(&launch, driver.as_mut(), &known)?,
            () = tokio::time::sleep_until(known.clock.timer_at(due)) => {
                if let Some(link) = &mut link {
                    link.wake()?;
                }
                if let Some(driver) = driver.as_mut().filter(|driver| driver.due_at() <= known.clock.now()) {
                    driver.wake()?;
                }
            }
        }
    };
    drop(link);
    if let Some(driver) = driver {
        end(driver, is_terminated, &known)?;
    }
    Ok(())
}

fn tell_start(config: &RouterConfig, admin_address: SocketAddr) {
    if let Some(link) = &config.link {
        tracing::info!(
            interface = link.interface,
            rate_bits_per_s = link.rate_bits_per_s,
            side = link.side.as_str(),
            flow = link.flow.as_str(),
            admin = %admin_address,
            shadow = settings::is_shadow(config),
            "flashweir {} divides a link",
            env!("CARGO_PKG_VERSION"),
        );
    }
    if !config.kernel.interfaces.is_empty() {
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
    }
}

/// Keeps what was learned, and takes the gate away or leaves it to the router that comes next.
fn end(driver: Driver, is_terminated: bool, known: &Known) -> Result<(), RouterError> {
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
fn reload(launch: &Launch, driver: Option<&mut Driver>, known: &Known) -> Result<(), RouterError> {
    let before = driver.as_ref().map_or(&launch.config, |driver| driver.config());
    let outcome = match changed(launch, before) {
        Ok(config) => {
            // Nothing of a link can change while it is divided.
            if let Some(driver) = driver {
                driver.reconfigure(config)?;
            }
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
