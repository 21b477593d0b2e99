//! Fields that framing and routing depend on, as they come: the rules of requests, and those of responses.

use super::authority::is_authority;
use super::known::KnownField;
use super::line::trim;
use crate::violation::FramingViolation;

/// Largest number of digits of a length: 18 cannot overflow and are more bytes than any body has.
const LENGTH_DIGITS_MAX: usize = 18;

/// Findings about one head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Framing {
    pub(crate) content_length: Option<u64>,
    pub(crate) is_chunked: bool,
    pub(crate) has_host: bool,
}

impl Framing {
    /// Framing of a head without any such field.
    pub(crate) const NONE: Self = Self { content_length: None, is_chunked: false, has_host: false };

    /// Takes note of a request's field; each of the three may come once. RFC 9110 §7.2, RFC 9112 §6.
    ///
    /// # Errors
    /// The rule that the field breaks.
    #[inline]
    pub(crate) fn take_of_request(
        &mut self,
        known: KnownField,
        value: &[u8],
    ) -> Result<(), FramingViolation> {
        match known {
            KnownField::Host if !is_authority(value) => return Err(FramingViolation::InvalidHost),
            KnownField::Host if self.has_host => return Err(FramingViolation::RepeatedHost),
            KnownField::Host => self.has_host = true,
            KnownField::ContentLength => {
                let length = length(value)?;
                if self.content_length.replace(length).is_some() {
                    return Err(FramingViolation::RepeatedContentLength);
                }
            }
            KnownField::TransferEncoding => self.take_coding(value)?,
            _ => {}
        }
        Ok(())
    }

    /// Takes note of a response's field: equal lengths may repeat, in a list as well (RFC 9110 §8.6).
    ///
    /// # Errors
    /// The rule that the field breaks.
    #[inline]
    pub(crate) fn take_of_response(
        &mut self,
        known: KnownField,
        value: &[u8],
    ) -> Result<(), FramingViolation> {
        match known {
            KnownField::ContentLength => {
                for element in value.split(|&byte| byte == b',') {
                    let length = length(trim(element))?;
                    if self.content_length.replace(length).is_some_and(|other| other != length) {
                        return Err(FramingViolation::ContentLength);
                    }
                }
            }
            KnownField::TransferEncoding => self.take_coding(value)?,
            _ => {}
        }
        Ok(())
    }

    /// `chunked` is the only coding that is asked for, so it is the only one that can be passed on.
    fn take_coding(&mut self, value: &[u8]) -> Result<(), FramingViolation> {
        if !value.eq_ignore_ascii_case(b"chunked") {
            return Err(FramingViolation::TransferEncoding);
        }
        if core::mem::replace(&mut self.is_chunked, true) {
            return Err(FramingViolation::RepeatedTransferEncoding);
        }
        Ok(())
    }
}

/// Value of a `Content-Length`: 1 to 18 digits.
fn length(value: &[u8]) -> Result<u64, FramingViolation> {
    if value.is_empty() || value.len() > LENGTH_DIGITS_MAX || !value.iter().all(u8::is_ascii_digit) {
        return Err(FramingViolation::ContentLength);
    }
    Ok(value.iter().fold(0, |length, &digit| length * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use FramingViolation::*;

    #[test]
    fn a_length_is_digits_only() {
        assert_eq!(length(b"0"), Ok(0));
        assert_eq!(length(b"999999999999999999"), Ok(999_999_999_999_999_999));
        for bad in ["", "+5", "-0", "0x5", "5 5", "5,5", "1000000000000000000"] {
            assert_eq!(length(bad.as_bytes()), Err(ContentLength), "{bad}");
        }
    }

    #[test]
    fn lengths_of_a_response_must_agree() {
        let of = |values: &[&str]| {
            let mut framing = Framing::default();
            for value in values {
                framing.take_of_response(KnownField::ContentLength, value.as_bytes())?;
            }
            Ok(framing.content_length)
        };
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&["2"]), Ok(Some(2)));
        assert_eq!(of(&["2, 2", "2"]), Ok(Some(2)));
        for wrong in [&["2, 3"][..], &["2", "3"], &["2,"], &["+2"], &[""]] {
            assert_eq!(of(wrong), Err(ContentLength), "{wrong:?}");
        }
    }

    #[test]
    fn fields_of_a_request_come_once() {
        for (known, value, violation) in [
            (KnownField::Host, "a", RepeatedHost),
            (KnownField::ContentLength, "5", RepeatedContentLength),
            (KnownField::TransferEncoding, "Chunked", RepeatedTransferEncoding),
        ] {
            let mut framing = Framing::default();
            assert_eq!(framing.take_of_request(known, value.as_bytes()), Ok(()));
            assert_eq!(framing.take_of_request(known, value.as_bytes()), Err(violation));
        }
        let mut framing = Framing::default();
        let coded = framing.take_of_request(KnownField::TransferEncoding, b"gzip, chunked");
        assert_eq!(coded, Err(TransferEncoding));
        assert_eq!(framing.take_of_request(KnownField::Host, b"a/b"), Err(InvalidHost));
    }
}
