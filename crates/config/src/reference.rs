//! The reference of the configuration file in Markdown, from the same doc comments as the schema.

use core::fmt::{self, Write as _};

use serde_json::Value;

use crate::schema;

/// The page as committed in `docs/config.md`.
#[must_use]
pub fn markdown() -> String {
    let schema = schema::value();
    let mut page = Page { text: String::from(HEADER), schema: &schema };
    // Writing to a string cannot fail.
    let _infallible = page.root();
    page.text
}

const HEADER: &str = "\
# Configuration

This page is generated from the doc comments in `crates/config/src/sections`, and so is the JSON schema
`config.schema.json` beside it; `FLASHWEIR_BLESS=1 cargo test -p flashweir-config` rewrites both.
`flashweir config reference` prints it, `flashweir config check FILE` checks a file.

The smallest file that works:

```toml
[upstream]
urls = [\"http://127.0.0.1:3000\"]
```

";

struct Page<'a> {
    text: String,
    schema: &'a Value,
}

impl<'a> Page<'a> {
    fn root(&mut self) -> fmt::Result {
        let schema = self.schema;
        writeln!(self.text, "{}", description(schema))?;
        for (name, section) in properties(schema) {
            self.section(name, section)?;
        }
        Ok(())
    }

    /// A table's heading and keys, then the tables inside it.
    fn section(&mut self, path: &str, property: &'a Value) -> fmt::Result {
        let table = self.resolve(property);
        let heading = if is_list(property) { format!("[[{path}]]") } else { format!("[{path}]") };
        writeln!(self.text, "\n## `{heading}`\n")?;
        if let Some(same) = self.section_of_the_top(path, table) {
            return writeln!(self.text, "{} Its keys are those of `{same}`.", description(property));
        }
        // A section's own words and its type's: the shorter are the beginning of the longer.
        let texts = [description(property), description(table)];
        writeln!(self.text, "{}", texts.into_iter().max_by_key(|text| text.len()).unwrap_or_default())?;
        let (tables, keys): (Vec<_>, Vec<_>) =
            properties(table).into_iter().partition(|(_, inner)| !properties(self.resolve(inner)).is_empty());
        // Defaults of a table may be written in any object that holds the key; the table's own come first.
        let required = table["required"].as_array().map_or(&[][..], Vec::as_slice);
        for (name, key) in keys {
            let needed = required.iter().any(|required| required == name);
            self.key(name, key, needed)?;
        }
        tables.into_iter().try_for_each(|(name, inner)| self.section(&format!("{path}.{name}"), inner))
    }

    /// The section of the top level with the same keys as this one, which lies deeper.
    fn section_of_the_top(&self, path: &str, table: &Value) -> Option<&'a str> {
        let top = properties(self.schema).into_iter();
        let mut same =
            top.filter(|(name, property)| *name != path && core::ptr::eq(self.resolve(property), table));
        same.next().map(|(name, _)| name.as_str())
    }

    fn key(&mut self, name: &str, property: &Value, needed: bool) -> fmt::Result {
        writeln!(self.text, "\n### `{name}`\n")?;
        match property.get("default") {
            Some(Value::Array(empty)) if empty.is_empty() => writeln!(self.text, "Default: none.\n")?,
            Some(Value::Null) | None if needed => writeln!(self.text, "Required in this section.\n")?,
            // Where the default depends on something else, the doc comment gives it.
            Some(Value::Null) | None if description(property).contains("Default: ") => {}
            Some(Value::Null) | None => writeln!(self.text, "Default: not set.\n")?,
            Some(default) => writeln!(self.text, "Default: `{default}`.\n")?,
        }
        // One paragraph each for meaning, range and example.
        let text =
            description(property).replace("\nValid: ", "\n\nValid: ").replace("\nExample: ", "\n\nExample: ");
        writeln!(self.text, "{text}")
    }

    /// The schema of a property: the property itself, the type that it (or each of its entries) refers to, or
    /// the one that is not null.
    fn resolve(&self, property: &'a Value) -> &'a Value {
        let alternatives = property["anyOf"].as_array().map_or(&[][..], Vec::as_slice);
        let itself = [property, &property["items"]].into_iter();
        let reference = itself.chain(alternatives).find_map(|value| value["$ref"].as_str());
        let pointer = reference.and_then(|reference| reference.strip_prefix('#'));
        pointer.and_then(|pointer| self.schema.pointer(pointer)).unwrap_or(property)
    }
}

/// Returns whether a property is a list (of tables, where it is a section).
fn is_list(property: &Value) -> bool {
    property["type"] == "array"
}

fn description(value: &Value) -> &str {
    value["description"].as_str().unwrap_or_default()
}

fn properties(value: &Value) -> Vec<(&String, &Value)> {
    value["properties"].as_object().map(|properties| properties.iter().collect()).unwrap_or_default()
}
