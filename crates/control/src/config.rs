//! The configuration file of `flashweir control`.

use flashweir_config::AdminToken;
use flashweir_core::Duration;
use flashweir_core::limits::{SCENARIO_FILE_BYTES, UPSTREAM_ADDRESSES};
use flashweir_provisioning::{ApplicationPolicy, Policy, PolicyError};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Error of the control loop.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The file cannot be read.
    #[error("{file}: {error}")]
    Read {
        /// Name of the file.
        file: String,
        /// Error of the system.
        error: std::io::Error,
    },
    /// The file is not what is expected.
    #[error("{file}: {problem}")]
    Config {
        /// Name of the file.
        file: String,
        /// The fault, and the accepted form.
        problem: String,
    },
    /// The address for metrics cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// The runtime or a signal handler cannot be started.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl ControlError {
    /// Returns whether another try with the same configuration fails again.
    #[must_use]
    pub fn is_configuration(&self) -> bool {
        matches!(self, Self::Config { .. } | Self::Read { .. })
    }
}

/// The controlled services, and how they are controlled.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Address of `/metrics` and `/healthz`; none: no listener.
    pub listen: Option<SocketAddr>,
    /// Secret that the gateways' admin listeners ask for.
    pub admin_token: Option<AdminToken>,
    /// Goals of the planner: an application for each service, in their order.
    pub policy: Policy,
    /// The services, one at least.
    pub services: Vec<Service>,
}

/// One service: where it is read, and who obeys.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Its name, in the log and in metrics.
    pub name: String,
    /// The admin address of its gateway, HOST:PORT.
    pub admin: String,
    /// True if the gateway is asked for this service alone, by its name; false if for all its requests.
    pub is_by_name: bool,
    /// The actuator that carries out the plan.
    pub actuator: Actuator,
}

/// Actuator that carries out a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Actuator {
    /// Copies of a command on this machine.
    Copies(CopySettings),
    /// A command, run with each new number in place of `{servers}`.
    Exec(Vec<String>),
    /// An address (http://HOST:PORT/PATH) that gets each new number as JSON.
    Webhook(http::Uri),
}

/// Settings of the copies.
#[derive(Clone, Debug, PartialEq)]
pub struct CopySettings {
    /// Program and arguments; `{port}` in them is the copy's port.
    pub command: Vec<String>,
    /// The port of each copy there may be.
    pub ports: Vec<u16>,
    /// The path that answers 2xx when a copy serves.
    pub health: String,
    /// From SIGTERM to SIGKILL.
    pub stop_within: Duration,
    /// From the start until it has to serve.
    pub start_within: Duration,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    admin: String,
    admin_token_file: Option<PathBuf>,
    listen: Option<String>,
    #[serde(default = "ten")]
    interval_s: f64,
    #[serde(default = "one")]
    target_s: f64,
    #[serde(default = "thirty")]
    start_up_s: f64,
    #[serde(default = "one_server")]
    min: u32,
    max: Option<u32>,
    pool: Option<u32>,
    #[serde(default)]
    service: Vec<ServiceFile>,
    copies: Option<CopiesFile>,
    exec: Option<ExecFile>,
    webhook: Option<WebhookFile>,
}

