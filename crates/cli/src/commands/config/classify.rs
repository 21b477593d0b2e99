//! `flashweir config classify`: which class a request would get, found by the gateway's own classifier.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use flashweir_classify::Classifier;
use flashweir_config::{Class, Config, FairBy, KeyPlace, Overrides, Policing, Sentry, Service};
use flashweir_core::Hasher64;
use http::header::HOST;
use http::{HeaderName, HeaderValue, Method, Request, Uri, request};

use flashweir_config::command::exit::UsageError;

/// A request as it would be sent.
#[derive(Debug, clap::Args)]
pub(super) struct ClassifyArgs {
    /// The configuration file.
    file: PathBuf,
    /// The request's method.
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    method: String,
    /// URL of the request, `http://HOST/PATH?QUERY` or `https://`.
    #[arg(long, value_name = "URL")]
    url: String,
    /// A field of the head, `name: value`; repeat it for several.
    #[arg(short = 'H', long = "header", value_name = "FIELD")]
    headers: Vec<String>,
    /// The client's address; behind trusted proxies the one they state.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    client: IpAddr,
    /// The name of the node in front that sends it, if one does; empty for one that says none.
    #[arg(long, value_name = "NAME")]
    sender: Option<String>,
}

impl ClassifyArgs {
    /// Service, class, the rules that took it, what it is worth and what it is promised; the same by the
    /// candidate policy.
    pub(super) fn answer(&self) -> anyhow::Result<String> {
        let config = Config::load(Some(&self.file), &Overrides::default())?;
        let head = self.head()?;
        // Any key will do: hashes are not shown.
        let found = Classifier::new(Hasher64::new(0, 0), Hasher64::new(0, 0), &config).classify(
            &head,
            self.client.to_canonical(),
            self.sender.as_deref(),
        );
        let Some(found) = found else {
            return Ok("service   none has this host: 421 Misdirected Request\n".to_owned());
        };
        let service = &config.services[found.service];
        let mut text = describe_service(service);
        write_class(&mut text, "class", &service.sentry, &service.classes, found.class);
        if let (Some(candidate), Some(found)) = (&service.candidate, found.candidate) {
            write_class(&mut text, "candidate", &candidate.sentry, &candidate.classes, found.class);
        }
        Ok(text)
    }

    fn head(&self) -> Result<request::Parts, UsageError> {
        let wrong =
            |flag: &str, text: &str, expected: &str| UsageError::new(format!("{flag}: `{text}` {expected}"));
        let url: Uri = self.url.parse().map_err(|_| wrong("--url", &self.url, "is not a URL"))?;
        let is_web = matches!(url.scheme_str(), Some("http" | "https"));
        let host =
            url.authority().filter(|_| is_web).and_then(|host| HeaderValue::from_str(host.as_str()).ok());
        let host = host.ok_or_else(|| {
            wrong("--url", &self.url, "is not a URL, expected http://HOST/PATH or https://HOST/PATH")
        })?;
        let method = Method::from_bytes(self.method.as_bytes())
            .map_err(|_| wrong("--method", &self.method, "is not a method, expected one like POST"))?;
        let target = url.path_and_query().map_or("/", |target| target.as_str());
        let request = Request::builder().method(method).uri(target).body(());
        let (mut head, ()) =
            request.map_err(|_| wrong("--url", &self.url, "has no path that can be asked for"))?.into_parts();
        for field in &self.headers {
            let (name, value) = parse(field)
                .ok_or_else(|| wrong("--header", field, "is not a field, expected `name: value`"))?;
            head.headers.append(name, value);
        }
        // An explicit Host names the service where the server is reached at another address.
        head.headers.entry(HOST).or_insert(host);
        Ok(head)
    }
}

fn parse(field: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = field.split_once(':')?;
    Some((name.parse().ok()?, value.trim().parse().ok()?))
}

fn describe_service(service: &Service) -> String {
    let hosts: Vec<String> = service.hosts.iter().map(ToString::to_string).collect();
    let hosts =
        if hosts.is_empty() { "every host that no other service has".to_owned() } else { hosts.join(", ") };
    let paths: Vec<_> = service.written_paths().collect();
    let paths = if paths.is_empty() { String::new() } else { format!(", paths {}", paths.join(", ")) };
    format!("{:<10}{} ({hosts}{paths})\n", "service", service.name)
}

