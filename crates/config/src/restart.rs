//! Settings that a reload cannot change.

use crate::Config;

impl Config {
    /// The first setting that differs in `new` and takes effect only at a restart; `None` when a reload can
    /// do it all.
    ///
    /// Sockets, worker threads, the TLS layer and the gate in the kernel are built once, so that a reload
    /// never drops a connection.
    ///
    /// ```
    /// use flashweir_config::Config;
    /// let old = Config::from_toml("upstream.urls = ['http://10.0.0.5']", "a.toml").unwrap();
    /// let mut new = old.clone();
    /// new.flash_crowd.margin = 0.2;
    /// assert_eq!(old.restart_needed(&new), None);
    /// new.listen.addresses[0].set_port(81);
    /// assert_eq!(old.restart_needed(&new), Some("listen.address"));
    /// ```
    #[must_use]
    pub fn restart_needed(&self, new: &Self) -> Option<&'static str> {
        let differs = [
            ("listen.address", self.listen.addresses != new.listen.addresses),
            ("listen.redirect", self.listen.redirects != new.listen.redirects),
            ("listen.tls", self.listen.tls.is_some() != new.listen.tls.is_some()),
            ("gateway.workers", self.gateway.workers != new.gateway.workers),
            ("admin.address", self.admin.address != new.admin.address),
            ("feedback.udp", self.feedback.udp != new.feedback.udp),
            ("admin.hosts", self.admin.hosts != new.admin.hosts),
            ("admin.token_file", self.admin.token != new.admin.token),
            ("cluster", self.cluster != new.cluster),
            ("replication", self.replication != new.replication),
            ("kernel.interface", self.kernel.interfaces != new.kernel.interfaces),
            ("kernel.hook", self.kernel.hook != new.kernel.hook),
            ("kernel.pin", self.kernel.pin != new.kernel.pin),
            ("log.access", self.log.access != new.log.access),
        ];
        differs.into_iter().find(|(_, differs)| *differs).map(|(key, _)| key)
    }
}
