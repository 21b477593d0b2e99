//! The manual's claims, held against the checks: every "Valid: `a` to `b`" and every example, for every key.

use crate::Config;
use crate::location::split_index;
use serde_json::Value as Json;
use toml::{Table, Value};

struct Key {
    section: String,
    name: String,
    description: String,
}

/// Every key of the schema, with its section's path.
fn keys() -> Vec<Key> {
    let schema: Json = serde_json::from_str(&crate::schema::json_text()).unwrap();
    let mut keys = Vec::new();
    collect(&schema, &schema, "", &mut keys);
    assert!(keys.len() > 35, "{} keys found", keys.len());
    keys
}

fn collect(root: &Json, table: &Json, path: &str, keys: &mut Vec<Key>) {
    for (name, property) in table["properties"].as_object().into_iter().flatten() {
        let alternatives = property["anyOf"].as_array().into_iter().flatten();
        let itself = [property, &property["items"]];
        let reference = itself.into_iter().chain(alternatives).find_map(|value| value["$ref"].as_str());
        let target = reference.and_then(|reference| root.pointer(&reference[1..]));
        let name = if property["type"] == "array" { format!("{name}[0]") } else { name.clone() };
        match target.filter(|target| target.get("properties").is_some()) {
            // The sections of a service and of a candidate are those of the top level.
            Some(_) if path == "service[0]" || path == "candidate" => {}
            Some(inner) if path.is_empty() => collect(root, inner, &name, keys),
            Some(inner) => collect(root, inner, &format!("{path}.{name}"), keys),
            None => keys.push(Key {
                section: path.to_owned(),
                name: name.trim_end_matches("[0]").to_owned(),
                description: property["description"].as_str().unwrap_or_default().to_owned(),
            }),
        }
    }
}

/// Settings that must be written beside a key of this section: the section, and a key with its value.
const BASE: [(&str, &str, &str); 24] = [
    ("upstream", "urls", "['https://a']"),
    ("upstream.health", "path", "'/'"),
    // The longest allowed, so that any allowed timeout fits.
    ("upstream.health", "interval", "'5m'"),
    ("upstream.health", "timeout", "'10ms'"),
    ("listen.tls", "certificate", "'c.pem'"),
    ("listen.tls", "key", "'k.pem'"),
    ("class[0]", "name", "'a'"),
    ("class[0].match", "path", "'/'"),
    ("class[0].match.api_keys", "header", "'x-key'"),
    ("class[0].match.api_keys", "keys", "'k'"),
    // The last step has no rate.
    ("sentry.ladder[0]", "below", "1"),
    ("sentry.ladder[0]", "response_target", "'10ms'"),
    ("sentry.ladder[1]", "response_target", "'1m'"),
    ("link", "interface", "'eth0'"),
    ("link", "rate", "'10mbit'"),
    ("kernel.tier[0]", "rank", "1"),
    ("kernel.tier[0]", "ports", "[1]"),
    ("service[0]", "name", "'b'"),
    ("service[0]", "hosts", "['a']"),
    ("service[0].upstream", "urls", "['https://b']"),
    ("cluster", "keys_file", "'k'"),
    ("feedback", "keys_file", "'k'"),
    ("cluster", "leader", "'a:1'"),
    ("cluster", "nats", "'nats://a'"),
];

/// A file in which everything but the key in question is right.
fn with(key: &Key, line: &str) -> Result<Config, String> {
    let mut file = Table::new();
    for (section, name, value) in BASE {
        let is_key = (section, name) == (key.section.as_str(), key.name.as_str());
        // Of these only one may be written.
        let is_other_of_two = [("query", "header"), ("file", "keys")].contains(&(key.name.as_str(), name));
        let is_excluded = (is_other_of_two && section == key.section)
            || (section.starts_with("sentry.ladder") && !key.section.starts_with("sentry.ladder"));
        // A cluster has one engine, a subject only with NATS, and a Lease only in Kubernetes.
        let needs = |names: &[&str]| key.section == "cluster" && names.contains(&key.name.as_str());
        let is_other_engine = section == "cluster"
            && match name {
                "leader" => needs(&["listen", "nats", "subject", "kubernetes", "lease"]),
                "nats" => !needs(&["subject"]),
                _ => false,
            };
        if !is_key && !is_excluded && !is_other_engine {
            put(&mut file, section, &format!("{name} = {value}"));
        }
    }
    for (section, line) in needed_beside(key) {
        put(&mut file, section, line);
    }
    put(&mut file, &key.section, line);
    Config::from_toml(&file.to_string(), "manual.toml").map_err(|error| error.to_string())
}

