//! Tags by which an operator purges several documents at once: `Surrogate-Key` (separated by spaces) and
//! `Cache-Tag` (by commas).

use flashweir_core::Hasher64;
use flashweir_core::limits::CACHE_TAGS;
use http::{HeaderMap, HeaderName};

const SURROGATE_KEY: HeaderName = HeaderName::from_static("surrogate-key");
const CACHE_TAG: HeaderName = HeaderName::from_static("cache-tag");

/// A tag as it is kept: under the gateway's keyed hash, for any case in which it was written.
#[must_use]
pub fn tag_hash(hasher: &Hasher64, tag: &[u8]) -> u64 {
    hasher.hash(&[&tag.trim_ascii().to_ascii_lowercase()])
}

/// The tags of a response; none where there are more than [`CACHE_TAGS`]: it could not be purged by all of
/// them.
pub(crate) fn tags_of(response: &HeaderMap, hasher: &Hasher64) -> Option<Box<[u64]>> {
    let lines = |name, separator: u8| {
        let lines = response.get_all(name).iter();
        lines.flat_map(move |line| line.as_bytes().split(move |&byte| byte == separator))
    };
    let all = lines(&SURROGATE_KEY, b' ').chain(lines(&CACHE_TAG, b','));
    let named = all.filter(|tag| !tag.trim_ascii().is_empty());
    let hashes: Vec<u64> = named.take(CACHE_TAGS + 1).map(|tag| tag_hash(hasher, tag)).collect();
    (hashes.len() <= CACHE_TAGS).then(|| hashes.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn tags_of_both_fields_are_found_and_too_many_are_refused() {
        let hasher = Hasher64::new(1, 2);
        let mut response = HeaderMap::new();
        response.append(SURROGATE_KEY, HeaderValue::from_static("news  Front-page"));
        response.append(CACHE_TAG, HeaderValue::from_static("a b, c,"));
        let tags = tags_of(&response, &hasher).expect("few");
        let expected = ["news", "front-page", "a b", "C"].map(|tag| tag_hash(&hasher, tag.as_bytes()));
        assert_eq!(*tags, expected);
        let many = "x ".repeat(CACHE_TAGS + 1);
        response.append(SURROGATE_KEY, HeaderValue::from_str(&many).expect("a value"));
        assert_eq!(tags_of(&response, &hasher), None);
    }
}
