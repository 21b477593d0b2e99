//! Messages between gateways of one cluster, as bytes: fixed fields in network order, then a key's number and
//! a tag over all before.
//!
//! Samples and plans are in the encoding of `flashweir_wire`, which has its own version. Nothing is allocated
//! by a length that the bytes behind it do not cover.

use super::seal::{Keys, SealError};
use bytes::{Buf, BufMut};
use flashweir_core::limits::GATEWAYS;
use flashweir_provisioning::shares::{Epoch, ServiceBroadcast, ServiceReport, ShareBroadcast, ShareReport};
use std::sync::Arc;

/// First bytes of a report and of a broadcast; they differ so that neither is taken for the other. The last
/// byte is the version.
const REPORT: &[u8; 4] = b"FWR\x01";
const BROADCAST: &[u8; 4] = b"FWB\x02";

/// Report of one gateway.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Report {
    /// Drawn at its start.
    pub(crate) gateway: u64,
    /// Its name, for people.
    pub(crate) name: String,
    /// Larger in each later report of this gateway.
    pub(crate) sequence: u64,
    /// The leader's term as this gateway knows it; 0 while it knows none. Reports for another term are not
    /// counted, so that none can be replayed to a later leader.
    pub(crate) term: u64,
    pub(crate) services: Vec<OfService<ServiceReport>>,
}

/// Content for one service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OfService<T> {
    pub(crate) name: String,
    /// Of the service's policy: only gateways of one policy can share a plan.
    pub(crate) policy: u64,
    pub(crate) value: T,
}

/// Broadcast of the leader.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Broadcast {
    pub(crate) term: u64,
    /// The report that it answers, and whose; zeros for all gateways.
    pub(crate) answers: (u64, u64),
    /// The leader's name, for people.
    pub(crate) leader: String,
    pub(crate) services: Vec<OfService<ServiceBroadcast>>,
}

/// Reason for which bytes are no message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MessageError {
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error("of another version of Flashweir, or not a message at all")]
    Kind,
    #[error("the bytes end early")]
    Truncated,
    #[error("{0} bytes too many")]
    TooLong(usize),
    #[error("a name that is no text")]
    Name,
    #[error("{0}")]
    Wire(#[from] flashweir_wire::DecodeError),
}

impl From<bytes::TryGetError> for MessageError {
    fn from(_: bytes::TryGetError) -> Self {
        Self::Truncated
    }
}

impl Report {
    pub(crate) fn seal(&self, keys: &Keys) -> Vec<u8> {
        let mut to = REPORT.to_vec();
        for number in [self.gateway, self.sequence, self.term] {
            to.put_u64(number);
        }
        put_text(&mut to, &self.name);
        put_services(&mut to, &self.services, |to, report| {
            let ServiceReport { share, sample, limit, knee_milli } = report;
            put_epoch(to, share.applied);
            to.put_f64(share.share);
            for number in [share.offered, share.admitted, share.in_flight, *knee_milli] {
                to.put_u64(number);
            }
            to.put_u32(*limit);
            put_bytes(to, &flashweir_wire::encode(sample));
        });
        keys.seal(to)
    }

    /// # Errors
    /// [`MessageError`]: it was changed on its way, is of another key or version, or no report.
    pub(crate) fn open(keys: &Keys, bytes: &[u8]) -> Result<Self, MessageError> {
        let mut from = content(keys, bytes, REPORT)?;
        let (gateway, sequence, term) = (from.try_get_u64()?, from.try_get_u64()?, from.try_get_u64()?);
        let name = take_text(&mut from)?;
        let services = take_services(&mut from, |from| {
            let applied = take_epoch(from)?;
            let share = from.try_get_f64()?;
            let (offered, admitted, in_flight) =
                (from.try_get_u64()?, from.try_get_u64()?, from.try_get_u64()?);
            let (knee_milli, limit) = (from.try_get_u64()?, from.try_get_u32()?);
            let sample = flashweir_wire::decode(take_bytes(from)?)?;
            let share = ShareReport { gateway, applied, share, offered, admitted, in_flight };
            Ok(ServiceReport { share, sample, limit, knee_milli })
        })?;
        end(from)?;
        Ok(Self { gateway, name, sequence, term, services })
    }
}