/// Settings that a key needs beside it: roles of `[replication]` have different keys, and a rule for nodes in
/// front needs such nodes.
fn needed_beside(key: &Key) -> &'static [(&'static str, &'static str)] {
    match (key.section.as_str(), key.name.as_str()) {
        ("replication", "role") => &[("replication", "targets = ['http://a']")],
        ("replication", "targets") => &[("replication", "role = 'redirector'")],
        ("replication", "report_to") => &[
            ("replication", "role = 'replica'"),
            ("replication", "url = 'http://a'"),
            ("cache", "mode = 'always'"),
        ],
        ("cluster", "kubernetes") => &[("cluster", "listen = '10.0.0.4:9920'")],
        ("cluster", "lease") => {
            &[("cluster", "kubernetes = 'gateways'"), ("cluster", "listen = '10.0.0.4:9920'")]
        }
        ("class[0].match", "sender") => &[("feedback", "senders = ['10.0.0.0/8']")],
        _ => &[],
    }
}

/// Adds a line to a section; `name[1]` is the second table of a list.
fn put(file: &mut Table, section: &str, line: &str) {
    let mut table = file;
    for part in section.split('.') {
        let (name, index) = split_index(part);
        let empty = || Value::Table(Table::new());
        let entry =
            table.entry(name).or_insert_with(|| index.map_or_else(empty, |_| Value::Array(Vec::new())));
        let inner = match (entry, index) {
            (Value::Array(list), Some(index)) => {
                list.resize_with(list.len().max(index + 1), empty);
                &mut list[index]
            }
            (entry, _) => entry,
        };
        table = inner.as_table_mut().unwrap();
    }
    table.extend(line.parse::<Table>().unwrap());
}

#[test]
fn every_key_has_an_example_and_every_example_is_accepted() {
    for key in keys() {
        let place = format!("{}.{}", key.section, key.name);
        let (_, rest) =
            key.description.split_once("Example: `").unwrap_or_else(|| panic!("{place} has no example"));
        let (example, _) =
            rest.split_once('`').unwrap_or_else(|| panic!("{place}: the example does not end"));
        assert!(example.starts_with(&format!("{} = ", key.name)), "{place}: {example}");
        with(&key, example).unwrap_or_else(|error| panic!("{place}: {error}"));
    }
}

#[test]
fn both_ends_of_every_range_are_accepted_and_what_lies_beyond_is_not() {
    let mut ranges = 0;
    for key in keys() {
        let Some((_, rest)) = key.description.split_once("Valid: `") else { continue };
        let Some((low, rest)) = rest.split_once("` to `") else { continue };
        let Some((high, _)) = rest.split_once('`') else { continue };
        // One range ends in another key; it has its own test.
        if high.contains('.') && high.parse::<f64>().is_err() {
            continue;
        }
        ranges += 1;
        let place = format!("{}.{}", key.section, key.name);
        let line = |value: &str| match value.parse::<f64>() {
            Ok(_) => format!("{} = {value}", key.name),
            Err(_) => format!("{} = '{value}'", key.name),
        };
        for value in [low, high] {
            with(&key, &line(value)).unwrap_or_else(|error| panic!("{place} = {value}: {error}"));
        }
        for value in beyond(low, -1.0).into_iter().chain(beyond(high, 1.0)) {
            let error = with(&key, &line(&value)).expect_err(&format!("{place} = {value} was accepted"));
            assert!(error.contains("manual.toml:") && error.contains(&place), "{error}");
        }
    }
    assert!(ranges >= 28, "only {ranges} ranges found");
}

/// The next value beyond the end of a range, or nothing when no such value can be written.
fn beyond(end: &str, step: f64) -> Option<String> {
    let digits = end.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(end.len());
    let (number, unit) = end.split_at(digits);
    let step = if number.contains('.') { step / 100.0 } else { step };
    let value = number.parse::<f64>().unwrap() + step;
    (value >= 0.0 || unit.is_empty()).then(|| format!("{}{unit}", (value * 100.0).round() / 100.0))
}
