//! Other readers of HTTP/1.1, to compare with.
//!
//! [`lenient`] reads as many servers do: `httparse` and the plain rules of RFC 9112. [`strict`] reads as a
//! server that takes nothing on trust: what it accepts has one reading only.

use httparse::Status;

/// One request or response as a reader found it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The request line or status line.
    pub start: String,
    /// Names in lower case, values without the blanks around them.
    pub fields: Vec<(String, Vec<u8>)>,
    /// The body, chunks joined.
    pub body: Vec<u8>,
}

impl Message {
    /// The values of a field, whose name is given in lower case.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.fields.iter().filter(move |(known, _)| known == name).map(|(_, value)| &value[..])
    }

    /// The method of a request.
    #[must_use]
    pub fn method(&self) -> &str {
        self.start.split(' ').next().unwrap_or_default()
    }

    /// The target of a request.
    #[must_use]
    pub fn target(&self) -> &str {
        self.start.split(' ').nth(1).unwrap_or_default()
    }

    /// The status of a response, 0 for a request.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.start.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }
}

/// End of reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// After a whole message, or before any.
    Whole,
    /// Within a message.
    Partial,
    /// At something that is no HTTP.
    Bad(&'static str),
}

/// Room for the fields of one head.
const FIELDS: usize = 128;

/// All requests of `bytes` as a lenient server reads them.
#[must_use]
pub fn lenient(mut bytes: &[u8]) -> (Vec<Message>, End) {
    let mut requests = Vec::new();
    while !bytes.is_empty() {
        let (request, length) = match lenient_one(bytes) {
            Ok(Some(read)) => read,
            Ok(None) => return (requests, End::Partial),
            Err(fault) => return (requests, End::Bad(fault)),
        };
        requests.push(request);
        bytes = &bytes[length..];
    }
    (requests, End::Whole)
}

/// One request and its length in bytes; `None` when it is not all there.
fn lenient_one(bytes: &[u8]) -> Result<Option<(Message, usize)>, &'static str> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let Status::Complete(head) = request.parse(bytes).map_err(|_| "head")? else { return Ok(None) };
    let start = format!(
        "{} {} HTTP/1.{}",
        request.method.unwrap_or_default(),
        request.path.unwrap_or_default(),
        request.version.unwrap_or_default()
    );
    let fields = request.headers.iter().map(|field| (field.name.to_ascii_lowercase(), trim(field.value)));
    let mut message = Message { start, fields: fields.collect(), body: Vec::new() };
    let is_chunked = message.all("transfer-encoding").next().is_some();
    let length = message.all("content-length").next().map(decimal).transpose()?;
    let rest = &bytes[head..];
    if is_chunked {
        let Some((body, taken)) = chunks(rest)? else { return Ok(None) };
        message.body = body;
        return Ok(Some((message, head + taken)));
    }
    let length = length.unwrap_or(0);
    let Some(body) = rest.get(..length) else { return Ok(None) };
    message.body = body.to_vec();
    Ok(Some((message, head + length)))
}

/// A chunked body and its length in bytes, by `httparse`; `None` when it is not all there.
///
/// # Errors
/// Which part is no HTTP.
pub fn chunks(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, &'static str> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let Status::Complete((line, size)) =
            httparse::parse_chunk_size(&bytes[at..]).map_err(|_| "chunk size")?
        else {
            return Ok(None);
        };
        at += line;
        if size == 0 {
            break;
        }
        let size = usize::try_from(size).map_err(|_| "chunk size")?;
        let Some(data) = bytes[at..].get(..size) else { return Ok(None) };
        body.extend_from_slice(data);
        at += size;
        if bytes.len() < at + 2 {
            return Ok(None);
        }
        at += 2;
    }
    let mut trailers = [httparse::EMPTY_HEADER; FIELDS];
    match httparse::parse_headers(&bytes[at..], &mut trailers).map_err(|_| "trailers")? {
        Status::Complete((length, _)) => Ok(Some((body, at + length))),
        Status::Partial => Ok(None),
    }
}

/// Side of a connection that wrote the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    /// A client.
    Requests,
    /// A server, answering requests with these methods.
    Responses(&'a [String]),
}

/// All messages of `bytes` as a server reads them that accepts one spelling of each thing only.
#[must_use]
pub fn strict(mut bytes: &[u8], kind: Kind<'_>) -> (Vec<Message>, End) {
    let (mut messages, mut answered) = (Vec::new(), 0);
    while !bytes.is_empty() {
        let method = match kind {
            Kind::Requests => None,
            Kind::Responses(methods) => Some(methods.get(answered).map_or("", String::as_str)),
        };
        let (message, length) = match strict_one(bytes, method) {
            Ok(Some(read)) => read,
            Ok(None) => return (messages, End::Partial),
            Err(fault) => return (messages, End::Bad(fault)),
        };
        answered += usize::from(message.status() >= 200);
        messages.push(message);
        bytes = &bytes[length..];
    }
    (messages, End::Whole)
}

