//! The gateway's JSON as lines for people.

use core::fmt::Write as _;

use anyhow::Context as _;
use serde_json::{Map, Value};

/// The sentence that says why, then one aligned line for each value; what is nested is indented under its
/// name.
pub(super) fn explanation(json: &str) -> anyhow::Result<String> {
    let mut value: Value = serde_json::from_str(json).context("the gateway's answer is not JSON")?;
    let mut text = String::new();
    match &mut value {
        Value::Object(map) => {
            if let Some(Value::String(sentence)) = map.remove("text") {
                text = format!("{sentence}\n\n");
            }
            lines(&mut text, map, 0);
        }
        other => text = format!("{}\n", plain(other)),
    }
    Ok(text)
}

fn lines(text: &mut String, map: &Map<String, Value>, depth: usize) {
    let indent = "  ".repeat(depth);
    let width = map.keys().map(String::len).max().unwrap_or(0);
    for (name, value) in map {
        let name = name.replace('_', " ");
        // Writing to a string cannot fail.
        let _infallible = match value {
            Value::Object(inner) => {
                let _infallible = writeln!(text, "{indent}{name}");
                lines(text, inner, depth + 1);
                Ok(())
            }
            value => writeln!(text, "{indent}{name:<width$}  {}", plain(value)),
        };
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        // Six digits are more than any of these measurements has.
        Value::Number(number) if number.is_f64() => {
            let rounded = format!("{:.6}", number.as_f64().unwrap_or_default());
            rounded.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::explanation;

    #[test]
    fn values_are_aligned_and_what_is_nested_is_indented() {
        let json = r#"{"reason":"flash_crowd","shadow":false,"text":"The request was refused.",
            "why":{"ceiling_rps":120.50000001,"quality":null}}"#;
        let expected = "The request was refused.\n\nreason  flash_crowd\nshadow  no\nwhy\n  ceiling rps  120.5\n  quality      -\n";
        assert_eq!(explanation(json).unwrap(), expected);
    }

    #[test]
    fn an_answer_that_is_no_json_is_said_to_be_none() {
        assert!(explanation("<html>").unwrap_err().to_string().contains("not JSON"));
    }
}
