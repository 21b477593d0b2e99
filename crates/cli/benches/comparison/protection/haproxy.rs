//! HAProxy's `maxconn` and its queue: a limit that the operator has to know.

use super::{Place, Standing};
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

pub(crate) const ABOUT: &str = "`maxconn` at the server and a queue before it with `timeout queue`; gold goes first \
                                (`set-priority-class`), and who has gone leaves the queue (`abortonclose`).";

#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// Requests in flight at the origin.
    pub(crate) maxconn: u32,
    /// Queue timeout for that.
    pub(crate) queue_timeout_ms: u32,
}

impl fmt::Display for Setting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "maxconn {}, timeout queue {} ms", self.maxconn, self.queue_timeout_ms)
    }
}

pub(super) fn start(program: &Path, origin: SocketAddr, setting: &Setting) -> Result<Standing, String> {
    let place = Place::new();
    let (address, Setting { maxconn, queue_timeout_ms }) = (place.address, setting);
    let config = format!(
        "global\n  nbthread 1\n  maxconn 8192\n\
         defaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n  \
         timeout queue {queue_timeout_ms}ms\n  option abortonclose\n  http-reuse always\n\
         listen all\n  bind {address}\n  http-request set-priority-class int(-1) if {{ req.hdr(x-class) gold }}\n  \
         server origin {origin} maxconn {maxconn}\n"
    );
    let config = place.write("haproxy.cfg", &config);
    place.start(program, &["-db".as_ref(), "-f".as_ref(), config.as_os_str()])
}
