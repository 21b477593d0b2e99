//! Addresses of a name by this machine's files: those of `/etc/hosts`, else those that the name servers of
//! `/etc/resolv.conf` have.
//!
//! The C library is not asked: a program that is linked statically cannot load the modules by which that
//! resolves names, and each of its questions occupies a thread. Both files are read for each look-up, as
//! the C library does with `/etc/hosts`, so that a change counts at once; they are small, and a look-up
//! is one for each new connection at most. Other sources of `/etc/nsswitch.conf` (mDNS, LDAP) are not
//! asked; a name server of this machine, such as systemd-resolved's, has them where they are wanted.

use domain::base::iana::Rcode;
use domain::base::{Name, Rtype};
use domain::rdata::{A, Aaaa};
use domain::resolv::StubResolver;
use domain::resolv::stub::Answer;
use domain::resolv::stub::conf::ResolvConf;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::IpAddr;
use std::path::Path;

const HOSTS: &str = "/etc/hosts";
const RESOLV_CONF: &str = "/etc/resolv.conf";
/// Bytes of either file that are read; what follows is ignored.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Suffixes of the search list that are tried, as many as glibc once took.
const SUFFIXES_MAX: usize = 6;

/// No name server answered, or one said that it cannot: the name may exist.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("no name server answered")]
pub(crate) struct Unanswered;

/// Sources of addresses as they were when they were read.
#[derive(Debug)]
pub(crate) struct Names {
    hosts: String,
    servers: ResolvConf,
}

impl Names {
    /// Reads the files of this machine. One that is missing is as good as empty: then the name server of
    /// this machine is asked (`resolv.conf(5)`).
    pub(crate) fn of_this_machine() -> Self {
        Self::new(read(Path::new(HOSTS)), &read(Path::new(RESOLV_CONF)))
    }

    fn new(hosts: String, resolv_conf: &str) -> Self {
        let mut servers = ResolvConf::new();
        for line in resolv_conf.lines() {
            // A line that is not understood is as good as absent, as to the C library.
            let _ = servers.parse(&mut line.as_bytes());
        }
        servers.finalize();
        Self { hosts, servers }
    }

    /// Addresses of `name` in `/etc/hosts`, in the order of their lines (`hosts(5)`).
    pub(crate) fn in_hosts(&self, name: &str) -> Vec<IpAddr> {
        let name = name.strip_suffix('.').unwrap_or(name);
        let lines = self.hosts.lines().filter_map(|line| {
            let mut words = line.split('#').next().unwrap_or_default().split_ascii_whitespace();
            let address = words.next()?.parse().ok()?;
            words.any(|alias| alias.eq_ignore_ascii_case(name)).then_some(address)
        });
        lines.collect()
    }

    /// Addresses of `name`, which may be an address itself.
    ///
    /// # Errors
    /// [`Unanswered`], and [`io::ErrorKind::NotFound`] where there is no such name or it has no address.
    pub(crate) async fn look_up(self, name: &str) -> io::Result<Vec<IpAddr>> {
        if let Ok(address) = name.parse() {
            return Ok(vec![address]);
        }
        let found = self.in_hosts(name);
        if !found.is_empty() {
            return Ok(found);
        }
        let candidates = candidates(name, &self.servers);
        let resolver = StubResolver::from_conf(self.servers);
        let mut is_unanswered = false;
        for candidate in candidates {
            match ask(&resolver, &candidate).await {
                Ok(found) if !found.is_empty() => return Ok(found),
                Ok(_) => {}
                Err(Unanswered) => is_unanswered = true,
            }
        }
        if is_unanswered {
            return Err(io::Error::other(Unanswered));
        }
        Err(io::Error::new(io::ErrorKind::NotFound, format!("the name {name} has no address")))
    }
}

fn read(path: &Path) -> String {
    let mut bytes = Vec::new();
    // What could be read counts, also of a file that fails in the middle.
    let _ = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Absolute names for which `name` stands, in the order in which they are asked for: by itself first if
/// it has as many dots as `ndots` says, else after those of the search list (`resolv.conf(5)`).
fn candidates(name: &str, servers: &ResolvConf) -> Vec<Name<Vec<u8>>> {
    let absolute = |name: &str| name.parse::<Name<Vec<u8>>>().ok();
    let options = &servers.options;
    let suffixes = options.search.as_slice().iter().filter(|suffix| !suffix.is_root()).take(SUFFIXES_MAX);
    let by_suffix = suffixes.filter_map(|suffix| absolute(&format!("{name}.{suffix}")));
    let by_itself = absolute(name);
    if name.ends_with('.') {
        by_itself.into_iter().collect()
    } else if name.matches('.').count() >= options.ndots {
        by_itself.into_iter().chain(by_suffix).collect()
    } else {
        by_suffix.chain(absolute(name)).collect()
    }
}

/// Addresses of an absolute name, of either family; those of one where the question for the other is not
/// answered.
async fn ask(resolver: &StubResolver, name: &Name<Vec<u8>>) -> Result<Vec<IpAddr>, Unanswered> {
    let (ipv6, ipv4) = tokio::join!(resolver.query((name, Rtype::AAAA)), resolver.query((name, Rtype::A)));
    let (ipv6, ipv4) = (addresses(ipv6), addresses(ipv4));
    match (ipv6, ipv4) {
        (Ok(ipv6), Ok(ipv4)) => Ok(ipv6.into_iter().chain(ipv4).collect()),
        (Ok(found), Err(_)) | (Err(_), Ok(found)) if !found.is_empty() => Ok(found),
        _ => Err(Unanswered),
    }
}

fn addresses(answer: io::Result<Answer>) -> Result<Vec<IpAddr>, Unanswered> {
    let answer = answer.map_err(|_| Unanswered)?;
    match answer.header().rcode() {
        Rcode::NOERROR => {}
        Rcode::NXDOMAIN => return Ok(Vec::new()),
        _ => return Err(Unanswered),
    }
    let message = answer.into_message();
    let records = message.answer().map_err(|_| Unanswered)?;
    let ipv6 = records.limit_to::<Aaaa>().flatten().map(|record| IpAddr::V6(record.data().addr()));
    let ipv4 = records.limit_to::<A>().flatten().map(|record| IpAddr::V4(record.data().addr()));
    Ok(ipv6.chain(ipv4).collect())
}

#[cfg(test)]
mod tests;
