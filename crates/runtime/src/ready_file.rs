//! The file that says where a command listens (`--ready-file`), for supervisors and for tests that ask for
//! port 0.

use serde_json::{Map, Value};
use std::fs;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A file that is absent until the command listens, and then names its process and every address.
///
/// Its content is one JSON object in one line:
/// `{"pid":4711,"listen":["127.0.0.1:8080"],"admin":["127.0.0.1:9900"]}`. A role without an address is
/// absent. The file appears whole, by a rename; the command leaves it where it is when it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyFile {
    file: PathBuf,
    part: PathBuf,
}

impl ReadyFile {
    /// Removes what an earlier run left, and makes sure that the file can be written.
    ///
    /// # Errors
    /// With the file's name, when its directory does not take it.
    pub fn prepare(file: &Path) -> io::Result<Self> {
        let mut name = file.file_name().ok_or_else(|| named(file, &"no file name"))?.to_owned();
        name.push(".part");
        let part = file.with_file_name(name);
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(named(file, &error)),
            _ => fs::File::create(&part).map_err(|error| named(file, &error))?,
        };
        Ok(Self { file: file.to_owned(), part })
    }

    /// Writes the addresses of each role, in this order. To be called when all are bound and signals are
    /// handled.
    ///
    /// # Errors
    /// With the file's name, as the operating system says.
    pub fn write(&self, roles: &[(&str, &[SocketAddr])]) -> io::Result<()> {
        let mut object = Map::from_iter([("pid".to_owned(), Value::from(std::process::id()))]);
        for (role, addresses) in roles.iter().filter(|(_, addresses)| !addresses.is_empty()) {
            let addresses = addresses.iter().map(|address| Value::from(address.to_string()));
            object.insert((*role).to_owned(), addresses.collect());
        }
        let line = format!("{}\n", Value::Object(object));
        let write = || -> io::Result<()> {
            let mut part = fs::File::create(&self.part)?;
            part.write_all(line.as_bytes())?;
            fs::rename(&self.part, &self.file)
        };
        write().map_err(|error| named(&self.file, &error))
    }
}

fn named(file: &Path, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("--ready-file {}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn it_is_absent_until_it_is_written_and_then_whole() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("ready.json");
        fs::write(&path, "of an earlier run").unwrap();
        let file = ReadyFile::prepare(&path).unwrap();
        assert!(!path.exists(), "an earlier run's addresses are not taken for ours");
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        file.write(&[("listen", &[address, address]), ("admin", &[address]), ("udp", &[])]).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let pid = std::process::id();
        let expected = serde_json::json!({
            "pid": pid, "listen": ["127.0.0.1:80", "127.0.0.1:80"], "admin": ["127.0.0.1:80"],
        });
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
        assert!(text.ends_with("}\n") && fs::read_dir(directory.path()).unwrap().count() == 1);
    }

    #[test]
    fn a_directory_that_does_not_take_it_is_named_at_once() {
        for wrong in ["/surely/not/there/ready.json", "/"] {
            let error = ReadyFile::prepare(Path::new(wrong)).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--ready-file {wrong}: ")), "{error}");
        }
    }
}