/// One service in the file. Omitted settings are taken from the top of the file.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ServiceFile {
    name: String,
    admin: Option<String>,
    target_s: Option<f64>,
    start_up_s: Option<f64>,
    min: Option<u32>,
    max: Option<u32>,
    #[serde(default = "one")]
    revenue: f64,
    copies: Option<CopiesFile>,
    exec: Option<ExecFile>,
    webhook: Option<WebhookFile>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct CopiesFile {
    command: Vec<String>,
    first_port: u16,
    #[serde(default = "health")]
    health: String,
    #[serde(default = "ten")]
    stop_within_s: f64,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecFile {
    command: Vec<String>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct WebhookFile {
    url: String,
}

fn ten() -> f64 {
    10.0
}
fn one() -> f64 {
    1.0
}
fn thirty() -> f64 {
    30.0
}
fn one_server() -> u32 {
    1
}
fn health() -> String {
    "/healthz".to_owned()
}

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`ControlError`] with the file's name and the first thing that is wrong.
    pub fn load(path: &Path) -> Result<Self, ControlError> {
        let file = path.display().to_string();
        let read = |error| ControlError::Read { file: file.clone(), error };
        let size = std::fs::metadata(path).map_err(read)?.len();
        if size > SCENARIO_FILE_BYTES {
            let problem = format!("{size} bytes, expected at most {SCENARIO_FILE_BYTES}");
            return Err(ControlError::Config { file, problem });
        }
        let text = std::fs::read_to_string(path).map_err(read)?;
        let directory = path.parent().unwrap_or(Path::new(""));
        Self::parse_in(&text, directory).map_err(|problem| ControlError::Config { file, problem })
    }

    /// Checks the text of a file in the working directory.
    ///
    /// # Errors
    /// The first thing that is wrong, and what is expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::parse_in(text, Path::new(""))
    }

    fn parse_in(text: &str, directory: &Path) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        let interval = seconds("interval_s", file.interval_s, 0.5)?;
        let usual = ServiceDefaults {
            admin: file.admin,
            target_s: file.target_s,
            start_up_s: file.start_up_s,
            min: file.min,
            max: file.max.unwrap_or(SERVERS_MAX),
        };
        let has_actuator = file.copies.is_some() || file.exec.is_some() || file.webhook.is_some();
        let is_by_name = !file.service.is_empty();
        if is_by_name && has_actuator {
            return Err(
                "expected [copies], [exec] and [webhook] inside of [[service]] where there is one".to_owned()
            );
        }
        let whole = ServiceFile {
            name: WHOLE_GATEWAY.to_owned(),
            admin: None,
            target_s: None,
            start_up_s: None,
            min: None,
            max: None,
            revenue: one(),
            copies: file.copies,
            exec: file.exec,
            webhook: file.webhook,
        };
        let written = if is_by_name { file.service } else { vec![whole] };
        let (mut applications, mut services) = (Vec::new(), Vec::<Service>::new());
        for written in written {
            if services.iter().any(|known| known.name == written.name) {
                return Err(format!("service {}: is there twice, expected another name", written.name));
            }
            let place = if is_by_name { format!("service {}: ", written.name) } else { String::new() };
            let checked = written.checked(&usual, is_by_name);
            let (application, service) = checked.map_err(|problem| format!("{place}{problem}"))?;
            applications.push(application);
            services.push(service);
        }
        check_ports(&services)?;
        let all_max = applications.iter().map(|it| it.servers_max).fold(0, u32::saturating_add);
        let pool = file.pool.unwrap_or(all_max);
        let minimums: u64 = applications.iter().map(|it| u64::from(it.servers_min)).sum();
        if minimums > u64::from(pool) {
            return Err(format!(
                "pool is {pool}: the services' min together are {minimums}, expected at most the pool"
            ));
        }
        let policy = Policy { interval, ..Policy::new(pool, applications) };
        let policy = policy.checked().map_err(|error: PolicyError| error.to_string())?;
        let listen = file.listen.map(|text| {
            let wrong =
                |_| format!("listen is `{text}`: expected an IP address and a port like 127.0.0.1:9910");
            text.parse::<SocketAddr>().map_err(wrong)
        });
        let token_file = file.admin_token_file.map(|path| directory.join(path));
        let admin_token = token_file.as_deref().map(AdminToken::read_from).transpose();
        let admin_token = admin_token.map_err(|what| format!("admin_token_file: {what}"))?;
        Ok(Self { listen: listen.transpose()?, admin_token, policy, services })
    }
}

/// Name of the one service where the file has no [[service]].
const WHOLE_GATEWAY: &str = "default";
/// Servers of a service unless the file says otherwise.
const SERVERS_MAX: u32 = 8;

fn seconds(key: &str, value: f64, least: f64) -> Result<Duration, String> {
    if (least..=86_400.0).contains(&value) {
        Ok(Duration::from_secs_f64(value))
    } else {
        Err(format!("{key} is {value}: expected {least} to 86400"))
    }
}

/// No two copies on one port.
fn check_ports(services: &[Service]) -> Result<(), String> {
    let mut taken = std::collections::BTreeMap::new();
    for service in services {
        let Actuator::Copies(copies) = &service.actuator else { continue };
        for &port in &copies.ports {
            if let Some(other) = taken.insert(port, &service.name) {
                return Err(format!("service {}: port {port} is also one of service {other}", service.name));
            }
        }
    }
    Ok(())
}

