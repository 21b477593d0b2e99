//! Open files: as many as the operating system allows, divided so that no flood of connections takes the last
//! ones.
//!
//! Every connection is an open file. With none left, nothing can be accepted (the admin listener included)
//! and no server reached, so the bounds on connections are lowered at start until everything fits:
//!
//! limit = [fixed](limits::DESCRIPTORS_FIXED) + admin + pipes + connections to servers + connections from
//! clients + those that only get refusals
//!
//! Servers keep up to a third of what there is to divide, and all they need where clients need less.

use flashweir_config::{Config, Protocol};
use flashweir_core::limits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit on open files to the hard one, and returns the limit then in force.
///
/// The soft limit is low (1,024) for programs that use `select`, which we do not.
pub(crate) fn raise_limit() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|current| maximum.is_none_or(|maximum| current < maximum)) {
        // Where that is forbidden, what is allowed has to do.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
    limit()
}

/// The soft limit on open files.
pub(crate) fn limit() -> usize {
    getrlimit(Resource::Nofile)
        .current
        .map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// Pipes that each worker may have of `limit` open files.
pub(crate) fn pipes_per_worker(limit: usize, workers: usize) -> usize {
    (limit / limits::PIPES_DESCRIPTOR_PARTS / (2 * workers.max(1))).min(limits::PIPES_PER_WORKER)
}

/// Minimum number of connections that are only answered that there is no room, for any limit on open files.
const REFUSE_ONLY_MIN: usize = 16;

/// Lowers the configuration's bounds on connections to what fits into `limit` open files. Says so where it
/// had to. The number of connections beyond those that are still answered that there is no room.
pub(crate) fn fit(config: &mut Config, workers: usize, limit: usize) -> usize {
    let wanted = Shares {
        clients: config.bounds.max_connections,
        refused: limits::REFUSE_ONLY_CONNECTIONS,
        servers: config.services.iter().map(|service| server_connections(&service.upstream)).sum(),
    };
    let fitting = wanted.within(limit, workers);
    if fitting == wanted {
        return fitting.refused;
    }
    tracing::warn!(
        "the limit on open files is {limit}: at most {} connections from clients (bounds.max_connections is {}) and {} to \
         servers (upstream.max_connections allows {}); raise the hard limit (LimitNOFILE=, ulimit -Hn) for more",
        fitting.clients,
        wanted.clients,
        fitting.servers,
        wanted.servers,
    );
    config.bounds.max_connections = fitting.clients;
    let per_client = &mut config.client.max_connections_per_client;
    *per_client = (*per_client).min(fitting.clients);
    if fitting.servers < wanted.servers {
        for service in &mut config.services {
            let upstream = &mut service.upstream;
            upstream.max_connections = (upstream.max_connections * fitting.servers / wanted.servers).max(1);
        }
    }
    fitting.refused
}

/// Open files that a service's servers may take.
fn server_connections(upstream: &flashweir_config::Upstream) -> usize {
    let each = match upstream.protocol {
        Protocol::Http1 => upstream.max_connections,
        Protocol::Http2 => upstream.max_connections.div_ceil(limits::STREAMS_PER_UPSTREAM_CONNECTION),
    };
    each * upstream.urls.len()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shares {
    clients: usize,
    refused: usize,
    servers: usize,
}

impl Shares {
    fn within(self, limit: usize, workers: usize) -> Self {
        let kept = limits::DESCRIPTORS_FIXED
            + workers * (limits::DESCRIPTORS_PER_WORKER + 2 * pipes_per_worker(limit, workers))
            + limits::ADMIN_CONNECTIONS
            + limits::ADMIN_PROBES;
        let available = limit.saturating_sub(kept);
        let wanted = self.clients + self.refused;
        if wanted + self.servers <= available {
            return self;
        }
        let servers = self.servers.min((available / 3).max(available.saturating_sub(wanted))).max(1);
        let from_clients = available.saturating_sub(servers);
        // Those that are only refused are an eighth of the others at most, so one in nine of all.
        let refused = (from_clients / 9).clamp(REFUSE_ONLY_MIN, self.refused);
        let clients = self.clients.min(from_clients.saturating_sub(refused)).max(1);
        Self { clients, refused, servers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(clients: usize, servers: usize, limit: usize) -> Shares {
        Shares { clients, refused: limits::REFUSE_ONLY_CONNECTIONS, servers }.within(limit, 2)
    }

    fn within(clients: usize, servers: usize, limit: usize) -> (usize, usize) {
        let Shares { clients, servers, .. } = shares(clients, servers, limit);
        (clients, servers)
    }

    #[test]
    fn what_fits_stays_and_what_does_not_leaves_room_for_the_rest() {
        assert_eq!(within(16_384, 1_024, 20_000), (16_384, 1_024));
        assert_eq!(within(16_384, 1_024, usize::MAX), (16_384, 1_024));
        for limit in [512, 1_024, 4_096, 18_000] {
            let Shares { clients, refused, servers } = shares(16_384, 1_024, limit);
            let all = clients + refused + servers;
            let kept = limit - all;
            assert!(kept >= limits::ADMIN_CONNECTIONS + limits::ADMIN_PROBES, "{limit}: {kept} are left");
            assert!(clients >= limit / 4, "{limit}: {clients} from clients");
            assert!(servers >= limit / 8 || servers == 1_024, "{limit}: {servers} to servers");
        }
        assert_eq!(within(100, 5_000, 4_096).0, 100, "clients that fit keep their bound");
        assert!(within(100, 5_000, 4_096).1 > 2_500, "and servers get what is left");
        assert_eq!(shares(8, 1_024, 20_000).refused, limits::REFUSE_ONLY_CONNECTIONS);
        assert_eq!(within(16_384, 1_024, 10), (1, 1), "a limit too low to serve with");
    }
}
