//! A client that asks again and again, on one connection for as long as it is let.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::client::Client;
use crate::message::Message;

/// A client, and its address.
#[derive(Debug)]
pub struct Visitor {
    source: Ipv4Addr,
    server: SocketAddr,
    /// Field lines of each request.
    fields: String,
    client: Option<Client>,
}

/// A connection that is not made by then is not to be: a dropped SYN is sent again after a second.
const CONNECTS_WITHIN: Duration = Duration::from_millis(700);

impl Visitor {
    /// From this address of its namespace, with these field lines (each with its line end) in each request.
    #[must_use]
    pub fn new(source: Ipv4Addr, server: SocketAddr, fields: &str) -> Self {
        Self { source, server, fields: fields.to_owned(), client: None }
    }

    /// Asks for this; nothing where there is no connection, or it ends without an answer. Then the next
    /// request is on a new one.
    pub fn ask(&mut self, target: &str) -> Option<Message> {
        let client = match &mut self.client {
            Some(client) => client,
            none => none.insert(Client::try_connect_from(self.source, self.server, CONNECTS_WITHIN).ok()?),
        };
        let request = format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\n{}\r\n", self.fields);
        let answer = client.try_send(&request).ok().and_then(|()| client.try_response().ok());
        if answer.as_ref().is_none_or(|answer| answer.field("connection") == Some("close")) {
            self.client = None;
        }
        answer
    }

    /// The next request is on a new connection.
    pub fn hang_up(&mut self) {
        self.client = None;
    }
}
