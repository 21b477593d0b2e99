//! The site that a cluster serves: its host, and the paths of its documents.

/// Host of the site, the same for all clients.
pub(crate) const HOST: &str = "shop.example";

/// The path of a document that caches may keep for an hour.
pub(crate) fn path(document: &str) -> String {
    format!("/work?max_age=3600&d={document}")
}
