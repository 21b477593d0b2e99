//! `[[class]]`: which requests belong together, what they are worth and what they are promised.

mod api_keys;
mod glob;
mod names;
mod rules;

pub use api_keys::{ApiKeys, KeyPlace};
pub use glob::Glob;
pub(super) use rules::path_glob;
pub use rules::{ClassRules, CookieRule, FieldRule};

use core::time::Duration;
use std::path::{Path, PathBuf};

use flashweir_admission::sentry::ClassPolicy;
use flashweir_core::Rate;
use flashweir_core::limits::{CLASSES, REQUESTS_HELD};
use http::HeaderName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::names::{cookie_name, field_name};
use super::sentry::{TARGET_LONGEST, TARGET_SHORTEST};
use crate::checks::name::name;
use crate::checks::range::{duration_within, within};
use crate::error::Problem;
use crate::one_or_many::OneOrMany;
use crate::text::DurationText;

/// A class of requests to the service, and what it is worth. The first class whose rules all hold takes a request;
/// the last one may have no rules and takes the rest. Without such a class one named `default`, of revenue 1, is
/// added. At most 16, that one included; more important ones need not come first, but special ones must.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassFile {
    /// Name of the class, in metrics, `/status` and the record of decisions.
    /// Valid: 1 to 63 letters, digits, `-`, `_` or `.`; each once in a service.
    /// Example: `name = "checkout"`.
    pub name: String,
    /// Which requests it takes.
    #[serde(default, rename = "match")]
    pub rules: MatchFile,
    /// Revenue of one request answered in time. Only the proportions between classes count: when there is not room
    /// for all, a class worth more goes first. Classes of equal revenue go in order of arrival.
    /// Valid: `0.001` to `1000000`. Raised: others wait for this class. Lowered: it waits for others.
    /// Example: `revenue = 10`.
    #[serde(default = "one")]
    pub revenue: f64,
    /// Requests a second that are let in at any load, however little they are worth. When the service
    /// cannot serve all that is guaranteed, all guarantees are scaled down together, and that is reported.
    /// Valid: `0` to `1000000`. Raised: more room is taken from the more important. Lowered: in a crowd nothing of
    /// this class may be served.
    /// Example: `guaranteed_rate = 5`.
    #[serde(default)]
    pub guaranteed_rate: f64,
    /// The class's own response-time target. Default: the service's.
    /// Valid: `10ms` to `1m`. Raised: more of the class are served, each later. Lowered: more of it are refused.
    /// Example: `response_target = "300ms"`.
    #[serde(default)]
    pub response_target: Option<DurationText>,
    /// Requests of it that may wait for room, over all workers; 0 refuses at once. Default: as many as can be
    /// answered within the target.
    /// Valid: `0` to `16384`. Raised beyond what can be answered in time: no effect. Lowered: short bursts are
    /// refused.
    /// Example: `queue = 100`.
    #[serde(default)]
    pub queue: Option<u32>,
    /// Among whom the class's share is divided fairly when there is not room for all, so that one client that asks
    /// for much cannot push the others out: `"network"` (the default: an IPv4 /24, an IPv6 /56), `"address"`,
    /// `{ header = "NAME" }` or `{ cookie = "NAME" }`. Requests without that header or cookie count for their
    /// network. A client that may invent its key (a cookie that is not checked) can invent many.
    /// Example: `fair_by = { header = "x-api-key" }`.
    #[serde(default)]
    pub fair_by: FairByFile,
    /// Never counted, limited or made to wait: for health checks and long polls, which take no room in the service.
    /// Every other client that can ask for such a class goes around the protection.
    /// Example: `exempt = true`.
    #[serde(default)]
    pub exempt: bool,
    /// Where a request of the class would be refused or have to wait, and the cache has an answer no older than this, it gets
    /// that, although HTTP would not let it be reused: only if nothing in it was made for one user (docs/cache.md has the rule), and
    /// with `Cache-Status` saying so. In a crowd it serves all who may have it, so that there is room for others. Needs `cache.mode`.
    /// 0 gives none.
    /// Valid: `0s` to `1m`. Raised: older answers in a crowd, and fewer refusals. Lowered: more refusals.
    /// Example: `grace = "2s"`.
    #[serde(default = "no_grace")]
    pub grace: DurationText,
}

/// HTTP knows no grace, so the operator must ask for it.
const fn no_grace() -> DurationText {
    DurationText::from_secs(0)
}

/// A copy older than this is no answer but a memory.
const GRACE_LONGEST: DurationText = DurationText::from_secs(60);

/// Revenue when none is written: only proportions count, so one is as good as any.
const fn one() -> f64 {
    1.0
}

