//! `--set key=value`: what this run says otherwise than the file.

use crate::scenario::error::ScenarioError;
use flashweir_config::location::split_index;
use toml::{Table, Value};

/// Settings of this run, in the order they were given; later ones win.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings(Vec<Setting>);

#[derive(Clone, Debug, PartialEq)]
struct Setting {
    /// As it was given, for messages.
    text: String,
    key: String,
    value: Value,
}

impl Settings {
    /// Reads settings as they are given: `controller.mode=none`, `class[0].work="exp:9ms"`. A value that is
    /// no TOML is text.
    ///
    /// # Errors
    /// The first that has no key.
    pub fn parse<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<Self, ScenarioError> {
        texts.into_iter().map(|text| setting(text.as_ref())).collect::<Result<_, _>>().map(Self)
    }

    /// Puts the values in place of what was written.
    ///
    /// # Errors
    /// A key that goes through something which is no table, or through an element that there is not.
    pub(crate) fn apply(&self, document: &mut Table) -> Result<(), ScenarioError> {
        for setting in &self.0 {
            place(document, &setting.key, setting.value.clone())
                .map_err(|problem| ScenarioError::InSetting { setting: setting.text.clone(), problem })?;
        }
        Ok(())
    }

    /// The setting that put the value of this key (or of a table around it) in place: as it was given, and
    /// its key.
    pub(crate) fn setting_for(&self, key: &str) -> Option<(&str, &str)> {
        let covers = |set: &str| {
            key.strip_prefix(set).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let setting = self.0.iter().rev().find(|setting| covers(&setting.key));
        setting.map(|setting| (setting.text.as_str(), setting.key.as_str()))
    }
}

fn setting(text: &str) -> Result<Setting, ScenarioError> {
    let wrong = || ScenarioError::InSetting {
        setting: text.to_owned(),
        problem: "expected KEY=VALUE, like controller.mode=none or class[0].work=exp:9ms".to_owned(),
    };
    let (key, value) = text.split_once('=').ok_or_else(wrong)?;
    let key = key.trim();
    if key.split('.').any(str::is_empty) {
        return Err(wrong());
    }
    Ok(Setting { text: text.to_owned(), key: key.to_owned(), value: read(value.trim()) })
}

/// The value that would stand behind an equals sign in the file; anything else is taken for text without its
/// quotes.
fn read(text: &str) -> Value {
    let read = format!("v = {text}").parse::<Table>().ok().filter(|table| table.len() == 1);
    read.and_then(|mut table| table.remove("v")).unwrap_or_else(|| Value::String(text.to_owned()))
}

fn place(document: &mut Table, key: &str, value: Value) -> Result<(), String> {
    let mut table = document;
    let mut parts = key.split('.').peekable();
    while let Some(part) = parts.next() {
        let (name, index) = split_index(part);
        let slot = match (index, part == name) {
            (Some(index), _) => element(table, name, index)?,
            (None, true) => table.entry(name).or_insert_with(|| Value::Table(Table::new())),
            (None, false) => return Err(format!("{part} is no key: expected one like class[0]")),
        };
        if parts.peek().is_none() {
            *slot = value;
            return Ok(());
        }
        table = slot.as_table_mut().ok_or_else(|| format!("{part} is no table"))?;
    }
    Ok(())
}

fn element<'a>(table: &'a mut Table, name: &str, index: usize) -> Result<&'a mut Value, String> {
    let array = table.get_mut(name).and_then(Value::as_array_mut);
    let array = array.ok_or_else(|| format!("there is no [[{name}]]"))?;
    let length = array.len();
    array.get_mut(index).ok_or_else(|| format!("there are {length} [[{name}]], counted from 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Table {
        "duration = '5s'\n[[class]]\nname = 'a'\n[server]\nworkers = 3\n".parse().unwrap()
    }

    fn set(texts: &[&str]) -> Result<Table, String> {
        let mut table = document();
        let settings = Settings::parse(texts).map_err(|error| error.to_string())?;
        settings.apply(&mut table).map_err(|error| error.to_string())?;
        Ok(table)
    }

    #[test]
    fn values_are_placed_by_their_dotted_key() {
        let table =
            set(&["server.workers=5", "class[0].work=exp:9ms", "controller.mode=\"none\"", "duration=9s"]);
        let table = table.unwrap();
        assert_eq!(table["server"]["workers"], Value::Integer(5));
        assert_eq!(table["class"][0]["work"], Value::String("exp:9ms".into()));
        assert_eq!(table["controller"]["mode"], Value::String("none".into()));
        assert_eq!(table["duration"], Value::String("9s".into()));
    }

    #[test]
    fn what_cannot_be_placed_is_told_as_it_was_given() {
        for (text, why) in [
            ("duration", "expected KEY=VALUE"),
            ("=5", "expected KEY=VALUE"),
            ("a..b=5", "expected KEY=VALUE"),
            ("class[1].work=5ms", "there are 1 [[class]]"),
            ("class[x].work=5ms", "class[x] is no key"),
            ("fault[0].from=5s", "there is no [[fault]]"),
            ("duration.x=5", "duration is no table"),
        ] {
            let said = set(&[text]).unwrap_err();
            assert!(said.starts_with(&format!("--set {text}: ")) && said.contains(why), "{said}");
        }
    }

    #[test]
    fn the_last_setting_wins_and_is_named() {
        let settings = Settings::parse(["server.workers=0", "server.workers=1"]).unwrap();
        assert_eq!(settings.setting_for("server.workers"), Some(("server.workers=1", "server.workers")));
        assert_eq!(settings.setting_for("server.workers_x"), None);
        let whole = Settings::parse(["server={}"]).unwrap();
        assert_eq!(whole.setting_for("server.workers"), Some(("server={}", "server")));
    }
}
