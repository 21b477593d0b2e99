//! Commands in the documents work as written: they parse, and configurations are accepted.

use crate::docs::binary;
use crate::docs::blocks::{Block, blocks, blocks_of_document};
use crate::docs::policy::copy_policies;
use std::path::Path;

/// The commands of a shell block that begin with our name, continued lines joined.
fn commands(block: &Block) -> Vec<Vec<String>> {
    let joined = block.text.replace("\\\n", " ");
    let ours = joined.lines().map(|line| line.trim().trim_start_matches("$ ")).filter(|line| is_ours(line));
    ours.map(words).collect()
}

fn is_ours(line: &str) -> bool {
    line == "flashweir" || line.starts_with("flashweir ")
}

/// Words as a shell splits them, as far as our documents go: quotes, and an end at a comment, pipe or
/// redirection.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in line.chars() {
        match (character, quote) {
            ('\'' | '"', None) => quote = Some(character),
            (end, Some(open)) if end == open => quote = None,
            ('#' | '|' | '>' | '&' | ';', None) => break,
            (blank, None) if blank.is_whitespace() => {
                if words.last().is_some_and(|word| !word.is_empty()) {
                    words.push(String::new());
                }
            }
            (other, _) => words.last_mut().expect("a word").push(other),
        }
    }
    words.retain(|word| !word.is_empty());
    words.remove(0);
    words
}

#[test]
fn every_command_in_the_documents_parses() {
    let mut checked = 0;
    for block in blocks().iter().filter(|block| matches!(block.language.as_str(), "sh" | "console" | "bash"))
    {
        for mut command in commands(block) {
            let shown = command.join(" ");
            // Every shell variable in our documents stands for a number.
            command.iter_mut().filter(|word| is_variable(word)).for_each(|word| *word = "1".to_owned());
            // With `--help-all` last, everything before it is parsed and nothing is done.
            command.push("--help-all".to_owned());
            let finished = binary().run(&command);
            let place = format!("{}:{}: flashweir {shown}", block.file.display(), block.line);
            assert_eq!(finished.code(), Some(0), "{place}: {}", finished.stderr);
            let help = finished.stdout.contains("Usage: flashweir");
            assert!(help, "{place}: {}", finished.stdout);
            let known: Vec<&str> =
                command.iter().filter(|word| word.starts_with("--")).map(|word| name_of(word)).collect();
            let unknown: Vec<&&str> = known.iter().filter(|flag| !finished.stdout.contains(**flag)).collect();
            assert!(unknown.is_empty(), "{place}: no such flags: {unknown:?}");
            checked += 1;
        }
    }
    assert!(checked > 0, "no document has a command to check");
}

fn name_of(flag: &str) -> &str {
    flag.split('=').next().unwrap_or(flag)
}

#[test]
fn every_configuration_in_the_documents_is_accepted() {
    let mut checked = 0;
    let is_gateways = |block: &&Block| {
        block.language == "toml" && !block.file.ends_with(CONTROL) && !block.file.ends_with(EGRESS)
    };
    for block in blocks().iter().filter(is_gateways) {
        let directory = tempfile::tempdir().expect("a fresh directory");
        write_named_files(directory.path(), &block.text);
        std::fs::write(directory.path().join("flashweir.toml"), &block.text).expect("a writable directory");
        let within = std::time::Duration::from_secs(20);
        let finished = binary().run_in(directory.path(), within, ["config", "check", "flashweir.toml"]);
        assert_eq!(finished.code(), Some(0), "{}:{}: {}", block.file.display(), block.line, finished.stderr);
        checked += 1;
    }
    assert!(checked > 0, "no document has a configuration to check");
}

/// The page of `flashweir control`, which has a separate configuration.
const CONTROL: &str = "docs/control.md";

/// The page of `flashweir egress`, the same.
const EGRESS: &str = "docs/egress.md";

#[test]
fn every_configuration_of_egress_in_its_document_is_accepted() {
    let mut checked = 0;
    for block in blocks_of_document(EGRESS).iter().filter(|block| block.language == "toml") {
        let directory = tempfile::tempdir().expect("a fresh directory");
        let keys = "1 correct horse battery staple\n";
        std::fs::write(directory.path().join("api.keys"), keys).expect("a writable directory");
        std::fs::write(directory.path().join("egress.toml"), &block.text).expect("a writable directory");
        let within = std::time::Duration::from_secs(20);
        let command = ["egress", "--config", "egress.toml", "--check"];
        let finished = binary().run_in(directory.path(), within, command);
        assert_eq!(finished.code(), Some(0), "{EGRESS}:{}: {}", block.line, finished.stderr);
        checked += 1;
    }
    assert_eq!(checked, 2, "the shortest and the whole");
}

/// Method: the page's first block is whole; the others are actuators, and take the place of the block's own.
#[test]
fn every_configuration_of_control_in_its_document_is_accepted() {
    let blocks = blocks_of_document(CONTROL);
    let mut configurations = blocks.iter().filter(|block| block.language == "toml");
    let whole = configurations.next().expect("a whole configuration");
    let (head, copies) = whole.text.split_once("[copies]").expect("one that supervises copies");
    let copies = format!("[copies]{copies}");
    let actuators: Vec<&str> =
        configurations.map(|block| block.text.as_str()).chain([copies.as_str()]).collect();
    assert_eq!(actuators.len(), 3, "one block for each kind");
    for actuator in actuators {
        let text = format!("{head}{actuator}");
        flashweir_control::Config::parse(&text).unwrap_or_else(|error| panic!("{error} in\n{text}"));
    }
}

/// Certificates and keys a configuration names by a relative path must be there for it to be accepted.
fn write_named_files(directory: &Path, config: &str) {
    copy_policies(directory);
    for line in config.lines() {
        if let Some(name) = line.trim().strip_prefix("keys_file = ") {
            let file = directory.join(name.trim_matches('"'));
            std::fs::write(file, "1 correct horse battery staple\n").expect("a writable directory");
        }
    }
    let networks = [("verified-bots.txt", "192.0.2.0/24\n"), ("asn.txt", "198.51.100.0/24 64500\n")];
    for (name, text) in networks.into_iter().filter(|(name, _)| config.contains(name)) {
        std::fs::write(directory.join(name), text).expect("a writable directory");
    }
    if !config.contains("certificate") && !config.contains("ca_file") {
        return;
    }
    let authority = flashweir_testkit::Authority::new();
    let files = authority.issue(directory, "example");
    let ca = authority.write(directory);
    for line in config.lines() {
        let Some((key, value)) = line.split_once('=') else { continue };
        let name = value.trim().trim_matches('"');
        let source = match key.trim().rsplit('.').next().unwrap_or_default() {
            "certificate" => &files.certificate,
            "key" => &files.key,
            "ca_file" => &ca,
            _ => continue,
        };
        assert!(!name.starts_with('/'), "an example names a file of one machine: {name}");
        std::fs::copy(source, directory.join(name)).expect("a writable directory");
    }
}

/// Returns whether a word is one variable of the shell, and not a pattern of a log in quotes.
fn is_variable(word: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_{}".contains(&byte);
    word.strip_prefix('$').is_some_and(|name| name.bytes().all(is_of_name))
}