/// Settings of a service that names none.
struct ServiceDefaults {
    admin: String,
    target_s: f64,
    start_up_s: f64,
    min: u32,
    max: u32,
}

impl ServiceFile {
    fn checked(
        self,
        usual: &ServiceDefaults,
        is_by_name: bool,
    ) -> Result<(ApplicationPolicy, Service), String> {
        let target = seconds("target_s", self.target_s.unwrap_or(usual.target_s), 0.001)?;
        let start_up = seconds("start_up_s", self.start_up_s.unwrap_or(usual.start_up_s), 0.0)?;
        let (servers_min, servers_max) = (self.min.unwrap_or(usual.min), self.max.unwrap_or(usual.max));
        if servers_max == 0 || servers_min > servers_max {
            return Err(format!(
                "min and max are {servers_min} and {servers_max}: expected a max of at least 1 and of at least min"
            ));
        }
        if !(self.revenue > 0.0 && self.revenue.is_finite()) {
            return Err(format!("revenue is {}: expected more than 0", self.revenue));
        }
        let actuator = match (self.copies, self.exec, self.webhook) {
            (Some(copies), None, None) => Actuator::Copies(copies.checked(servers_max, start_up)?),
            (None, Some(exec), None) => Actuator::Exec(command("exec.command", exec.command)?),
            (None, None, Some(hook)) => Actuator::Webhook(checked_url(&hook.url)?),
            _ => return Err("expected one of [copies], [exec] and [webhook]".to_owned()),
        };
        let mut application =
            ApplicationPolicy { servers_min, servers_max, start_up, ..ApplicationPolicy::single(target) };
        application.classes.iter_mut().for_each(|class| class.revenue = self.revenue);
        let admin = self.admin.unwrap_or_else(|| usual.admin.clone());
        Ok((application, Service { name: self.name, admin, is_by_name, actuator }))
    }
}

impl CopiesFile {
    fn checked(self, most: u32, start_up: Duration) -> Result<CopySettings, String> {
        let command = command("copies.command", self.command)?;
        // At most as many copies as a gateway has upstreams.
        if most as usize > UPSTREAM_ADDRESSES {
            return Err(format!("max is {most}: expected at most {UPSTREAM_ADDRESSES} copies"));
        }
        let last = u32::from(self.first_port) + most.saturating_sub(1);
        if self.first_port == 0 || last > u32::from(u16::MAX) {
            return Err(format!(
                "copies.first_port is {}: expected ports from 1 to 65535 for {most} copies",
                self.first_port
            ));
        }
        if !command.iter().any(|word| word.contains("{port}")) {
            return Err("copies.command: expected `{port}` in one of its words".to_owned());
        }
        if !self.health.starts_with('/') {
            return Err(format!("copies.health is `{}`: expected a path that begins with /", self.health));
        }
        if !(0.0..=3_600.0).contains(&self.stop_within_s) {
            return Err(format!("copies.stop_within_s is {}: expected 0 to 3600", self.stop_within_s));
        }
        Ok(CopySettings {
            command,
            ports: (0..most).map(|place| self.first_port + place as u16).collect(),
            health: self.health,
            stop_within: Duration::from_secs_f64(self.stop_within_s),
            start_within: start_up * 4 + Duration::from_secs(30),
        })
    }
}

fn command(key: &str, words: Vec<String>) -> Result<Vec<String>, String> {
    if words.first().is_none_or(String::is_empty) {
        return Err(format!("{key}: expected a program and its arguments"));
    }
    Ok(words)
}

