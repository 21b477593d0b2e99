//! Selection of the responses to purge, as the query of a request names it.

use std::fmt;

/// Selection of the responses to purge: one of these.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PurgeQuery {
    /// An absolute URL; with and without the default port are the same.
    Url(String),
    /// A tag of `Surrogate-Key` or `Cache-Tag`.
    Tag(String),
    /// Everything.
    All,
}

impl fmt::Display for PurgeQuery {
    /// As it is parsed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => write!(f, "url={url}"),
            Self::Tag(tag) => {
                f.write_str("tag=")?;
                tag.bytes().try_for_each(|byte| write!(f, "%{byte:02x}"))
            }
            Self::All => f.write_str("all=true"),
        }
    }
}

impl PurgeQuery {
    /// From the query of a request: `url=URL`, `tag=TAG` or `all=true`. The value of the first two is
    /// everything behind the `=`, so that the URL's own query needs no escapes; a value that begins with an
    /// escaped scheme is decoded once.
    pub(crate) fn parse(query: &str) -> Result<Self, String> {
        if query.len() > NAME_BYTES_MAX {
            return Err(format!("`url` or `tag` is too long, expected at most {NAME_BYTES_MAX} bytes"));
        }
        let named = query.split_once('=').filter(|(_, value)| !value.is_empty());
        match named {
            Some(("url", url)) if url.contains("://") => Ok(Self::Url(url.to_owned())),
            Some(("url", url)) => Ok(Self::Url(decoded(url)?)),
            Some(("tag", tag)) => Ok(Self::Tag(decoded(tag)?)),
            Some(("all", "true")) => Ok(Self::All),
            _ => Err("nothing to purge is named, expected one of url=URL, tag=TAG and all=true".to_owned()),
        }
    }
}

/// Percent-decoded once.
fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(format!("`{text}` has a `%` without two digits"));
        };
        // Two hexadecimal digits fit a byte.
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).map_err(|_| format!("`{text}` is no text once it is decoded"))
}

/// Bytes of a URL or tag: what a request line may have.
const NAME_BYTES_MAX: usize = 8_192;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_purged_is_read_off_the_query() {
        let of = PurgeQuery::parse;
        let url = || PurgeQuery::Url("http://shop.example/a?b=1&c=%20".to_owned());
        assert_eq!(of("url=http://shop.example/a?b=1&c=%20"), Ok(url()));
        assert_eq!(of("url=http%3A%2F%2Fshop.example%2Fa%3Fb%3D1%26c%3D%2520"), Ok(url()));
        assert_eq!(of("tag=front%20page"), Ok(PurgeQuery::Tag("front page".to_owned())));
        assert_eq!(of("all=true"), Ok(PurgeQuery::All));
        for query in [url(), PurgeQuery::Tag("fr\u{f6}nt %page".to_owned()), PurgeQuery::All] {
            assert_eq!(of(&query.to_string()), Ok(query));
        }
        for wrong in ["", "url=", "url", "tag=", "tag=%2", "tag=%zz", "tag=%ff", "all=false", "page=1"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
