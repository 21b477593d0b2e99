//! Names that fit a header field and a metric label.

use crate::error::Problem;

/// 1 to 63 letters, digits, `-`, `_` or `.`.
pub(crate) fn name(key: &str, text: String) -> Result<String, Problem> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if text.is_empty() || text.len() > 63 || !text.bytes().all(fits) {
        let what = format!("`{text}` does not fit, expected 1 to 63 letters, digits, `-`, `_` or `.`");
        return Err(Problem::new(key, what));
    }
    Ok(text)
}