impl Broadcast {
    pub(crate) fn seal(&self, keys: &Keys) -> Vec<u8> {
        let mut to = BROADCAST.to_vec();
        for number in [self.term, self.answers.0, self.answers.1] {
            to.put_u64(number);
        }
        put_text(&mut to, &self.leader);
        put_services(&mut to, &self.services, |to, broadcast| {
            put_epoch(to, broadcast.shares.epoch);
            to.put_f64(broadcast.shares.limit);
            to.put_u32(broadcast.in_flight);
            put_bytes(to, &flashweir_wire::encode(&*broadcast.plan));
            to.put_u32(broadcast.shares.gateways);
            to.put_u16(broadcast.shares.shares.len().min(GATEWAYS) as u16);
            for &(gateway, share) in broadcast.shares.shares.iter().take(GATEWAYS) {
                to.put_u64(gateway);
                to.put_f64(share);
            }
        });
        keys.seal(to)
    }

    /// # Errors
    /// As [`Report::open`].
    pub(crate) fn open(keys: &Keys, bytes: &[u8]) -> Result<Self, MessageError> {
        let mut from = content(keys, bytes, BROADCAST)?;
        let (term, answers) = (from.try_get_u64()?, (from.try_get_u64()?, from.try_get_u64()?));
        let leader = take_text(&mut from)?;
        let services = take_services(&mut from, |from| {
            let epoch = take_epoch(from)?;
            let (limit, in_flight) = (from.try_get_f64()?, from.try_get_u32()?);
            let plan = Arc::new(flashweir_wire::decode(take_bytes(from)?)?);
            let gateways = from.try_get_u32()?;
            let shares = (0..from.try_get_u16()?).map(|_| Ok((from.try_get_u64()?, from.try_get_f64()?)));
            let shares = shares.collect::<Result<Vec<_>, MessageError>>()?;
            Ok(ServiceBroadcast {
                shares: ShareBroadcast { epoch, limit, gateways, shares },
                plan,
                in_flight,
            })
        })?;
        end(from)?;
        Ok(Self { term, answers, leader, services })
    }
}

/// The bytes between the kind and the tag.
fn content<'a>(keys: &Keys, bytes: &'a [u8], kind: &[u8; 4]) -> Result<&'a [u8], MessageError> {
    // The tag comes first: what was not sealed here is not looked into.
    keys.open(bytes)?.strip_prefix(kind).ok_or(MessageError::Kind)
}

fn end(from: &[u8]) -> Result<(), MessageError> {
    if from.is_empty() { Ok(()) } else { Err(MessageError::TooLong(from.len())) }
}

fn put_services<T>(to: &mut Vec<u8>, services: &[OfService<T>], put: impl Fn(&mut Vec<u8>, &T)) {
    to.put_u16(services.len() as u16);
    for service in services {
        put_text(to, &service.name);
        to.put_u64(service.policy);
        put(to, &service.value);
    }
}

fn take_services<T>(
    from: &mut &[u8],
    take: impl Fn(&mut &[u8]) -> Result<T, MessageError>,
) -> Result<Vec<OfService<T>>, MessageError> {
    let count = from.try_get_u16()?;
    let services = (0..count).map(|_| {
        let (name, policy) = (take_text(from)?, from.try_get_u64()?);
        Ok(OfService { name, policy, value: take(from)? })
    });
    services.collect()
}

fn put_epoch(to: &mut Vec<u8>, epoch: Epoch) {
    to.put_u64(epoch.term);
    to.put_u64(epoch.sequence);
}

fn take_epoch(from: &mut &[u8]) -> Result<Epoch, MessageError> {
    Ok(Epoch { term: from.try_get_u64()?, sequence: from.try_get_u64()? })
}

/// Names have 63 characters at most.
fn put_text(to: &mut Vec<u8>, text: &str) {
    to.put_u8(text.len() as u8);
    to.put_slice(text.as_bytes());
}

