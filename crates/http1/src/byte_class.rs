//! Classes of bytes as bits of one table: one load for each byte and class, or for all classes at once.

/// A set of bytes: one bit of [`TABLE`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteClass(u8);

/// `tchar` of RFC 9110 §5.6.2: the bytes of methods and field names.
pub(crate) const TOKEN: ByteClass = ByteClass(1);
/// Bytes of a field name that no server could take for another name: letters, digits and the hyphen.
pub(crate) const ORDINARY_NAME: ByteClass = ByteClass(1 << 1);
/// Bytes of a path: those that RFC 3986 §3.3 allows and those that clients send unencoded all the same, which
/// are printable ASCII without `#`, `<`, `>`, `?` and the backtick, and all beyond ASCII.
pub(crate) const PATH: ByteClass = ByteClass(1 << 2);
/// Bytes of a query: with the backtick and `?`, without the quotation mark, as browsers encode there.
pub(crate) const QUERY: ByteClass = ByteClass(1 << 3);
/// `unreserved` and `sub-delims` of RFC 3986 §2 without the comma: the bytes of host names.
pub(crate) const HOST_NAME: ByteClass = ByteClass(1 << 4);
/// Bytes of a URI's scheme (RFC 3986 §3.1), and the tilde.
pub(crate) const SCHEME: ByteClass = ByteClass(1 << 5);
/// `unreserved`, `gen-delims` and `sub-delims` of RFC 3986 §2: the bytes of an authority and its delimiters.
pub(crate) const URI: ByteClass = ByteClass(1 << 6);
/// SP, HTAB, printable ASCII and all beyond: the bytes of field values and reason phrases (RFC 9110 §5.5).
pub(crate) const TEXT: ByteClass = ByteClass(1 << 7);

static TABLE: [u8; 256] = table();

const fn table() -> [u8; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let byte = index as u8;
        let is_visible = byte > b' ' && byte != 0x7f;
        if byte.is_ascii_alphanumeric() {
            table[index] |= TOKEN.0 | ORDINARY_NAME.0 | HOST_NAME.0 | SCHEME.0 | URI.0;
        }
        if is_visible || byte == b' ' || byte == b'\t' {
            table[index] |= TEXT.0;
        }
        if is_visible {
            table[index] |= PATH.0 | QUERY.0;
        }
        index += 1;
    }
    table = with(table, TOKEN, b"!#$%&'*+-.^_`|~");
    table = with(table, ORDINARY_NAME, b"-");
    table = with(table, HOST_NAME, b"-._~!$&'()*+;=");
    table = with(table, SCHEME, b"+-.~");
    table = with(table, URI, b"-._~:/?#[]@!$&'()*+,;=");
    table = without(table, PATH, b"#<>?`");
    without(table, QUERY, b"#<>\"")
}

const fn with(mut table: [u8; 256], class: ByteClass, bytes: &[u8]) -> [u8; 256] {
    let mut index = 0;
    while index < bytes.len() {
        table[bytes[index] as usize] |= class.0;
        index += 1;
    }
    table
}

const fn without(mut table: [u8; 256], class: ByteClass, bytes: &[u8]) -> [u8; 256] {
    let mut index = 0;
    while index < bytes.len() {
        table[bytes[index] as usize] &= !class.0;
        index += 1;
    }
    table
}

impl ByteClass {
    /// Returns whether `byte` belongs to the class.
    #[inline]
    pub(crate) fn has(self, byte: u8) -> bool {
        TABLE[usize::from(byte)] & self.0 != 0
    }

    /// Returns whether all of `bytes` belong to the class. Cost: two instructions for each byte, no branch.
    #[inline]
    pub(crate) fn has_all(self, bytes: &[u8]) -> bool {
        Self::common(bytes).contains(self)
    }

    /// Classes that all of `bytes` belong to.
    #[inline]
    pub(crate) fn common(bytes: &[u8]) -> CommonClasses {
        CommonClasses(bytes.iter().fold(u8::MAX, |common, &byte| common & TABLE[usize::from(byte)]))
    }
}

/// Classes that all bytes of a slice belong to: one pass answers for several.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommonClasses(u8);

impl CommonClasses {
    #[inline]
    pub(crate) fn contains(self, class: ByteClass) -> bool {
        self.0 & class.0 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_says_what_the_grammar_says() {
        for byte in 0..=255u8 {
            let word = byte.is_ascii_alphanumeric();
            let visible = byte > 0x20 && byte != 0x7f;
            for (class, expected) in [
                (TOKEN, word || b"!#$%&'*+-.^_`|~".contains(&byte)),
                (ORDINARY_NAME, word || byte == b'-'),
                (PATH, visible && !b"#<>?`".contains(&byte)),
                (QUERY, visible && !b"#<>\"".contains(&byte)),
                (HOST_NAME, word || b"-._~!$&'()*+;=".contains(&byte)),
                (SCHEME, word || b"+-.~".contains(&byte)),
                (URI, word || b"-._~:/?#[]@!$&'()*+,;=".contains(&byte)),
                (TEXT, visible || b" \t".contains(&byte)),
            ] {
                assert_eq!(class.has(byte), expected, "{class:?} {byte}");
                assert_eq!(class.has_all(&[b'a', byte]), expected, "{class:?} {byte}");
            }
        }
        assert!(TOKEN.has_all(b""), "no byte breaks the rule");
    }
}
