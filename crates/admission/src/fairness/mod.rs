//! Fair shares among clients while a service is short: who has more than a share, by which sign, and nothing else.
//!
//! **Decides** for each request whether it is served in its tier or from what others leave ([`Tier::Scavenger`]), **from** what requests cost
//! the service, by client and by [`Sign`]. Nobody is refused here: a demotion is an order of service. **Not part of the pipeline's order yet.**
//!
//! The rule is Purge's ([`flashweir_aqm::purge`]), with cost (service time) in place of bytes and demotion in place of drops. Each
//! period:
//!
//! > f = C / N; while the service is short, what has a cost rate over 1.15 of its share is demoted.
//!
//! * A *person* is a client with evidence of being one (a session that came back, with referers and assets): the caller judges that and
//!   must make it hard to forge. Each has the share f.
//! * Clients without evidence are judged by what they have in common. One that comes from ten thousand addresses, each polite by
//!   itself, still has one TLS fingerprint, one autonomous system or one family of URLs. A value of such a sign has the share
//!   f · max(1, people who show it), so an office behind one address has a share for each of its people.
//! * A person is judged as a person alone: a crawler that looks like a browser does not drag that browser's users down.
//! * N counts people, and clients without evidence by the sign that tells fewest of them apart: a client that splits into many
//!   addresses does not get more shares and does not make those of others smaller.
//!
//! **Cold start**: no client is demoted before the first period ends. **Recovery**: within a few averaging times after a client slows down, at
//! once when the service is no longer short. **Cost**: a count for the client and one for each sign that the request has (about 20 ns each), a pass over
//! the tables each period. **Failure modes**: new people without evidence share with everybody who looks like them until they have some; a
//! sign that all clients share and no evidence attributes to one client.
//!
//! Source: Purge §3 at the level of requests, with the repairs P-1 to P-4 and P-10 of `docs/algorithms/purge.md`.

mod settings;
mod shares;
mod sign;

pub use settings::FairnessSettings;
pub use shares::{Fairness, Tier};
pub use sign::{Cause, RequestSigns, SIGNS, Sign};
