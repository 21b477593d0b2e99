//! Reads results of runs that `--json` or `--out` wrote.

use crate::{ConnectionCounts, LoadResult, RESULT_FORMAT, Tally};
use anyhow::{Context as _, bail, ensure};
use flashweir_core::limits::LOAD_RESULT_BYTES;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Reads a result, with the name to call it by.
///
/// # Errors
/// One line with the file and, where it is of the wrong shape, the key.
pub(super) fn read(path: &Path) -> anyhow::Result<(String, LoadResult)> {
    let name = path.display().to_string();
    let text = bytes(path).with_context(|| format!("{name}: cannot be read"))?;
    let result = parse(&text).with_context(|| format!("{name}: not a result of flashweir load"))?;
    Ok((name, result))
}

fn bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than allowed distinguishes a file that is too long from one that just fits.
    File::open(path)?.take(LOAD_RESULT_BYTES + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 <= LOAD_RESULT_BYTES, "it has more than {} MB", LOAD_RESULT_BYTES >> 20);
    Ok(bytes)
}

fn parse(text: &[u8]) -> anyhow::Result<LoadResult> {
    // Another version's file may fit the shape and mean something else.
    if let Some(format) = format(text).filter(|format| *format != RESULT_FORMAT) {
        bail!("it is of format {format}, written by another version; this one reads format {RESULT_FORMAT}");
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    let error = match serde_path_to_error::deserialize(&mut reader) {
        Ok(result) => {
            reader.end().context("something follows the result")?;
            return Ok(result);
        }
        Err(error) => error,
    };
    let place =
        with_place(&error).or_else(|| in_part::<Tally>(text)).or_else(|| in_part::<ConnectionCounts>(text));
    bail!("{}", place.unwrap_or_else(|| error.inner().to_string()))
}

/// The place and the complaint, if the place is known.
fn with_place(error: &serde_path_to_error::Error<serde_json::Error>) -> Option<String> {
    let path = error.path().to_string();
    (path != ".").then(|| format!("{path}: {}", error.inner()))
}

/// The place of a mistake in a part whose keys stand beside the others, where serde loses sight of them.
fn in_part<Part: DeserializeOwned>(text: &[u8]) -> Option<String> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    with_place(&serde_path_to_error::deserialize::<_, Part>(&mut reader).err()?)
}

/// The format a JSON text says that it has.
fn format(text: &[u8]) -> Option<u32> {
    #[derive(serde::Deserialize)]
    struct ResultFormat {
        run: Run,
    }
    #[derive(serde::Deserialize)]
    struct Run {
        format: u32,
    }
    serde_json::from_slice::<ResultFormat>(text).ok().map(|result| result.run.format)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::sample;
    use serde_json::{Value, json};

    fn complaint(change: impl FnOnce(&mut Value)) -> String {
        let mut value = serde_json::to_value(sample::result()).unwrap();
        change(&mut value);
        complaint_of(value.to_string().as_bytes())
    }

    fn complaint_of(text: &[u8]) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.json");
        std::fs::write(&path, text).unwrap();
        format!("{:#}", read(&path).unwrap_err())
    }

    #[test]
    fn what_was_written_is_read_back() {
        let result = sample::result();
        let text = serde_json::to_vec(&result).unwrap();
        assert_eq!(parse(&text).unwrap(), result);
    }

    #[test]
    fn a_file_of_the_wrong_shape_is_told_with_the_key() {
        let check = |said: String, wanted: &str| assert!(said.contains(wanted), "{said} lacks {wanted}");
        check(
            complaint(|value| value["run"]["seed"] = json!("one")),
            "a.json: not a result of flashweir load: run.seed: ",
        );
        check(complaint(|value| value["offered"] = json!(-1)), "offered: invalid value");
        check(
            complaint(|value| value["connections_failed"] = json!(-1)),
            "connections_failed: invalid value",
        );
        check(complaint(|value| value["series"][3]["sent"] = json!("x")), "series[3].sent: invalid type");
        check(
            complaint(|value| value["classes"]["buyers"]["latency_ms"] = json!(1)),
            "classes.buyers.latency_ms: ",
        );
        check(
            complaint(|value| drop(value.as_object_mut().unwrap().remove("goodput"))),
            "missing field `goodput`",
        );
        let said = complaint(|value| value["run"]["format"] = json!(2));
        check(said, "format 2, written by another version");
        let said = complaint(|value| value["refused_by_status"] = json!({ "many": 1 }));
        check(said, "\"many\" is no status");
        check(complaint_of(b""), "EOF while parsing");
        check(complaint_of(b"second,offered\n"), "expected value at line 1");
        check(complaint_of(b"{}"), "missing field `run`");
        check(complaint_of(b"[1]"), "a.json");
        let twice = serde_json::to_string(&sample::result()).unwrap().repeat(2);
        check(complaint_of(twice.as_bytes()), "something follows the result");
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let said = format!("{:#}", read(Path::new("not-there.json")).unwrap_err());
        assert!(said.starts_with("not-there.json: cannot be read: "), "{said}");
    }
}
