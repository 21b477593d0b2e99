//! `[fairness]`: shares among clients by what they have in common.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use flashweir_core::limits::{FAIRNESS_FILE_BYTES, FAIRNESS_NETWORKS};
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::class::Glob;
use super::client::{TRUSTED_PROXIES, network};
use crate::error::Problem;
use crate::networks::NetworkTable;

/// Shares among clients while a service is short: clients that behave alike are judged together (docs/fairness.md). What has more
/// than a fair share is served from what the others leave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FairnessFile {
    /// Whether clients are judged by what they have in common. Off, a crawler of many addresses is as many clients.
    /// Example: `enabled = false`.
    pub enabled: bool,
    /// Networks whose clients are never judged: monitoring, a partner. Default: none. Too many: a crawler there is served as
    /// people are.
    /// Valid: at most 256 networks.
    /// Example: `exempt = ["192.0.2.0/24"]`.
    pub exempt: Vec<String>,
    /// File with the networks of crawlers that are welcome, one in each line; what follows `#` is ignored. Search engines publish
    /// theirs. Their clients are never judged. Read again at a reload.
    /// Valid: at most 2000000 networks and 64 MiB.
    /// Example: `verified_bots_file = "verified-bots.txt"`.
    pub verified_bots_file: Option<PathBuf>,
    /// File with the number of the autonomous system behind each network, in each line a network and a number; what follows `#`
    /// is ignored. Then all clients of one system are judged together, too. Read again at a reload.
    /// Valid: at most 2000000 networks and 64 MiB.
    /// Example: `autonomous_systems_file = "asn.txt"`.
    pub autonomous_systems_file: Option<PathBuf>,
    /// Names of the cookies that hold a session, `*` for any characters. A client with such a cookie is distinguished from the others behind
    /// its address. Too many: a cookie that changes with every request makes its client a stranger each time. Too few: people
    /// behind one address with the same browser are one client. Names in upper and lower case are different.
    /// Valid: 1 to 64 names.
    /// Example: `session_cookies = ["shop_session"]`.
    pub session_cookies: Vec<String>,
    /// Whether new connections of an address are refused for a while when its clients come again before their `Retry-After` is over,
    /// thousands of times without a pause, while requests are refused: 10 s the first time, at most 11 minutes. Off, each of those requests is
    /// refused by itself. Addresses of people, of `exempt` networks and of trusted proxies are left alone.
    /// Example: `drop_impatient = false`.
    pub drop_impatient: bool,
}

impl Default for FairnessFile {
    fn default() -> Self {
        Self {
            enabled: true,
            exempt: Vec::new(),
            verified_bots_file: None,
            autonomous_systems_file: None,
            // Those of widespread frameworks: PHP, Java, .NET, Django, Rails, Laravel, Express, WordPress.
            session_cookies: [
                "PHPSESSID",
                "JSESSIONID",
                "ASP.NET_SessionId",
                ".AspNetCore.*",
                "sessionid",
                "session",
                "session_id",
                "*_session",
                "connect.sid",
                "sid",
                "wordpress_logged_in_*",
            ]
            .map(str::to_owned)
            .to_vec(),
            drop_impatient: true,
        }
    }
}

/// Shares among clients by what they have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Fairness {
    /// True if clients are judged.
    pub is_enabled: bool,
    /// Names of cookies that hold a session.
    pub session_cookies: Vec<Glob>,
    /// True if new connections of a source that ignores `Retry-After` are refused for a while.
    pub drops_impatient: bool,
    exempt_networks: Vec<IpNet>,
    verified_bots_file: Option<PathBuf>,
    autonomous_systems_file: Option<PathBuf>,
    exempt: NetworkTable,
    systems: NetworkTable,
}

/// Every cookie's name is compared with every one of these.
const SESSION_COOKIES: usize = 64;
/// The longest line of a file: a network and a number fit several times.
const LINE_BYTES: usize = 1_024;

