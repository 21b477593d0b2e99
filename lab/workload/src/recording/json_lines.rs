//! Logs with a JSON object in each line: Caddy's, Traefik's, Envoy's, and those that people make of nginx's
//! variables.

use crate::recording::entry::{Entry, EntryTarget, Flaw, checked_method, checked_size, method_and_target};
use crate::recording::json;
use crate::recording::log_time::{self, Stamp};
use crate::recording::problem::Defect;
use flashweir_core::limits::LOG_REORDERED_S;
use hifijson::{Error, Lex, SliceLexer};
use std::time::Duration;

/// Meanings of the keys in one kind of log; of several keys for the same, the first that a line has counts.
#[derive(Debug)]
pub(super) struct Layout {
    keys: &'static [(&'static str, Meaning)],
    /// Name of the target in messages.
    target: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// Arrival of the request.
    Begin,
    /// End of its answer.
    End,
    /// The time it took; the unit in nanoseconds.
    Took(u32),
    /// `GET /path HTTP/1.1`.
    Request,
    Method,
    /// Path and query.
    Target,
    /// The query, for logs in which the target is a path alone.
    Query,
    Bytes,
}

const SECONDS: u32 = 1_000_000_000;

/// Caddy writes the line, and `ts`, when the answer ends. A dot leads into an object.
pub(super) const CADDY: Layout = Layout {
    keys: &[
        ("ts", Meaning::End),
        ("duration", Meaning::Took(SECONDS)),
        ("request.method", Meaning::Method),
        ("request.uri", Meaning::Target),
        ("size", Meaning::Bytes),
    ],
    target: "request.uri",
};

/// Traefik says when the request came; where that field is dropped, `time` says when the line was written.
pub(super) const TRAEFIK: Layout = Layout {
    keys: &[
        ("StartUTC", Meaning::Begin),
        ("StartLocal", Meaning::Begin),
        ("time", Meaning::End),
        ("Duration", Meaning::Took(1)),
        ("RequestMethod", Meaning::Method),
        ("RequestPath", Meaning::Target),
        ("DownstreamContentSize", Meaning::Bytes),
    ],
    target: "RequestPath",
};

/// The keys of Envoy's documentation, which Istio uses as well.
pub(super) const ENVOY: Layout = Layout {
    keys: &[
        ("start_time", Meaning::Begin),
        ("method", Meaning::Method),
        ("path", Meaning::Target),
        ("bytes_sent", Meaning::Bytes),
    ],
    target: "path",
};

/// nginx defines no JSON format: the names of its variables, and other common names for them.
pub(super) const NGINX: Layout = Layout {
    keys: &[
        ("msec", Meaning::End),
        ("time_iso8601", Meaning::End),
        ("time_local", Meaning::End),
        ("@timestamp", Meaning::End),
        ("timestamp", Meaning::End),
        ("time", Meaning::End),
        ("request_time", Meaning::Took(SECONDS)),
        ("request", Meaning::Request),
        ("request_method", Meaning::Method),
        ("method", Meaning::Method),
        ("request_uri", Meaning::Target),
        ("uri", Meaning::Target),
        ("url", Meaning::Target),
        ("path", Meaning::Target),
        ("args", Meaning::Query),
        ("query_string", Meaning::Query),
        ("body_bytes_sent", Meaning::Bytes),
        ("bytes_sent", Meaning::Bytes),
    ],
    target: "request or request_uri",
};

/// Reads one line; what stands before its first brace is passed over, since syslog may have put it there.
/// O(length of the line).
pub(super) fn parse(line: &[u8], layout: &Layout) -> Result<Entry<'static>, Flaw<'static>> {
    let begin = line.iter().position(|byte| *byte == b'{').ok_or(Defect::NotJson.unshown())?;
    let mut found = Found { layout, values: Vec::with_capacity(8) };
    // Nothing is shown: any part may name the client.
    found.read(&mut SliceLexer::new(&line[begin..]), "").map_err(|_| Defect::NotJson.unshown())?;
    found.entry()
}

/// The values that a line has for the keys of its layout.
struct Found<'l> {
    layout: &'l Layout,
    /// Each with the place of its key in the layout.
    values: Vec<(usize, Vec<u8>)>,
}

