//! nginx's `limit_req`: a rate that the operator has to know.

use super::{Place, Standing};
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

pub(crate) const ABOUT: &str = "`limit_req` with a rate and a burst that waits; gold (by `map`) is not limited, so the rate \
                                is for the others.";

#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// Requests a second of all who are not gold.
    pub(crate) rate_rps: f64,
    /// Requests that may wait for their turn.
    pub(crate) burst: u32,
}

impl Setting {
    /// nginx takes whole numbers; a minute's is fine enough.
    fn rate_per_minute(&self) -> u64 {
        (self.rate_rps * 60.0).round() as u64
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "rate={}r/m burst={}", self.rate_per_minute(), self.burst)
    }
}

pub(super) fn start(program: &Path, origin: SocketAddr, setting: &Setting) -> Result<Standing, String> {
    let place = Place::new();
    let address = place.address;
    let burst = if setting.burst == 0 { String::new() } else { format!(" burst={}", setting.burst) };
    let config = format!(
        "daemon off; master_process off; worker_processes 1; pid pid; error_log stderr crit;
        events {{ worker_connections 16384; }}
        http {{ access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
        uwsgi_temp_path uwsgi; scgi_temp_path scgi;
        map $http_x_class $limited {{ gold ''; default all; }}
        limit_req_zone $limited zone=all:1m rate={}r/m;
        upstream origin {{ server {origin}; keepalive 64; }}
        server {{ listen {address}; location / {{ limit_req zone=all{burst}; proxy_pass http://origin;
        proxy_http_version 1.1; proxy_set_header Connection ''; }} }} }}",
        setting.rate_per_minute()
    );
    let config = place.write("nginx.conf", &config);
    let folder = place.path().as_os_str().to_owned();
    let arguments = [
        "-e".as_ref(),
        "stderr".as_ref(),
        "-p".as_ref(),
        folder.as_os_str(),
        "-c".as_ref(),
        config.as_os_str(),
    ];
    place.start(program, &arguments)
}
