//! The worked policies: the page shows the files as they are, and what it says of requests is what the
//! program says.

use std::path::Path;
use std::time::Duration;

use crate::docs::binary;
use crate::docs::blocks::{blocks_of_document, root};
use crate::docs::commands::words;

/// Copies the worked policies, and what they need, to where a command is to find them.
pub(crate) fn copy_policies(directory: &Path) {
    for entry in std::fs::read_dir(root().join("docs/policies")).expect("a readable directory") {
        let path = entry.expect("an entry").path();
        std::fs::copy(&path, directory.join(path.file_name().expect("a file")))
            .expect("a writable directory");
    }
}

#[test]
fn the_page_shows_the_files_as_they_are() {
    let shown: Vec<String> = blocks_of_document("docs/policy.md")
        .into_iter()
        .filter(|block| block.language == "toml")
        .map(|block| block.text)
        .collect();
    let mut files = 0;
    for entry in std::fs::read_dir(root().join("docs/policies")).expect("a readable directory") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = std::fs::read_to_string(&path).expect("a readable file");
            assert!(shown.contains(&text), "docs/policy.md does not show {} as it is", path.display());
            files += 1;
        }
    }
    assert_eq!((files, shown.len()), (4, 4));
}

#[test]
fn what_the_page_says_of_a_request_is_what_the_program_says() {
    let directory = tempfile::tempdir().expect("a fresh directory");
    copy_policies(directory.path());
    let mut asked = 0;
    for block in blocks_of_document("docs/policy.md").iter().filter(|block| block.language == "console") {
        for example in block.text.split("$ flashweir ").skip(1) {
            let (command, expected) = example.split_once('\n').expect("a command and its answer");
            let finished = binary().run_in(
                directory.path(),
                Duration::from_secs(20),
                words(&format!("flashweir {command}")),
            );
            assert_eq!(finished.stdout, expected, "{command}: {}", finished.stderr);
            asked += 1;
        }
    }
    assert_eq!(asked, 10);
}
