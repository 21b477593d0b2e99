//! Other servers of a comparison: their files, programs and ports.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Settings that nginx needs in each role: one process in the foreground, so that ending it ends all of it,
/// and nothing on disk but its folder.
pub(crate) const NGINX_HEAD: &str = "daemon off; master_process off; error_log stderr crit;
events { worker_connections 4096; }
http { access_log off; keepalive_requests 1000000000; client_body_temp_path body; proxy_temp_path proxy;
fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;";

/// A folder that goes away with the run.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        let path = std::env::temp_dir().join(format!("flashweir-compare-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for the servers' files");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("a configuration file");
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn is_installed(program: &str) -> bool {
    ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"]
        .iter()
        .any(|at| Path::new(at).join(program).exists())
}

pub(crate) fn path_of(program: &str) -> String {
    let at = ["/usr/bin", "/usr/sbin"].into_iter().find(|at| Path::new(at).join(program).exists());
    format!("{}/{program}", at.unwrap_or("/usr/bin"))
}

pub(crate) fn reserve_port() -> u16 {
    flashweir_testkit::reserve_address().port()
}

/// Waits until the port takes connections.
pub(crate) fn wait_for(port: u16, within: Duration) {
    flashweir_testkit::until(&format!("a server on port {port}"), within, || {
        TcpStream::connect(("127.0.0.1", port)).ok()
    });
}
