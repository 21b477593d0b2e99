//! Each origin, running on core 0.

use crate::application::{Application, Directory, Server};
use crate::wsgi::gunicorn;
use flashweir_load::trials::slow::Origin;
use flashweir_testkit::{Php, require_program, reserve_address};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

const PAGE_JS: &str = include_str!("applications/page.js");
const POLLS_JS: &str = include_str!("applications/polls.js");
const STREAMS_JS: &str = include_str!("applications/streams.js");
const PAUSES_JS: &str = include_str!("applications/pauses.js");
const API_JS: &str = include_str!("applications/api.js");
const API_PHP: &str = include_str!("applications/api.php");
const POLLS_PY: &str = include_str!("applications/polls.py");
const MODEL_PY: &str = include_str!("applications/model.py");
const EXPORTS_PY: &str = include_str!("applications/exports.py");

const NEWS_WITHIN: Duration = Duration::from_secs(1);
/// One that is worked at and one that waits.
const CONCURRENCY: usize = 2;
/// Of Gunicorn, and threads of each: exports wait in some, pages are made in others.
pub(crate) const PROCESSES: usize = 4;
pub(crate) const THREADS: usize = 4;
/// Of PHP-FPM: 40 pages a second that wait for 0.8 s.
pub(crate) const PHP_WORKERS: u32 = 32;

/// The system's Python, which has the packages of the system; another may come first in the search path.
const PYTHON: &str = "/usr/bin/python3";
const AIOHTTP: &str = "/usr/lib/python3/dist-packages/aiohttp";

/// One that runs; ended when dropped.
pub(crate) struct Running {
    pub(crate) application: Application,
    /// Its worker processes, where it has several.
    pub(crate) workers: Vec<u32>,
    has_news: bool,
}

impl Running {
    /// Starts a fresh one; why not, if something is missing.
    pub(crate) fn start(origin: Origin) -> Result<Self, String> {
        let directory = Directory::new();
        let one = |application| Self { application, workers: Vec::new(), has_news: false };
        match origin {
            Origin::Polls => Ok(Self { has_news: true, ..one(node(directory, POLLS_JS)?) }),
            Origin::Streams => node(directory, STREAMS_JS).map(one),
            Origin::Pauses => node(directory, PAUSES_JS).map(one),
            Origin::Asyncio => Ok(Self { has_news: true, ..one(asyncio(directory, POLLS_PY)?) }),
            Origin::Model => asyncio(directory, MODEL_PY).map(one),
            Origin::Exports => exports(directory),
            Origin::Api => api(directory),
        }
    }

    /// Has all long polls answered, so that a run need not wait for them; blocks for a second at most. An
    /// origin that is busy answers them when it has read this.
    pub(crate) fn announce_news(&self) {
        let Some(mut connection) =
            TcpStream::connect(self.application.address).ok().filter(|_| self.has_news)
        else {
            return;
        };
        let asked = connection.set_read_timeout(Some(NEWS_WITHIN)).and_then(|()| {
            connection.write_all(b"GET /news HTTP/1.1\r\nHost: origin\r\nConnection: close\r\n\r\n")
        });
        // Whether it answers makes no difference: without news the polls end by themselves.
        let _ = asked.and_then(|()| connection.read(&mut [0; 64]));
    }
}

fn node(directory: Directory, service: &str) -> Result<Application, String> {
    let program = require_program("node", "an origin").ok_or("`node` is missing")?;
    directory.write("page.js", PAGE_JS);
    directory.write("service.js", service);
    let (address, marks) = (reserve_address(), directory.marks().display().to_string());
    let server = Server::start(&program, &directory, &["service.js", &address.port().to_string(), &marks]);
    Ok(Application::of_servers(address, CONCURRENCY, directory, vec![server]))
}

fn asyncio(directory: Directory, service: &str) -> Result<Application, String> {
    if !Path::new(PYTHON).exists() || !Path::new(AIOHTTP).exists() {
        return Err("`aiohttp` for the system's Python is missing".to_owned());
    }
    directory.write("service.py", service);
    let (address, marks) = (reserve_address(), directory.marks().display().to_string());
    let arguments = ["service.py", &address.port().to_string(), &marks];
    let server = Server::start(Path::new(PYTHON), &directory, &arguments);
    Ok(Application::of_servers(address, CONCURRENCY, directory, vec![server]))
}

fn exports(directory: Directory) -> Result<Running, String> {
    directory.write("exports.py", EXPORTS_PY);
    let address = reserve_address();
    let workers = ["--workers", &PROCESSES.to_string(), "--threads", &THREADS.to_string()];
    let server = gunicorn(&directory, &address.to_string(), &workers, &[], "exports:application")?;
    let application = Application::of_servers(address, PROCESSES, directory, vec![server]);
    // The first is the one that starts and watches them.
    let workers = application.processes().into_iter().skip(1).collect();
    Ok(Running { application, workers, has_news: false })
}

fn api(directory: Directory) -> Result<Running, String> {
    let program = require_program("node", "an origin").ok_or("`node` is missing")?;
    directory.write("api.js", API_JS);
    let api = reserve_address();
    let mut server = Server::start(&program, &directory, &["api.js", &api.port().to_string()]);
    server.wait("the port of the API", || TcpStream::connect(api).ok());
    let page = API_PHP.strip_prefix("<?php").unwrap_or(API_PHP);
    let page = format!("$api = 'http://{api}/'; $marks = '{}';\n{page}", directory.marks().display());
    let php = Php::require("slow API", PHP_WORKERS, &page).ok_or("`php-fpm` or `nginx` is missing")?;
    // nginx and the manager come before them.
    let workers = php.processes().into_iter().skip(2).collect();
    let application = Application::of_php(php, PHP_WORKERS as usize, directory, vec![server]);
    Ok(Running { application, workers, has_news: false })
}
