//! Configuration files: one error of one line that names the file and a line that exists, or a configuration,
//! and the same one every time.

use flashweir_config::Config;

const FILE: &str = "fuzz.toml";

pub(crate) fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let (one, other) = (Config::from_toml(text, FILE), Config::from_toml(text, FILE));
    match (one, other) {
        (Ok(one), Ok(other)) => {
            assert_eq!(format!("{one:?}"), format!("{other:?}"));
            assert!(!one.services.is_empty(), "a configuration without a service");
        }
        (Err(error), Err(other)) => {
            let shown = error.to_string();
            assert_eq!(shown, other.to_string());
            check_error(&shown, text);
        }
        (one, other) => panic!("{one:?} and then {other:?}"),
    }
}

fn check_error(shown: &str, text: &str) {
    assert!(!shown.contains(['\n', '\r', '\x1b']), "more than a line: {shown:?}");
    let rest = shown.strip_prefix("fuzz.toml:").unwrap_or_else(|| panic!("no file: {shown}"));
    let digits = rest.split(':').next().unwrap_or_default();
    let line: usize = digits.parse().unwrap_or_else(|_| panic!("no line: {shown}"));
    assert!((1..=text.lines().count().max(1) + 1).contains(&line), "line {line} does not exist: {shown}");
}
