//! An honest CPU-bound HTTP server to put behind a gateway.
