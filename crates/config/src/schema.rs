//! The JSON schema of the configuration file, for editors and generators.

use serde_json::{Map, Value};

use crate::sections::File;

/// The schema (JSON Schema 2020-12) as committed in `docs/config.schema.json`, keys sorted, newline at the
/// end.
#[must_use]
pub fn json_text() -> String {
    let mut text = format!("{:#}", value());
    text.push('\n');
    text
}

/// The schema as a value, keys sorted.
pub(crate) fn value() -> Value {
    sorted(schemars::schema_for!(File).to_value())
}

/// Sorts keys, because whether `serde_json` keeps their order depends on what else is in the build.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> = map.into_iter().collect();
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(entries.into_iter().map(|(key, value)| (key, sorted(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}
