//! The sockets for clients: those where requests are served, and those of `listen.redirect`.

use crate::error::GatewayError;
use flashweir_config::Listen;
use flashweir_http::listen::{WorkerListeners, bind, share};
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};

/// Use of a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Requests are served.
    Serve,
    /// Requests in the clear are answered with a redirect to HTTPS.
    Redirect,
}

/// All sockets, and the addresses they have.
#[derive(Debug)]
pub(crate) struct Listening {
    /// The sockets of each worker.
    pub(crate) listeners: Vec<WorkerListeners>,
    /// Addresses where requests are served, with the ports the system chose for port 0.
    pub(crate) serving: Vec<SocketAddr>,
    /// Addresses that redirect.
    pub(crate) redirecting: Vec<SocketAddr>,
}

impl Listening {
    /// Binds what is configured, or shares what a service manager opened.
    ///
    /// # Errors
    /// An address cannot be had; the service manager has no socket for an address that redirects, or no
    /// other.
    pub(crate) fn open(
        config: &Listen,
        inherited: &[TcpListener],
        workers: usize,
    ) -> Result<Self, GatewayError> {
        if inherited.is_empty() {
            let listeners = bind(&[&config.addresses[..], &config.redirects].concat(), workers)?;
            let mut serving = listeners[0].addresses().map_err(GatewayError::Start)?;
            let redirecting = serving.split_off(config.addresses.len());
            return Ok(Self { listeners, serving, redirecting });
        }
        let listeners = share(inherited, workers).map_err(GatewayError::Start)?;
        let addresses = listeners[0].addresses().map_err(GatewayError::Start)?;
        let missing = |what: fmt::Arguments<'_>| {
            GatewayError::Start(io::Error::other(format!("the service manager has no socket for {what}")))
        };
        if let Some(redirect) = config.redirects.iter().find(|redirect| !addresses.contains(redirect)) {
            return Err(missing(format_args!("listen.redirect {redirect}")));
        }
        let (redirecting, serving): (Vec<_>, Vec<_>) =
            addresses.into_iter().partition(|address| config.redirects.contains(address));
        if serving.is_empty() {
            return Err(missing(format_args!("clients beside those of listen.redirect")));
        }
        Ok(Self { listeners, serving, redirecting })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_config::Config;

    #[test]
    fn sockets_of_a_service_manager_redirect_by_their_address() {
        let sockets = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
        let [one, other] = [0, 1].map(|index: usize| sockets[index].local_addr().expect("an address"));
        let mut listen =
            Config::from_toml("upstream.urls = ['http://a']", "a.toml").expect("a configuration").listen;
        let mut open = |redirects: &[SocketAddr]| {
            listen.redirects = redirects.to_vec();
            Listening::open(&listen, &sockets, 2).map_err(|error| error.to_string())
        };
        let listening = open(&[other]).expect("one of each");
        assert_eq!((listening.serving, listening.redirecting), (vec![one], vec![other]));
        assert_eq!(listening.listeners.len(), 2);
        let error = open(&["192.0.2.1:80".parse().expect("an address")]).expect_err("none with this address");
        assert!(
            error.ends_with("the service manager has no socket for listen.redirect 192.0.2.1:80"),
            "{error}"
        );
        let error = open(&[one, other]).expect_err("none for clients");
        assert!(error.ends_with("no socket for clients beside those of listen.redirect"), "{error}");
    }
}