fn take_text(from: &mut &[u8]) -> Result<String, MessageError> {
    let length = usize::from(from.try_get_u8()?);
    let (text, rest) = from.split_at_checked(length).ok_or(MessageError::Truncated)?;
    *from = rest;
    str::from_utf8(text).map(str::to_owned).map_err(|_| MessageError::Name)
}

fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    to.put_u32(bytes.len() as u32);
    to.put_slice(bytes);
}

fn take_bytes<'a>(from: &mut &'a [u8]) -> Result<&'a [u8], MessageError> {
    let length = from.try_get_u32()? as usize;
    let (bytes, rest) = from.split_at_checked(length).ok_or(MessageError::Truncated)?;
    *from = rest;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_admission::sentry::{Policy, Sample, SentryPlanner};
    use flashweir_core::{Duration, Instant};
    use proptest::prelude::*;

    fn keys(text: &[u8]) -> Keys {
        Keys::new([(1, text)])
    }

    fn report(term: u64) -> Report {
        let share = ShareReport {
            gateway: 7,
            applied: Epoch { term, sequence: 3 },
            share: 6.25,
            offered: 40,
            admitted: 30,
            in_flight: 6,
        };
        let sample = Sample { to: Instant::from_millis(40), offered: 40, ..Sample::default() };
        let value = ServiceReport { share, sample, limit: 12, knee_milli: 9_500 };
        let services = vec![OfService { name: "shop".to_owned(), policy: 99, value }];
        Report { gateway: 7, name: "gw-1".to_owned(), sequence: 5, term, services }
    }

    fn broadcast() -> Broadcast {
        let plan = SentryPlanner::new(Arc::new(Policy::single(Duration::from_secs(1)))).current().clone();
        let shares = ShareBroadcast {
            epoch: Epoch { term: 4, sequence: 9 },
            limit: 8.0,
            gateways: 2,
            shares: vec![(3, 2.5), (7, 5.5)],
        };
        let value = ServiceBroadcast { shares, plan: Arc::new(plan), in_flight: 5 };
        let services = vec![OfService { name: "shop".to_owned(), policy: 99, value }];
        Broadcast { term: 4, answers: (7, 5), leader: "gw-0".to_owned(), services }
    }

    #[test]
    fn messages_come_back_as_they_were() {
        let keys = keys(b"correct horse battery staple");
        assert_eq!(Report::open(&keys, &report(4).seal(&keys)).expect("a report"), report(4));
        assert_eq!(Broadcast::open(&keys, &broadcast().seal(&keys)).expect("a broadcast"), broadcast());
    }

    #[test]
    fn a_message_of_another_key_or_kind_is_refused() {
        let (ours, theirs) = (keys(b"correct horse battery staple"), keys(b"another horse battery staple"));
        let sealed = report(4).seal(&theirs);
        assert!(matches!(Report::open(&ours, &sealed), Err(MessageError::Seal(SealError::Forged))));
        let sealed = broadcast().seal(&ours);
        assert!(matches!(Report::open(&ours, &sealed), Err(MessageError::Kind)));
    }

    proptest! {
        /// Goal: no byte of a message can be changed, and no end be cut off.
        #[test]
        fn a_changed_message_is_refused(place in 0usize..200, flip in 1u8.., cut in 1usize..100) {
            let keys = keys(b"correct horse battery staple");
            let sealed = report(4).seal(&keys);
            let mut changed = sealed.clone();
            let place = place % changed.len();
            changed[place] ^= flip;
            prop_assert!(Report::open(&keys, &changed).is_err());
            prop_assert!(Report::open(&keys, &sealed[..sealed.len().saturating_sub(cut)]).is_err());
        }

        /// Goal: bytes under a right tag that are no message are an error, never a panic: a gateway of
        /// another version has the same keys.
        #[test]
        fn sealed_nonsense_is_refused(kind in any::<bool>(), bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let keys = keys(b"correct horse battery staple");
            let head = if kind { REPORT } else { BROADCAST };
            let sealed = keys.seal([head.as_slice(), &bytes].concat());
            let _ = Report::open(&keys, &sealed);
            let _ = Broadcast::open(&keys, &sealed);
        }
    }
}
