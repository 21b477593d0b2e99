//! One `[[class]]` table, turned into the words that would say the same on a command line.

use crate::command::class::ClassArgs;
use anyhow::{Context, anyhow, bail, ensure};
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};
use flashweir_config::location::line_at;
use toml::Spanned;
use toml::de::DeValue;

/// A table with what every class has taken out of it.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: String,
    /// The line on which it begins.
    pub(super) line: usize,
    pub(super) weight: Option<f64>,
    options: Vec<Key>,
}

/// A key that is the long name of an option.
#[derive(Debug)]
struct Key {
    name: String,
    line: usize,
    /// The words that say the same: none, a flag, or `--name=value` once or several times.
    words: Vec<String>,
}

/// Reads words as the command line would.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Options {
    #[command(flatten)]
    class: ClassArgs,
}

impl Table {
    pub(super) fn new(text: &str, class: &Spanned<DeValue<'_>>, file: &str) -> anyhow::Result<Self> {
        let line = line_at(text, class.span().start);
        let Some(table) = class.get_ref().as_table() else {
            bail!("{file}:{line}: a class is a table that begins with [[class]]");
        };
        let key_line =
            |key: &str| table.get_key_value(key).map_or(line, |(key, _)| line_at(text, key.span().start));
        let name = table.get("name").with_context(|| format!("{file}:{line}: a class has no name"))?;
        let name = name.get_ref().as_str();
        let name =
            name.with_context(|| format!("{file}:{}: name: expected text", key_line("name")))?.to_owned();
        let at = |key: &str| format!("{file}:{}: class \"{name}\": {key}: ", key_line(key));
        let weight = table.get("weight").map(|weight| {
            let weight = number(weight.get_ref()).and_then(|text| text.parse::<f64>().ok());
            let weight = weight.filter(|weight| weight.is_finite() && *weight > 0.0);
            weight.with_context(|| at("weight") + "expected a number above zero")
        });
        let weight = weight.transpose()?;
        let known = Options::command();
        let is_known = |key: &str| {
            known
                .get_arguments()
                .filter_map(clap::Arg::get_long_and_visible_aliases)
                .flatten()
                .any(|name| name == key)
        };
        let mut options = Vec::new();
        for (key, value) in table.iter() {
            let (key, line) = (key.get_ref().as_ref(), line_at(text, key.span().start));
            if key == "name" || key == "weight" {
                continue;
            }
            ensure!(
                is_known(key),
                "{file}:{line}: class \"{name}\": unknown key \"{key}\": expected name, weight or the long name of an \
                 option that says when people come, what they ask for or what they do"
            );
            let words = words(key, value.get_ref()).map_err(|expected| anyhow!("{}{expected}", at(key)))?;
            options.push(Key { name: key.to_owned(), line, words });
        }
        // As written: the parser's messages name the first of several, and steps follow one another.
        options.sort_by_key(|key| key.line);
        Ok(Self { name, line, weight, options })
    }

    /// Converts the table to options.
    pub(super) fn options(&self, file: &str) -> anyhow::Result<ClassArgs> {
        let words = self.options.iter().flat_map(|key| &key.words);
        let parsed = Options::try_parse_from(words).map_err(|error| {
            let (line, key) = match self.key_of(&error) {
                Some(key) => (key.line, format!("{}: ", key.name)),
                None => (self.line, String::new()),
            };
            anyhow!("{file}:{line}: class \"{}\": {key}{}", self.name, in_one_line(&error))
        })?;
        Ok(parsed.class)
    }

    /// The key that the parser complains of.
    fn key_of(&self, error: &clap::Error) -> Option<&Key> {
        let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return None };
        let name = argument.strip_prefix("--")?.split([' ', '=']).next()?;
        self.options.iter().find(|key| key.name == name)
    }
}

/// Command-line arguments of a key and its value.
fn words(key: &str, value: &DeValue<'_>) -> Result<Vec<String>, &'static str> {
    match value {
        DeValue::Boolean(true) => Ok(vec![format!("--{key}")]),
        DeValue::Boolean(false) => Ok(Vec::new()),
        DeValue::Array(values) => {
            let words = values.iter().map(|value| word(key, value.get_ref()));
            words.collect::<Option<_>>().ok_or("expected texts or numbers in the array")
        }
        value => word(key, value)
            .map(|word| vec![word])
            .ok_or("expected text, a number, true or an array of these"),
    }
}

fn word(key: &str, value: &DeValue<'_>) -> Option<String> {
    // With an equals sign, so that no value can be taken for another option.
    value.as_str().map(str::to_owned).or_else(|| number(value)).map(|value| format!("--{key}={value}"))
}

fn number(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::Integer(number) => {
            // As decimal digits, from any base it is written in.
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number.to_string())
        }
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        _ => None,
    }
}

/// The first paragraph of what the parser says; usage and hints that follow are about a command line.
fn in_one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<_> = paragraph.trim_start_matches("error: ").split_whitespace().collect();
    words.join(" ")
}
