//! A file of classes: tables whose keys are the long names of options, read by the very parser of the
//! options.

mod table;

use super::class::Class;
use super::csv;
use super::inputs::{self, Inputs};
use crate::LoadTarget;
use anyhow::{Context, bail, ensure};
use flashweir_config::location::line_at;
use flashweir_core::limits::{LOAD_CLASSES, LOAD_CLASSES_FILE_BYTES};
use std::path::Path;
use std::time::Duration;
use table::Table;
use toml::de::DeTable;

/// Characters of a class's name at most: it heads a row of a table.
const NAME_CHARACTERS: usize = 40;

/// A class of the file.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) class: Class,
    /// Its share of the people that the command line's options make come; absent if its own options do.
    pub(crate) weight: Option<f64>,
}

/// Reads all classes of a file, in order; at least one. `usual_duration` is that of classes which say when
/// their people come and not how long.
///
/// # Errors
/// A file that cannot be read; the first thing in it that is wrong, with the line, the class and the key.
pub(crate) fn read(
    path: &Path,
    target: &LoadTarget,
    seed: u64,
    usual_duration: Option<Duration>,
    inputs: &mut Inputs,
) -> anyhow::Result<Vec<Described>> {
    let file = inputs::name(path);
    let bytes = inputs.read(path, LOAD_CLASSES_FILE_BYTES).context("--classes")?;
    let text = String::from_utf8(bytes).with_context(|| format!("{file}: it is not UTF-8 text"))?;
    let mut described: Vec<Described> = Vec::new();
    for table in tables(&text, &file)? {
        let name = &table.name;
        let at = format!("{file}:{}: class \"{name}\"", table.line);
        ensure!(is_name(name), "{at}: a name has 1 to {NAME_CHARACTERS} of a-z, 0-9, _ and -");
        ensure!(name != csv::TOTAL, "{at}: the name \"{name}\" stands for all classes together");
        ensure!(described.len() < LOAD_CLASSES, "{at}: a run has at most {LOAD_CLASSES} classes");
        let is_taken = described.iter().any(|other| other.class.plan.name == *name);
        ensure!(!is_taken, "{at}: there is a class of this name already");
        let options = table.options(&file)?;
        let has_duration = options.duration().is_some();
        let options = options.with_usual_duration(usual_duration);
        let class = options.class(name, target, seed, inputs).context(at.clone())?;
        match (table.weight, &class.arrivals) {
            (Some(_), Some(_)) => {
                bail!("{at}: its own options say when its people come, so it can have no weight")
            }
            (Some(_), None) if has_duration => {
                bail!("{at}: duration: its people come with the command line's, so that is where it belongs")
            }
            (None, None) => {
                bail!(
                    "{at}: give it a weight (a share of the command line's people) or say when its own come"
                )
            }
            _ => described.push(Described { class, weight: table.weight }),
        }
    }
    Ok(described)
}

fn tables(text: &str, file: &str) -> anyhow::Result<Vec<Table>> {
    let document = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_at(text, span.start));
        anyhow::anyhow!("{file}:{line}: {}", error.message())
    })?;
    let mut tables = Vec::new();
    for (key, value) in document.into_inner() {
        let line = line_at(text, key.span().start);
        let key = key.into_inner();
        ensure!(
            key == "class",
            "{file}:{line}: unknown key \"{key}\": expected [[class]] tables and nothing else"
        );
        let Some(classes) = value.get_ref().as_array() else {
            bail!("{file}:{line}: expected [[class]] with two brackets: there may be several");
        };
        for class in classes.iter() {
            tables.push(Table::new(text, class, file)?);
        }
    }
    ensure!(!tables.is_empty(), "{file}: it describes no [[class]]");
    Ok(tables)
}

fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    (1..=NAME_CHARACTERS).contains(&name.len()) && name.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn described(text: &str) -> Result<Vec<Described>, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let target = LoadTarget::parse("http://127.0.0.1:8080/").unwrap();
        let usual = Some(Duration::from_secs(7));
        let read = read(file.path(), &target, 1, usual, &mut Inputs::default());
        read.map_err(|error| format!("{error:#}").replace(&file.path().display().to_string(), "FILE"))
    }

    #[test]
    fn keys_are_the_names_of_options() {
        let classes = described(
            r#"
            # buyers and readers
            [[class]]
            name = "buyers"
            weight = 1
            path = "/buy"
            method = "POST"
            header = ["X-One: 1", "X-Two: 2"]
            session = "geometric:5"
            think = "exp:8s"
            patience = "4s"

            [[class]]
            name = "readers"
            rate = 12.5
            duration = "20s"
            timeout = "500ms"
            crowd = false
            retry = "at-once"
            retry-share = 0.5
            tries = 1_0
            "#,
        )
        .unwrap();
        let [buyers, readers] = &classes[..] else { panic!("two classes") };
        assert_eq!((buyers.weight, readers.weight), (Some(1.0), None));
        assert_eq!(
            (buyers.class.plan.name.as_str(), readers.class.plan.name.as_str()),
            ("buyers", "readers")
        );
        let habits = &buyers.class.plan.habits;
        assert_eq!(habits.session.requests.to_string(), "geometric:5");
        assert_eq!(habits.patience.unwrap().to_string(), "4s");
        assert!(buyers.class.arrivals.is_none());
        let arrivals = readers.class.arrivals.as_ref().unwrap();
        assert_eq!((arrivals.length(), arrivals.expected()), (Duration::from_secs(20), 250.0));
        let retry = readers.class.plan.habits.retry.unwrap();
        assert_eq!((retry.share, retry.tries_most), (0.5, 10));
        assert_eq!(readers.class.plan.timeout, Duration::from_millis(500));
    }

    #[test]
    fn classes_last_as_long_as_the_run_unless_they_say() {
        let classes = described("[[class]]\nname = 'a'\nrate = 5\n").unwrap();
        assert_eq!(classes[0].class.arrivals.as_ref().unwrap().length(), Duration::from_secs(7));
    }

    #[test]
    fn a_file_cut_off_anywhere_is_no_trouble() {
        let whole =
            "[[class]]\nname = \"a\"\nrate = 0x1F\nheader = [\"A: b\", 5]\ncrowd = false\n# ü\nthink = 1e3\n";
        for end in (0..whole.len()).filter(|end| whole.is_char_boundary(*end)) {
            // Most are wrong, a few are not; none may panic.
            let _ = described(&whole[..end]);
        }
    }

    #[test]
    fn a_wrong_file_is_told_with_line_class_and_key() {
        let check = |text: &str, wanted: &str| {
            let message = described(text).unwrap_err();
            assert!(message.contains(wanted), "{message:?} lacks {wanted:?}");
            assert!(!message.contains('\n'), "{message:?} has several lines");
        };
        check("", "FILE: it describes no [[class]]");
        check("[[class]]\nname = ", "FILE:2: ");
        check("rate = 5\n", "FILE:1: unknown key \"rate\"");
        check("[class]\nname = 'a'\n", "FILE:1: expected [[class]]");
        check("class = [5]\n", "FILE:1: a class is a table");
        check("\n[[class]]\nrate = 5\n", "FILE:2: a class has no name");
        check("[[class]]\nname = 5\n", "FILE:2: name: expected text");
        check("[[class]]\nname = 'A b'\nrate = 5\n", "FILE:1: class \"A b\": a name has 1 to 40 of a-z");
        check("[[class]]\nname = 'a'\nname = 'b'\n", "FILE:3: duplicate key");
        let twice = "[[class]]\nname = 'a'\nrate = 5\n".repeat(2);
        check(&twice, "FILE:4: class \"a\": there is a class of this name already");
        check(
            "[[class]]\nname = 'a'\nweight = 0\n",
            "FILE:3: class \"a\": weight: expected a number above zero",
        );
        check(
            "[[class]]\nname = 'a'\nweight = 1\nrate = 5\n",
            "FILE:1: class \"a\": its own options say when",
        );
        check("[[class]]\nname = 'a'\nweight = 1\nduration = '5s'\n", "FILE:1: class \"a\": duration: ");
        check("[[class]]\nname = 'a'\n", "FILE:1: class \"a\": give it a weight");
        check("[[class]]\nname = 'a'\nrat = 5\n", "FILE:3: class \"a\": unknown key \"rat\"");
        check("[[class]]\nname = 'a'\nsources = 5\n", "FILE:3: class \"a\": unknown key \"sources\"");
        check("[[class]]\nname = 'a'\nhelp = true\n", "FILE:3: class \"a\": unknown key \"help\"");
        check("[[class]]\nname = 'a'\n\nrate = 0\n", "FILE:1: class \"a\": --rate 0");
        check("[[class]]\nname = 'a'\n\nrate = 1e9\n", "FILE:4: class \"a\": rate: ");
        check("[[class]]\nname = 'a'\n\nrate = [1, 2]\n", "FILE:4: class \"a\": rate: ");
        check(
            "[[class]]\nname = 'a'\nrate = {a = 1}\n",
            "FILE:3: class \"a\": rate: expected text, a number",
        );
        check("[[class]]\nname = 'a'\nrate = 1\ncrowd = 1\n", "FILE:4: class \"a\": crowd: ");
        check("[[class]]\nname = 'a'\nrate = 1\npeak = 5\n", "class \"a\"");
        check("[[class]]\nname = 'a'\nweight = 1\nsqueeze = 5\n", "class \"a\"");
        check("[[class]]\nname = 'a'\nrate = 1\nsession = 'none'\n", "FILE:4: class \"a\": session: ");
        check(
            "[[class]]\nname = 'a'\nrate = 1\nbody = 'not-there'\n",
            "class \"a\": --body: not-there cannot be",
        );
        let many: String =
            (0..=LOAD_CLASSES).map(|n| format!("[[class]]\nname = 'c{n}'\nrate = 1\n")).collect();
        check(&many, "at most 64 classes");
    }
}
