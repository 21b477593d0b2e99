//! Checks `match` of a class.

use std::path::Path;

use http::header::AUTHORIZATION;
use http::{HeaderName, Method};
use ipnet::IpNet;

use super::MatchFile;
use super::api_keys::ApiKeys;
use super::glob::Glob;
use super::names::{cookie_name, field_name};
use crate::error::Problem;
use crate::one_or_many::OneOrMany;
use crate::sections::client::network;

/// Rules for the requests that a class takes: every list that is not empty must hold, and of a list one entry
/// is enough.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassRules {
    /// Hosts, in lower case, without a port.
    pub hosts: Vec<Glob>,
    /// Paths, in normal form.
    pub paths: Vec<Glob>,
    /// Methods.
    pub methods: Vec<Method>,
    /// Fields of the head.
    pub headers: Vec<FieldRule>,
    /// Cookies.
    pub cookies: Vec<CookieRule>,
    /// Networks of clients.
    pub clients: Vec<IpNet>,
    /// Names of nodes in front.
    pub senders: Vec<Glob>,
    /// Clients that show a key.
    pub api_keys: Option<ApiKeys>,
}

/// A field that must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRule {
    /// Its name.
    pub name: HeaderName,
    /// Pattern of one of its values, if that matters.
    pub value: Option<Glob>,
}

/// A cookie that must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CookieRule {
    /// Pattern of its name.
    pub name: Glob,
    /// Pattern of its value, if that matters.
    pub value: Option<Glob>,
}

impl ClassRules {
    /// `key` is where they are written: `class[0].match`.
    pub(super) fn check(key: &str, file: MatchFile, directory: &Path) -> Result<Self, Problem> {
        let at = |name: &str| format!("{key}.{name}");
        Ok(Self {
            hosts: each(at("host"), file.host, host)?,
            paths: each(at("path"), file.path, path)?,
            methods: each(at("method"), file.method, method)?,
            headers: each(at("header"), file.header, header)?,
            cookies: each(at("cookie"), file.cookie, cookie)?,
            clients: each(at("client"), file.client, network)?,
            senders: each(at("sender"), file.sender, sender)?,
            api_keys: file
                .api_keys
                .map(|keys| ApiKeys::check(&at("api_keys"), keys, directory))
                .transpose()?,
        })
    }

    /// Returns whether there is no rule, so that every request fits.
    #[must_use]
    pub fn are_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether every request that fits `other` surely fits these, too. An unsure case (two key files
    /// that may hold the same keys) is taken for different.
    pub(super) fn cover(&self, other: &Self) -> bool {
        list_covers(&self.hosts, &other.hosts, Glob::covers)
            && list_covers(&self.paths, &other.paths, Glob::covers)
            && list_covers(&self.methods, &other.methods, Method::eq)
            && list_covers(&self.headers, &other.headers, |one, other| {
                one.name == other.name && value_covers(one.value.as_ref(), other.value.as_ref())
            })
            && list_covers(&self.cookies, &other.cookies, |one, other| {
                one.name.covers(&other.name) && value_covers(one.value.as_ref(), other.value.as_ref())
            })
            && list_covers(&self.clients, &other.clients, |one, other| one.contains(other))
            && list_covers(&self.senders, &other.senders, Glob::covers)
            && match (&self.api_keys, &other.api_keys) {
                (None, _) => true,
                (Some(one), Some(other)) => one.cover(other),
                (Some(_), None) => false,
            }
    }
}

/// No entry takes everything; otherwise each of the other's entries must be taken by one of ours.
fn list_covers<T>(ours: &[T], others: &[T], covers: impl Fn(&T, &T) -> bool) -> bool {
    ours.is_empty()
        || (!others.is_empty() && others.iter().all(|other| ours.iter().any(|our| covers(our, other))))
}

fn value_covers(ours: Option<&Glob>, other: Option<&Glob>) -> bool {
    ours.is_none_or(|ours| other.is_some_and(|other| ours.covers(other)))
}

fn each<T>(
    key: String,
    texts: Option<OneOrMany>,
    check: impl Fn(&str, &str) -> Result<T, Problem>,
) -> Result<Vec<T>, Problem> {
    let Some(OneOrMany(texts)) = texts else { return Ok(Vec::new()) };
    match texts.as_slice() {
        [] => Err(Problem::new(key, "the list is empty, expected at least one entry")),
        [one] => Ok(vec![check(&key, one)?]),
        many => {
            many.iter().enumerate().map(|(index, text)| check(&format!("{key}[{index}]"), text)).collect()
        }
    }
}

fn host(key: &str, text: &str) -> Result<Glob, Problem> {
    let fits = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'*' | b':' | b'[' | b']')
    };
    let has_port = !text.ends_with(']') && text.contains(':');
    if text.is_empty() || !text.bytes().all(fits) || has_port {
        let what = format!(
            "`{text}` is not a host, expected a name without port like \"shop.example\" or \"*.shop.example\""
        );
        return Err(Problem::new(key, what));
    }
    Ok(Glob::new(&text.to_ascii_lowercase()))
}

