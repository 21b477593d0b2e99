//! In which form a client would like to be refused.

/// The forms a refusal comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `application/problem+json` (RFC 9457).
    Problem,
    /// A small page for people.
    Html,
    /// One line for everything else.
    Text,
}

/// Picks the form by the `Accept` field (RFC 9110 §12.5.1): the higher quality wins, JSON before HTML when
/// equal; a client that names neither (`*/*` alone, or nothing) gets text. One pass, no allocation, total on
/// any input.
pub(crate) fn preferred(accept: Option<&[u8]>) -> Form {
    let Some(accept) = accept.and_then(|value| core::str::from_utf8(value).ok()) else { return Form::Text };
    let (mut json_milli, mut html_milli) = (0, 0);
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let quality_milli = parts.find_map(quality_milli).unwrap_or(1_000);
        let is = |name: &str| media_type.eq_ignore_ascii_case(name);
        if is("application/problem+json") || is("application/json") {
            json_milli = json_milli.max(quality_milli);
        } else if is("text/html") || is("application/xhtml+xml") {
            html_milli = html_milli.max(quality_milli);
        }
    }
    match (json_milli, html_milli) {
        (0, 0) => Form::Text,
        (json, html) if json >= html => Form::Problem,
        _ => Form::Html,
    }
}

/// `q=0.8` in thousandths; `None` for any other parameter, zero for a quality that is not a number.
fn quality_milli(parameter: &str) -> Option<u32> {
    let value = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="))?;
    let quality: f32 = value.parse().unwrap_or(0.0);
    Some((quality.clamp(0.0, 1.0) * 1_000.0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_form_is_served() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8";
        for (accept, form) in [
            (browser, Form::Html),
            ("application/xhtml+xml, application/xml;q=0.9", Form::Html),
            ("application/json", Form::Problem),
            ("application/problem+json", Form::Problem),
            ("application/json, text/plain, */*", Form::Problem),
            ("text/html;q=0.5, application/json;q=0.4", Form::Html),
            ("text/html;level=1;q=0.5, application/json", Form::Problem),
            ("*/*", Form::Text),
            ("", Form::Text),
            ("text/html;q=0", Form::Text),
            ("application/json;q=nonsense", Form::Text),
            (",;,;;q=,q", Form::Text),
        ] {
            assert_eq!(preferred(Some(accept.as_bytes())), form, "{accept}");
        }
        assert_eq!(preferred(None), Form::Text);
        assert_eq!(preferred(Some(b"text/html\xff")), Form::Text);
    }
}
