//! Node: one thread runs the program.

use crate::application::{Application, Directory, Server};
use flashweir_testkit::{require_program, reserve_address};

const SERVICE: &str = include_str!("applications/service.js");
/// One that is worked at and one that waits.
const CONCURRENCY: usize = 2;

pub(super) fn start() -> Result<Application, String> {
    let program = require_program("node", "an origin").ok_or("`node` is missing")?;
    let directory = Directory::new();
    directory.write("service.js", SERVICE);
    let (address, marks) = (reserve_address(), directory.marks().display().to_string());
    let server = Server::start(&program, &directory, &["service.js", &address.port().to_string(), &marks]);
    Ok(Application::of_servers(address, CONCURRENCY, directory, vec![server]))
}
