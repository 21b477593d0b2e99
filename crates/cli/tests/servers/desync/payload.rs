//! One attempt to be read in two ways.

/// Bytes of one client, and what a reader must make of them.
#[derive(Clone, Debug)]
pub(crate) struct Payload {
    /// Rule and variant.
    pub(crate) name: String,
    /// Bytes that the client sends. `{o}`, `{h}` and `{v}` in a rule's text became targets that belong to
    /// this payload alone: of the outer request, of the hidden one, and of the victim's behind them.
    pub(crate) bytes: Vec<u8>,
    /// The outer request must in no case reach the upstream.
    pub(crate) must_refuse: bool,
}

/// Collects payloads and gives each its number.
#[derive(Debug, Default)]
pub(crate) struct Payloads(Vec<Payload>);

/// Follows every payload, as another client's request does on a connection that is shared. It asks for the
/// connection's end, so that the payload's outcome is known without waiting.
const VICTIM: &str = "GET {v} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// Marks a byte that is no text: `\u{e0XX}` of a rule stands for the byte `XX`.
const BYTES_AT: u32 = 0xe000;

impl Payloads {
    /// A payload that may be forwarded, if it is read in one way only.
    pub(crate) fn add(&mut self, name: impl Into<String>, text: &str) {
        self.push(name.into(), text, false);
    }

    /// A payload that has no right reading.
    pub(crate) fn refuse(&mut self, name: impl Into<String>, text: &str) {
        self.push(name.into(), text, true);
    }

    fn push(&mut self, name: String, text: &str, must_refuse: bool) {
        let number = self.0.len();
        let text = [text, VICTIM].concat();
        self.0.push(Payload { name, bytes: numbered(&text, number), must_refuse });
    }

    pub(crate) fn into_vec(self) -> Vec<Payload> {
        self.0
    }
}

/// A character that stands for one byte of any value.
pub(crate) fn byte(value: u8) -> char {
    char::from_u32(BYTES_AT + u32::from(value)).unwrap_or('?')
}

/// Characters as UTF-8, but for those that stand for one byte.
pub(crate) fn to_bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for character in text.chars() {
        match u32::from(character).checked_sub(BYTES_AT).and_then(|value| u8::try_from(value).ok()) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

/// Digits of a payload's number in its targets: the same for all, so that lengths do not depend on it.
const DIGITS: usize = 5;

/// The text with the targets of payload `number` put in.
pub(crate) fn numbered(text: &str, number: usize) -> Vec<u8> {
    let put = |text: String, kind: &&str| {
        text.replace(&format!("{{{kind}}}"), &format!("/{kind}{number:0width$}", width = DIGITS))
    };
    to_bytes(&["o", "h", "v"].iter().fold(text.to_owned(), put))
}

/// Bytes of the text once it is sent.
pub(crate) fn sent_len(text: &str) -> usize {
    numbered(text, 0).len()
}

/// The number of the payload that a target belongs to, and its kind: `/o00017` is the outer request of number
/// 17.
pub(crate) fn owner(target: &str) -> Option<(char, usize)> {
    target.match_indices('/').find_map(|(slash, _)| {
        let mut characters = target[slash + 1..].chars();
        let kind = characters.next().filter(|kind| "ohv".contains(*kind))?;
        let digits: String = characters.take(DIGITS).collect();
        let is_number = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().ok().map(|number| (kind, number)))?
    })
}