impl Fairness {
    pub(super) fn check(file: FairnessFile, directory: &Path) -> Result<Self, Problem> {
        let key = "fairness.exempt";
        if file.exempt.len() > TRUSTED_PROXIES {
            let what = format!("{} networks, expected at most {TRUSTED_PROXIES}", file.exempt.len());
            return Err(Problem::new(key, what));
        }
        let exempt = file.exempt.iter().enumerate();
        let exempt_networks: Vec<IpNet> = exempt
            .map(|(index, text)| network(&format!("{key}[{index}]"), text))
            .collect::<Result<_, _>>()?;
        let names = &file.session_cookies;
        if names.is_empty() || names.len() > SESSION_COOKIES {
            let what = format!("{} names, expected 1 to {SESSION_COOKIES}", names.len());
            return Err(Problem::new("fairness.session_cookies", what));
        }
        for (index, name) in names.iter().enumerate() {
            // RFC 6265 §4.1.1: a token.
            let is_wrong = |byte: u8| !byte.is_ascii_graphic() || b"=;,\"".contains(&byte);
            if name.trim_matches('*').is_empty() || name.bytes().any(is_wrong) {
                let what =
                    format!("`{name}` is no cookie's name, expected one like \"PHPSESSID\" or \"*_session\"");
                return Err(Problem::new(format!("fairness.session_cookies[{index}]"), what));
            }
        }
        Ok(Self {
            is_enabled: file.enabled,
            drops_impatient: file.drop_impatient,
            session_cookies: names.iter().map(|name| Glob::new(name)).collect(),
            exempt: NetworkTable::new(exempt_networks.iter().map(|&network| (network, 1))),
            exempt_networks,
            verified_bots_file: file.verified_bots_file.map(|path| directory.join(path)),
            autonomous_systems_file: file.autonomous_systems_file.map(|path| directory.join(path)),
            systems: NetworkTable::default(),
        })
    }

    /// Reads the files, if there are any.
    pub(crate) fn read(&mut self) -> Result<(), Problem> {
        if let Some(path) = &self.verified_bots_file {
            let bots = read_lines(path, |line| Some((network_of(line)?, 1)));
            let bots = bots.map_err(|why| {
                problem("fairness.verified_bots_file", path, &why, "a network in each line")
            })?;
            let exempt = self.exempt_networks.iter().map(|&network| (network, 1));
            self.exempt = NetworkTable::new(exempt.chain(bots));
        }
        if let Some(path) = &self.autonomous_systems_file {
            let systems = read_lines(path, |line| {
                let (network, number) = line.split_once(|char: char| char.is_ascii_whitespace())?;
                let number: u32 = number.trim().trim_start_matches("AS").parse().ok()?;
                Some((network_of(network)?, number)).filter(|_| number > 0)
            });
            let expected = "a network and a number above 0 in each line";
            let systems =
                systems.map_err(|why| problem("fairness.autonomous_systems_file", path, &why, expected))?;
            self.systems = NetworkTable::new(systems);
        }
        Ok(())
    }

    /// Returns whether a client of this address is never judged.
    #[must_use]
    pub fn is_exempt(&self, address: IpAddr) -> bool {
        self.exempt.find(address).is_some()
    }

    /// The autonomous system of an address, where a file says which.
    #[must_use]
    pub fn system(&self, address: IpAddr) -> Option<u32> {
        self.systems.find(address)
    }
}

fn problem(key: &str, path: &Path, why: &str, expected: &str) -> Problem {
    Problem::new(key, format!("`{}`: {why}, expected {expected}", path.display()))
}

