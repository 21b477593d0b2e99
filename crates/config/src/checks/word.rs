//! Words of which there are few.

use serde::de::{DeserializeOwned, IntoDeserializer as _, value};

use crate::error::Problem;

/// One of a few words, as the file would have it.
pub(crate) fn variant<T: DeserializeOwned>(key: &str, text: &str) -> Result<T, Problem> {
    let read = T::deserialize(text.into_deserializer());
    read.map_err(|error: value::Error| Problem::new(key, error.to_string()))
}
