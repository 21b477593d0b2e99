//! Identity of a node in front: its address, which must be in one of the configured networks, and the name
//! that it gives itself.

use flashweir_config::Feedback;
use flashweir_core::Hasher64;
use flashweir_http1::head::FieldsView;
use http::{HeaderName, HeaderValue};
use ipnet::IpNet;
use std::net::IpAddr;

/// The field by which a node in front says its name; needed only where messages are signed, for a signature
/// is for one name.
pub(crate) const SENDER: HeaderName = HeaderName::from_static("flashweir-sender");
/// Maximum length of a gateway's name.
const NAME_BYTES: usize = 63;

/// Recognises nodes in front.
#[derive(Clone, Debug)]
pub(crate) struct SenderNames {
    networks: Vec<IpNet>,
    hasher: Hasher64,
}

/// Sender of a request, as far as overload feedback between nodes is concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sender<'a> {
    /// There are no nodes in front.
    NotAsked,
    /// A client that is none.
    Client,
    /// A node in front.
    Node(Node<'a>),
}

/// One node in front, as a request shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'a> {
    /// Names it, within one run of this gateway.
    pub(crate) key: u64,
    /// Empty if it does not say.
    pub(crate) name: &'a str,
    /// From where its requests come.
    pub(crate) address: IpAddr,
}

impl<'a> Sender<'a> {
    /// The name of a node in front, empty where it says none.
    pub(crate) fn name(self) -> Option<&'a str> {
        match self {
            Self::Node(node) => Some(node.name),
            Self::Client | Self::NotAsked => None,
        }
    }
}

impl SenderNames {
    pub(crate) fn new(feedback: &Feedback, hasher: Hasher64) -> Self {
        let networks = if feedback.is_enabled { feedback.senders.clone() } else { Vec::new() };
        Self { networks, hasher }
    }

    /// The name that a request's sender gives itself, where there are nodes in front. To be read before
    /// fields of our own are taken out.
    pub(crate) fn name_in<'a>(&self, fields: impl Into<FieldsView<'a>>) -> Option<HeaderValue> {
        if self.networks.is_empty() {
            return None;
        }
        // The head that it is in is changed before the name is used.
        HeaderValue::from_bytes(fields.into().all_named(&SENDER).next()?).ok()
    }

    /// The sender of a request: a node, where the peer is in a network of nodes. `name` is the name that it
    /// gives itself.
    pub(crate) fn recognise<'a>(&self, peer: IpAddr, name: Option<&'a HeaderValue>) -> Sender<'a> {
        if self.networks.is_empty() {
            return Sender::NotAsked;
        }
        let peer = peer.to_canonical();
        if !self.networks.iter().any(|network| network.contains(&peer)) {
            return Sender::Client;
        }
        let name = name.and_then(|value| value.to_str().ok()).filter(|name| is_name(name));
        let name = name.unwrap_or_default();
        let key = match peer {
            IpAddr::V4(address) => self.hasher.hash(&[&address.octets(), name.as_bytes()]),
            IpAddr::V6(address) => self.hasher.hash(&[&address.octets(), name.as_bytes()]),
        };
        Sender::Node(Node { key, name, address: peer })
    }
}

fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !text.is_empty() && text.len() <= NAME_BYTES && text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;

    #[test]
    fn a_node_is_its_address_and_its_name_and_a_stranger_is_none() {
        let networks = vec!["10.0.0.0/8".parse().unwrap()];
        let names = SenderNames { networks, hasher: Hasher64::new(1, 2) };
        let of = |peer: &str, name: &'static str| {
            let fields = HeaderMap::from_iter([(SENDER, HeaderValue::from_static(name))]);
            match names.recognise(peer.parse().unwrap(), names.name_in(&fields).as_ref()) {
                Sender::Node(node) => Some((node.key, node.name.to_owned())),
                Sender::Client | Sender::NotAsked => None,
            }
        };
        assert_eq!(of("192.0.2.1", "shop"), None);
        let shop = of("10.0.0.1", "shop").unwrap();
        assert_eq!(shop.1, "shop");
        assert_eq!(of("::ffff:10.0.0.1", "shop").unwrap(), shop);
        assert_ne!(of("10.0.0.2", "shop").unwrap().0, shop.0);
        assert_ne!(of("10.0.0.1", "till").unwrap().0, shop.0);
        assert_eq!(of("10.0.0.1", "two words").unwrap().1, "", "what is no name is none");
    }
}
