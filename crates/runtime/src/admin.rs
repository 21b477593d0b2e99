//! The admin listener: one port, and what its answers have in common.

use crate::bounded_listener::BoundedListener;
use axum::Router;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use flashweir_telemetry::{OPEN_METRICS_CONTENT_TYPE, Telemetry};
use serde_json::json;
use std::io;
use std::net::{SocketAddr, TcpListener};

/// A port that is taken and does not answer yet.
#[derive(Debug)]
pub struct AdminListener {
    listener: TcpListener,
}

impl AdminListener {
    /// Takes the port.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener })
    }

    /// Where it listens; the system chose the port when 0 was asked for.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers by these routes, and `/healthz` by itself, until the future is dropped.
    pub async fn serve(self, routes: Router) {
        let routes = routes.route("/healthz", get(async || "alive\n"));
        let served = match tokio::net::TcpListener::from_std(self.listener) {
            Ok(listener) => axum::serve(BoundedListener::new(listener), routes).await,
            Err(error) => Err(error),
        };
        if let Err(error) = served {
            tracing::error!("the admin listener stopped: {error}");
        }
    }
}

/// All metrics, never kept by whoever is in between.
#[must_use]
pub fn metrics_response(telemetry: &Telemetry) -> Response {
    let fields = [(CONTENT_TYPE, OPEN_METRICS_CONTENT_TYPE), (CACHE_CONTROL, "no-store")];
    (fields, telemetry.open_metrics()).into_response()
}

/// Why there is no better answer.
#[must_use]
pub fn problem(status: StatusCode, text: &str) -> Response {
    (status, Json(json!({ "status": status.as_u16(), "error": text }))).into_response()
}