fn path(key: &str, text: &str) -> Result<Glob, Problem> {
    path_glob(key, text, "a path like \"/checkout/\" or \"/api/*/export\"")
}

/// A path as requests' paths are compared with it; `expected` is for the message.
pub(in crate::sections) fn path_glob(key: &str, text: &str, expected: &str) -> Result<Glob, Problem> {
    let refuse = |why: &str| Err(Problem::new(key, format!("`{text}` {why}, expected {expected}")));
    if !text.starts_with(['/', '*']) {
        return refuse("does not begin with `/`");
    }
    if text.contains("**") || text.contains(['[', ']', '{', '}']) {
        return refuse("is not a pattern: only `*` is special, and takes `/`, too");
    }
    if text.contains(['?', '#']) {
        return refuse("holds more than a path");
    }
    let resolved = |segment: &str| segment == "." || segment == "..";
    if text.contains("//") || text.contains(['%', '\\']) || text.split('/').any(resolved) {
        return refuse("can never match, because paths are compared decoded and resolved");
    }
    let everything_below = text.len() > 1 && text.ends_with('/');
    Ok(if everything_below { Glob::new(&format!("{text}*")) } else { Glob::new(text) })
}

fn method(key: &str, text: &str) -> Result<Method, Problem> {
    let refuse = |why: &str| Err(Problem::new(key, format!("`{text}` {why}, expected one like \"POST\"")));
    if text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        return refuse("is not in upper case, as methods are");
    }
    match Method::from_bytes(text.as_bytes()) {
        Ok(Method::CONNECT) => refuse("is never served"),
        Ok(method) => Ok(method),
        Err(_) => refuse("is not a method"),
    }
}

fn header(key: &str, text: &str) -> Result<FieldRule, Problem> {
    let (name, value) = text.split_once(':').map_or((text, None), |(name, value)| (name, Some(value.trim())));
    let name = field_name(key, name)?;
    if value.is_some() && name == AUTHORIZATION {
        let what = "holds a secret, expected `match.api_keys`, which is never logged".to_owned();
        return Err(Problem::new(key, what));
    }
    Ok(FieldRule { name, value: value.map(Glob::new) })
}

fn sender(key: &str, text: &str) -> Result<Glob, Problem> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'*');
    if text.is_empty() || !text.bytes().all(fits) {
        let what = format!(
            "`{text}` is not a node's name, expected one like \"shop\", or \"*\" for every node in front"
        );
        return Err(Problem::new(key, what));
    }
    Ok(Glob::new(text))
}

fn cookie(key: &str, text: &str) -> Result<CookieRule, Problem> {
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    Ok(CookieRule { name: Glob::new(&cookie_name(key, name)?), value: value.map(Glob::new) })
}