/// Which requests a class takes. All keys that are written must hold; of a list one entry is enough. A `*` stands for
/// any number of any characters. Upper and lower case differ, but for hosts and the names of fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MatchFile {
    /// Hosts, without the port.
    /// Example: `host = ["api.shop.example", "*.api.shop.example"]`.
    pub host: Option<OneOrMany>,
    /// Paths, without the query. One that ends in `/` takes everything below it, any other only itself; `"/"` is the
    /// start page alone. With `*` the whole path must fit, and `*` stands for `/`, too. A request's path is compared
    /// as servers read it: percent-decoded once, `//` taken for `/`, `.` and `..` resolved; upper and lower case
    /// differ.
    /// Example: `path = ["/checkout/", "/api/*/export"]`.
    pub path: Option<OneOrMany>,
    /// Methods, in upper case.
    /// Example: `method = ["POST", "PUT"]`.
    pub method: Option<OneOrMany>,
    /// Fields of the head, as `name` (it is there) or `name: value`.
    /// Example: `header = "x-plan: gold*"`.
    pub header: Option<OneOrMany>,
    /// Cookies, as `name` (it is there) or `name=value`; `*` in either stands for any characters.
    /// Example: `cookie = ["session", "plan=gold", "wordpress_logged_in_*"]`.
    pub cookie: Option<OneOrMany>,
    /// Addresses or networks of clients; behind `client.trusted_proxies` those that the proxies state.
    /// Example: `client = ["10.0.0.0/8", "192.0.2.7"]`.
    pub client: Option<OneOrMany>,
    /// Nodes in front (`feedback.senders`: networks), by the name that they send in `Flashweir-Sender`; `"*"` takes all of them, those
    /// without a name included. It is the connection that counts, not the client that a proxy states: so that what a node in front says of
    /// a request's class is believed, and the same field of a client is not.
    /// Example: `sender = "*"` beside `header = "priority: u=0*"`.
    pub sender: Option<OneOrMany>,
    /// Clients that show one of these keys.
    pub api_keys: Option<ApiKeysFile>,
}

/// Clients that show one of these keys. Keys are compared, not checked otherwise: the service remains the one to say
/// who may do what. They are never logged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ApiKeysFile {
    /// The field that carries the key. Of `Authorization: Bearer KEY` the word `Bearer` is left out. Either this or
    /// `query`.
    /// Example: `header = "x-api-key"`.
    pub header: Option<String>,
    /// The parameter of the query that carries the key, compared as it is written in the URL. Either this or `header`.
    /// Example: `query = "key"`.
    pub query: Option<String>,
    /// The keys, up to 64. Either this or `file`.
    /// Example: `keys = ["k-1f8c", "k-77aa"]`.
    pub keys: Option<OneOrMany>,
    /// File with the keys, one a line, up to 100000; empty lines and lines that begin with `#` are left out. It is
    /// read again at every reload.
    /// Example: `file = "gold.keys"`.
    pub file: Option<PathBuf>,
}

/// Among whom a class's share is divided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "FairBy")]
pub enum FairByFile {
    /// An IPv4 /24 network or an IPv6 /56: what one household or one rented server has.
    // A client with many addresses mostly has them side by side.
    #[default]
    Network,
    /// One address.
    Address,
    /// Clients that send the same value of this field.
    Header(String),
    /// Clients that send the same value of this cookie.
    Cookie(String),
}

/// One class of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Fit for a metric label; each once in a service.
    pub name: String,
    /// Rules for the requests it takes; empty in the last class of a service and in no other.
    pub rules: ClassRules,
    /// Revenue of one request answered in time, from 0.001 to 1,000,000.
    pub revenue: f64,
    /// Requests a second let in at any load, from 0 to 1,000,000.
    pub guaranteed_rate_rps: f64,
    /// Its own response-time target.
    pub response_target: Option<Duration>,
    /// Requests that may wait; `None` for as many as can be answered in time.
    pub queue: Option<u32>,
    /// Among whom its share is divided.
    pub fair_by: FairBy,
    /// Never counted, limited or made to wait.
    pub exempt: bool,
    /// Maximum age of a copy that is given instead of a refusal; zero for none.
    pub grace: Duration,
}

/// Among whom a class's share is divided; a client without the header or cookie counts for its network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FairBy {
    /// An IPv4 /24 network or an IPv6 /56.
    #[default]
    Network,
    /// One address.
    Address,
    /// The value of a field.
    Header(HeaderName),
    /// The value of a cookie.
    Cookie(Box<str>),
}

