//! A real application server: PHP-FPM behind nginx.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::geteuid;
use tempfile::TempDir;

use crate::deadline::{eventually, until};
use crate::nginx::Nginx;
use crate::process::{Process, Signal};
use crate::programs::{DAEMONS, skip};

/// Its workers end within this time after the signal to their master.
const STOP_WITHIN: Duration = Duration::from_secs(10);

/// A running pair, ended when dropped. Every path is answered by one page.
#[derive(Debug)]
pub struct Php {
    manager: Process,
    nginx: Nginx,
    directory: TempDir,
}

impl Php {
    /// Starts one with this number of worker processes, or says loudly that the test is skipped. `code` is
    /// the page, without `<?php`.
    ///
    /// # Panics
    /// When it is there and does not start.
    #[must_use]
    pub fn require(test: &str, workers: u32, code: &str) -> Option<Self> {
        let Some(program) = installed() else {
            skip(test, "the program `php-fpm` is missing");
            return None;
        };
        let directory = TempDir::new().expect("a fresh directory");
        let root = directory.path();
        let (socket, page) = (root.join("php.sock"), root.join("page.php"));
        write_page(&page, code);
        // Only root has to say who the workers are, and is asked twice whether root is meant.
        let is_root = geteuid().is_root();
        let user = if is_root { "user = root\ngroup = root\n" } else { "" };
        let config = format!(
            "[global]\ndaemonize = no\nerror_log = {root}/errors\n[pages]\n{user}listen = {socket}\nlisten.backlog = 511\n\
             pm = static\npm.max_children = {workers}\nphp_admin_flag[opcache.enable] = off\n",
            root = root.display(),
            socket = socket.display()
        );
        fs::write(root.join("php-fpm.conf"), config).expect("a writable directory");
        let as_root: &[&str] = if is_root { &["--allow-to-run-as-root"] } else { &[] };
        let arguments = ["--nodaemonize", "--fpm-config", "php-fpm.conf"].iter().chain(as_root);
        let mut manager = Process::start(&program, root, arguments);
        eventually("php-fpm's socket", || {
            assert!(manager.ended().is_none(), "php-fpm ended at its start: {}", manager.stderr());
            socket.exists().then_some(())
        });
        let server = format!(
            "location / {{ fastcgi_pass unix:{}; fastcgi_param SCRIPT_FILENAME {};\n\
             fastcgi_param REQUEST_METHOD $request_method; fastcgi_param QUERY_STRING $query_string; }}",
            socket.display(),
            page.display()
        );
        let nginx = Nginx::require(test, "", &server)?;
        Some(Self { manager, nginx, directory })
    }

    /// Another page from now on.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn serve(&self, code: &str) {
        write_page(&self.directory.path().join("page.php"), code);
    }

    /// Listening address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.nginx.address()
    }

    /// Its processes: nginx, the manager of the workers, and the workers.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        let manager = self.manager.id();
        let workers =
            fs::read_to_string(format!("/proc/{manager}/task/{manager}/children")).unwrap_or_default();
        let workers = workers.split_whitespace().filter_map(|id| id.parse().ok());
        [self.nginx.process().id(), manager].into_iter().chain(workers).collect()
    }
}

impl Drop for Php {
    fn drop(&mut self) {
        // Killed, it would leave its workers behind; asked to stop, it stops them.
        if self.manager.ended().is_none() {
            self.manager.signal(Signal::Terminate);
            until("the end of php-fpm", STOP_WITHIN, || self.manager.ended());
        }
    }
}

fn write_page(page: &std::path::Path, code: &str) {
    // Renamed into place: a worker reads the old page or the new one.
    let new = page.with_extension("new");
    fs::write(&new, format!("<?php {code}\n")).expect("a writable directory");
    fs::rename(new, page).expect("a writable directory");
}

/// Debian puts the version into its name; of several the last.
fn installed() -> Option<PathBuf> {
    let programs = fs::read_dir(DAEMONS).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_manager =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("php-fpm"));
    programs.filter(is_manager).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;

    #[test]
    fn a_page_is_served_and_nothing_is_left_behind() {
        let Some(php) = Php::require("a_page_is_served_and_nothing_is_left_behind", 2, "echo 6 * 7;") else {
            return;
        };
        assert_eq!(Client::get(php.address(), "/anything?x=1").text(), "42");
        php.serve("echo $_SERVER['REQUEST_METHOD'];");
        assert_eq!(Client::get(php.address(), "/").text(), "GET");
        let processes = php.processes();
        assert_eq!(processes.len(), 4, "nginx, the manager and two workers");
        drop(php);
        // The workers belong to the manager, which has waited for them.
        let left: Vec<_> =
            processes.iter().filter(|id| fs::metadata(format!("/proc/{id}")).is_ok()).collect();
        assert!(left.is_empty(), "{left:?} are left");
    }
}
