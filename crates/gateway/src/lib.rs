//! The reverse proxy: accepts, classifies, admits, forwards and explains.
