//! Patterns in which `*` stands for any number of any characters, and everything else for itself.

use core::fmt;

use memchr::memmem::Finder;

/// A pattern. Matching takes time linear in what is matched, for any pattern.
#[derive(Clone)]
pub struct Glob {
    text: Box<str>,
    /// Texts around and between the stars; `None` where there is no star.
    stars: Option<Stars>,
}

#[derive(Clone)]
struct Stars {
    /// Bytes before the first star.
    first: usize,
    /// Bytes up to behind the last star.
    last: usize,
    /// Texts between two stars, prepared to be found.
    middle: Box<[Finder<'static>]>,
}

impl Glob {
    pub(in crate::sections) fn new(text: &str) -> Self {
        let stars = text.find('*').zip(text.rfind('*')).map(|(first, last)| {
            let pieces = text.get(first + 1..last).into_iter().flat_map(|between| between.split('*'));
            let middle = pieces.map(|piece| Finder::new(piece).into_owned()).collect();
            Stars { first, last: last + 1, middle }
        });
        Self { text: text.into(), stars }
    }

    /// As it was written; of a path that ends in `/`, with the `*` that this means.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether all of `bytes` fits.
    #[must_use]
    pub fn matches(&self, bytes: &[u8]) -> bool {
        let text = self.text.as_bytes();
        let Some(Stars { first, last, middle }) = &self.stars else { return bytes == text };
        let Some(rest) =
            bytes.strip_prefix(&text[..*first]).and_then(|rest| rest.strip_suffix(&text[*last..]))
        else {
            return false;
        };
        // To take the first place where a piece fits never spoils the chance of a later piece.
        let taken = middle.iter().try_fold(rest, |rest, piece| {
            piece.find(rest).map(|at| rest.get(at + piece.needle().len()..).unwrap_or_default())
        });
        taken.is_some()
    }

    /// Returns whether every text that fits `other` fits this, too. A star of `other` can only have been
    /// taken by one of ours, which takes the same text as well.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.matches(other.text.as_bytes())
    }
}

impl PartialEq for Glob {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Glob {}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[test]
    fn a_star_stands_for_any_characters_and_all_else_for_itself() {
        for (pattern, text, fits) in [
            ("/", "/", true),
            ("/", "/a", false),
            ("/a*", "/a", true),
            ("/a/*", "/a", false),
            ("/api/*/export", "/api/v1/x/export", true),
            ("/api/*/export", "/api/export", false),
            ("*.php", "/a/b.php", true),
            ("a*a", "a", false),
            ("*ab*ab*", "abab", true),
            ("*ab*ab*", "aabb", false),
            ("*", "", true),
            ("a**b", "ab", true),
            ("a.c", "abc", false),
        ] {
            assert_eq!(Glob::new(pattern).matches(text.as_bytes()), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn a_wider_pattern_covers_a_narrower_one() {
        for (wide, narrow, covers) in [
            ("/a/*", "/a/b/*", true),
            ("/a/*", "/a/b", true),
            ("/a/b/*", "/a/*", false),
            ("*.php", "/x/*.php", true),
            ("/a", "/a", true),
            ("a*b", "a*", false),
        ] {
            assert_eq!(Glob::new(wide).covers(&Glob::new(narrow)), covers, "{wide} {narrow}");
        }
    }

    proptest::proptest! {
        /// Against the definition, tried out letter by letter.
        #[test]
        fn it_agrees_with_the_definition(pattern in "[ab*]{0,7}", text in "[ab]{0,9}") {
            fn fits(pattern: &[u8], text: &[u8]) -> bool {
                match (pattern.split_first(), text.split_first()) {
                    (None, rest) => rest.is_none(),
                    (Some((b'*', more)), None) => fits(more, text),
                    (Some((b'*', more)), Some((_, rest))) => fits(more, text) || fits(pattern, rest),
                    (Some((one, more)), Some((other, rest))) => one == other && fits(more, rest),
                    (Some(_), None) => false,
                }
            }
            proptest::prop_assert_eq!(
                Glob::new(&pattern).matches(text.as_bytes()),
                fits(pattern.as_bytes(), text.as_bytes())
            );
        }
    }
}