impl Found<'_> {
    fn read<L: Lex>(&mut self, lexer: &mut L, within: &str) -> Result<(), Error> {
        let keys = self.layout.keys;
        json::object(lexer, |key, lexer| {
            let name = |known: &str| match known.strip_prefix(within) {
                Some(rest) if within.is_empty() => rest.as_bytes() == key,
                Some(rest) => rest.strip_prefix('.').is_some_and(|rest| rest.as_bytes() == key),
                None => false,
            };
            if let Some(place) = keys.iter().position(|(known, _)| name(known)) {
                if let Some(value) = json::scalar(lexer)? {
                    self.values.push((place, value));
                }
                return Ok(());
            }
            let leads_to =
                |known: &&str| known.split_once('.').is_some_and(|(outer, _)| outer.as_bytes() == key);
            let outer = keys.iter().map(|(known, _)| *known).find(leads_to);
            match outer.and_then(|known| known.split_once('.')) {
                // One level only: no layout goes deeper.
                Some((outer, _)) if within.is_empty() && lexer.ws_peek() == Some(b'{') => {
                    self.read(lexer, outer)
                }
                _ => json::skip(lexer),
            }
        })
    }

    /// The value of the first key with this meaning, and its place; an empty one or `-` is none.
    fn of(&self, is_meant: impl Fn(Meaning) -> bool) -> Option<(Meaning, &[u8])> {
        let values = self.values.iter().filter(|(_, value)| !value.is_empty() && value != b"-");
        let values = values.map(|(place, value)| (*place, self.layout.keys[*place].1, value.as_slice()));
        let first = values.filter(|(_, meaning, _)| is_meant(*meaning)).min_by_key(|(place, ..)| *place);
        first.map(|(_, meaning, value)| (meaning, value))
    }

    fn entry(&self) -> Result<Entry<'static>, Flaw<'static>> {
        let time = self.time()?;
        let bytes = self.of(|meaning| meaning == Meaning::Bytes);
        let bytes = bytes.and_then(|(_, size)| checked_size(size).ok().flatten());
        if let Some((_, request)) = self.of(|meaning| meaning == Meaning::Request) {
            let (method, target) = method_and_target(request).map_err(Flaw::into_owned)?;
            let (method, target) = (method.to_vec().into(), EntryTarget::plain(target.to_vec()));
            return Ok(Entry { time, method, target, bytes });
        }
        let Some((_, target)) = self.of(|meaning| meaning == Meaning::Target) else {
            return Err(Defect::Missing(self.layout.target).unshown());
        };
        let (_, method) =
            self.of(|meaning| meaning == Meaning::Method).ok_or(Defect::Missing("the method").unshown())?;
        let query = self.of(|meaning| meaning == Meaning::Query).map(|(_, query)| query.to_vec().into());
        let target = match query {
            Some(query) if !target.contains(&b'?') => {
                EntryTarget::Split { path: target.to_vec().into(), query: Some(query) }
            }
            _ => EntryTarget::plain(target.to_vec()),
        };
        Ok(Entry { time, method: checked_method(method.to_vec())?, target, bytes })
    }

    fn time(&self) -> Result<Stamp, Flaw<'static>> {
        let time = self.of(|meaning| matches!(meaning, Meaning::Begin | Meaning::End));
        let (meaning, text) = time.ok_or(Defect::Missing("the time").unshown())?;
        let stamp = log_time::any(text).ok_or_else(|| Defect::BadStamp.at(text.to_vec()))?;
        let took = match self.of(|meaning| matches!(meaning, Meaning::Took(_))) {
            Some((Meaning::Took(unit_ns), text)) if meaning == Meaning::End => {
                log_time::length(text, unit_ns)
            }
            _ => None,
        };
        let took = took.filter(|took| *took <= Duration::from_secs(LOG_REORDERED_S));
        Ok(stamp.before(took.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Stamp = Stamp { second: 1_431_857_103, nanosecond: Some(250_000_000) };

    fn check(line: &str, layout: &Layout, time: Stamp, target: EntryTarget<'_>, bytes: Option<u64>) {
        let entry = parse(line.as_bytes(), layout).unwrap_or_else(|flaw| panic!("{line}: {flaw:?}"));
        assert_eq!(entry, Entry { time, method: b"GET".into(), target, bytes }, "{line}");
    }

    #[test]
    fn a_line_of_caddy() {
        let line = r#"{"level":"info","ts":1431857103.75,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"2001:db8::1","proto":"HTTP/2.0","method":"GET","host":"shop.example","uri":"/a?q=b%20c","headers":{"User-Agent":["say \"x\""]}},"user_id":"","duration":0.5,"size":170,"status":200,"resp_headers":{"size":["9"]}}"#;
        check(line, &CADDY, TIME, EntryTarget::plain(&b"/a?q=b%20c"[..]), Some(170));
        let written = line.replace("1431857103.75", "\"2015/05/17 10:05:03.250\"").replace("0.5", "\"1ms\"");
        check(&written, &CADDY, TIME, EntryTarget::plain(&b"/a?q=b%20c"[..]), Some(170));
    }

    #[test]
    fn a_line_of_traefik() {
        let line = r#"{"ClientHost":"2001:db8::1","DownstreamContentSize":170,"DownstreamStatus":200,"Duration":9000000000,"RequestMethod":"GET","RequestPath":"/a?q=\"","StartUTC":"2015-05-17T10:05:03.25Z","time":"2015-05-17T12:05:12+02:00"}"#;
        check(line, &TRAEFIK, TIME, EntryTarget::plain(&b"/a?q=\""[..]), Some(170));
        let dropped = line.replace("StartUTC", "x");
        check(
            &dropped,
            &TRAEFIK,
            Stamp::whole(1_431_857_103),
            EntryTarget::plain(&b"/a?q=\""[..]),
            Some(170),
        );
    }

    #[test]
    fn a_line_of_envoy() {
        let line = r#"{"start_time":"2015-05-17T10:05:03.250Z","method":"GET","path":"/a","bytes_sent":170,"duration":9}"#;
        check(line, &ENVOY, TIME, EntryTarget::plain(&b"/a"[..]), Some(170));
        check(&line.replace("170", "null"), &ENVOY, TIME, EntryTarget::plain(&b"/a"[..]), None);
    }

    #[test]
    fn lines_of_nginx_as_people_write_them() {
        let whole = r#"{"time_local":"17/May/2015:10:05:03 +0000","msec":"1431857103.750","remote_addr":"2001:db8::1","request":"GET /a?q=\u0022 HTTP/1.1","status":"200","body_bytes_sent":"170","request_time":"0.500"}"#;
        check(whole, &NGINX, TIME, EntryTarget::plain(&b"/a?q=\""[..]), Some(170));
        let parts = r#"nginx: {"time_iso8601":"2015-05-17T10:05:03+00:00","request_method":"GET","uri":"/a b","args":"q=1","body_bytes_sent":0}"#;
        let target = EntryTarget::Split { path: b"/a b".into(), query: Some(b"q=1".into()) };
        check(parts, &NGINX, Stamp::whole(1_431_857_103), target, Some(0));
        let without = parts.replace("q=1", "-");
        check(&without, &NGINX, Stamp::whole(1_431_857_103), EntryTarget::plain(&b"/a b"[..]), Some(0));
    }

    #[test]
    fn every_defect_shows_its_part_and_never_the_client() {
        let check = |line: &str, defect: Defect, part: &str| {
            assert_eq!(parse(line.as_bytes(), &NGINX), Err(defect.at(part.as_bytes())), "{line}");
        };
        check("192.0.2.1 - -", Defect::NotJson, "");
        check(r#"{"remote_addr":"192.0.2.1","request":"\x16"}"#, Defect::NotJson, "");
        check(r#"{"remote_addr":"192.0.2.1"}"#, Defect::Missing("the time"), "");
        check(r#"{"time":"noon"}"#, Defect::BadStamp, "noon");
        check(r#"{"time":1}"#, Defect::Missing("request or request_uri"), "");
        check(r#"{"time":1,"uri":"/"}"#, Defect::Missing("the method"), "");
        check(r#"{"time":1,"uri":"/","method":"G T"}"#, Defect::BadMethod, "G T");
        check(r#"{"time":1,"request":"-"}"#, Defect::Missing("request or request_uri"), "");
        check(r#"{"time":1,"request":"GET"}"#, Defect::NoTarget, "GET");
    }
}
