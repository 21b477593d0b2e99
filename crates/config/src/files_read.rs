//! Whether the files a configuration names can be read: the only I/O beside the configuration file itself.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::checked::Config;
use crate::error::Problem;

/// Opens each named file and reads a byte. What is in it is judged by whoever uses it.
pub(crate) fn readable(config: &Config) -> Result<(), Problem> {
    let tls = config.listen.tls.as_ref();
    let named = [
        ("listen.tls.certificate", tls.map(|tls| tls.certificate.as_path())),
        ("listen.tls.key", tls.map(|tls| tls.key.as_path())),
        ("upstream.ca_file", config.upstream.ca_file.as_deref()),
    ];
    named.into_iter().try_for_each(|(key, path)| path.map_or(Ok(()), |path| read_one_byte(key, path)))
}

fn read_one_byte(key: &str, path: &Path) -> Result<(), Problem> {
    // Reading finds what opening does not: a directory, for one.
    let read = File::open(path).and_then(|mut file| file.read(&mut [0]));
    match read {
        Ok(0) => Err(Problem::new(key, format!("`{}` is empty, expected a PEM file", path.display()))),
        Ok(_) => Ok(()),
        Err(error) => {
            Err(Problem::new(key, format!("cannot read `{}`: {error}, expected a PEM file", path.display())))
        }
    }
}