/// Writes how a policy classifies the request: `name` is the name of its class here.
fn write_class(text: &mut String, name: &str, sentry: &Sentry, classes: &[Class], index: u8) {
    let index = usize::from(index);
    let class = &classes[index];
    let mut line = |name: &str, value: &str| {
        // Writing to a string cannot fail.
        let _infallible = writeln!(text, "{name:<10}{value}");
    };
    line(name, &format!("{} ({} of {})", class.name, index + 1, classes.len()));
    line("because", &because(class));
    if class.exempt {
        line("worth", "exempt: never counted, limited or made to wait");
        return;
    }
    line("worth", &worth(classes, class));
    line("promised", &promised(sentry, class));
    line("fair by", &fair_by(&class.fair_by));
}

/// The rules that hold, which are all of the class.
fn because(class: &Class) -> String {
    let rules = &class.rules;
    let mut said: Vec<String> = Vec::new();
    let mut say = |name: &str, entries: Vec<String>| {
        if !entries.is_empty() {
            said.push(format!("{name} {}", entries.join(" or ")));
        }
    };
    say("host", rules.hosts.iter().map(ToString::to_string).collect());
    say("path", rules.paths.iter().map(ToString::to_string).collect());
    say("method", rules.methods.iter().map(ToString::to_string).collect());
    let value = |value: Option<&flashweir_config::Glob>, mark: &str| {
        value.map_or_else(String::new, |glob| format!("{mark}{glob}"))
    };
    say(
        "header",
        rules
            .headers
            .iter()
            .map(|rule| format!("{}{}", rule.name, value(rule.value.as_ref(), ": ")))
            .collect(),
    );
    say(
        "cookie",
        rules
            .cookies
            .iter()
            .map(|rule| format!("{}{}", rule.name.as_str(), value(rule.value.as_ref(), "=")))
            .collect(),
    );
    say("client", rules.clients.iter().map(ToString::to_string).collect());
    say("node in front", rules.senders.iter().map(ToString::to_string).collect());
    if let Some(keys) = &rules.api_keys {
        let place = match &keys.place {
            KeyPlace::Header(name) => format!("header {name}"),
            KeyPlace::Query(name) => format!("parameter {name}"),
        };
        say("a known key in", vec![place]);
    }
    if said.is_empty() { "no class before it took the request".to_owned() } else { said.join(", ") }
}

fn worth(classes: &[Class], class: &Class) -> String {
    let others = classes.iter().filter(|other| !other.exempt);
    let (mut before, mut beside) = (Vec::new(), Vec::new());
    for other in others.filter(|other| other.name != class.name) {
        if other.revenue > class.revenue {
            before.push(other.name.as_str());
        } else if other.revenue >= class.revenue {
            beside.push(other.name.as_str());
        }
    }
    let after = if before.is_empty() {
        "nobody goes first".to_owned()
    } else {
        format!("after {}", before.join(", "))
    };
    let beside = if beside.is_empty() {
        String::new()
    } else {
        format!(", in order of arrival with {}", beside.join(", "))
    };
    format!("revenue {}: {after}{beside}", class.revenue)
}

fn promised(sentry: &Sentry, class: &Class) -> String {
    if sentry.policing == Policing::Off {
        return "nothing: sentry.policing is \"off\"".to_owned();
    }
    let seconds = |target: Duration| format!("{} s", target.as_secs_f64());
    let target = match (class.response_target, sentry.ladder.as_slice()) {
        (Some(target), _) => seconds(target),
        (None, []) => seconds(sentry.response_target),
        (None, ladder) => {
            let steps = ladder.iter().map(|step| match step.below_rps {
                rate if rate.is_finite() => {
                    format!("{} below {rate} requests/s", seconds(step.response_target))
                }
                _ => format!("{} above", seconds(step.response_target)),
            });
            steps.collect::<Vec<_>>().join(", ")
        }
    };
    let queue = class.queue.map_or_else(String::new, |queue| format!(", at most {queue} waiting"));
    let guaranteed = match class.guaranteed_rate_rps {
        rate if rate > 0.0 => format!(", {rate} requests/s let in at any load"),
        _ => String::new(),
    };
    let shadow = if sentry.shadow { " (shadow: recorded only)" } else { "" };
    format!("an answer within {target}, or a refusal{guaranteed}{queue}{shadow}")
}

fn fair_by(fair_by: &FairBy) -> String {
    match fair_by {
        FairBy::Network => "network (IPv4 /24, IPv6 /56)".to_owned(),
        FairBy::Address => "address".to_owned(),
        FairBy::Header(name) => format!("header {name}, else network"),
        FairBy::Cookie(name) => format!("cookie {name}, else network"),
    }
}
