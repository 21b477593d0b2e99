//! Plain technical English: three counts over all sources, each with a bound that only falls.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Uses of [`AVOIDED`] in all sources.
const AVOIDED_BOUND: usize = 83;
/// Documentation comments whose first line begins with one of [`INTERROGATIVES`].
const INTERROGATIVE_BOUND: usize = 93;
/// Comment lines of more than [`COMMENT_COLUMNS`] columns.
const LONG_COMMENT_BOUND: usize = 317;

/// Words that have a plainer equivalent: a term of the field, or the name of the client, request or program meant.
const AVOIDED: [&str; 18] = [
    "told",
    "tells",
    "nobody",
    "somebody",
    "anybody",
    "whoever",
    "whatever",
    "whichever",
    "so many",
    "so long",
    "anew",
    "apart",
    "of its own",
    "in vain",
    "as ever",
    "no worth",
    "how-manieth",
    "deeds",
];
/// First words of clauses; documentation begins with a noun or a verb instead.
const INTERROGATIVES: [&str; 13] = [
    "What", "Who", "Whom", "Whose", "How", "Which", "Whether", "When", "Where", "Why", "Those", "So many",
    "As long",
];
const COMMENT_COLUMNS: usize = 110;
const THIS_FILE: &str = "crates/cli/tests/commands/words.rs";
/// Files named in the message of a failed check.
const FILES_NAMED: usize = 10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    avoided: usize,
    interrogative: usize,
    long_comment: usize,
}

impl Counts {
    fn of(text: &str) -> Self {
        let mut counts = Self::default();
        let mut previous = None;
        for line in text.lines() {
            let lower = line.to_lowercase();
            counts.avoided += AVOIDED.iter().map(|word| uses(&lower, word)).sum::<usize>();
            let code = line.trim_start();
            let marker = doc_marker(code);
            // Only the first line of a block begins its sentence.
            if let Some(marker) = marker.filter(|_| marker != previous) {
                counts.interrogative += usize::from(is_interrogative(code[marker.len()..].trim_start()));
            }
            previous = marker;
            let is_long = code.starts_with("//") && line.chars().count() > COMMENT_COLUMNS;
            counts.long_comment += usize::from(is_long);
        }
        counts
    }
}

/// Occurrences of `word` in `line` that are not part of a longer word or identifier.
fn uses(line: &str, word: &str) -> usize {
    let is_whole = |(start, found): &(usize, &str)| {
        !line[..*start].ends_with(is_of_word) && !line[start + found.len()..].starts_with(is_of_word)
    };
    line.match_indices(word).filter(is_whole).count()
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn doc_marker(code: &str) -> Option<&'static str> {
    ["//!", "///"].into_iter().find(|marker| code.starts_with(marker) && !code.starts_with("////"))
}

fn is_interrogative(sentence: &str) -> bool {
    INTERROGATIVES
        .iter()
        .filter_map(|first| sentence.strip_prefix(first))
        .any(|rest| !rest.starts_with(is_of_word))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Counts of each source file below `crates` and `lab`, by its path from the root. This file is left out: it lists the words.
fn counts_by_file() -> Vec<(String, Counts)> {
    let root = root();
    let mut files = Vec::new();
    for directory in ["crates", "lab"] {
        rust_files(&root.join(directory), &mut files);
    }
    assert!(files.len() > 100, "only {} sources below {}", files.len(), root.display());
    files.sort();
    let named = files.into_iter().map(|path| {
        let name = path.strip_prefix(&root).expect("a path below the root").display().to_string();
        (name, path)
    });
    let others = named.filter(|(name, _)| name != THIS_FILE);
    others
        .map(|(name, path)| (name, Counts::of(&std::fs::read_to_string(path).expect("a readable source"))))
        .collect()
}

fn rust_files(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a readable directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                rust_files(&path, files);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Problem of a count with its bound: too many, or so few that the bound is out of date.
fn problem(what: &str, bound: usize, by_file: &[(String, usize)]) -> Option<String> {
    let count: usize = by_file.iter().map(|(_, count)| count).sum();
    if count > bound {
        let mut files: Vec<_> = by_file.iter().filter(|(_, count)| *count > 0).collect();
        files.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let mut message = format!("{what}: {count}, the bound is {bound}. Most are in:");
        for (file, count) in files.into_iter().take(FILES_NAMED) {
            let _ = write!(message, "\n{count:6}  {file}");
        }
        return Some(message);
    }
    let slack = bound / 20 + 5;
    (count + slack < bound).then(|| format!("{what}: {count}; lower the bound {bound} in this file to it"))
}

#[test]
fn words_to_avoid_only_become_fewer() {
    let counts = counts_by_file();
    let check = |what: &str, bound: usize, part: fn(&Counts) -> usize| {
        let by_file: Vec<_> = counts.iter().map(|(file, counts)| (file.clone(), part(counts))).collect();
        problem(what, bound, &by_file)
    };
    let problems: Vec<String> = [
        check("words to avoid", AVOIDED_BOUND, |counts| counts.avoided),
        check("documentation that begins with an interrogative", INTERROGATIVE_BOUND, |counts| {
            counts.interrogative
        }),
        check("long comment lines", LONG_COMMENT_BOUND, |counts| counts.long_comment),
    ]
    .into_iter()
    .flatten()
    .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn counts_of_a_sample() {
    let long = format!("    // {}\n", "x".repeat(COMMENT_COLUMNS));
    let sample = "//! Whether a block counts once.\n//! When it goes on, it does not.\n\
        use a::Told;\n\
        /// A noun first.\nlet told = told_s + retold; // It tells apart; part of its own.\n\
        /// Howls at nothing.\n/// How-to.\n\
        #[cfg(test)]\n/// How many?\n//// Who?\n// Why\n/// So many of them.\n";
    let counts = Counts::of(&(sample.to_owned() + &long));
    assert_eq!(counts, Counts { avoided: 6, interrogative: 3, long_comment: 1 });
}

#[test]
fn a_bound_holds_from_above_and_follows_from_below() {
    let by_file = |count| [("a.rs".to_owned(), count), ("b.rs".to_owned(), 0)];
    assert!(problem("words", 100, &by_file(101)).expect("too many").contains("101  a.rs"));
    assert_eq!(problem("words", 100, &by_file(100)), None);
    assert_eq!(problem("words", 100, &by_file(90)), None);
    assert!(problem("words", 100, &by_file(89)).expect("out of date").contains("lower the bound"));
}
