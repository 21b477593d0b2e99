//! PostgreSQL, and a small application that has a pool of ten connections to it.
//!
//! The database lives in a temporary directory and listens at a socket in it. It does not run as root, so
//! root starts it as `nobody`.

use crate::application::{Application, Directory, Server};
use crate::wsgi::gunicorn;
use flashweir_testkit::{Process, require_program, reserve_address};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// As `applications/customers.py` has them.
const CONNECTIONS: usize = 10;
/// Requests that the application has at once: the others wait for a connection, as behind any pool.
const THREADS: &str = "40";
const ORDERS: &str = include_str!("applications/orders.sql");
const CUSTOMERS: &str = include_str!("applications/customers.py");
/// `initdb` takes a second here.
const MADE_WITHIN: Duration = Duration::from_secs(60);
const INSTALLED: &str = "/usr/lib/postgresql";
const AS_NOBODY: [&str; 3] = ["--reuid=nobody", "--regid=nogroup", "--clear-groups"];

pub(super) fn start() -> Result<Application, String> {
    let programs = installed().ok_or("`postgres` is missing")?;
    let psql = require_program("psql", "an origin").ok_or("`psql` is missing")?;
    let setpriv = require_program("setpriv", "an origin").ok_or("`setpriv` is missing")?;
    let directory = Directory::new();
    let root = directory.path();
    // The user `nobody` makes its own files in here.
    fs::set_permissions(root, Permissions::from_mode(0o777)).map_err(|error| error.to_string())?;
    let place = root.display().to_string();
    let as_nobody = |program: &str| {
        let program = programs.join(program).display().to_string();
        AS_NOBODY.iter().map(|&word| word.to_owned()).chain([program]).collect::<Vec<_>>()
    };
    let mut initialise = as_nobody("initdb");
    initialise.extend(["-D", "data", "-U", "postgres", "--auth=trust", "--no-sync"].map(str::to_owned));
    run(&setpriv, root, &initialise)?;
    let mut serve = as_nobody("postgres");
    serve.extend(["-D", "data", "-k", &place].map(str::to_owned));
    for setting in
        ["listen_addresses=", "fsync=off", "autovacuum=off", "jit=off", "max_parallel_workers_per_gather=0"]
    {
        serve.extend(["-c".to_owned(), setting.to_owned()]);
    }
    let words: Vec<&str> = serve.iter().map(String::as_str).collect();
    let mut database = Server::start(&setpriv, &directory, &words);
    directory.write("orders.sql", ORDERS);
    let fill = ["-q", "-v", "ON_ERROR_STOP=1", "-h", &place, "-U", "postgres", "-f", "orders.sql"];
    // It has a file for its socket before it accepts connections.
    database.wait("PostgreSQL", || run(&psql, root, &fill.map(str::to_owned)).ok());
    directory.write("customers.py", CUSTOMERS);
    let (address, workers) = (reserve_address(), ["--workers", "1", "--threads", THREADS]);
    let environment = [format!("DATABASE={place}")];
    let environment: Vec<&str> = environment.iter().map(String::as_str).collect();
    let server = gunicorn(&directory, &address.to_string(), &workers, &environment, "customers:application")?;
    Ok(Application::of_servers(address, CONNECTIONS, directory, vec![server, database]))
}

fn run(program: &Path, directory: &Path, arguments: &[String]) -> Result<(), String> {
    let finished = Process::run(program, directory, MADE_WITHIN, arguments);
    if finished.status.success() { Ok(()) } else { Err(finished.stderr) }
}

/// Debian has a directory for each version; of several the last.
fn installed() -> Option<PathBuf> {
    let versions = fs::read_dir(INSTALLED).into_iter().flatten().flatten();
    versions.map(|version| version.path().join("bin")).filter(|path| path.join("initdb").exists()).max()
}
