//! A list of paths, one a line.

use crate::LoadTarget;
use crate::command::inputs::{self, Inputs};
use anyhow::{Context, bail, ensure};
use flashweir_core::limits::{LOAD_LIST_BYTES, LOAD_LIST_PATHS};
use hyper::Uri;
use std::io::{BufRead, Read};
use std::path::Path;

/// Reads the paths of a list; at least one.
///
/// # Errors
/// A file that cannot be read or holds no paths; the first line that is none, by number.
pub(super) fn read(target: &LoadTarget, file: &Path, inputs: &mut Inputs) -> anyhow::Result<Vec<Box<str>>> {
    let name = inputs::name(file);
    let text = inputs.open_text(file, "--url-list")?.take(LOAD_LIST_BYTES + 1);
    let (mut paths, mut bytes) = (Vec::new(), 0);
    for (line, number) in text.lines().zip(1u64..) {
        let line = line.with_context(|| format!("{name}: line {number} cannot be read"))?;
        bytes += line.len() as u64 + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let is_bounded = paths.len() < LOAD_LIST_PATHS && bytes <= LOAD_LIST_BYTES;
        ensure!(is_bounded, "{name}: more than {LOAD_LIST_PATHS} paths or {LOAD_LIST_BYTES} bytes");
        paths.push(path(target, line).with_context(|| format!("{name}: line {number}"))?);
    }
    ensure!(!paths.is_empty(), "{name} holds no paths");
    Ok(paths)
}

/// Returns whether this can stand in a request line as path and query.
pub(super) fn is_path(text: &str) -> bool {
    text.starts_with('/') && !text.contains('#') && text.parse::<Uri>().is_ok()
}

fn path(target: &LoadTarget, line: &str) -> anyhow::Result<Box<str>> {
    let uri = line.parse::<Uri>().ok().filter(|_| !line.contains('#'));
    let expected = || format!("{line:?}: expected /PATH[?QUERY] or a URL, without spaces or #FRAGMENT");
    let uri = uri.with_context(expected)?;
    let Some(scheme) = uri.scheme_str() else {
        ensure!(is_path(line), expected());
        return Ok(line.into());
    };
    let port = match (uri.port_u16(), scheme) {
        (None, "https") => 443,
        (None, _) => 80,
        (Some(port), _) => port,
    };
    let is_tls = scheme == "https";
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let is_same = host.eq_ignore_ascii_case(&target.server_name)
        && port == target.port
        && is_tls == target.tls
        && (is_tls || scheme == "http");
    if !is_same {
        bail!("{line} is not on {}: a run has one server", target.host);
    }
    Ok(uri.path_and_query().map_or("/", |path| path.as_str()).into())
}
