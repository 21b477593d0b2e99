//! Classes of bytes as tables: one load for each byte, where a comparison with each of a class's members
//! takes dozens of instructions.

/// A set of bytes.
pub(crate) struct ByteClass([bool; 256]);

/// `tchar` of RFC 9110 §5.6.2: what methods and names of fields are made of.
pub(crate) static TOKEN: ByteClass = ByteClass::alphanumeric_and(b"!#$%&'*+-.^_`|~");

/// Bytes of a field name that no server could take for another name.
pub(crate) static ORDINARY_NAME: ByteClass = ByteClass::alphanumeric_and(b"-");

impl ByteClass {
    const fn alphanumeric_and(others: &[u8]) -> Self {
        let mut class = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            class[byte] = (byte as u8).is_ascii_alphanumeric();
            byte += 1;
        }
        let mut index = 0;
        while index < others.len() {
            class[others[index] as usize] = true;
            index += 1;
        }
        Self(class)
    }

    /// Returns whether `byte` is one of the class.
    pub(crate) const fn has(&self, byte: u8) -> bool {
        self.0[byte as usize]
    }

    /// Returns whether all of `bytes` are.
    pub(crate) fn has_all(&'static self, bytes: &[u8]) -> bool {
        bytes.iter().all(|&byte| self.has(byte))
    }
}

#[cfg(test)]
mod tests {
    use super::TOKEN;

    #[test]
    fn a_table_says_what_the_grammar_says() {
        for byte in 0..=255u8 {
            let is_token = byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            assert_eq!(TOKEN.has(byte), is_token, "{byte}");
        }
    }
}
