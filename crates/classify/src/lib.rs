//! Properties of a request that the gates decide by: its service, its class and hashes of its head, computed
//! without allocating.
//!
//! The host, and the path where services have paths, finds the service, and the first class of the service
//! whose rules all hold takes the request; the last class has no rules, so that there always is one.
//! Everything a client can choose goes through a hash whose key is drawn at start.

mod ceiling_priority;
mod client_key;
mod host;
mod kinds;
mod measurable;
mod path;
mod rules;
mod signs;

pub use measurable::of_response;

use client_key::{client_key, octets};
use core::net::IpAddr;
use flashweir_admission::flash_crowd::CeilingPriority;
use flashweir_config::{Class, Config, Fairness};
use flashweir_core::Hasher64;
use flashweir_http1::head::{KnownField, RequestView};
use flashweir_telemetry::Unmeasured;
use host::{Host, HostProperties, HostTable, LastHost};
use kinds::Kinds;
use rules::View;
use std::cell::RefCell;
use std::sync::Arc;

/// Classifies requests by the services and classes of one configuration. One for each worker.
#[derive(Debug)]
pub struct Classifier {
    hasher: Hasher64,
    kinds: Kinds,
    /// Its key outlives the process in the state file, beside what was learned of the classes: their numbers
    /// must stay.
    url_hasher: Hasher64,
    hosts: HostTable,
    services: Vec<Service>,
    fairness: Arc<Fairness>,
    scratch: RefCell<Scratch>,
}

/// Buffers of a classifier.
#[derive(Debug, Default)]
struct Scratch {
    /// For unusual paths, which are normalised in it; grows to the longest.
    path: Vec<u8>,
    last: LastHost,
}

/// Classification data of one service.
#[derive(Debug)]
struct Service {
    name: String,
    classes: Vec<Class>,
    /// Of each class.
    ceiling_priorities: Vec<CeilingPriority>,
    /// Classes of its candidate policy, if it has one.
    candidate: Option<Vec<Class>>,
}

/// A request as the gates and the measurements see it.
#[derive(Clone, Copy, Debug)]
pub struct Classified {
    /// Its service: a place in the configuration's list.
    pub service: usize,
    /// Its class: a place in the service's list.
    pub class: u8,
    /// Priority of the class where there is a ceiling; the sentry does not see exempt requests.
    pub ceiling_priority: CeilingPriority,
    /// Identity of the client, where the class's share is divided: a hash of network, address, header or
    /// cookie.
    pub client_key: u64,
    /// Class under the service's candidate policy, if there is one.
    pub candidate: Option<CandidateClass>,
    /// A hash of service and host: the hot spot.
    pub host_key: u64,
    /// A hash of who asks for what (client address, user agent, cookie, target): recognises a person's retry.
    pub person_key: u64,
    /// Hash of method and path, query left out: requests of one class cost about the same.
    pub url_class: u32,
    /// Reason why the response cannot measure how well the service serves, as far as the request shows
    /// (docs/algorithms/news.md).
    pub unmeasured: Option<Unmeasured>,
}

impl Classified {
    /// The same request at another service that has the same classes, and no candidate policy.
    #[must_use]
    pub fn at_service(self, service: usize) -> Self {
        Self { service, candidate: None, ..self }
    }
}

/// The same of a policy that is only compared with the one in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CandidateClass {
    /// Its class: a place in the candidate's list.
    pub class: u8,
    /// True if the class is exempt.
    pub is_exempt: bool,
    /// Identity of the client, where the class's share is divided.
    pub client_key: u64,
}

impl Classifier {
    /// For the services of this configuration. `hasher` makes the keys of clients and hosts, `url_hasher` the
    /// classes of URLs.
    #[must_use]
    pub fn new(hasher: Hasher64, url_hasher: Hasher64, config: &Config) -> Self {
        let ceiling_priorities =
            ceiling_priority::ceiling_priorities(config.services.iter().map(|service| &service.classes[..]));
        let known =
            config.services.iter().zip(ceiling_priorities).map(|(service, ceiling_priorities)| Service {
                name: service.name.clone(),
                classes: service.classes.clone(),
                ceiling_priorities,
                candidate: service.candidate.as_ref().map(|candidate| candidate.classes.clone()),
            });
        Self {
            hasher,
            kinds: Kinds::new(hasher),
            url_hasher,
            hosts: HostTable::new(&config.services),
            services: known.collect(),
            fairness: config.fairness.clone(),
            scratch: RefCell::default(),
        }
    }

    /// A few short hashes, and the rules of the classes up to the one that fits: some hundred nanoseconds
    /// (`cargo bench -p flashweir-classify`). No allocation but for the first unusual paths.
    /// `None` for a host, or a path of a host, that no service has.
    #[must_use]
    pub fn classify<'a>(
        &self,
        head: impl Into<RequestView<'a>>,
        client: IpAddr,
        sender: Option<&str>,
    ) -> Option<Classified> {
        let head = head.into();
        let method = head.method();
        let field = |known| head.fields().get(known).unwrap_or_default();
        let (agent, cookie) = (field(KnownField::UserAgent), field(KnownField::Cookie));
        let mut scratch = self.scratch.borrow_mut();
        let Scratch { path, last } = &mut *scratch;
        let path = path::normal(head.path(), path);
        let (host, properties) = last.of(head, self.hosts.has_paths(), |host| self.properties(host, path));
        let &mut HostProperties { service: index, key: host_key, .. } = properties?;
        let service = &self.services[index];
        let asked = View { host: host.name(), path, head, client, sender };
        let CandidateClass { class, client_key, .. } = self.take(&service.classes, &asked);
        Some(Classified {
            service: index,
            class,
            ceiling_priority: service.ceiling_priorities[usize::from(class)],
            client_key,
            candidate: service.candidate.as_deref().map(|classes| self.take(classes, &asked)),
            host_key,
            person_key: self.hasher.hash(&[&octets(client), agent, cookie, method, head.path_and_query()]),
            url_class: self.url_hasher.hash(&[method, head.path()]) as u32,
            unmeasured: measurable::of_request(head),
        })
    }

    /// Properties of a host that is not the last one, for a request with this path in normal form.
    fn properties(&self, host: Host<'_>, path: &[u8]) -> Option<HostProperties> {
        let index = self.hosts.find(host.name(), path)?;
        // The same host on another service is another hot-spot.
        let key = self.hasher.hash(&[self.services[index].name.as_bytes(), host.as_bytes()]);
        Some(HostProperties { service: index, key, family: None })
    }

    /// Classification of the request by these classes.
    fn take(&self, classes: &[Class], asked: &View<'_>) -> CandidateClass {
        // The last class takes what no other does, so it is not asked.
        let last = classes.len() - 1;
        let place = classes[..last].iter().position(|class| asked.fits(&class.rules)).unwrap_or(last);
        let Class { fair_by, exempt, .. } = &classes[place];
        let client_key = client_key(fair_by, asked, &self.kinds);
        // There are at most `limits::CLASSES`.
        CandidateClass { class: place as u8, is_exempt: *exempt, client_key }
    }
}

#[cfg(test)]
mod tests;
