//! Fenced blocks of our documents.

use std::path::{Path, PathBuf};

/// A fenced block of a document.
pub(crate) struct Block {
    pub(crate) file: PathBuf,
    pub(crate) line: usize,
    pub(crate) language: String,
    pub(crate) text: String,
}

/// All fenced blocks of README.md and docs/.
pub(crate) fn blocks() -> Vec<Block> {
    let root = root();
    let mut files = vec![root.join("README.md")];
    markdown_files(&root.join("docs"), &mut files);
    files.iter().filter(|file| file.exists()).flat_map(|file| blocks_of(file)).collect()
}

/// The blocks of one document, by its name under the root of the repository.
pub(crate) fn blocks_of_document(name: &str) -> Vec<Block> {
    blocks_of(&root().join(name))
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a workspace").to_owned()
}

fn markdown_files(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a readable directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            markdown_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
}

fn blocks_of(file: &Path) -> Vec<Block> {
    let text = std::fs::read_to_string(file).expect("a readable file");
    let mut blocks: Vec<Block> = Vec::new();
    let mut inside = false;
    for (index, line) in text.lines().enumerate() {
        match line.trim_start().strip_prefix("```") {
            Some(_) if inside => inside = false,
            Some(language) => {
                inside = true;
                let language = language.trim().to_owned();
                blocks.push(Block { file: file.to_owned(), line: index + 2, language, text: String::new() });
            }
            None if inside => {
                let block = blocks.last_mut().expect("inside a block");
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
    }
    blocks
}
