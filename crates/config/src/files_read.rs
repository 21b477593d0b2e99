//! The files a configuration names: the only I/O beside the configuration file itself.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use crate::error::Problem;
use crate::sections::{Class, Config, Service};

/// Opens each named file and reads a byte (its user judges the content), and reads API keys and secrets.
pub(crate) fn read(config: &mut Config) -> Result<(), Problem> {
    let tls = config.listen.tls.as_ref();
    let named = [
        ("listen.tls.certificate", tls.map(|tls| tls.certificate.as_path())),
        ("listen.tls.key", tls.map(|tls| tls.key.as_path())),
    ];
    named.into_iter().try_for_each(|(key, path)| path.map_or(Ok(()), |path| read_one_byte(key, path)))?;
    config.admin.read()?;
    Arc::make_mut(&mut config.fairness).read()?;
    Arc::make_mut(&mut config.feedback).read()?;
    config.cluster.read()?;
    let services = config.services.iter_mut().enumerate();
    services.into_iter().try_for_each(|(index, service)| {
        // The first service is written at the top level.
        let prefix = index.checked_sub(1).map_or_else(String::new, |index| format!("service[{index}]."));
        read_of_service(service).map_err(|problem| Problem { key: prefix + &problem.key, ..problem })
    })
}

fn read_of_service(service: &mut Service) -> Result<(), Problem> {
    if let Some(path) = &service.upstream.ca_file {
        read_one_byte("upstream.ca_file", path)?;
    }
    read_api_keys(&mut service.classes, "")?;
    let candidate = service.candidate.as_mut();
    candidate.map_or(Ok(()), |candidate| read_api_keys(&mut candidate.classes, "candidate."))
}

fn read_api_keys(classes: &mut [Class], prefix: &str) -> Result<(), Problem> {
    classes.iter_mut().enumerate().try_for_each(|(index, class)| {
        let keys = class.rules.api_keys.as_mut();
        keys.map_or(Ok(()), |keys| keys.read(&format!("{prefix}class[{index}].match.api_keys.file")))
    })
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