/// `method` is that of the request which is answered; `None` reads a request.
fn strict_one(bytes: &[u8], method: Option<&str>) -> Result<Option<(Message, usize)>, &'static str> {
    let Some(head) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let text = &bytes[..head];
    if text.iter().any(|&byte| (byte < 0x20 && !b"\t\r\n".contains(&byte)) || byte == 0x7f) {
        return Err("a control byte");
    }
    let mut lines = split_crlf(text)?.into_iter();
    let start = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let mut fields = Vec::new();
    for line in lines {
        fields.push(strict_field(line)?);
    }
    let mut message = Message { start, fields, body: Vec::new() };
    let rest = &bytes[head + 4..];
    let words: Vec<&str> = message.start.split(' ').collect();
    let has_body = match method {
        None => {
            if words.len() != 3
                || words[2] != "HTTP/1.1"
                || !is_token(words[0].as_bytes())
                || words[1].is_empty()
            {
                return Err("the request line");
            }
            if message.all("host").count() != 1 {
                return Err("not one host");
            }
            true
        }
        Some(method) => {
            if !matches!(words[0], "HTTP/1.1" | "HTTP/1.0")
                || words.get(1).is_none_or(|status| status.len() != 3)
            {
                return Err("the status line");
            }
            method != "HEAD" && !matches!(message.status(), 100..200 | 204 | 304)
        }
    };
    let codings: Vec<&[u8]> = message.all("transfer-encoding").collect();
    let lengths: Vec<&[u8]> = message.all("content-length").collect();
    let (is_chunked, length) = match (&codings[..], &lengths[..]) {
        ([], []) => (false, None),
        ([coding], []) if coding.eq_ignore_ascii_case(b"chunked") => (true, None),
        ([], [length]) => (false, Some(decimal(length)?)),
        _ => return Err("two framings"),
    };
    if !has_body {
        return Ok(Some((message, head + 4)));
    }
    let (body, taken) = match (is_chunked, length, method) {
        (true, ..) => match strict_chunks(rest)? {
            Some(read) => read,
            None => return Ok(None),
        },
        (false, Some(length), _) => match rest.get(..length) {
            Some(body) => (body.to_vec(), length),
            None => return Ok(None),
        },
        (false, None, None) => (Vec::new(), 0),
        // A response without a length ends with its connection.
        (false, None, Some(_)) => (rest.to_vec(), rest.len()),
    };
    message.body = body;
    Ok(Some((message, head + 4 + taken)))
}

/// RFC 9112 §7.1 without extensions, which no intermediary forwards.
fn strict_chunks(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, &'static str> {
    let (mut body, mut at) = (Vec::new(), 0);
    let line_at = |at: usize| bytes[at..].windows(2).position(|window| window == b"\r\n");
    loop {
        let Some(end) = line_at(at) else { return Ok(None) };
        let digits = &bytes[at..at + end];
        if digits.is_empty() || digits.len() > 16 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err("a chunk size");
        }
        let digits = str::from_utf8(digits).map_err(|_| "a chunk size")?;
        let size = usize::from_str_radix(digits, 16).map_err(|_| "a chunk size")?;
        at += end + 2;
        if size == 0 {
            break;
        }
        let Some(data) = bytes.get(at..at.saturating_add(size).saturating_add(2)) else { return Ok(None) };
        let (data, line_end) = data.split_at(size);
        if line_end != b"\r\n" {
            return Err("the end of a chunk");
        }
        body.extend_from_slice(data);
        at += size + 2;
    }
    loop {
        let Some(end) = line_at(at) else { return Ok(None) };
        let line = &bytes[at..at + end];
        at += end + 2;
        if line.is_empty() {
            return Ok(Some((body, at)));
        }
        let (name, _) = strict_field(line)?;
        if ["content-length", "transfer-encoding", "host"].contains(&name.as_str()) {
            return Err("a trailer that frames");
        }
    }
}

fn strict_field(line: &[u8]) -> Result<(String, Vec<u8>), &'static str> {
    let colon = line.iter().position(|&byte| byte == b':').ok_or("a field without colon")?;
    let (name, value) = (&line[..colon], trim(&line[colon + 1..]));
    if !is_token(name) {
        return Err("the name of a field");
    }
    Ok((String::from_utf8_lossy(name).to_ascii_lowercase(), value))
}

/// The lines between CRLFs; a CR or LF elsewhere is a fault.
fn split_crlf(text: &[u8]) -> Result<Vec<&[u8]>, &'static str> {
    let mut lines = Vec::new();
    for line in text.split(|&byte| byte == b'\n') {
        lines.push(line);
    }
    let last = lines.len() - 1;
    for (index, line) in lines.iter_mut().enumerate() {
        if index < last {
            *line = line.strip_suffix(b"\r").ok_or("a bare LF")?;
        }
        if line.contains(&b'\r') {
            return Err("a bare CR");
        }
    }
    Ok(lines)
}

fn is_token(name: &[u8]) -> bool {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !name.is_empty() && name.iter().all(is_token)
}

fn decimal(text: &[u8]) -> Result<usize, &'static str> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let text = str::from_utf8(text).ok().filter(|_| is_number).ok_or("a length")?;
    text.parse().map_err(|_| "a length")
}

fn trim(value: &[u8]) -> Vec<u8> {
    let is_text = |byte: &u8| !b" \t".contains(byte);
    match (value.iter().position(is_text), value.iter().rposition(is_text)) {
        (Some(first), Some(last)) => value[first..=last].to_vec(),
        _ => Vec::new(),
    }
}

/// Writes a request's head in the one spelling that [`strict`] reads.
pub(crate) fn write_head(head: &http::request::Parts) -> Vec<u8> {
    let target = head.uri.path_and_query().map_or("", |target| target.as_str());
    let mut bytes = format!("{} {target} HTTP/1.1\r\n", head.method).into_bytes();
    for (name, value) in &head.headers {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}
