//! Paths that people ask for: a template filled in for each request, or a table of paths.

use crate::LoadError;
use flashweir_workload::documents::Sizes;
use std::fmt::Write as _;
use std::sync::Arc;

/// Turns a document's number into the path to ask for.
#[derive(Clone, Debug)]
pub enum Paths {
    /// One path with places to fill in.
    Template(Template),
    /// A path for each document; numbers beyond wrap around.
    Table(Arc<[Box<str>]>),
}

/// A path in which `{document}` stands for the document's number and `{bytes}` for its size.
#[derive(Clone, Debug)]
pub struct Template {
    pieces: Vec<Piece>,
    sizes: Option<Sizes>,
    /// Sizes are drawn from this seed and the document's number.
    seed: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(Box<str>),
    Document,
    Bytes,
}

impl Paths {
    /// The path of a document, written over `path` where it has to be made.
    pub(crate) fn path<'a>(&'a self, document: u32, path: &'a mut String) -> &'a str {
        match self {
            Self::Template(template) => match template.pieces.as_slice() {
                [Piece::Text(text)] => text,
                _ => {
                    template.fill(document, path);
                    path
                }
            },
            Self::Table(paths) => &paths[document as usize % paths.len()],
        }
    }
}

impl Template {
    /// Reads a template such as `/bytes/{bytes}?page={document}`.
    ///
    /// # Errors
    /// A path that does not begin with `/` or cannot stand in a request line, an unknown place, a brace
    /// without its fellow, or `{bytes}` without sizes and the other way round.
    pub fn new(text: &str, sizes: Option<Sizes>, seed: u64) -> Result<Self, LoadError> {
        let wrong = |why: &str| LoadError::Plan(format!("path \"{text}\": {why}"));
        if !text.starts_with('/') {
            return Err(wrong("it must begin with /"));
        }
        if text.bytes().any(|byte| !byte.is_ascii_graphic()) {
            return Err(wrong("spaces and letters beyond ASCII must be percent-encoded"));
        }
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, from_brace)) = rest.split_once('{') {
            let (name, after) = from_brace.split_once('}').ok_or_else(|| wrong("a { without }"))?;
            if !before.is_empty() {
                pieces.push(Piece::Text(before.into()));
            }
            pieces.push(match name {
                "document" => Piece::Document,
                "bytes" => Piece::Bytes,
                _ => {
                    return Err(wrong(&format!(
                        "unknown place {{{name}}}: expected {{document}} or {{bytes}}"
                    )));
                }
            });
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.into()));
        }
        match (pieces.contains(&Piece::Bytes), sizes.is_some()) {
            (true, false) => Err(wrong("{bytes} needs sizes")),
            (false, true) => Err(wrong("sizes are given, but no {bytes} says where they go")),
            _ => Ok(Self { pieces, sizes, seed }),
        }
    }

    fn fill(&self, document: u32, path: &mut String) {
        path.clear();
        for piece in &self.pieces {
            // Writing to a String cannot fail.
            let _ = match piece {
                Piece::Text(text) => path.write_str(text),
                Piece::Document => write!(path, "{document}"),
                Piece::Bytes => {
                    let bytes = self.sizes.as_ref().map_or(0, |sizes| sizes.bytes(self.seed, document));
                    write!(path, "{bytes}")
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_in() {
        let sizes = Some(Sizes::Constant(700));
        let paths = Paths::Template(Template::new("/bytes/{bytes}?page={document}&x=1", sizes, 1).unwrap());
        let mut room = String::from("left over");
        assert_eq!(paths.path(42, &mut room), "/bytes/700?page=42&x=1");
        assert_eq!(paths.path(7, &mut room), "/bytes/700?page=7&x=1");
        let plain = Paths::Template(Template::new("/", None, 1).unwrap());
        assert_eq!(plain.path(42, &mut room), "/");
    }

    #[test]
    fn a_table_wraps_around() {
        let paths = Paths::Table([Box::from("/a"), Box::from("/b")].into());
        let mut room = String::new();
        assert_eq!([0, 1, 2].map(|n| paths.path(n, &mut room).to_owned()), ["/a", "/b", "/a"]);
    }

    #[test]
    fn templates_that_make_no_path_are_refused_by_name() {
        let check = |text: &str, sizes: Option<Sizes>, wanted: &str| {
            let message = Template::new(text, sizes, 1).unwrap_err().to_string();
            assert!(message.contains(wanted) && message.contains(text), "{message:?} lacks {wanted:?}");
        };
        check("index.html", None, "begin with /");
        check("/a b", None, "percent-encoded");
        check("/{page}", None, "{page}");
        check("/{document", None, "without }");
        check("/{bytes}", None, "needs sizes");
        check("/{document}", Some(Sizes::Constant(1)), "no {bytes}");
    }
}