fn network_of(text: &str) -> Option<IpNet> {
    let text = text.trim();
    text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

/// Content of each line of a file, empty ones and comments left out.
fn read_lines(
    path: &Path,
    parse: impl Fn(&str) -> Option<(IpNet, u32)>,
) -> Result<Vec<(IpNet, u32)>, String> {
    let unreadable = |error: std::io::Error| format!("cannot read it: {error}");
    let file = File::open(path).map_err(unreadable)?;
    let mut reader = BufReader::new(file.take(FAIRNESS_FILE_BYTES + 1));
    let (mut read, mut number, mut line, mut bytes) = (Vec::new(), 0_usize, Vec::new(), 0_u64);
    loop {
        line.clear();
        let count = (&mut reader).take(LINE_BYTES as u64).read_until(b'\n', &mut line).map_err(unreadable)?;
        if count == 0 {
            return Ok(read);
        }
        number += 1;
        bytes += count as u64;
        if bytes > FAIRNESS_FILE_BYTES {
            return Err(format!("it is longer than {} MiB", FAIRNESS_FILE_BYTES >> 20));
        }
        let text = std::str::from_utf8(&line).map_err(|_| format!("line {number} is no UTF-8"))?;
        let text = text.split('#').next().unwrap_or_default().trim();
        if text.is_empty() {
            continue;
        }
        read.push(parse(text).ok_or_else(|| format!("line {number}: cannot read `{text}`"))?);
        if read.len() > FAIRNESS_NETWORKS {
            return Err(format!("it has more than {FAIRNESS_NETWORKS} networks"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Result<Fairness, Problem> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("asn.txt"), text).unwrap();
        let file =
            FairnessFile { autonomous_systems_file: Some("asn.txt".into()), ..FairnessFile::default() };
        let mut fairness = Fairness::check(file, directory.path())?;
        fairness.read().map(|()| fairness)
    }

    #[test]
    fn a_file_of_autonomous_systems() {
        let fairness = read(
            b"# RIB of today\n192.0.2.0/24 64500\n\n192.0.2.128/25\tAS64501 # a part\n2001:db8::/32 64502\n",
        )
        .unwrap();
        let of = |address: &str| fairness.system(address.parse().unwrap());
        assert_eq!(of("192.0.2.1"), Some(64_500));
        assert_eq!(of("192.0.2.200"), Some(64_501));
        assert_eq!(of("2001:db8::1"), Some(64_502));
        assert_eq!(of("198.51.100.1"), None);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_named_with_its_line() {
        for (text, wrong) in [
            (&b"192.0.2.0/24 64500\n192.0.2.0/33 64500\n"[..], "line 2: cannot read `192.0.2.0/33 64500`"),
            (b"192.0.2.0/24", "line 1: cannot read"),
            (b"192.0.2.0/24 0", "line 1: cannot read"),
            (b"192.0.2.0/24 many", "line 1: cannot read"),
            (b"\n\xff\xff 1", "line 2 is no UTF-8"),
        ] {
            let problem = read(text).unwrap_err();
            assert_eq!(problem.key, "fairness.autonomous_systems_file");
            assert!(problem.what.contains(wrong), "{}", problem.what);
        }
        let missing = FairnessFile { verified_bots_file: Some("none.txt".into()), ..FairnessFile::default() };
        let problem = Fairness::check(missing, Path::new("/nonexistent")).unwrap().read().unwrap_err();
        assert!(problem.what.contains("cannot read it"), "{}", problem.what);
    }

    #[test]
    fn what_is_written_wrong_is_named() {
        let check = |file: FairnessFile| Fairness::check(file, Path::new(".")).unwrap_err().key;
        let exempt = vec!["192.0.2.1".to_owned(), "10.0.0.1/8".to_owned()];
        assert_eq!(check(FairnessFile { exempt, ..FairnessFile::default() }), "fairness.exempt[1]");
        for name in ["", "*", "a=b", "a b"] {
            let session_cookies = vec!["sid".to_owned(), name.to_owned()];
            let key = check(FairnessFile { session_cookies, ..FairnessFile::default() });
            assert_eq!(key, "fairness.session_cookies[1]", "{name}");
        }
    }
}