fn checked_url(text: &str) -> Result<http::Uri, String> {
    let url = text.parse::<http::Uri>().ok();
    url.filter(|url| url.scheme_str() == Some("http") && url.host().is_some())
        .ok_or_else(|| format!("webhook.url is `{text}`: expected http://HOST:PORT/PATH"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: &str = "admin = \"127.0.0.1:9900\"\nmax = 3\n[copies]\ncommand = [\"server\", \"{port}\"]\nfirst_port = 8081\n";

    #[test]
    fn a_right_file_is_taken() {
        let config = Config::parse(RIGHT).unwrap();
        let Actuator::Copies(copies) = &config.services[0].actuator else { panic!("copies") };
        assert_eq!((&copies.ports[..], copies.health.as_str()), (&[8081, 8082, 8083][..], "/healthz"));
        assert_eq!((config.policy.pool, config.policy.interval), (3, Duration::from_secs(10)));
    }

    #[test]
    fn a_wrong_file_says_what_is_expected() {
        let error = |from: &str, to: &str| {
            assert!(RIGHT.contains(from));
            Config::parse(&RIGHT.replace(from, to)).unwrap_err()
        };
        assert_eq!(
            error("[copies]", "[copies]\nprot = 1").lines().next().unwrap(),
            "TOML parse error at line 4, column 1"
        );
        assert_eq!(error("{port}", "8081"), "copies.command: expected `{port}` in one of its words");
        assert_eq!(error("max = 3", "max = 99"), "max is 99: expected at most 64 copies");
        assert_eq!(
            error("max = 3", "max = 3\nmin = 4"),
            "min and max are 4 and 3: expected a max of at least 1 and of at least min"
        );
        assert_eq!(
            error("8081", "65534"),
            "copies.first_port is 65534: expected ports from 1 to 65535 for 3 copies"
        );
        assert_eq!(
            error("[\"server\", \"{port}\"]", "[]"),
            "copies.command: expected a program and its arguments"
        );
        assert_eq!(error("max = 3", "max = 3\ninterval_s = 0"), "interval_s is 0: expected 0.5 to 86400");
        assert_eq!(
            error("max = 3", "max = 3\nlisten = \":9910\""),
            "listen is `:9910`: expected an IP address and a port like 127.0.0.1:9910"
        );
        let no_actuator = Config::parse("admin = \"x\"").unwrap_err();
        assert_eq!(no_actuator, "expected one of [copies], [exec] and [webhook]");
        let hook = Config::parse("admin = \"x\"\n[webhook]\nurl = \"ftp://x\"").unwrap_err();
        assert_eq!(hook, "webhook.url is `ftp://x`: expected http://HOST:PORT/PATH");
    }

    const TWO: &str = "admin = \"127.0.0.1:9900\"\npool = 5\nmax = 4\n\
        [[service]]\nname = \"shop\"\nrevenue = 3\n[service.copies]\ncommand = [\"server\", \"{port}\"]\nfirst_port = 8081\n\
        [[service]]\nname = \"search\"\nmin = 0\n[service.exec]\ncommand = [\"order\", \"{servers}\"]\n";

    #[test]
    fn several_services_share_a_pool() {
        let config = Config::parse(TWO).unwrap();
        let names: Vec<_> = config.services.iter().map(|it| (it.name.as_str(), it.is_by_name)).collect();
        assert_eq!(names, [("shop", true), ("search", true)]);
        let of: Vec<_> = config
            .policy
            .applications
            .iter()
            .map(|it| (it.servers_min, it.servers_max, it.classes[0].revenue))
            .collect();
        assert_eq!((config.policy.pool, &of[..]), (5, &[(1, 4, 3.0), (0, 4, 1.0)][..]));
    }

    #[test]
    fn services_that_do_not_fit_together_are_named() {
        let error = |from: &str, to: &str| {
            assert!(TWO.contains(from));
            Config::parse(&TWO.replace(from, to)).unwrap_err()
        };
        assert_eq!(
            error("pool = 5", "pool = 0"),
            "pool is 0: the services' min together are 1, expected at most the pool"
        );
        assert_eq!(
            error("min = 0", "min = 5"),
            "service search: min and max are 5 and 4: expected a max of at least 1 and of at least min"
        );
        assert_eq!(error("\"search\"", "\"shop\""), "service shop: is there twice, expected another name");
        assert_eq!(error("revenue = 3", "revenue = 0"), "service shop: revenue is 0: expected more than 0");
        let same_ports = "[service.copies]\ncommand = [\"server\", \"{port}\"]\nfirst_port = 8084";
        assert_eq!(
            error("[service.exec]\ncommand = [\"order\", \"{servers}\"]", same_ports),
            "service search: port 8084 is also one of service shop"
        );
        assert_eq!(
            error("max = 4\n[[service]]", "max = 4\n[exec]\ncommand = [\"order\"]\n[[service]]"),
            "expected [copies], [exec] and [webhook] inside of [[service]] where there is one"
        );
    }
}