impl From<&Class> for ClassPolicy {
    fn from(class: &Class) -> Self {
        Self {
            revenue: class.revenue,
            guaranteed_rate: Rate::from_per_second(class.guaranteed_rate_rps),
            target: class.response_target,
            queue: class.queue,
        }
    }
}

/// The name of the class that takes what no other does.
const REST: &str = "default";

/// Checks the classes of one service: 1 to [`CLASSES`], the last without rules.
pub(super) fn check_classes(files: Vec<ClassFile>, directory: &Path) -> Result<Vec<Class>, Problem> {
    let count = files.len();
    let classes = files.into_iter().enumerate();
    let mut classes: Vec<Class> =
        classes.map(|(index, file)| Class::check(index, file, directory)).collect::<Result<_, _>>()?;
    for (index, class) in classes.iter().enumerate() {
        let earlier = classes.get(..index).unwrap_or_default();
        if let Some(at) = earlier.iter().position(|other| other.name == class.name) {
            let what = format!("`{}` is the name of class[{at}], too, expected different ones", class.name);
            return Err(Problem::new(format!("class[{index}].name"), what));
        }
        if let Some(at) = earlier.iter().position(|other| other.rules.cover(&class.rules)) {
            return Err(Problem::new(format!("class[{index}]"), never_matches(class, at, &classes[at])));
        }
    }
    let takes_all = classes.last().is_some_and(|class| class.rules.are_empty());
    if !takes_all {
        if let Some(at) = classes.iter().position(|class| class.name == REST) {
            let what = format!(
                "`{REST}` is the name of the class that is added for all other requests, expected another name, or no \
                 rules and the last place"
            );
            return Err(Problem::new(format!("class[{at}].name"), what));
        }
        classes.push(Class::rest());
    }
    if classes.len() > CLASSES {
        let added = if takes_all { "" } else { " (one is added for all other requests)" };
        return Err(Problem::new("class", format!("{count} classes, expected at most {CLASSES}{added}")));
    }
    Ok(classes)
}

fn never_matches(class: &Class, at: usize, earlier: &Class) -> String {
    let how = if earlier.rules.are_empty() {
        "has no rules and takes every request"
    } else {
        "takes all that it would"
    };
    format!(
        "`{}` can never match: class[{at}] `{}` comes first and {how}, expected the special before the general",
        class.name, earlier.name
    )
}

impl Class {
    fn rest() -> Self {
        Self {
            name: REST.to_owned(),
            rules: ClassRules::default(),
            revenue: 1.0,
            guaranteed_rate_rps: 0.0,
            response_target: None,
            queue: None,
            fair_by: FairBy::default(),
            exempt: false,
            grace: Duration::ZERO,
        }
    }

    fn check(index: usize, file: ClassFile, directory: &Path) -> Result<Self, Problem> {
        let at = |key: &str| format!("class[{index}].{key}");
        let of_no_use = [
            ("guaranteed_rate", file.guaranteed_rate > 0.0),
            ("response_target", file.response_target.is_some()),
            ("queue", file.queue.is_some()),
        ];
        if file.exempt
            && let Some((key, _)) = of_no_use.into_iter().find(|(_, written)| *written)
        {
            return Err(Problem::new(
                at(key),
                "has no use in a class that is exempt, expected one of the two",
            ));
        }
        let target =
            |target| duration_within(&at("response_target"), target, TARGET_SHORTEST, TARGET_LONGEST);
        let queue = |queue| within(&at("queue"), queue, 0, REQUESTS_HELD as u32);
        Ok(Self {
            name: name(&at("name"), file.name)?,
            rules: ClassRules::check(&at("match"), file.rules, directory)?,
            revenue: within(&at("revenue"), file.revenue, 0.001, 1e6)?,
            guaranteed_rate_rps: within(&at("guaranteed_rate"), file.guaranteed_rate, 0.0, 1e6)?,
            response_target: file.response_target.map(target).transpose()?,
            queue: file.queue.map(queue).transpose()?,
            fair_by: fair_by(&at("fair_by"), file.fair_by)?,
            exempt: file.exempt,
            grace: duration_within(&at("grace"), file.grace, no_grace(), GRACE_LONGEST)?,
        })
    }
}

fn fair_by(key: &str, file: FairByFile) -> Result<FairBy, Problem> {
    Ok(match file {
        FairByFile::Network => FairBy::Network,
        FairByFile::Address => FairBy::Address,
        FairByFile::Header(name) => FairBy::Header(field_name(&format!("{key}.header"), &name)?),
        FairByFile::Cookie(name) => FairBy::Cookie(cookie_name(&format!("{key}.cookie"), &name)?),
    })
}
